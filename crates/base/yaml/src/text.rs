//! From bytes to text: encodings, byte-order marks, characters that YAML refuses.

use crate::{YamlError, YamlFault};
use memchr::memchr2_iter;
use std::borrow::Cow;

/// The text of an input, and how many bytes (a byte-order mark) were left out before it.
pub(crate) fn decode(input: &[u8]) -> Result<(&str, usize), YamlError> {
    if input.starts_with(&[0xff, 0xfe]) || input.starts_with(&[0xfe, 0xff]) {
        return Err(YamlError { line: 1, column: 1, fault: YamlFault::Utf16 });
    }
    let skipped = if input.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let input = &input[skipped..];
    std::str::from_utf8(input).map(|text| (text, skipped)).map_err(|error| {
        let good = &input[..error.valid_up_to()];
        let byte = input.get(error.valid_up_to()).copied().unwrap_or_default();
        // The part before the fault is UTF-8, so nothing is replaced here.
        let (line, column) = position(&String::from_utf8_lossy(good));
        YamlError { line, column, fault: YamlFault::NotUtf8 { byte } }
    })
}

/// A text whose last line has an end, which upstream's reader of lines gives it: a block of text
/// that ends with the file ends with a line break too.
pub(crate) fn ended(text: &str) -> Cow<'_, str> {
    if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) }
}

/// Line and column (both from 1) of the end of `before`.
pub(crate) fn position(before: &str) -> (usize, usize) {
    let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
    let last = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, 1 + before[last..].chars().count())
}

/// The byte position of the first character that may not stand in a YAML text unescaped.
pub(crate) fn forbidden(text: &str) -> Option<usize> {
    let suspicious =
        |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\n' && byte != b'\r') || byte == 0x7f;
    // Short strides let the compiler check many bytes at once.
    let bytes = text.as_bytes();
    let stride = bytes
        .chunks(4096)
        .position(|chunk| chunk.iter().fold(false, |found, &byte| found | suspicious(byte)));
    let control = stride.and_then(|stride| {
        let start = stride * 4096;
        bytes[start..].iter().position(|&byte| suspicious(byte)).map(|at| start + at)
    });
    // U+0080 to U+009F without U+0085, and U+FFFE and U+FFFF.
    let beyond = memchr2_iter(0xc2, 0xef, bytes).find(|&at| match bytes[at..] {
        [0xc2, second, ..] => second < 0xa0 && second != 0x85,
        [0xef, 0xbf, third, ..] => third >= 0xbe,
        _ => false,
    });
    control.into_iter().chain(beyond).min()
}
