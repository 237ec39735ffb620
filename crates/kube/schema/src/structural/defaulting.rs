//! Defaulting, dropping of nulls, and normalization of whole numbers.

use super::Schema;
use mainstay_object::FieldPath;
use mainstay_object::size::{defaults_limit, json_length};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;

/// Sets defaults below a value, up to the size limit of stores. A null that is not allowed counts as
/// missing.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    fill_up(schema, value, &mut { defaults_limit() });
}

/// The default, if the remaining bytes allow it.
fn take<'a>(default: &'a Value, remaining: &mut usize) -> Option<&'a Value> {
    if *remaining == 0 {
        return None;
    }
    *remaining = remaining.saturating_sub(json_length(default));
    Some(default)
}

fn fill_up(schema: &Schema, value: &mut Value, remaining: &mut usize) {
    if !schema.any_default || *remaining == 0 {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, property) in schema.defaulted.iter().map(|at| &schema.properties[*at]) {
                if let Some(default) = &property.default {
                    match fields.get_mut(&**name) {
                        Some(present) if present.is_null() && !property.nullable => {
                            if let Some(default) = take(default, remaining) {
                                present.clone_from(default);
                            }
                        }
                        Some(_) => {}
                        None if mainstay_fault::is_on("custom-defaults-are-missing") => {}
                        None => {
                            if let Some(default) = take(default, remaining) {
                                fields.insert((**name).to_owned(), default.clone());
                            }
                        }
                    }
                }
            }
            if schema.properties.is_empty() && schema.additional().is_none() {
                return;
            }
            for (name, value) in fields.iter_mut() {
                match (schema.property(name), schema.additional()) {
                    (Some(property), _) => fill_up(property, value, remaining),
                    (None, Some(additional)) => fill_element(additional, value, remaining),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    fill_element(schema, item, remaining);
                }
            }
        }
        _ => {}
    }
}

fn fill_element(schema: &Schema, value: &mut Value, remaining: &mut usize) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
        && let Some(default) = take(default, remaining)
    {
        value.clone_from(default);
    }
    fill_up(schema, value, remaining);
}

/// Drops null fields whose schema does not allow null and has no default.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    drop_nulls_of(schema, value, &|_| true);
}

/// As [`drop_nulls`], only for nulls that are valid because their schemas have no type.
pub(super) fn drop_valid_nulls(schema: &Schema, value: &mut Value) {
    // A value may have many nulls of one schema, so the result is cached by schema.
    let cache: RefCell<HashMap<*const Schema, bool>> = RefCell::default();
    drop_nulls_of(schema, value, &|schema| {
        schema.kind.is_none()
            && *cache
                .borrow_mut()
                .entry(std::ptr::from_ref(schema))
                .or_insert_with(|| schema.validate(&Value::Null, &FieldPath::root()).is_empty())
    });
}

fn drop_nulls_of(schema: &Schema, value: &mut Value, drops: &impl Fn(&Schema) -> bool) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let Some(schema) = schema.field(name) else { return true };
                if value.is_null() && !schema.nullable && schema.default.is_none() {
                    return !drops(schema);
                }
                drop_nulls_of(schema, value, drops);
                true
            });
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    drop_nulls_of(schema, item, drops);
                }
            }
        }
        _ => {}
    }
}

/// Converts numbers without a fraction to integers, as Go writes them.
pub(super) fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or_default();
            #[expect(clippy::cast_possible_truncation, reason = "whole, and inside the bounds")]
            if float.fract() == 0.0 && float.abs() < 1e15 {
                *number = (float as i64).into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}
