//! Decoding of bytes to text: encodings, byte-order marks, characters that YAML forbids.

use crate::{YamlError, YamlFault};
use memchr::memchr2_iter;
use std::borrow::Cow;

/// Decodes an input; also returns the length of its byte-order mark.
pub(crate) fn decode(input: &[u8]) -> Result<(&str, usize), YamlError> {
    if input.starts_with(&[0xff, 0xfe]) || input.starts_with(&[0xfe, 0xff]) {
        return Err(YamlError { line: 1, column: 1, fault: YamlFault::Utf16 });
    }
    let bom_length = if input.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let input = &input[bom_length..];
    std::str::from_utf8(input).map(|text| (text, bom_length)).map_err(|error| {
        let valid = &input[..error.valid_up_to()];
        let byte = input.get(error.valid_up_to()).copied().unwrap_or_default();
        // The bytes before the error are UTF-8, so nothing is replaced here.
        let (line, column) = position(&String::from_utf8_lossy(valid));
        YamlError { line, column, fault: YamlFault::NotUtf8 { byte } }
    })
}

/// Ensures that a text ends with a line break, as upstream's line reader does. So a block scalar at
/// the end of a file ends with one too.
pub(crate) fn with_final_newline(text: &str) -> Cow<'_, str> {
    if text.ends_with('\n') { Cow::Borrowed(text) } else { Cow::Owned(format!("{text}\n")) }
}

/// Line and column (both from 1) of the end of `before`.
pub(crate) fn position(before: &str) -> (usize, usize) {
    let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
    let last = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, 1 + before[last..].chars().count())
}

/// The offset of the first character that YAML forbids outside of escapes.
pub(crate) fn find_forbidden(text: &str) -> Option<usize> {
    let is_control =
        |byte: u8| (byte < 0x20 && byte != b'\t' && byte != b'\n' && byte != b'\r') || byte == 0x7f;
    // Short strides let the compiler check many bytes at once.
    let bytes = text.as_bytes();
    let stride = bytes
        .chunks(4096)
        .position(|chunk| chunk.iter().fold(false, |found, &byte| found | is_control(byte)));
    let control = stride.and_then(|stride| {
        let start = stride * 4096;
        bytes[start..].iter().position(|&byte| is_control(byte)).map(|at| start + at)
    });
    // U+0080 to U+009F without U+0085, and U+FFFE and U+FFFF.
    let non_ascii = memchr2_iter(0xc2, 0xef, bytes).find(|&at| match bytes[at..] {
        [0xc2, second, ..] => second < 0xa0 && second != 0x85,
        [0xef, 0xbf, third, ..] => third >= 0xbe,
        _ => false,
    });
    control.into_iter().chain(non_ascii).min()
}
