//! Base64 (cel-go's `ext.Encoders`).

use super::args::{exactly, made, str};
use super::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Value, ValueResult, WorkBudget};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// `base64.encode`, `base64.decode`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "cel.lib.ext.encoders", overloads, macros: &[], types: Vec::new };

/// With padding or without; bits that are left over do not matter.
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
                [Value::Bytes(bytes)] => Ok(made(LENIENT.encode(bytes.as_slice()))),
                _ => Err(Error::NoSuchOverload),
            },
        ),
    ]
}

fn decode<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [written] = exactly(args)?;
    let written = str(written)?;
    // Line breaks do not count.
    let text: String = written.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let body = text.trim_end_matches('=');
    // Padding is right, or there is none.
    let padding = text.len() - body.len();
    let padded = padding < 3 && text.len().is_multiple_of(4);
    if let Some(Ok(bytes)) = (padding == 0 || padded).then(|| LENIENT.decode(body)) {
        return Ok(Value::Bytes(bytes.into()));
    }
    // Upstream tries without padding last, and says where that went wrong.
    let alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let at = written
        .bytes()
        .position(|byte| !alphabet(byte) && !matches!(byte, b'\r' | b'\n'))
        .unwrap_or(written.len().saturating_sub(1));
    Err(Error::text(format!("illegal base64 data at input byte {at}"), work))
}
