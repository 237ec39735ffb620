//! Go quoting (`%q`), which many messages of the API contain.

use std::fmt::Write as _;

/// The text in double quotes, with the escapes of Go's `%q`: quotes, backslashes and characters that are
/// not printable.
///
/// ```
/// assert_eq!(mainstay_gocompat::quote("a \"b\"\n\u{200b}é"), r#""a \"b\"\n\u200bé""#);
/// ```
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// Like [`quote`], for bytes; bytes that are not UTF-8 are escaped.
pub fn quote_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            push_character(&mut out, c);
        }
        for byte in chunk.invalid() {
            push(&mut out, format_args!("\\x{byte:02x}"));
        }
    }
    out.push('"');
    out
}

fn push_character(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{b}' => out.push_str("\\v"),
        c if c < ' ' || c == '\u{7f}' => push(out, format_args!("\\x{:02x}", u32::from(c))),
        c if is_printable(c) => out.push(c),
        c if u32::from(c) > 0xffff => push(out, format_args!("\\U{:08x}", u32::from(c))),
        c => push(out, format_args!("\\u{:04x}", u32::from(c))),
    }
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}

/// Whether a character is printable, like Go's `unicode.IsPrint`.
///
/// The Unicode version is that of Rust's standard library, so recently assigned characters are printable
/// in Mainstay and not in an older Go.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // The standard library exposes this rule only by `escape_debug`: after another character, it escapes
    // exactly the characters that are not printable.
    let mut bytes = [b'a'; 5];
    let end = 1 + c.encode_utf8(&mut bytes[1..]).len();
    str::from_utf8(&bytes[..end]).is_ok_and(|text| text.escape_debug().nth(1) == Some(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_in_go() {
        for (text, quoted) in [
            ("", r#""""#),
            ("a b'", r#""a b'""#),
            ("a\"b\\", r#""a\"b\\""#),
            ("\n\t\u{1}\u{7f}", r#""\n\t\x01\x7f""#),
            ("\u{7}\u{8}\u{b}\u{c}\r", r#""\a\b\v\f\r""#),
            ("１é😀e\u{301}\u{301}", "\"１é😀e\u{301}\u{301}\""),
            ("\u{a0}\u{2028}\u{85}\u{ad}\u{200b}", r#""\u00a0\u2028\u0085\u00ad\u200b""#),
            ("\u{378}\u{e000}\u{ffff}", r#""\u0378\ue000\uffff""#),
            ("\u{e0001}\u{10ffff}", r#""\U000e0001\U0010ffff""#),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_escaped() {
        assert_eq!(quote_bytes(b"a\xffb\xe2\x82"), r#""a\xffb\xe2\x82""#);
    }
}
