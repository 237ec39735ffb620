//! Validation of `SubjectAccessReviews`.

use super::super::rules::{Errors, Node, go_structs};
use mainstay_object::{FieldError, Object, names};
use serde_json::Value;

/// Validates a `SelfSubjectAccessReview`, `SubjectAccessReview` or `LocalSubjectAccessReview`.
pub fn access_review(kind: &str, review: &Object) -> Vec<FieldError> {
    let mut errors = Errors::default();
    let empty = Value::Null;
    let field = |name: &str| review.fields().get(name).unwrap_or(&empty);
    let (spec, metadata) =
        (Node::top_level(field("spec"), "spec"), Node::top_level(field("metadata"), "metadata"));
    let (resource, path) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    let printed_path = || Some(go_structs::pointer("NonResourceAttributes", path.value()));
    if resource.is_set() && path.is_set() {
        let detail = "cannot be specified in combination with resourceAttributes";
        errors.printed(&path, printed_path(), detail);
    }
    if !resource.is_set() && !path.is_set() {
        let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        errors.printed(&resource, printed_path(), detail);
    }
    let (user, groups) = (spec.get("user"), spec.get("groups"));
    if kind != "SelfSubjectAccessReview" && user.text().is_empty() && groups.len() == 0 {
        errors.invalid(&user, "", "at least one of user or group must be specified");
    }
    selector(&resource.get("fieldSelector"), field_requirement, &mut errors);
    selector(&resource.get("labelSelector"), label_requirement, &mut errors);
    let local = kind == "LocalSubjectAccessReview";
    let is_empty = metadata.entries().all(|(name, value)| {
        name == "managedFields" || local && name == "namespace" || is_zero(value.value())
    });
    if !is_empty {
        let printed = Some(go_structs::print("ObjectMeta", metadata.value()));
        let more = if local { " except for namespace" } else { "" };
        errors.printed(&metadata, printed, format!("must be empty{more}"));
    }
    if local {
        let namespace = resource.get("namespace");
        if resource.is_set() && namespace.text() != metadata.text_of("namespace") {
            errors.invalid(&namespace, namespace.text(), "must match metadata.namespace");
        }
        if path.is_set() {
            errors.printed(&path, printed_path(), "disallowed on this kind of request");
        }
    }
    errors.into_vec()
}

/// Whether a value is the zero value of Go.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) => false,
    }
}

fn selector(node: &Node<'_, '_>, requirement: fn(&Node<'_, '_>, &mut Errors), errors: &mut Errors) {
    if !node.is_set() {
        return;
    }
    let (raw, requirements) = (node.get("rawSelector"), node.get("requirements"));
    if !raw.text().is_empty() && requirements.len() > 0 {
        errors.invalid(&raw, raw.text(), "may not specified at the same time as requirements");
    }
    if raw.text().is_empty() && requirements.len() == 0 {
        let detail = format!(
            "when {} is specified, requirements or rawSelector is required",
            node.path().as_str()
        );
        errors.required(&requirements, detail);
    }
    for item in requirements.items() {
        requirement(&item, errors);
    }
}

fn field_requirement(node: &Node<'_, '_>, errors: &mut Errors) {
    let key = node.get("key");
    if key.text().is_empty() {
        errors.required(&key, "must be specified");
    }
    values(node, errors);
}

fn label_requirement(node: &Node<'_, '_>, errors: &mut Errors) {
    values(node, errors);
    let key = node.get("key");
    errors.add_problems(&key, key.text(), names::qualified_name(key.text()));
    for value in node.get("values").items() {
        errors.add_problems(&value, value.text(), names::label_value(value.text()));
    }
}

/// Validates the values for the operator. Unknown operators are accepted.
fn values(node: &Node<'_, '_>, errors: &mut Errors) {
    let values = node.get("values");
    match node.text_of("operator") {
        "In" | "NotIn" if values.len() == 0 => {
            errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if values.len() > 0 => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&values, detail);
        }
        _ => {}
    }
}
