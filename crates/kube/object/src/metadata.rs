//! Validation of object metadata for all kinds, embedded objects included.
//!
//! The rules for names differ between kinds and are elsewhere (`mainstay_kinds::Strategy`).

use crate::names;
use crate::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
use mainstay_gocompat::values;
use serde_json::{Map, Value};

/// The most bytes that all annotations of an object may have together.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;

fn fields(value: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let fields = value.and_then(Value::as_object).into_iter().flatten();
    fields.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// The errors of `labels`, which are at `path`.
pub fn labels(labels: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut found = FieldErrors::default();
    for (key, value) in fields(labels) {
        let keys = names::qualified_name(key).into_iter().map(|problem| (key, problem));
        let values = names::label_value(value).into_iter().map(|problem| (value, problem));
        found.extend(keys.chain(values).map(|(what, why)| FieldError::invalid(path, what, why)));
    }
    found.into_vec()
}

/// The errors of `annotations`, which are at `path`.
pub fn annotations(annotations: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut found = FieldErrors::default();
    let mut size = 0;
    for (key, value) in fields(annotations) {
        let problems = names::qualified_name(&key.to_lowercase());
        found.extend(problems.into_iter().map(|why| FieldError::invalid(path, key, why)));
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_MAX {
        let kind = FieldErrorKind::TooLong(Some(ANNOTATIONS_MAX as u64));
        found.push(FieldError::new(path, kind, ""));
    }
    found.into_vec()
}

/// The errors of `ownerReferences`, which are at `path`. Upstream names no index.
pub fn owners(owners: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut found = FieldErrors::default();
    let all = owners.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut controller: Option<String> = None;
    for owner in all {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let api_version = text("apiVersion");
        let version = match api_version.split('/').collect::<Vec<_>>().as_slice() {
            [version] | [_, version] => *version,
            _ => "",
        };
        if version.is_empty() {
            let why = "version must not be empty";
            found.push(FieldError::invalid(&path.child("apiVersion"), api_version, why));
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                found.push(FieldError::invalid(&path.child(field), "", "must not be empty"));
            }
        }
        if api_version == "v1" && text("kind") == "Event" {
            let kind = FieldErrorKind::InvalidText(print_owner(owner));
            let why = "/v1, Kind=Event is disallowed from being an owner";
            found.push(FieldError::new(path, kind, why));
        }
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let this = format!("{}/{}", text("kind"), text("name"));
        match &controller {
            Some(first) => {
                found.push_with(|| {
                    let all: Vec<String> = all.iter().map(print_owner).collect();
                    let kind = FieldErrorKind::InvalidText(format!("[{}]", all.join(",")));
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    FieldError::new(path, kind, why)
                });
            }
            None => controller = Some(this),
        }
    }
    found.into_vec()
}

/// An owner reference as messages print it: in the order of the Go struct's fields.
fn print_owner(owner: &Value) -> String {
    let mut out = String::from("{");
    for field in ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"] {
        if let Some(value) = owner.get(field).filter(|value| !value.is_null()) {
            if out.len() > 1 {
                out.push(',');
            }
            values::write_text(field, &mut out);
            out.push(':');
            values::write_json(value, &mut out);
        }
    }
    out.push('}');
    out
}

/// The errors of `finalizers` that hold for every kind; `path` is their path.
pub fn finalizers(finalizers: Option<&Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut found = FieldErrors::default();
    let all = finalizers.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for finalizer in all.iter().filter_map(Value::as_str) {
        let problems = names::qualified_name(finalizer);
        found.extend(problems.into_iter().map(|why| FieldError::invalid(path, finalizer, why)));
    }
    if ["orphan", "foregroundDeletion"]
        .iter()
        .all(|name| all.iter().any(|finalizer| finalizer == name))
    {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        found.push(FieldError::invalid(path, all.to_vec(), why));
    }
    found.into_vec()
}

/// The errors of the metadata of an embedded object, which is at `path`. Its name may be missing or
/// any text that can be a URL segment.
pub fn embedded(metadata: &Map<String, Value>, path: &FieldPath) -> Vec<FieldError> {
    let mut found = Vec::new();
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    for (field, name) in [("generateName", text("generateName")), ("name", text("name"))] {
        // Fewer rules hold for a prefix: it may be `.`.
        let exempt = field == "generateName" && matches!(name, "." | "..");
        let problems = if exempt { Vec::new() } else { names::path_segment(name) };
        let at = path.child(field);
        found.extend(problems.into_iter().map(|why| FieldError::invalid(&at, name, why)));
    }
    let namespace = text("namespace");
    if !namespace.is_empty() {
        let at = path.child("namespace");
        let problems = names::dns1123_label(namespace);
        found.extend(problems.into_iter().map(|why| FieldError::invalid(&at, namespace, why)));
    }
    let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation < 0 {
        let why = "must be greater than or equal to 0";
        found.push(FieldError::invalid(&path.child("generation"), generation, why));
    }
    found.extend(labels(metadata.get("labels"), &path.child("labels")));
    found.extend(annotations(metadata.get("annotations"), &path.child("annotations")));
    found.extend(owners(metadata.get("ownerReferences"), &path.child("ownerReferences")));
    found.extend(finalizers(metadata.get("finalizers"), &path.child("finalizers")));
    let managed = metadata.get("managedFields").and_then(Value::as_array).into_iter().flatten();
    for (at, entry) in managed.enumerate() {
        let path = path.child("managedFields").index(at);
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            let why = "must be `Apply` or `Update`";
            found.push(FieldError::invalid(&path.child("operation"), text("operation"), why));
        }
        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            let why = "must be `FieldsV1`";
            found.push(FieldError::invalid(&path.child("fieldsType"), text("fieldsType"), why));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_rule_has_the_message_of_upstream() {
        let metadata = json!({
            "name": "a/b", "namespace": "A", "generation": -1, "labels": {"a/b/c": "x"},
            "annotations": {"B": "good"}, "finalizers": ["orphan", "foregroundDeletion"],
            "ownerReferences": [
                {"uid": "u", "kind": "K", "name": "n", "apiVersion": "a/b/c", "controller": true},
                {"uid": "u", "kind": "Event", "name": "n", "apiVersion": "v1", "controller": true},
            ],
            "managedFields": [{"operation": "X", "fieldsType": "Y"}],
        });
        let errors = embedded(metadata.as_object().unwrap(), &FieldPath::new("m"));
        let heads: Vec<String> = errors
            .iter()
            .map(|error| error.to_string().chars().take(60).collect::<String>())
            .collect();
        assert_eq!(
            heads,
            [
                "m.name: Invalid value: \"a/b\": may not contain '/'",
                "m.namespace: Invalid value: \"A\": a lowercase RFC 1123 label ",
                "m.generation: Invalid value: -1: must be greater than or equ",
                "m.labels: Invalid value: \"a/b/c\": a valid label key must con",
                "m.ownerReferences.apiVersion: Invalid value: \"a/b/c\": versio",
                "m.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":",
                "m.ownerReferences: Invalid value: [{\"apiVersion\":\"a/b/c\",\"ki",
                "m.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]",
                "m.managedFields[0].operation: Invalid value: \"X\": must be `A",
                "m.managedFields[0].fieldsType: Invalid value: \"Y\": must be `",
            ]
        );
    }
}
