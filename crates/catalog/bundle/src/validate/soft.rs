//! Scalars where Go expects texts.
//!
//! Upstream's loader turns YAML into JSON with an eye on the Go type that is filled: where that is a
//! text, a number or a truth value of the YAML becomes one. Types that read themselves are left
//! alone.

use mainstay_schema::gojson::{self, DeclaredType, Mismatch};
use serde_json::Value;
use std::sync::Arc;

/// A value as it is read into the kind: the very same one if nothing of it has to be rewritten.
///
/// # Errors
/// What does not fit.
pub(crate) fn read(value: &Arc<Value>, kind: &DeclaredType) -> Result<Arc<Value>, Box<Mismatch>> {
    // What fits has texts wherever texts are expected.
    if gojson::check(value, kind).is_ok() {
        return Ok(value.clone());
    }
    let mut value = Value::clone(value);
    gojson::convert_scalars_to_text(&mut value, kind);
    gojson::check(&value, kind)?;
    Ok(Arc::new(value))
}
