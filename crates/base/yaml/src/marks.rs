//! Byte-order marks inside a document.
//!
//! Upstream takes one for a character like any other. The parser refuses them, so it sees another
//! character in their place.

use serde_json::{Map, Value};
use std::borrow::Cow;

const MARK: char = '\u{feff}';

/// The text with another character in place of marks, one that it does not have, which is given too.
pub(crate) fn hidden(text: &str) -> (Cow<'_, str>, Option<char>) {
    if !text.contains(MARK) {
        return (Cow::Borrowed(text), None);
    }
    // Private characters: no text that uses them all has a mark.
    let Some(stand_in) = ('\u{e000}'..='\u{f8ff}').find(|&c| !text.contains(c)) else {
        return (Cow::Borrowed(text), None);
    };
    (Cow::Owned(text.replace(MARK, &stand_in.to_string())), Some(stand_in))
}

/// Puts the marks back.
pub(crate) fn shown(value: &mut Value, stand_in: char) {
    let back = |text: &str| text.replace(stand_in, &MARK.to_string());
    match value {
        Value::String(text) if text.contains(stand_in) => *text = back(text),
        Value::Array(items) => items.iter_mut().for_each(|item| shown(item, stand_in)),
        Value::Object(fields) => {
            if fields.keys().any(|key| key.contains(stand_in)) {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(key, value)| (back(&key), value))
                    .collect::<Map<_, _>>();
            }
            fields.values_mut().for_each(|value| shown(value, stand_in));
        }
        _ => {}
    }
}
