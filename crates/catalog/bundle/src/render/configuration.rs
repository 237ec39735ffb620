//! What somebody configures of a bundle.

use super::{Content, DeploymentConfig, RenderError, Stage, evaluate, schema, yaml};
use mainstay_yaml::Options;
use serde_json::Value;

/// A configuration that fits its bundle.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    pub(super) watch: Option<String>,
    pub(super) deployment: Option<DeploymentConfig>,
}

/// Reads a configuration (YAML or JSON; none is an empty one) for an operator in a namespace.
pub(super) fn read(
    content: &Content,
    text: Option<&[u8]>,
    own: &str,
    deployment_config: bool,
) -> Result<Configuration, RenderError> {
    let refuse = |why: String| {
        let before = "invalid ClusterExtension configuration: invalid configuration: ";
        RenderError::new(Stage::Configuration, format!("{before}{why}"))
    };
    let value = parse(text.unwrap_or(b"{}")).map_err(refuse)?;
    let mut lines = evaluate::check(&schema::of(content, deployment_config), &value, own);
    match lines.len() {
        0 => {}
        1 => return Err(refuse(lines.remove(0))),
        _ => {
            let list = lines.join("\n  - ");
            return Err(refuse(format!("multiple errors found:\n  - {list}")));
        }
    }
    let deployment = match value.get("deploymentConfig") {
        Some(value) if deployment_config => {
            let read = DeploymentConfig::read(value).map_err(|why| {
                let before = "invalid deploymentConfig: failed to unmarshal deploymentConfig: ";
                RenderError::new(Stage::Configuration, format!("{before}{why}"))
            })?;
            Some(read)
        }
        _ => None,
    };
    let watch = value.get("watchNamespace").and_then(Value::as_str).map(str::to_owned);
    Ok(Configuration { watch, deployment })
}

/// The first document of a text; upstream keeps only the end of what its reader says.
fn parse(text: &[u8]) -> Result<Value, String> {
    match mainstay_yaml::documents(text, &Options::default()).next() {
        None => Ok(Value::Null),
        Some(Ok(document)) => Ok(document.value),
        Some(Err(error)) => {
            let words = yaml::of_text(text, &error);
            Err(words.rsplit(':').next().unwrap_or_default().trim().to_owned())
        }
    }
}
