//! Text coercion: scalars become texts where the Go type has texts.
//!
//! Upstream's loader converts YAML to JSON for a given Go type. Where the type is a text, a number
//! or boolean of the YAML becomes a text. Types with their own decoder are not changed.

use mainstay_schema::gojson::{self, DeclaredType, Mismatch};
use serde_json::Value;
use std::sync::Arc;

/// A value as its type; shared if no part of it is changed.
///
/// # Errors
/// The first value of a wrong type.
pub(crate) fn read(value: &Arc<Value>, kind: &DeclaredType) -> Result<Arc<Value>, Box<Mismatch>> {
    // A value that has its type needs no coercion.
    if gojson::check(value, kind).is_ok() {
        return Ok(value.clone());
    }
    let mut value = Value::clone(value);
    gojson::convert_scalars_to_text(&mut value, kind);
    gojson::check(&value, kind)?;
    Ok(Arc::new(value))
}
