//! Object metadata: its validation, and its text in Go's `%v`.

use crate::go_field;
use mainstay_object::{FieldError, FieldPath, metadata};
use serde_json::Value;

/// Errors of labels, annotations, owner references and finalizers.
pub(crate) fn validate_parts(found: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("metadata");
    let mut errors = Vec::new();
    if found.get("generation").and_then(Value::as_i64).is_some_and(|generation| generation < 0) {
        let value = found.get("generation").cloned().unwrap_or_default();
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(&path.child("generation"), value, why));
    }
    errors.extend(metadata::labels(found.get("labels"), &path.child("labels")));
    errors.extend(metadata::annotations(found.get("annotations"), &path.child("annotations")));
    errors.extend(metadata::owners(found.get("ownerReferences"), &path.child("ownerReferences")));
    errors.extend(metadata::finalizers(found.get("finalizers"), &path.child("finalizers")));
    errors
}

/// Errors of the metadata of an object that OLM applies to a cluster.
pub(crate) fn validate_applied(found: &Value) -> Vec<FieldError> {
    let path = FieldPath::new("metadata");
    let has = |name: &str| !go_field::text(found, name).is_empty();
    let mut errors = Vec::new();
    // Upstream ignores generateName.
    if !has("name") {
        let why = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), why));
    }
    if has("namespace") {
        errors.push(FieldError::forbidden(&path.child("namespace"), "not allowed on this type"));
    }
    errors.extend(validate_parts(found));
    errors
}

/// The type of an object as `%v` prints it: kind, then apiVersion.
pub(crate) fn print_type(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{{{} {}}}", text("kind"), text("apiVersion"))
}

/// Metadata as `%v` prints it.
pub(crate) fn print_metadata(found: &Value) -> String {
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    let pointer = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "<nil>",
        Some(_) => "{ptr}",
    };
    let map = |name: &str| match found.get(name).and_then(Value::as_object) {
        None => "map[]".to_owned(),
        Some(entries) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{key}:{}", value.as_str().unwrap_or_default())
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("map[{}]", entries.join(" "))
        }
    };
    let list =
        |name: &str| found.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let owner = |owner: &Value| {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        format!(
            "{{{} {} {} {} {} {}}}",
            text("apiVersion"),
            text("kind"),
            text("name"),
            text("uid"),
            pointer(owner.get("controller")),
            pointer(owner.get("blockOwnerDeletion"))
        )
    };
    let owners: Vec<String> = list("ownerReferences").iter().map(owner).collect();
    let finalizers: Vec<&str> = list("finalizers").iter().filter_map(Value::as_str).collect();
    let created = match text("creationTimestamp") {
        "" => "0001-01-01 00:00:00 +0000 UTC".to_owned(),
        text => text.replace('T', " ").replace('Z', " +0000 UTC"),
    };
    format!(
        "{{{} {} {} {} {} {} {} {created} {} {} {} {} [{}] [{}] []}}",
        text("name"),
        text("generateName"),
        text("namespace"),
        text("selfLink"),
        text("uid"),
        text("resourceVersion"),
        found.get("generation").and_then(Value::as_i64).unwrap_or_default(),
        pointer(found.get("deletionTimestamp")),
        pointer(found.get("deletionGracePeriodSeconds")),
        map("labels"),
        map("annotations"),
        owners.join(" "),
        finalizers.join(" "),
    )
}
