//! Encoders library: base64 (cel-go's `ext.Encoders`).

use super::args::{exactly, new_string, str};
use super::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Value, ValueResult, WorkBudget};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// `base64.encode`, `base64.decode`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "cel.lib.ext.encoders", overloads, macros: &[], types: Vec::new };

/// Padding is optional, and trailing bits are ignored.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

fn overloads() -> Vec<Overload> {
    use Type::{Bytes, String};
    vec![
        Overload::function("base64.decode", "base64_decode_string", vec![String], Bytes, decode),
        Overload::function(
            "base64.encode",
            "base64_encode_bytes",
            vec![Bytes],
            String,
            |args, _| match args {
                [Value::Bytes(bytes)] => Ok(new_string(LENIENT.encode(bytes.as_slice()))),
                _ => Err(Error::NoSuchOverload),
            },
        ),
    ]
}

fn decode<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [input] = exactly(args)?;
    let input = str(input)?;
    // Line breaks are ignored.
    let text: String = input.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let body = text.trim_end_matches('=');
    // The padding is either correct or missing.
    let padding = text.len() - body.len();
    let padded = padding < 3 && text.len().is_multiple_of(4);
    if let Some(Ok(bytes)) = (padding == 0 || padded).then(|| LENIENT.decode(body)) {
        return Ok(Value::Bytes(bytes.into()));
    }
    // Upstream tries without padding last and reports the error of that attempt.
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let at = input
        .bytes()
        .position(|byte| !alphabet(byte) && !matches!(byte, b'\r' | b'\n'))
        .unwrap_or(input.len().saturating_sub(1));
    Err(Error::text(format!("illegal base64 data at input byte {at}"), work))
}
