//! Reading and filling JSON fields, tersely: strategies are mostly that.

use mainstay_object::Object;
use serde_json::{Map, Value};

/// The fields of a JSON object.
pub type Fields = Map<String, Value>;

/// Sets a field that is absent or null, or the empty string where a string is expected: Go does
/// not tell an empty string from an absent one.
pub fn fill(fields: &mut Fields, key: &str, value: impl Into<Value>) {
    let value = value.into();
    match fields.get(key) {
        None | Some(Value::Null) => {}
        Some(Value::String(present)) if present.is_empty() && value.is_string() => {}
        Some(_) => return,
    }
    fields.insert(key.to_owned(), value);
}

/// As [`fill`] for plain integers: zero is absent to Go.
pub(crate) fn fill_number(fields: &mut Fields, key: &str, value: i64) {
    if fields.get(key).and_then(Value::as_i64) == Some(0) {
        fields.remove(key);
    }
    fill(fields, key, value);
}

/// The object in a field, if there is one.
pub fn inner<'a>(fields: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    fields.get_mut(key)?.as_object_mut()
}

/// The object in a field, made if it is absent; none if something else is there.
pub(crate) fn open<'a>(fields: &'a mut Fields, key: &str) -> Option<&'a mut Fields> {
    fill(fields, key, Fields::new());
    inner(fields, key)
}

/// Every object of the list in a field.
pub fn each(fields: &mut Fields, key: &str, mut change: impl FnMut(&mut Fields)) {
    let elements = fields.get_mut(key).and_then(Value::as_array_mut);
    for element in elements.into_iter().flatten() {
        if let Some(fields) = element.as_object_mut() {
            change(fields);
        }
    }
}

/// The string in a field; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The same, of fields.
pub fn text_in<'a>(fields: &'a Fields, key: &str) -> &'a str {
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

/// A field of the object; null if absent.
pub(crate) fn field<'a>(object: &'a Object, key: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    object.fields().get(key).unwrap_or(&NULL)
}
