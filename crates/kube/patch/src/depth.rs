//! How deep values may be.
//!
//! Values that were parsed are at most [`MAX_DEPTH`] deep. The two merge patches keep that: what
//! they put stands as deep in the object as it stands in the patch. A JSON patch does not: a few
//! hundred copies of an object into itself would make one that nobody can walk without running out
//! of stack.

use serde_json::Value;

/// How many objects and lists may stand inside each other: what `serde_json` parses.
pub const MAX_DEPTH: usize = 127;

/// Whether more than `most` objects and lists stand inside each other. Looks no deeper than that.
pub(crate) fn exceeds(value: &Value, most: usize) -> bool {
    let Some(below) = most.checked_sub(1) else { return value.is_object() || value.is_array() };
    match value {
        Value::Object(fields) => fields.values().any(|value| exceeds(value, below)),
        Value::Array(items) => items.iter().any(|value| exceeds(value, below)),
        _ => false,
    }
}

/// The refusal of what is deeper than [`MAX_DEPTH`].
pub(crate) fn refusal() -> String {
    format!("the object would be nested deeper than {MAX_DEPTH} levels")
}
