//! JSON as Go's encoder writes it, and texts of JSON laid out as it lays them out.
//!
//! Bundle objects are compared and stored by their bytes, so the bytes have to be the same: keys
//! sorted, floats in their shortest form with exponents from 21 digits on, line separators
//! escaped, and `<`, `>`, `&` escaped or not, depending on who writes.

use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// Who writes: `<`, `>` and `&` are escaped or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Html {
    Escaped,
    Plain,
}

/// How whole numbers above 63 bits are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wide {
    /// As they are.
    Whole,
    /// As floats, which is what objects keep.
    Float,
}

/// The value as Go keeps objects: compact, escaped for HTML.
pub(crate) fn of_object(value: &Value) -> String {
    let mut out = String::with_capacity(1024);
    write(&mut out, value, Html::Escaped, Wide::Float);
    out
}

/// The value as Go's YAML reader hands it on: compact, escaped for HTML, whole numbers as written.
pub(crate) fn of_yaml(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value, Html::Escaped, Wide::Whole);
    out
}

/// Appends a value. Values are bounded in depth by the reader.
pub(crate) fn write(out: &mut String, value: &Value, html: Html, wide: Wide) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number, wide),
        Value::String(text) => write_text(out, text, html),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(out, item, html, wide);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(out, name, html);
                out.push(':');
                write(out, value, html, wide);
            }
            out.push('}');
        }
    }
}

fn write_number(out: &mut String, number: &Number, wide: Wide) {
    // Writing to a text never fails.
    let _ = match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(whole), ..) => write!(out, "{whole}"),
        (None, Some(whole), _) if wide == Wide::Whole => write!(out, "{whole}"),
        (.., float) => {
            out.push_str(&float_text(float.unwrap_or_default()));
            Ok(())
        }
    };
}

/// A float as Go's JSON encoder writes it.
pub(crate) fn float_text(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        }
    } else {
        format!("{float}")
    }
}

/// Appends a text in quotes.
pub(crate) fn write_text(out: &mut String, text: &str, html: Html) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut done = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        let plain = PLAIN[usize::from(byte)];
        if plain == 0 || (plain == 1 && html == Html::Plain) {
            at += 1;
            continue;
        }
        let (escape, length): (Cow<'static, str>, usize) = match byte {
            b'"' => ("\\\"".into(), 1),
            b'\\' => ("\\\\".into(), 1),
            b'\n' => ("\\n".into(), 1),
            b'\r' => ("\\r".into(), 1),
            b'\t' => ("\\t".into(), 1),
            8 => ("\\b".into(), 1),
            12 => ("\\f".into(), 1),
            0xe2 => match bytes.get(at + 1..at + 3) {
                Some([0x80, 0xa8]) => ("\\u2028".into(), 3),
                Some([0x80, 0xa9]) => ("\\u2029".into(), 3),
                _ => {
                    at += 1;
                    continue;
                }
            },
            other => (format!("\\u{other:04x}").into(), 1),
        };
        out.push_str(&text[done..at]);
        out.push_str(&escape);
        at += length;
        done = at;
    }
    out.push_str(&text[done..]);
    out.push('"');
}

/// What to do with a byte of a text: 0 nothing, 1 escape it for HTML, 2 look closer.
const PLAIN: [u8; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = 2;
        at += 1;
    }
    table[b'"' as usize] = 2;
    table[b'\\' as usize] = 2;
    table[0xe2] = 2;
    table[b'<' as usize] = 1;
    table[b'>' as usize] = 1;
    table[b'&' as usize] = 1;
    table
};

/// The text in quotes, `<`, `>` and `&` as they are.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_text(&mut out, text, Html::Plain);
    out
}

/// Appends a JSON text (which is known to be sound) with every level indented by `step` blanks,
/// the first one by `depth` times that.
pub(crate) fn indent(out: &mut String, json: &str, step: usize, mut depth: usize) {
    let bytes = json.as_bytes();
    let mut at = 0;
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        for _ in 0..depth * step {
            out.push(' ');
        }
    };
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = at + text_length(&bytes[at..]);
                out.push_str(&json[at..end]);
                at = end;
                continue;
            }
            open @ (b'{' | b'[') => {
                out.push(char::from(open));
                let inside = at + 1 + blanks(&bytes[at + 1..]);
                if matches!(bytes.get(inside), Some(b'}' | b']')) {
                    out.push(char::from(bytes[inside]));
                    at = inside;
                } else {
                    depth += 1;
                    newline(out, depth);
                }
            }
            close @ (b'}' | b']') => {
                depth = depth.saturating_sub(1);
                newline(out, depth);
                out.push(char::from(close));
            }
            b',' => {
                out.push(',');
                newline(out, depth);
            }
            b':' => out.push_str(": "),
            b' ' | b'\t' | b'\n' | b'\r' => {}
            other => out.push(char::from(other)),
        }
        at += 1;
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// How long the quoted text at the beginning is, quotes included.
fn text_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        for (text, escaped, plain) in [
            ("a", "\"a\"", "\"a\""),
            ("<b>&", "\"\\u003cb\\u003e\\u0026\"", "\"<b>&\""),
            (
                "\u{8}\u{c}\n\r\t\u{1}\u{7f}",
                "\"\\b\\f\\n\\r\\t\\u0001\u{7f}\"",
                "\"\\b\\f\\n\\r\\t\\u0001\u{7f}\"",
            ),
            ("a\u{2028}b\u{2029}€", "\"a\\u2028b\\u2029€\"", "\"a\\u2028b\\u2029€\""),
            ("\"\\/", "\"\\\"\\\\/\"", "\"\\\"\\\\/\""),
        ] {
            let mut out = String::new();
            write_text(&mut out, text, Html::Escaped);
            assert_eq!(out, escaped);
            assert_eq!(quoted(text), plain);
        }
    }

    #[test]
    fn floats_have_exponents_where_go_gives_them() {
        for (float, text) in [
            (0.1, "0.1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (0.000_001, "0.000001"),
            (-2.5e30, "-2.5e+30"),
            (0.0, "0"),
        ] {
            assert_eq!(float_text(float), text);
        }
        let wide = json!([u64::MAX, i64::MAX]);
        assert_eq!(of_object(&wide), "[18446744073709552000,9223372036854775807]");
        assert_eq!(of_yaml(&wide), "[18446744073709551615,9223372036854775807]");
    }

    #[test]
    fn a_text_of_json_is_laid_out_whatever_its_blanks() {
        let mut out = String::new();
        indent(&mut out, "{ \"a\" : [ ], \"b\":{\n}, \"c\":[1,\"x y\\\"\"]}", 4, 0);
        assert_eq!(
            out,
            "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n        1,\n        \"x y\\\"\"\n    ]\n}"
        );
    }
}
