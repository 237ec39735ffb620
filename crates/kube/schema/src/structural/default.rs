//! Filling in defaults, dropping nulls that have none, and the one form of whole numbers.

use super::Schema;
use mainstay_object::FieldPath;
use serde_json::Value;

/// Fills in defaults below a value. A null that may not be null counts as missing.
pub(super) fn fill(schema: &Schema, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                if let Some(default) = &property.default {
                    match fields.get_mut(&**name) {
                        Some(present) if present.is_null() && !property.nullable => {
                            present.clone_from(default);
                        }
                        Some(_) => {}
                        None if mainstay_fault::is_on("custom-defaults-are-missing") => {}
                        None => drop(fields.insert((**name).to_owned(), (**default).clone())),
                    }
                }
            }
            if schema.properties.is_empty() && schema.additional().is_none() {
                return;
            }
            for (name, value) in fields.iter_mut() {
                match (schema.property(name), schema.additional()) {
                    (Some(property), _) => fill(property, value),
                    (None, Some(additional)) => fill_element(additional, value),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    fill_element(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn fill_element(schema: &Schema, value: &mut Value) {
    if value.is_null()
        && !schema.nullable
        && let Some(default) = &schema.default
    {
        value.clone_from(default);
    }
    fill(schema, value);
}

/// Drops fields that are null although their schema forbids it and has no default.
pub(super) fn drop_nulls(schema: &Schema, value: &mut Value) {
    drop_nulls_of(schema, value, &|_| true);
}

/// The same for those that are no error, because their schemas have no type.
pub(super) fn drop_valid_nulls(schema: &Schema, value: &mut Value) {
    drop_nulls_of(schema, value, &|schema| {
        schema.kind.is_none() && schema.validate(&Value::Null, &FieldPath::root()).is_empty()
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

/// Makes integers of numbers without a fraction, as Go writes them.
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
