//! Field names as Go's JSON decoder finds them: exactly, or else whatever the case.

use serde_json::{Map, Value};

/// The value of `field` in an object: the exact name, or else one that differs only in case.
pub(crate) fn get<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    get_in(object.as_object()?, field)
}

/// As [`get`], on the fields of an object.
pub(crate) fn get_in<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    fields
        .get(field)
        .or_else(|| fields.iter().find(|(name, _)| same(name, field)).map(|(_, value)| value))
}

/// Whether `name` is `field`, whatever the case: of letters, and of the two signs beyond ASCII that
/// are other forms of letters.
pub(crate) fn same(name: &str, field: &str) -> bool {
    name.eq_ignore_ascii_case(field)
        || (!name.is_ascii()
            && name.replace('\u{17f}', "s").replace('\u{212a}', "k").eq_ignore_ascii_case(field))
}
