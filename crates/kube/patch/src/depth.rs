//! Nesting depth of values.
//!
//! Parsed values are at most [`MAX_DEPTH`] deep. Both merge patches keep that limit, because a
//! value has the same depth in the object as in the patch. A JSON patch does not: a few hundred
//! copies of an object into itself would overflow the stack of a recursive traversal.

use serde_json::Value;

/// The most nested objects and lists: the limit of `serde_json`.
pub const MAX_DEPTH: usize = 127;

/// Whether a value is deeper than `limit`. The traversal stops at that depth.
pub(crate) fn exceeds(value: &Value, limit: usize) -> bool {
    let Some(below) = limit.checked_sub(1) else { return value.is_object() || value.is_array() };
    match value {
        Value::Object(fields) => fields.values().any(|value| exceeds(value, below)),
        Value::Array(items) => items.iter().any(|value| exceeds(value, below)),
        _ => false,
    }
}

/// The message about a value deeper than [`MAX_DEPTH`].
pub(crate) fn too_deep_message() -> String {
    format!("the object would be nested deeper than {MAX_DEPTH} levels")
}
