//! Texts in double quotes, as Go's `%q` writes them.

use std::fmt::Write as _;

/// The text in double quotes with everything escaped that Go's `%q` escapes.
///
/// Differs from Go only for code points that Go's tables call unprintable and that are neither
/// control characters, separators nor marks of direction and width: they are left as they are.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// As [`quote`], of bytes that need not be a text; those that are not part of one are escaped.
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
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

/// Whether Go calls a character printable (`unicode.IsPrint`): letters, marks, numbers,
/// punctuation, symbols and the plain space. Unassigned code points are taken for printable.
pub fn is_printable(c: char) -> bool {
    let format = matches!(u32::from(c),
        0xad | 0x600..=0x605 | 0x61c | 0x6dd | 0x70f | 0x8e2 | 0x180e | 0x200b..=0x200f
        | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff | 0xfff9..=0xfffb | 0x1_d173..=0x1_d17a
        | 0xe_0001..=0xe_007f | 0xe000..=0xf8ff | 0xf_0000..=0x10_ffff
        | 0xfffe | 0xffff);
    c == ' ' || !(c.is_control() || c.is_whitespace() || format)
}
