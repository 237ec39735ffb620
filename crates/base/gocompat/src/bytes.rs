//! Base64 decoding with the rules of Go's `encoding/base64`.

use base64::{
    Engine, alphabet,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig},
};

/// The text is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {at}")]
pub struct Base64Error {
    /// The offset that Go reports.
    pub at: usize,
}

/// Decodes standard base64 like Go: line breaks are allowed anywhere, and so are any trailing bits of the
/// last letter.
///
/// # Errors
/// The offset that Go reports.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, Base64Error> {
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let decoded = match ENGINE.decode(text.as_bytes()) {
        Err(_) if text.contains(['\n', '\r']) => {
            let joined: Vec<u8> =
                text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
            ENGINE.decode(joined)
        }
        decoded => decoded,
    };
    decoded.map_err(|_| Base64Error { at: error_offset(text.as_bytes()) })
}

/// The offset that Go reports for an invalid text: of an invalid letter, of misplaced padding, of the
/// start of an incomplete group of four, of the end if one more padding sign is missing, or of the text
/// after the padding.
fn error_offset(text: &[u8]) -> usize {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut signs = text
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\n' | b'\r'))
        .peekable();
    let mut letters = 0;
    while let Some((at, byte)) = signs.next() {
        if is_letter(byte) {
            letters += 1;
            continue;
        }
        if byte != b'=' || letters % 4 < 2 {
            return at;
        }
        if letters % 4 == 2 {
            match signs.next() {
                None => return text.len(),
                Some((_, b'=')) => {}
                Some((at, _)) => return at - 1,
            }
        }
        return signs.peek().map_or(text.len(), |&(at, _)| at);
    }
    text.len() - letters % 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_and_refused_as_in_go() {
        for (text, decoded) in [
            ("QUI=", Ok("AB")),
            // Trailing bits, line breaks anywhere.
            ("QR==", Ok("A")),
            ("Q\nUJ\nD\r\n", Ok("ABC")),
            ("QQ=\n=\n", Ok("A")),
            // Incomplete: the start of the group.
            ("QUJDR", Err(4)),
            ("QU\nJD\nQU", Err(6)),
            // Padding: too little, too early, too much.
            ("QUJDRE=", Err(7)),
            ("QQ=", Err(3)),
            ("QQ=\n!", Err(3)),
            ("Q===", Err(1)),
            ("QUI==", Err(4)),
            ("QQ==QQ==", Err(4)),
            ("QUJD QUJD", Err(4)),
            ("!", Err(0)),
        ] {
            let expected =
                decoded.map(|text| text.as_bytes().to_vec()).map_err(|at| Base64Error { at });
            assert_eq!(decode_base64(text), expected, "{text:?}");
        }
    }
}
