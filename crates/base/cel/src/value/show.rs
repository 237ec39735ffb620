//! Values as texts of messages: what Go's `%v` makes of cel-go's values.

use super::{Map, Object, Value, time};
use crate::types::Type;
use std::fmt;

/// A double as Go's `%g` and `%v` write it, which is what `string(...)` gives: the fewest digits
/// that mean it, with an exponent below -4 and from 6 on.
pub fn go_double(double: f64) -> String {
    if double.is_nan() {
        return "NaN".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{double:e}");
    // Rust writes every finite number as `1.5e3`.
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{double}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Go's number of it.
            Self::Null => f.write_str("0"),
            Self::Bool(bool) => write!(f, "{bool}"),
            Self::Int(int) => write!(f, "{int}"),
            Self::Uint(uint) => write!(f, "{uint}"),
            Self::Double(double) => f.write_str(&go_double(*double)),
            Self::String(text) => f.write_str(text),
            Self::Bytes(bytes) => {
                f.write_str("[")?;
                for (at, byte) in bytes.iter().enumerate() {
                    write!(f, "{}{byte}", if at == 0 { "" } else { " " })?;
                }
                f.write_str("]")
            }
            Self::Duration(duration) => f.write_str(&time::go_duration(*duration)),
            Self::Timestamp(time) => write!(f, "{time}"),
            Self::Type(of) => f.write_str(&type_text(of)),
            Self::List(list) => {
                f.write_str("[")?;
                for (at, value) in list.iter().enumerate() {
                    f.write_str(if at == 0 { "" } else { ", " })?;
                    outcome(f, value)?;
                }
                f.write_str("]")
            }
            Self::Map(map @ (Map::Json { .. } | Map::Values(_))) => entries(f, map.iter()),
            Self::Object(object @ (Object::Json { .. } | Object::Values { .. })) => {
                entries(f, object.iter())
            }
            Self::Optional(None) => f.write_str("optional.none()"),
            Self::Optional(Some(value)) => write!(f, "optional({value})"),
            Self::Opaque(opaque) => write!(f, "{opaque:?}"),
            Self::Preserved(json) => write!(f, "{json}"),
        }
    }
}

fn outcome(f: &mut fmt::Formatter<'_>, value: super::Outcome<'_>) -> fmt::Result {
    match value {
        Ok(value) => write!(f, "{value}"),
        Err(error) => write!(f, "{error}"),
    }
}

fn entries(f: &mut fmt::Formatter<'_>, entries: super::Entries<'_, '_>) -> fmt::Result {
    f.write_str("{")?;
    for (at, (key, value)) in entries.enumerate() {
        write!(f, "{}{key}: ", if at == 0 { "" } else { ", " })?;
        outcome(f, value)?;
    }
    f.write_str("}")
}

/// A type in messages about values: of these no parameters are known.
pub(crate) fn type_text(of: &Type) -> String {
    match of {
        Type::List(_) => "list(dyn)".to_owned(),
        Type::Map(_) => "map(dyn, dyn)".to_owned(),
        _ => of.name().to_owned(),
    }
}
