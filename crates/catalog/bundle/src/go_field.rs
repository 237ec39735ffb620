//! Field lookup as Go's JSON decoder does it.

use serde_json::Value;

/// A field by its exact name, or else by its name in any case; the last one counts.
pub(crate) fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    mainstay_schema::gojson::field_in_any_case(value.as_object()?, name)
}

/// The text of a field; empty where there is none.
pub(crate) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    field(value, name).and_then(Value::as_str).unwrap_or_default()
}
