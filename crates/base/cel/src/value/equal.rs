//! Equality and order of values.
//!
//! `null` equals only `null`, numbers are compared by value, and values of different kinds are
//! unequal. As in Kubernetes, lists and maps of an object on the left side cannot be compared with
//! other kinds: `dyn(self.list) == 1` is an error, `1 == dyn(self.list)` is not.

use super::{
    Error, ListValue, MapKey, MapValue, ObjectValue, Value, WorkBudget, list_type, number,
};
use crate::kubernetes::{ListShape, ShapeKind, ValueShape, names};
use serde_json::{Map as JsonMap, Value as Json};
use std::cmp::Ordering;

type Equal = Result<bool, Error>;

impl Value<'_> {
    /// Whether two values are equal by `==`.
    ///
    /// # Errors
    ///
    /// If a value of an object or a library cannot be compared, or if data does not match its
    /// schema.
    pub fn equals(&self, other: &Value<'_>, work: &WorkBudget) -> Equal {
        match (self, other) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Null, _) | (_, Value::Null) => Ok(false),
            _ => self.raw_equals(other, work),
        }
    }

    /// As [`Self::equals`], where only the left value decides about `null`.
    pub(super) fn raw_equals(&self, other: &Value<'_>, work: &WorkBudget) -> Equal {
        match (self, other) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
            (Value::String(one), Value::String(other)) => same_text(one, other, work),
            (Value::Bytes(one), Value::Bytes(other)) => Ok(one == other),
            (Value::Duration(one), Value::Duration(other)) => Ok(one == other),
            (Value::Timestamp(one), Value::Timestamp(other)) => Ok(one == other),
            (Value::Type(one), Value::Type(other)) => Ok(one.name() == other.name()),
            (Value::List(one), _) => list(one, other, work),
            (Value::Map(MapValue::Json { entries, shape }), _) if !shape.is_dynamic() => {
                declared(entries, shape, other, work)
            }
            (Value::Map(one), _) => Ok(map(one, other, work)),
            (Value::Object(ObjectValue::Json { fields, shape }), _) => {
                declared(fields, shape, other, work)
            }
            (
                Value::Object(ObjectValue::Values { name, fields }),
                Value::Object(ObjectValue::Values { name: other_name, fields: other_fields }),
            ) => {
                if name != other_name || fields.len() != other_fields.len() {
                    return Ok(false);
                }
                for (field, value) in fields.iter() {
                    let Some(other) = other_fields.get(field) else { return Ok(false) };
                    if !value.equals(other, work)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Optional(None), Value::Optional(other)) => Ok(other.is_none()),
            (Value::Optional(Some(one)), Value::Optional(Some(other))) => {
                one.raw_equals(other, work)
            }
            (Value::Opaque(one), _) => one.equals(other),
            (Value::Preserved(one), _) => preserved(one, other, work),
            // Values with an order are not `NaN`.
            _ => Ok(matches!(number::compare(self, other), Some(Ok(Ordering::Equal)))),
        }
    }

    /// The order of two values, for `<`, `<=`, `>` and `>=`.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchOverload`] if they have no order, and an error for `NaN`.
    pub fn compare(&self, other: &Value<'_>) -> Result<Ordering, Error> {
        match (self, other) {
            (Value::Bool(one), Value::Bool(other)) => Ok(one.cmp(other)),
            (Value::String(one), Value::String(other)) => Ok(one.as_str().cmp(other)),
            (Value::Bytes(one), Value::Bytes(other)) => Ok(one.as_slice().cmp(other)),
            (Value::Duration(one), Value::Duration(other)) => Ok(one.cmp(other)),
            (Value::Timestamp(one), Value::Timestamp(other)) => Ok(one.cmp(other)),
            (Value::Double(one), _) if one.is_nan() => Err(number::NOT_ORDERED),
            _ => number::compare(self, other).unwrap_or(Err(Error::NoSuchOverload)),
        }
    }
}

fn list(one: &ListValue<'_>, other: &Value<'_>, work: &WorkBudget) -> Equal {
    let kind = one.declared();
    let Value::List(other) = other else {
        return if kind.is_some() { Err(Error::NoSuchOverload) } else { Ok(false) };
    };
    if one.len() != other.len() {
        return Ok(false);
    }
    work.take(one.len())?;
    match kind {
        None => {
            for (one, other) in one.iter(work).zip(other.iter(work)) {
                // Elements that cannot be compared do not make lists of expressions unequal.
                let (Ok(one), Ok(other)) = (one, other) else { return Ok(false) };
                if one.equals(&other, work) == Ok(false) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Some(ListShape::Atomic) => {
            for (one, other) in one.iter(work).zip(other.iter(work)) {
                let one = one?;
                let equal = match other {
                    Ok(other) => one.raw_equals(&other, work)?,
                    Err(error) if one.is_declared() => return Err(error),
                    Err(_) => false,
                };
                if !equal {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        Some(ListShape::Set) => Ok(list_type::same_set(one, other, work)),
        Some(ListShape::Map(properties)) => list_type::same_by_keys(one, other, properties, work),
    }
}

fn map(one: &MapValue<'_>, other: &Value<'_>, work: &WorkBudget) -> bool {
    let other_len = match other {
        Value::Map(map) => map.len(),
        Value::Object(object @ ObjectValue::Json { .. }) => object.len(),
        _ => return false,
    };
    // The evaluation checks later whether work remains.
    if one.len() != other_len || work.take(one.len()).is_err() {
        return false;
    }
    for (key, value) in one.iter(work) {
        let other = match other {
            Value::Object(object) => object.get_by_value(&key, work),
            Value::Map(map) => map.get(&key, work),
            _ => return false,
        };
        let (Ok(value), Ok(Some(other))) = (value, other) else { return false };
        if value.equals(&other, work) == Ok(false) {
            return false;
        }
    }
    true
}

/// Compares a map or object of a schema with any value.
fn declared(
    entries: &JsonMap<String, Json>,
    shape: &ValueShape,
    other: &Value<'_>,
    work: &WorkBudget,
) -> Equal {
    let (other_len, other_json) = match other {
        Value::Map(map @ MapValue::Json { entries, shape }) => {
            (map.len(), (!shape.is_dynamic()).then_some(*entries))
        }
        Value::Map(map) => (map.len(), None),
        Value::Object(ObjectValue::Json { fields, .. }) => (fields.len(), Some(*fields)),
        _ => return Err(Error::NoSuchOverload),
    };
    if entries.len() != other_len {
        return Ok(false);
    }
    work.take(entries.len())?;
    for (key, json) in entries {
        let is_declared = match &shape.kind {
            ShapeKind::Object(object) => object.fields.contains_key(key.as_str()),
            _ => true,
        };
        if !is_declared {
            // Undeclared fields are compared as data. A field of one side only is covered by the
            // count above.
            match other_json.map(|other| other.get(key)) {
                None => return Err(Error::NoSuchOverload),
                Some(Some(other)) if !same_data(json, other, work)? => return Ok(false),
                Some(_) => continue,
            }
        }
        let value = match &shape.kind {
            ShapeKind::Object(object) => {
                // As in Kubernetes, the key is unescaped like a name in a rule.
                let Some(name) = names::unescape(key) else { continue };
                match (entries.get(&*name), object.fields.get(&*name)) {
                    (None | Some(Json::Null), _) | (_, None) => None,
                    (Some(json), Some(field)) => Some(field.shape.view(json, work)),
                }
            }
            _ => Some(shape.element().view(json, work)),
        };
        let key = MapKey::String(key.as_str().into()).to_value();
        let other = match other {
            Value::Map(map) => map.get(&key, work),
            Value::Object(object) => object.get_by_value(&key, work),
            _ => Ok(None),
        };
        let equal = match (value, other) {
            (None, Ok(None)) => continue,
            (None, _) | (_, Ok(None)) => false,
            (Some(value), Ok(Some(other))) => value?.raw_equals(&other, work)?,
            (Some(value), Err(error)) => {
                if value?.is_declared() {
                    return Err(error);
                }
                false
            }
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Compares data without a schema with any value: they are equal if the data is the same.
fn preserved(one: &Json, other: &Value<'_>, work: &WorkBudget) -> Equal {
    match other {
        Value::Preserved(other) => same_data(one, other, work),
        Value::Bool(other) => Ok(one.as_bool() == Some(*other)),
        Value::Int(other) => Ok(one.as_i64() == Some(*other)),
        Value::Double(other) => Ok(one.is_f64() && one.as_f64() == Some(*other)),
        Value::String(other) => one.as_str().map_or(Ok(false), |one| same_text(one, other, work)),
        Value::Map(MapValue::Json { entries: other, .. })
        | Value::Object(ObjectValue::Json { fields: other, .. }) => {
            one.as_object().map_or(Ok(false), |one| same_fields(one, other, work))
        }
        Value::List(ListValue::Json { items, .. }) => {
            one.as_array().map_or(Ok(false), |one| same_items(one, items, work))
        }
        _ => Ok(false),
    }
}

/// Whether data is the same, recursively.
fn same_data(one: &Json, other: &Json, work: &WorkBudget) -> Equal {
    match (one, other) {
        (Json::String(one), Json::String(other)) => same_text(one, other, work),
        (Json::Array(one), Json::Array(other)) => same_items(one, other, work),
        (Json::Object(one), Json::Object(other)) => same_fields(one, other, work),
        _ => Ok(one == other),
    }
}

fn same_items(one: &[Json], other: &[Json], work: &WorkBudget) -> Equal {
    if one.len() != other.len() {
        return Ok(false);
    }
    work.take(one.len())?;
    for (one, other) in one.iter().zip(other) {
        if !same_data(one, other, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn same_fields(
    one: &JsonMap<String, Json>,
    other: &JsonMap<String, Json>,
    work: &WorkBudget,
) -> Equal {
    if one.len() != other.len() {
        return Ok(false);
    }
    work.take(one.len())?;
    for (name, one) in one {
        if !other.get(name).map_or(Ok(false), |other| same_data(one, other, work))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Short texts cost no work.
fn same_text(one: &str, other: &str, work: &WorkBudget) -> Equal {
    if one.len() == other.len() && one.len() >= 64 {
        work.read_text(one.len())?;
    }
    Ok(one == other)
}
