//! The inline configuration of a ClusterExtension, checked against the schema of its bundle.

use super::{
    ConfigurationError, DeploymentConfig, RegistryV1Bundle, schema, schema_validation, yaml,
};
use mainstay_yaml::Options;
use serde_json::Value;

/// A configuration that is valid for its bundle.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub(super) watch: Option<String>,
    pub(super) deployment: Option<DeploymentConfig>,
}

/// Reads a configuration (YAML or JSON; absent means empty) for an operator in the namespace `own`.
///
/// # Errors
/// If the text is not YAML, or violates the schema of the bundle.
pub(super) fn read(
    bundle: &RegistryV1Bundle,
    text: Option<&[u8]>,
    own: &str,
    deployment_config: bool,
) -> Result<Configuration, ConfigurationError> {
    let value = parse(text.unwrap_or(b"{}"))?;
    let findings = schema_validation::check(
        &schema::without_components(bundle, deployment_config),
        &value,
        own,
    );
    if !findings.is_empty() {
        return Err(ConfigurationError::Schema { findings });
    }
    let deployment = match value.get("deploymentConfig") {
        Some(value) if deployment_config => {
            Some(DeploymentConfig::read(value).map_err(ConfigurationError::DecodeDeployments)?)
        }
        _ => None,
    };
    let watch = value.get("watchNamespace").and_then(Value::as_str).map(str::to_owned);
    Ok(Configuration { watch, deployment })
}

/// The first document of a text. Upstream keeps only the end of the parser's message.
fn parse(text: &[u8]) -> Result<Value, ConfigurationError> {
    match mainstay_yaml::documents(text, &Options::default()).next() {
        None => Ok(Value::Null),
        Some(Ok(document)) => Ok(document.value),
        Some(Err(error)) => {
            let words = yaml::document_error(text, &error);
            let end = words.rsplit(':').next().unwrap_or_default().trim();
            Err(ConfigurationError::ParseYaml(end.to_owned()))
        }
    }
}
