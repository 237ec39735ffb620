//! Embedded objects (`x-kubernetes-embedded-resource`), and decoding of metadata.

use super::Schema;
use crate::builtin;
use crate::strict::{self, UnmarshalError};
use crate::trail::{Step, Trail};
use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath, metadata, names};
use serde_json::Value;

const META: &str = "apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Decodes the metadata of an object: drops unknown fields and nulls. Returns the paths of unknown
/// fields below `path`.
pub(super) fn read_metadata(object: &mut Value, path: &str) -> Result<Vec<String>, UnmarshalError> {
    let (Some(metadata), Some(definition)) =
        (object.get_mut("metadata"), builtin::definition(META))
    else {
        return Ok(Vec::new());
    };
    if metadata.is_null() {
        return Ok(Vec::new());
    }
    strict::decode_below(definition, metadata, path)
}

/// Decodes type and metadata of each embedded object below a value.
pub(super) fn coerce(
    schema: &Schema,
    value: &mut Value,
    unknown: &mut Vec<String>,
) -> Result<(), UnmarshalError> {
    if !schema.has_embedded() {
        return Ok(());
    }
    coerce_at(schema, value, false, &Trail::default(), unknown)
        .map_err(|error| UnmarshalError::Embedded(Box::new(error)))
}

fn coerce_at(
    schema: &Schema,
    value: &mut Value,
    root: bool,
    trail: &Trail<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    if (root || schema.embedded) && value.is_object() {
        for name in ["apiVersion", "kind"] {
            if let Some(field) = value.get(name)
                && !field.is_string()
            {
                return Err(FieldError {
                    field: trail.then(Step::Field(name)).to_string(),
                    kind: FieldErrorKind::Invalid(field.clone()),
                    detail: "must be a string".to_owned(),
                });
            }
        }
        let path = trail.then(Step::Field("metadata")).to_string();
        let before = value.get("metadata").cloned();
        unknown.extend(read_metadata(value, &path).map_err(|error| {
            let kind = FieldErrorKind::Invalid(before.unwrap_or_default());
            FieldError { field: path, kind, detail: error.to_string() }
        })?);
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if let Some(schema) = schema.field(name) {
                    coerce_at(schema, field, false, &trail.then(Step::Field(name)), unknown)?;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (at, item) in items.iter_mut().enumerate() {
                    coerce_at(schema, item, false, &trail.then(Step::Index(at)), unknown)?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Decodes type and metadata of a default, which is an embedded object itself if `root`, and of each
/// embedded object below. Errors name fields below `path`.
pub(super) fn check_default(
    schema: &Schema,
    value: &Value,
    root: bool,
    path: &Trail<'_>,
) -> Result<Value, FieldError> {
    let mut value = value.clone();
    if root || schema.has_embedded() {
        coerce_at(schema, &mut value, root, path, &mut Vec::new())?;
    }
    Ok(value)
}

/// Adds the errors of embedded objects below a value, and of the value itself if `root`.
pub(super) fn validate_with_root(
    schema: &Schema,
    value: &Value,
    root: bool,
    path: &FieldPath,
    found: &mut FieldErrors,
) {
    if root && !schema.embedded && value.is_object() {
        object(value, &Trail::below(path.as_str()), found);
    }
    validate(schema, value, path, found);
}

/// Adds the errors of embedded objects below a value.
pub(super) fn validate(schema: &Schema, value: &Value, path: &FieldPath, found: &mut FieldErrors) {
    if schema.has_embedded() {
        check(schema, value, &Trail::below(path.as_str()), found);
    }
}

fn check(schema: &Schema, value: &Value, trail: &Trail<'_>, found: &mut FieldErrors) {
    if schema.embedded && value.is_object() {
        object(value, trail, found);
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(property) = schema.property(name) {
                    check(property, field, &trail.then(Step::Field(name)), found);
                } else if let Some(additional) = schema.additional() {
                    check(additional, field, &trail.then(Step::Key(name)), found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    check(schema, item, &trail.then(Step::Index(at)), found);
                }
            }
        }
        _ => {}
    }
}

fn object(value: &Value, trail: &Trail<'_>, found: &mut FieldErrors) {
    let mut report = |name: &str, kind: FieldErrorKind, detail: String| {
        found.push_with(|| FieldError {
            field: trail.then(Step::Field(name)).to_string(),
            kind,
            detail,
        });
    };
    for name in ["apiVersion", "kind"] {
        match value.get(name) {
            None => report(name, FieldErrorKind::Required, String::new()),
            Some(Value::String(text)) => {
                if let Some(detail) = type_name_problem(name, text) {
                    report(name, FieldErrorKind::Invalid(text.clone().into()), detail);
                }
            }
            Some(other) => {
                let detail = "must be a string".to_owned();
                report(name, FieldErrorKind::Invalid(other.clone()), detail);
            }
        }
    }
    if let Some(Value::Object(fields)) = value.get("metadata") {
        if found.is_full() {
            return;
        }
        let path = trail.child("metadata").to_path();
        found.extend(metadata::embedded(fields, &path));
    }
}

fn type_name_problem(field: &str, text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("must not be empty".to_owned());
    }
    if field == "apiVersion" {
        let parts = text.split('/').count();
        return (parts > 2).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let problems = names::dns1035_label(&text.to_lowercase());
    let rules = problems.join(",");
    (!problems.is_empty())
        .then(|| format!("may have mixed case, but should otherwise match: {rules}"))
}
