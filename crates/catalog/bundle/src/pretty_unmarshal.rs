//! How upstream shows where in a JSON text a value has another kind than expected: the whole text,
//! laid out, with an arrow behind the value.

use mainstay_gocompat::json::{Html, Numbers};
use mainstay_schema::gojson::{Mismatch, Step, TypeError};
use serde_json::Value;

/// The message with the text and the arrow. `json` is `value` written compactly.
pub(crate) fn mismatch(json: &str, value: &Value, mismatch: &Mismatch) -> String {
    let reason = &mismatch.reason;
    if !matches!(reason, TypeError::WrongValue { .. } | TypeError::WrongField { .. }) {
        return reason.to_string();
    }
    let Some(offset) = offset(value, &mismatch.path, mismatch.opens) else {
        return reason.to_string();
    };
    let laid_out = mainstay_gocompat::json::indent(json);
    // The place in the laid-out text is behind as many characters that are no layout.
    let pretty = laid_out.as_bytes();
    let mut at = 0;
    for byte in json.bytes().take(offset) {
        while pretty.get(at).is_some_and(|found| *found != byte) {
            at += 1;
        }
        at += 1;
    }
    let at = at.min(laid_out.len());
    format!(
        "{reason} at offset {offset} (indicated by <==)\n{} <== {}",
        laid_out.get(..at).unwrap_or(&laid_out),
        laid_out.get(at..).unwrap_or_default()
    )
}

/// How many bytes of the compact text stand before the end of a value (or before what is behind
/// its first character).
fn offset(value: &Value, path: &[Step], opens: bool) -> Option<usize> {
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
            (Value::Object(fields), Step::Field(name)) => {
                for (key, other) in fields.iter().take_while(|(key, _)| *key != name) {
                    before += name_length(key) + length(other) + 1;
                }
                before += name_length(name);
                value = fields.get(name)?;
            }
            (Value::Array(items), Step::Item(at)) => {
                before += items.iter().take(*at).map(|item| length(item) + 1).sum::<usize>();
                value = items.get(*at)?;
            }
            _ => return None,
        }
    }
    Some(before + if opens { 1 } else { length(value) })
}
