//! Values of literals.

use super::ast::Literal;
use std::sync::Arc;

/// The text of a number with its sign.
fn signed(negative: bool, digits: &str) -> String {
    if negative { format!("-{digits}") } else { digits.to_owned() }
}

/// Parses an integer literal without its sign.
pub(super) fn int(negative: bool, text: &str) -> Result<Literal, &'static str> {
    match text.strip_prefix("0x") {
        Some(hexadecimal) => i64::from_str_radix(&signed(negative, hexadecimal), 16),
        None if negative => signed(true, text).parse(),
        None => text.parse(),
    }
    .map(Literal::Int)
    .map_err(|_| "invalid int literal")
}

/// Parses an unsigned integer literal with its `u`.
pub(super) fn uint(text: &str) -> Result<Literal, &'static str> {
    let digits = &text[..text.len() - 1];
    match digits.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
        None => digits.parse(),
    }
    .map(Literal::Uint)
    .map_err(|_| "invalid uint literal")
}

/// Parses a floating point literal without its sign.
pub(super) fn double(negative: bool, text: &str) -> Result<Literal, &'static str> {
    match signed(negative, text).parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Literal::Double(value)),
        _ => Err("invalid double literal"),
    }
}

/// Parses a string literal with quotes and prefix. Literals without escapes are shared.
pub(super) fn string(
    text: &str,
    share: impl FnOnce(&str) -> Arc<str>,
) -> Result<Literal, &'static str> {
    let (body, raw) = body(text);
    if !body.contains('\r') && (raw || !body.contains('\\')) {
        return Ok(Literal::String(share(body)));
    }
    // Escapes in strings are whole code points.
    unescape(body, raw, false).map(|bytes| Literal::String(String::from_utf8_lossy(&bytes).into()))
}

/// Parses a bytes literal with quotes and prefix.
pub(super) fn bytes(text: &str) -> Result<Literal, &'static str> {
    let (body, raw) = body(&text[1..]);
    unescape(body, raw, true).map(|bytes| Literal::Bytes(bytes.into()))
}

/// The text between the quotes, and whether it is raw.
fn body(text: &str) -> (&str, bool) {
    let unprefixed = text.strip_prefix(['r', 'R']);
    let raw = unprefixed.is_some();
    let text = unprefixed.unwrap_or(text);
    let quotes = if text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\"")) {
        3
    } else {
        1
    };
    (&text[quotes..text.len() - quotes], raw)
}

/// Replaces line ends by line feeds, and escapes by their characters.
fn unescape(body: &str, raw: bool, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    const INVALID_ESCAPE: &str = "unable to unescape string";
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.chars();
    while let Some(character) = rest.next() {
        let number = match character {
            '\r' => {
                if rest.as_str().starts_with('\n') {
                    rest.next();
                }
                out.push(b'\n');
                continue;
            }
            '\\' if !raw => match rest.next().ok_or(INVALID_ESCAPE)? {
                'a' => 0x07,
                'b' => 0x08,
                'f' => 0x0C,
                'n' => 0x0A,
                'r' => 0x0D,
                't' => 0x09,
                'v' => 0x0B,
                same @ ('\\' | '\'' | '"' | '`' | '?') => u32::from(same),
                'x' | 'X' => digits(&mut rest, 2, 16, 0).ok_or(INVALID_ESCAPE)?,
                'u' if !is_bytes => digits(&mut rest, 4, 16, 0).ok_or(INVALID_ESCAPE)?,
                'U' if !is_bytes => digits(&mut rest, 8, 16, 0).ok_or(INVALID_ESCAPE)?,
                first @ '0'..='3' => digits(&mut rest, 2, 8, u32::from(first) - u32::from('0'))
                    .ok_or("unable to unescape octal sequence in string")?,
                _ => return Err(INVALID_ESCAPE),
            },
            _ => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                continue;
            }
        };
        match u8::try_from(number) {
            // In bytes a number is a byte (two hexadecimal or three octal digits).
            Ok(byte) if is_bytes => out.push(byte),
            _ => {
                let character = char::from_u32(number).ok_or("invalid unicode code point")?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
    Ok(out)
}

fn digits(rest: &mut std::str::Chars<'_>, count: u32, radix: u32, first: u32) -> Option<u32> {
    // Eight hexadecimal digits fit the number exactly, three octal digits are smaller.
    (0..count).try_fold(first, |value, _| Some(value * radix + rest.next()?.to_digit(radix)?))
}
