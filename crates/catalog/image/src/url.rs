//! Percent-encoding of URLs.

use std::fmt::Write as _;

/// Percent-decodes a text; other text stays. Bytes that are not UTF-8 become replacement
/// characters.
pub(crate) fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let escaped = digits.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = escaped.and_then(|two| u8::from_str_radix(two, 16).ok());
        if let (b'%', Some(byte)) = (first, byte) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Percent-encodes all but unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}
