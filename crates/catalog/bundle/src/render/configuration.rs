//! What somebody configures of a bundle.

use super::{
    ConfigurationError, DeploymentConfig, RegistryV1Bundle, schema, schema_validation, yaml,
};
use mainstay_yaml::Options;
use serde_json::Value;

/// A configuration that fits its bundle.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub(super) watch: Option<String>,
    pub(super) deployment: Option<DeploymentConfig>,
}

/// Reads a configuration (YAML or JSON; none is an empty one) for an operator in a namespace.
///
/// # Errors
/// If it is no YAML, or does not have the schema of the bundle.
pub(super) fn read(
    content: &RegistryV1Bundle,
    text: Option<&[u8]>,
    own: &str,
    deployment_config: bool,
) -> Result<Configuration, ConfigurationError> {
    let value = parse(text.unwrap_or(b"{}"))?;
    let findings = schema_validation::check(&schema::of(content, deployment_config), &value, own);
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

/// The first document of a text; upstream keeps only the end of what its reader says.
fn parse(text: &[u8]) -> Result<Value, ConfigurationError> {
    match mainstay_yaml::documents(text, &Options::default()).next() {
        None => Ok(Value::Null),
        Some(Ok(document)) => Ok(document.value),
        Some(Err(error)) => {
            let words = yaml::of_text(text, &error);
            let end = words.rsplit(':').next().unwrap_or_default().trim();
            Err(ConfigurationError::ParseYaml(end.to_owned()))
        }
    }
}
