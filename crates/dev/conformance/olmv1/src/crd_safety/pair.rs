//! Recorded pairs of CRDs.

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// A recorded pair, as one line of `pairs.jsonl` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedPair {
    /// The number.
    pub id: String,
    /// The kind of change.
    pub group: String,
    /// What changes.
    pub title: String,
    /// The old CRD; null if there is none.
    #[serde(default)]
    pub old: Value,
    /// The new CRD.
    #[serde(default)]
    pub new: Value,
    /// Two files of published bundles instead.
    pub from: Option<PublishedPair>,
    /// The lines of operator-controller's check.
    pub preflight: Vec<String>,
    /// The configuration of `findings`.
    pub config: Option<Value>,
    /// The findings.
    #[serde(default)]
    pub findings: RecordedFindings,
    /// What the configuration failed with.
    pub config_error: Option<String>,
    /// What the check failed with.
    pub error: Option<String>,
    /// Whether the order of lines was seen to vary.
    #[serde(default)]
    pub order_varies: bool,
}

/// A CRD in two published bundles.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedPair {
    /// The file with the old CRD.
    pub old: String,
    /// The file with the new CRD.
    pub new: String,
    /// `status.storedVersions` of the old CRD.
    #[serde(default)]
    pub stored_versions: Vec<String>,
}

/// Recorded findings.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFindings {
    /// Those about the whole CRD.
    #[serde(default, rename = "crdValidation")]
    pub crd: Vec<CheckResult>,
    /// Those about a version that both have.
    #[serde(default, rename = "sameVersionValidation")]
    pub same_version: Vec<VersionResult>,
    /// Those about pairs of served versions.
    #[serde(default, rename = "servedVersionValidation")]
    pub served_version: Vec<VersionResult>,
}

/// The findings of a version or of a pair of versions.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionResult {
    /// The version, or `v1 -> v2`.
    pub version: String,
    /// The findings by property.
    #[serde(default)]
    pub property_comparisons: Vec<PropertyResult>,
}

/// The findings of a property.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PropertyResult {
    /// The path.
    pub property: String,
    /// The findings by check.
    #[serde(default)]
    pub comparison_results: Vec<CheckResult>,
}

/// The findings of a check.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckResult {
    /// The name of the check.
    pub name: String,
    /// Errors.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Warnings.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Reads `pairs.jsonl`.
///
/// # Errors
/// The file cannot be read, or a line is no pair.
pub fn read_pairs(file: &Path) -> anyhow::Result<Vec<RecordedPair>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let pair = serde_json::from_str(line);
        pairs.push(pair.with_context(|| format!("{}, line {}", file.display(), number + 1))?);
    }
    Ok(pairs)
}

impl RecordedPair {
    /// The old and the new CRD; the old one is null if there is none.
    pub(super) fn crds(&self, bundles: &Path) -> anyhow::Result<(Value, Value)> {
        let Some(published) = &self.from else { return Ok((self.old.clone(), self.new.clone())) };
        // `title` begins with the name of the CRD.
        let name = self.title.split(',').next().unwrap_or_default();
        let mut old = published_crd(&bundles.join(&published.old), name)?;
        old["status"]["storedVersions"] = published.stored_versions.clone().into();
        Ok((old, published_crd(&bundles.join(&published.new), name)?))
    }
}

fn published_crd(file: &Path, name: &str) -> anyhow::Result<Value> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let options = mainstay_yaml::Options::default();
    for document in mainstay_yaml::documents(&bytes, &options) {
        let value = document.with_context(|| file.display().to_string())?.value;
        if value["kind"] == "CustomResourceDefinition" && value["metadata"]["name"] == name {
            return Ok(value);
        }
    }
    anyhow::bail!("{} has no CustomResourceDefinition {name}", file.display())
}
