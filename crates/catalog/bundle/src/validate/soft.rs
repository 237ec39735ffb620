//! Scalars where Go expects texts.
//!
//! Upstream's loader turns YAML into JSON with an eye on the Go type that is filled: where that is a
//! text, a number or a truth value of the YAML becomes one. Types that read themselves are left
//! alone.

use crate::csv::number_text;
use crate::{
    mismatch::Mismatch,
    shape::{self, Kind, Shape},
};
use mainstay_schema::builtin::{self, Definition, Type};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A value as it is read into the kind: the very same one if nothing of it has to be rewritten.
///
/// # Errors
/// What does not fit.
pub(crate) fn read(value: &Arc<Value>, kind: &Kind) -> Result<Arc<Value>, Mismatch> {
    // What fits has texts wherever texts are expected.
    if shape::check_kind(value, kind).is_ok() {
        return Ok(value.clone());
    }
    let mut value = Value::clone(value);
    soften(&mut value, kind);
    shape::check_kind(&value, kind)?;
    Ok(Arc::new(value))
}

/// Rewrites a value that is read into the kind.
fn soften(value: &mut Value, kind: &Kind) {
    match (kind, value) {
        (Kind::Text, value) => text(value),
        (Kind::TextMap, Value::Object(fields)) => fields.values_mut().for_each(text),
        (Kind::One(shape) | Kind::Pointers(shape), Value::Object(fields)) => {
            structure(fields, shape);
        }
        (Kind::Many(element), Value::Array(items)) => {
            for item in items {
                soften(item, element);
            }
        }
        (Kind::Pointers(shape), Value::Array(items)) => {
            for item in items {
                soften(item, &Kind::One(shape));
            }
        }
        (Kind::Kube(name), value) => {
            if let Some(definition) = builtin::definition(name) {
                kube(value, definition);
            }
        }
        _ => {}
    }
}

fn structure(fields: &mut Map<String, Value>, shape: &'static Shape) {
    for (key, value) in fields {
        let exact = shape.fields.iter().find(|(name, _)| name == key);
        let in_any_case = || shape.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
        if let Some((_, kind)) = exact.or_else(in_any_case) {
            soften(value, kind);
        }
    }
}

fn kube(value: &mut Value, definition: &'static Definition) {
    let (builtin::Shape::Object, Value::Object(fields)) = (definition.shape(), value) else {
        return;
    };
    for (key, value) in fields {
        let in_any_case =
            || definition.fields().iter().find(|it| it.name.eq_ignore_ascii_case(key));
        if let Some(field) = definition.field(key).or_else(in_any_case) {
            of_type(value, &field.ty);
        }
    }
}

fn of_type(value: &mut Value, ty: &'static Type) {
    match (ty, value) {
        (Type::String, value) => text(value),
        (Type::List(element), Value::Array(items)) => {
            for item in items {
                of_type(item, element);
            }
        }
        (Type::Map(element), Value::Object(fields)) => {
            for item in fields.values_mut() {
                of_type(item, element);
            }
        }
        (Type::Object(reference), value) => {
            if let Some(definition) = reference.definition() {
                kube(value, definition);
            }
        }
        _ => {}
    }
}

fn text(value: &mut Value) {
    let words = match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) if number.is_u64() => number.to_string(),
        Value::Number(number) => number_text(number),
        _ => return,
    };
    *value = Value::String(words);
}
