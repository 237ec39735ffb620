//! Validation of annotation keys, OperatorGroups and package manifests.

use super::{
    csv_fields::items,
    decode,
    finding::{BadValue, ManifestResult, ValidationFinding},
    text_coercion,
};
use crate::{decode_error::FirstDocumentError, go_field, types};
use mainstay_gocompat::quote;
use mainstay_schema::gojson::DeclaredType;
use serde_json::Value;

/// Keys that have an effect only in this case.
const KEYS: &[&str] = &[
    "olm.operatorGroup",
    "olm.operatorNamespace",
    "olm.targetNamespaces",
    "olm.providedAPIs",
    "olm.skipRange",
];

/// Findings for annotations, with their keys; `value` is the value in upstream's message.
pub(crate) fn findings<'a>(
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
    value: &str,
) -> Vec<(&'a str, ValidationFinding)> {
    let mut found = Vec::new();
    for (key, _) in annotations {
        let spelling = KEYS.iter().find(|right| right.to_lowercase() == key.to_lowercase());
        if let Some(right) = spelling.filter(|right| **right != key) {
            let detail =
                format!("provided annotation {key} uses wrong case and should be {right} instead");
            let finding = ValidationFinding::error(
                "ValidationFailed",
                BadValue::Text(value.to_owned()),
                detail,
            );
            found.push((key, finding.with_remedy(format!("write {right}"))));
        }
        if key == "olm.properties" {
            let detail = "found olm.properties annotation, please define these properties in \
                          metadata/properties.yaml instead";
            let bad = BadValue::Text(String::new());
            let finding = ValidationFinding::warning("PropertiesAnnotationUsed", bad, detail);
            found.push((key, finding.with_remedy("move them to metadata/properties.yaml")));
        }
    }
    found
}

/// Validates an OperatorGroup of any version.
pub fn validate_operator_group(object: &Value) -> ManifestResult {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    let annotations = metadata.get("annotations").and_then(Value::as_object);
    let entries = annotations.into_iter().flatten();
    let entries = entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()));
    let mut found = ManifestResult::default();
    found.extend(findings(entries, name).into_iter().map(|(_, finding)| finding));
    found
}

/// Validates a package manifest, the format of packages before bundles.
///
/// # Errors
/// If the text has no document, or one that is not a package manifest.
pub fn validate_package_manifest(text: &[u8]) -> Result<ManifestResult, FirstDocumentError> {
    let kind = DeclaredType::Struct(&types::PACKAGE_MANIFEST);
    let value = decode::document(text).map_err(|refused| refused.reason)?.value;
    let value = text_coercion::read(&value, &kind).map_err(|mismatch| mismatch.reason)?;
    let package = go_field::text(&value, "packageName");
    let mut found = ManifestResult::new(package);
    let mut add = |detail: String| {
        let detail = format!("({package}) {detail}");
        found.add(ValidationFinding::error(
            "PackageManifestNotValid",
            BadValue::Text(String::new()),
            detail,
        ));
    };
    if package.is_empty() {
        add("packageName empty".to_owned());
    }
    let channels = items(&value, "channels");
    if channels.is_empty() {
        add("channels empty".to_owned());
        return Ok(found);
    }
    let default = go_field::text(&value, "defaultChannel");
    if default.is_empty() && channels.len() > 1 {
        add("default channel is empty but more than one channel exists".to_owned());
    }
    let mut seen: Vec<&str> = Vec::new();
    for (number, channel) in channels.iter().enumerate() {
        let name = go_field::text(channel, "name");
        if name.is_empty() {
            add(format!("channel {number} name is empty"));
        }
        if go_field::text(channel, "currentCSV").is_empty() {
            add(format!("channel {} currentCSV is empty", quote(name)));
        }
        if seen.contains(&name) {
            add(format!("duplicate package manifest channel name {}", quote(name)));
        }
        seen.push(name);
    }
    if !default.is_empty() && !seen.contains(&default) {
        let default = quote(default);
        add(format!("default channel {default} not found in the list of declared channels"));
    }
    Ok(found)
}
