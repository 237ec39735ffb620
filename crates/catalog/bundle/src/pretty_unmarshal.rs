//! Pretty unmarshal errors of operator-registry: the whole JSON text, indented, with an arrow
//! behind the value that does not have its type.

use mainstay_gocompat::json::{Html, Numbers};
use mainstay_schema::gojson::{Mismatch, TypeError, ValuePathStep};
use serde_json::Value;

/// The message with the text and the arrow. `json` is `value` as compact JSON.
pub(crate) fn format_mismatch(json: &str, value: &Value, mismatch: &Mismatch) -> String {
    let reason = &mismatch.reason;
    if !matches!(reason, TypeError::WrongValue { .. } | TypeError::WrongField { .. }) {
        return reason.to_string();
    }
    let Some(offset) = offset(value, &mismatch.path, mismatch.opens) else {
        return reason.to_string();
    };
    let indented = mainstay_gocompat::json::indent(json);
    // Without indentation, both texts have the same characters before the position.
    let pretty = indented.as_bytes();
    let mut at = 0;
    for byte in json.bytes().take(offset) {
        while pretty.get(at).is_some_and(|found| *found != byte) {
            at += 1;
        }
        at += 1;
    }
    let at = at.min(indented.len());
    format!(
        "{reason} at offset {offset} (indicated by <==)\n{} <== {}",
        indented.get(..at).unwrap_or(&indented),
        indented.get(at..).unwrap_or_default()
    )
}

/// The offset in the compact text of the end of a value; with `opens`, of the byte after its first.
fn offset(value: &Value, path: &[ValuePathStep], opens: bool) -> Option<usize> {
    let mut before = 0;
    let mut value = value;
    let length =
        |value: &Value| mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Object).len();
    let name_length = |name: &str| {
        let mut text = String::new();
        mainstay_gocompat::json::text(&mut text, name, Html::Escaped);
        text.len() + 1
    };
    for step in path {
        before += 1;
        match (value, step) {
            (Value::Object(fields), ValuePathStep::Field(name)) => {
                for (key, other) in fields.iter().take_while(|(key, _)| *key != name) {
                    before += name_length(key) + length(other) + 1;
                }
                before += name_length(name);
                value = fields.get(name)?;
            }
            (Value::Array(items), ValuePathStep::Item(at)) => {
                before += items.iter().take(*at).map(|item| length(item) + 1).sum::<usize>();
                value = items.get(*at)?;
            }
            _ => return None,
        }
    }
    Some(before + if opens { 1 } else { length(value) })
}
