//! JSON as Python's `json.dumps` writes it: recordings have digests of such texts.

use serde_json::Value;
use std::fmt::Write as _;

/// A value as Python's `json.dumps` writes it: blanks after separators, and only ASCII.
pub fn python_json(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, item)) in fields.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_text(out, name);
                out.push_str(": ");
                write(out, item);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// Only ASCII: other characters are escaped, those beyond the basic plane as two surrogates.
fn write_text(out: &mut String, text: &str) {
    for character in Value::from(text).to_string().chars() {
        if character.is_ascii() {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a text cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
}
