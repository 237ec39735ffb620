//! Checks of `operator-sdk` 1.42 beyond the validators (`upstream-sdk` §1.9).

use super::{
    LibraryVersion,
    csv_fields::{gvk_of, gvk_text},
    decode::{self, Refused},
    finding::{BadValue, ManifestResult, ValidationFinding},
    load::LoadedBundle,
    metadata::validate_applied,
    registry::KINDS,
    text_coercion,
};
use crate::{decode_error::FirstDocumentError, go_field};
use mainstay_object::FieldError;
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType};
use serde_json::{Number, Value};
use std::{collections::BTreeMap, sync::Arc};

/// The kind that the older library does not have.
const NEW_KIND: &str = "PodMonitor";

static ANNOTATED: DeclaredType = DeclaredType::Struct(&DeclaredStruct {
    name: "AnnotationMetadata",
    spelled: "bundle.AnnotationMetadata",
    fields: &[("annotations", DeclaredType::TextMap)],
});

/// The bundle annotations of a file; empty if the file has none.
///
/// # Errors
/// If the first document of the file cannot be parsed, or has annotations that are not texts.
pub fn annotations(bytes: &[u8]) -> Result<BTreeMap<String, String>, FirstDocumentError> {
    let value = match decode::document(bytes) {
        Ok(decoded) => decoded.value,
        Err(Refused { reason: FirstDocumentError::NoDocument, .. }) => Arc::default(),
        Err(refused) => return Err(refused.reason),
    };
    let value = text_coercion::read(&value, &ANNOTATED).map_err(|mismatch| mismatch.reason)?;
    let found = go_field::field(&value, "annotations").and_then(Value::as_object);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(found.into_iter().flatten().map(|(key, value)| (key.clone(), text(value))).collect())
}

/// Findings for the objects of a bundle except its ClusterServiceVersion and CRDs. `media_type` is
/// the media type of the bundle; newer versions of the `library` accept more kinds.
pub fn objects(
    subject: &LoadedBundle,
    media_type: &str,
    library: LibraryVersion,
) -> ManifestResult {
    let mut found = ManifestResult::new(subject.name.clone());
    for (at, manifest) in subject.manifests.iter().enumerate() {
        let kind = manifest.kind();
        if matches!(kind, "ClusterServiceVersion" | "CustomResourceDefinition") {
            continue;
        }
        let is_known =
            KINDS.contains(&kind) && (library != LibraryVersion::V034 || kind != NEW_KIND);
        if media_type == "registry+v1" && !is_known {
            let gvk = gvk_of(manifest.value());
            let gvk = gvk_text(&gvk.group, &gvk.version, &gvk.kind);
            let detail = format!("unsupported media type {media_type} for bundle object");
            found.add(
                ValidationFinding::error("BundleNotValid", BadValue::Text(gvk), detail).at(at, &[]),
            );
            continue;
        }
        if let Some(why) = metadata_error(manifest.value()) {
            let bad = BadValue::Text(manifest.name().to_owned());
            found.add(ValidationFinding::error("ValidationFailed", bad, why).at(at, &[]));
        }
    }
    found
}

/// Why the metadata of an object is invalid.
fn metadata_error(value: &Value) -> Option<String> {
    let mut metadata = value.get("metadata").cloned().unwrap_or_default();
    if let Some(fields) = metadata.as_object_mut() {
        // Upstream drops maps and lists with values that are not texts.
        fields.retain(|name, value| match name.as_str() {
            "labels" | "annotations" => {
                value.as_object().is_some_and(|all| all.values().all(Value::is_string))
            }
            "finalizers" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            _ => true,
        });
    }
    let metadata = &metadata;
    let errors = validate_applied(metadata);
    (!errors.is_empty()).then(|| {
        let errors = FieldError::join(&errors);
        format!("error validating object: {errors}. &{{{}}}", format_go_value(value))
    })
}

/// Messages of the current Kubernetes version, changed to those of the version in operator-sdk
/// 1.42.
pub fn to_older_messages(text: &str) -> String {
    let mut text =
        text.replace("must be no more than 63 bytes", "must be no more than 63 characters");
    for field in ["kind", "name", "uid"] {
        let before = format!("metadata.ownerReferences.{field}: Invalid value: \"\": ");
        text =
            text.replace(&format!("{before}must not be"), &format!("{before}{field} must not be"));
    }
    text
}

/// A value decoded from JSON as Go's `%v` prints it.
pub fn format_go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format_number(number),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(format_go_value).collect::<Vec<_>>().join(" "))
        }
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            let one = |(key, value): (&String, &Value)| format!("{key}:{}", format_go_value(value));
            format!("map[{}]", sorted.into_iter().map(one).collect::<Vec<_>>().join(" "))
        }
    }
}

/// A number: integers in full, floats in their shortest form, with an exponent if very small or
/// large.
fn format_number(number: &Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.is_f64()) else {
        return number.to_string();
    };
    let short = format!("{value:e}");
    let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..21).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_formatted_as_by_go() {
        let value = json!({"b": [1, 2.5, null, true], "a": {"x y": "z"}, "c": [], "d": {}});
        assert_eq!(format_go_value(&value), "map[a:map[x y:z] b:[1 2.5 <nil> true] c:[] d:map[]]");
        for (number, text) in
            [(1e21, "1e+21"), (1.5e-7, "1.5e-07"), (1e20, "100000000000000000000")]
        {
            assert_eq!(format_go_value(&json!(number)), text);
        }
    }

    #[test]
    fn older_messages_name_the_field() {
        for (newer, older) in [
            ("must be no more than 63 bytes", "must be no more than 63 characters"),
            (
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": uid must not be empty",
            ),
            ("must not be empty", "must not be empty"),
        ] {
            assert_eq!(to_older_messages(newer), older);
        }
    }

    #[test]
    fn annotations_are_texts() {
        let found = annotations(b"annotations: {a: b, c: 1}\n");
        assert!(found.is_ok_and(|found| found.get("a").is_some_and(|text| text == "b")));
        assert_eq!(annotations(b""), Ok(BTreeMap::new()));
        let why = annotations(b"annotations: [a]\n").unwrap_err().to_string();
        assert!(
            why.starts_with("error unmarshaling JSON: while decoding JSON: json: cannot"),
            "{why}"
        );
    }
}
