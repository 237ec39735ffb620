//! JSON strings.

use super::Html;
use std::fmt::Write;

/// Appends a text in quotes.
pub fn text(out: &mut String, text: &str, html: Html) {
    out.push('"');
    escape(out, text, html);
    out.push('"');
}

/// The text in quotes, `<`, `>` and `&` as they are.
pub fn quoted(words: &str) -> String {
    let mut out = String::with_capacity(words.len() + 2);
    text(&mut out, words, Html::Plain);
    out
}

/// Bytes as a text in quotes. Each byte that is not UTF-8 becomes a replacement character.
pub fn text_of_bytes(bytes: &[u8], html: Html) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        escape(&mut out, chunk.valid(), html);
        for _ in chunk.invalid() {
            out.push_str("\\ufffd");
        }
    }
    out.push('"');
    out
}

fn escape(out: &mut String, text: &str, html: Html) {
    let bytes = text.as_bytes();
    let (mut done, mut at) = (0, 0);
    loop {
        // Most texts are long without escapes; the compiler vectorizes the test of a stride.
        while let Some(stride) = bytes.get(at..at + STRIDE)
            && stride.iter().fold(0, |found, &byte| found | may_need_escape(byte)) == 0
        {
            at += STRIDE;
        }
        let is_candidate = |&byte: &u8| {
            let escape = ESCAPES[usize::from(byte)];
            escape == Escape::Always || (escape == Escape::Html && html == Html::Escaped)
        };
        let Some(found) = bytes[at..].iter().position(is_candidate) else { break };
        at += found;
        let byte = bytes[at];
        let length = if byte == 0xe2 { 3 } else { 1 };
        if byte == 0xe2 && !matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) {
            at += 1;
            continue;
        }
        out.push_str(&text[done..at]);
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            8 => out.push_str("\\b"),
            12 => out.push_str("\\f"),
            0xe2 => out.push_str(if bytes[at + 2] == 0xa8 { "\\u2028" } else { "\\u2029" }),
            // Writing to a string cannot fail.
            other => drop(write!(out, "\\u{other:04x}")),
        }
        at += length;
        done = at;
    }
    out.push_str(&text[done..]);
}

const STRIDE: usize = 32;

/// Not 0 if a byte may need an escape; the same as [`ESCAPES`], without a table.
fn may_need_escape(byte: u8) -> u8 {
    u8::from(byte < 0x20)
        | u8::from(byte == b'"')
        | u8::from(byte == b'\\')
        | u8::from(byte == b'<')
        | u8::from(byte == b'>')
        | u8::from(byte == b'&')
        | u8::from(byte == 0xe2)
}

/// Whether a byte needs an escape.
#[derive(Clone, Copy, PartialEq)]
enum Escape {
    None,
    /// Only with [`Html::Escaped`].
    Html,
    /// Always, or after a check of the next bytes.
    Always,
}

const ESCAPES: [Escape; 256] = {
    let mut table = [Escape::None; 256];
    let mut at = 0;
    while at < 0x20 {
        table[at] = Escape::Always;
        at += 1;
    }
    table[b'"' as usize] = Escape::Always;
    table[b'\\' as usize] = Escape::Always;
    // The line separators begin with this byte.
    table[0xe2] = Escape::Always;
    table[b'<' as usize] = Escape::Html;
    table[b'>' as usize] = Escape::Html;
    table[b'&' as usize] = Escape::Html;
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_as_in_go() {
        for (words, escaped, plain) in [
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
            text(&mut out, words, Html::Escaped);
            assert_eq!(out, escaped);
            assert_eq!(quoted(words), plain);
        }
    }

    #[test]
    fn both_escape_tests_agree_for_every_byte() {
        for byte in 0..=u8::MAX {
            assert_eq!(
                may_need_escape(byte) != 0,
                ESCAPES[usize::from(byte)] != Escape::None,
                "{byte}"
            );
        }
        let long = format!("{}\"{}", "é".repeat(40), "x".repeat(40));
        assert_eq!(quoted(&long), format!("\"{}\"", long.replace('"', "\\\"")));
    }

    #[test]
    fn each_invalid_byte_becomes_a_replacement_character() {
        let plain = |bytes: &[u8]| text_of_bytes(bytes, Html::Plain);
        assert_eq!(plain(b"a\xe2\x82\x00b<&>"), r#""a\ufffd\ufffd\u0000b<&>""#);
        assert_eq!(plain("\u{2028}\u{fffd}".as_bytes()), "\"\\u2028\u{fffd}\"");
        assert_eq!(text_of_bytes(b"<", Html::Escaped), "\"\\u003c\"");
    }
}
