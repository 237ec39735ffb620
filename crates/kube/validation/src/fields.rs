//! Access to JSON fields, and defaults for them: the vocabulary of the strategies.

use serde_json::{Map, Value};

/// The fields of a JSON object.
pub type FieldMap = Map<String, Value>;

/// Sets a field that is absent or null, or an empty string if the default is a string: Go does not
/// distinguish an empty string from an absent one.
pub fn set_default(fields: &mut FieldMap, key: &str, value: impl Into<Value>) {
    let value = value.into();
    match fields.get(key) {
        None | Some(Value::Null) => {}
        Some(Value::String(present)) if present.is_empty() && value.is_string() => {}
        Some(_) => return,
    }
    fields.insert(key.to_owned(), value);
}

/// As [`set_default`] for integers without a pointer in Go: zero counts as absent.
pub(crate) fn set_default_number(fields: &mut FieldMap, key: &str, value: i64) {
    if fields.get(key).and_then(Value::as_i64) == Some(0) {
        fields.remove(key);
    }
    set_default(fields, key, value);
}

/// The object in a field, if there is one.
pub fn object_mut<'a>(fields: &'a mut FieldMap, key: &str) -> Option<&'a mut FieldMap> {
    fields.get_mut(key)?.as_object_mut()
}

/// The object in a field, inserted if it is absent; none if the field has another type.
pub(crate) fn object_or_insert<'a>(
    fields: &'a mut FieldMap,
    key: &str,
) -> Option<&'a mut FieldMap> {
    set_default(fields, key, FieldMap::new());
    object_mut(fields, key)
}

/// Calls a function for each object of the list in a field.
pub fn for_each_object(fields: &mut FieldMap, key: &str, mut change: impl FnMut(&mut FieldMap)) {
    let elements = fields.get_mut(key).and_then(Value::as_array_mut);
    for element in elements.into_iter().flatten() {
        if let Some(fields) = element.as_object_mut() {
            change(fields);
        }
    }
}

/// The string in a field of a value; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The string in a field of an object; empty if there is none.
pub fn text_in<'a>(fields: &'a FieldMap, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The integer in a field.
pub(crate) fn number(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

/// The elements of the list in a field.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
