//! Duplicate elements of lists of type set and map.

use super::{ListType, Schema};
use crate::trail::{Step, Trail};
use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// Adds the duplicate elements below a value.
pub(super) fn validate(schema: &Schema, value: &Value, path: &FieldPath, found: &mut FieldErrors) {
    visit(schema, value, &Trail::below(path.as_str()), found);
}

fn visit(schema: &Schema, value: &Value, trail: &Trail<'_>, found: &mut FieldErrors) {
    match value {
        Value::Array(items) => {
            match schema.list_type {
                Some(ListType::Set) => check_set(items, trail, found),
                Some(ListType::Map) => check_map(schema, items, trail, found),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(schema) = &schema.items {
                for (at, item) in items.iter().enumerate() {
                    visit(schema, item, &trail.then(Step::Index(at)), found);
                }
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(additional) = schema.additional() {
                    visit(additional, field, &trail.then(Step::Key(name)), found);
                }
                if let Some(property) = schema.property(name) {
                    visit(property, field, &trail.then(Step::Field(name)), found);
                }
            }
        }
        _ => {}
    }
}

/// Indexes of elements that are equal to an earlier one; each value is reported once.
fn duplicates(values: &[String]) -> Vec<usize> {
    let mut counts: HashMap<&str, usize> = HashMap::with_capacity(values.len());
    let mut found = Vec::new();
    for (at, value) in values.iter().enumerate() {
        let count = counts.entry(value).or_default();
        *count += 1;
        if *count == 2 {
            found.push(at);
        }
    }
    found
}

fn check_set(items: &[Value], trail: &Trail<'_>, found: &mut FieldErrors) {
    if items.len() < 2 {
        return;
    }
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    for at in duplicates(&texts) {
        found.push_with(|| duplicate(trail, at, items[at].clone()));
    }
}

fn check_map(schema: &Schema, items: &[Value], trail: &Trail<'_>, found: &mut FieldErrors) {
    if let Some(at) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        found.push_with(|| FieldError {
            field: trail.then(Step::Index(at)).to_string(),
            kind: FieldErrorKind::Invalid(items[at].clone()),
            detail: "must be an object for an array of list-type map".to_owned(),
        });
        return;
    }
    if items.len() < 2 || mainstay_fault::is_on("keys-of-list-maps-repeat") {
        return;
    }
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let mut key = Map::new();
            for name in &schema.list_map_keys {
                if let Some(value) = item.get(&**name) {
                    key.insert((**name).to_owned(), value.clone());
                }
            }
            Value::Object(key)
        })
        .collect();
    let texts: Vec<String> = keys.iter().map(ToString::to_string).collect();
    for at in duplicates(&texts) {
        found.push_with(|| duplicate(trail, at, keys[at].clone()));
    }
}

fn duplicate(trail: &Trail<'_>, at: usize, value: Value) -> FieldError {
    FieldError {
        field: trail.then(Step::Index(at)).to_string(),
        kind: FieldErrorKind::Duplicate(value),
        detail: String::new(),
    }
}
