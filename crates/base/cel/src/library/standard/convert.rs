//! Type conversions: `int(…)`, `string(…)` and others.

use crate::library::{Overload, StrictFunction};
use crate::types::Type;
use crate::value::{
    Error, StringValue, Timestamp, Value, ValueResult, WorkBudget, go_double, time,
};

const INT_OVERFLOW: Error = Error::fixed("integer overflow");
const UINT_OVERFLOW: Error = Error::fixed("unsigned integer overflow");

/// A function, its result type, its implementation, and its overloads with their parameter types.
type Conversion = (&'static str, Type, StrictFunction, &'static [(&'static str, Type)]);

pub(super) fn overloads() -> Vec<Overload> {
    use Type::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
    let groups: [Conversion; 8] = [
        (
            "bool",
            Bool,
            |args, work| apply_to_one(args, work, to_bool),
            &[("bool_to_bool", Bool), ("string_to_bool", String)],
        ),
        (
            "bytes",
            Bytes,
            |args, work| apply_to_one(args, work, to_bytes),
            &[("bytes_to_bytes", Bytes), ("string_to_bytes", String)],
        ),
        (
            "double",
            Double,
            |args, work| apply_to_one(args, work, to_double),
            &[
                ("double_to_double", Double),
                ("int64_to_double", Int),
                ("string_to_double", String),
                ("uint64_to_double", Uint),
            ],
        ),
        (
            "duration",
            Duration,
            |args, work| apply_to_one(args, work, to_duration),
            &[
                ("duration_to_duration", Duration),
                ("int64_to_duration", Int),
                ("string_to_duration", String),
            ],
        ),
        (
            "int",
            Int,
            |args, work| apply_to_one(args, work, to_int),
            &[
                ("int64_to_int64", Int),
                ("double_to_int64", Double),
                ("duration_to_int64", Duration),
                ("string_to_int64", String),
                ("timestamp_to_int64", Timestamp),
                ("uint64_to_int64", Uint),
            ],
        ),
        (
            "string",
            String,
            |args, work| apply_to_one(args, work, to_string),
            &[
                ("string_to_string", String),
                ("bool_to_string", Bool),
                ("bytes_to_string", Bytes),
                ("double_to_string", Double),
                ("duration_to_string", Duration),
                ("int64_to_string", Int),
                ("timestamp_to_string", Timestamp),
                ("uint64_to_string", Uint),
            ],
        ),
        (
            "timestamp",
            Timestamp,
            |args, work| apply_to_one(args, work, to_timestamp),
            &[
                ("timestamp_to_timestamp", Timestamp),
                ("int64_to_timestamp", Int),
                ("string_to_timestamp", String),
            ],
        ),
        (
            "uint",
            Uint,
            |args, work| apply_to_one(args, work, to_uint),
            &[
                ("uint64_to_uint64", Uint),
                ("double_to_uint64", Double),
                ("int64_to_uint64", Int),
                ("string_to_uint64", String),
            ],
        ),
    ];
    let a = || Type::param("A");
    let mut all = vec![
        Overload::function(
            "type",
            "type",
            vec![a()],
            Type::Type(Some(a().into())),
            |args, work| apply_to_one(args, work, |value, _| Ok(value.type_value())),
        ),
        Overload::function("dyn", "to_dyn", vec![a()], Type::Dyn, |args, work| {
            apply_to_one(args, work, |value, _| Ok(value.clone()))
        }),
    ];
    for (function, result, run, overloads) in groups {
        for (id, from) in overloads {
            all.push(Overload::function(function, id, vec![from.clone()], result.clone(), run));
        }
    }
    all
}

fn apply_to_one<'a>(
    args: &[Value<'a>],
    work: &WorkBudget,
    run: fn(&Value<'a>, &WorkBudget) -> ValueResult<'a>,
) -> ValueResult<'a> {
    match args {
        [value] => run(value, work),
        _ => Err(Error::NoSuchOverload),
    }
}

/// The error for a value that cannot be converted to another type.
fn conversion_error(from: &'static str, to: &'static str, work: &WorkBudget) -> Error {
    Error::text(format!("type conversion error from '{from}' to '{to}'"), work)
}

fn to_bool<'a>(value: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    match value {
        Value::Bool(bool) => Ok(Value::Bool(*bool)),
        Value::String(text) => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(conversion_error("string", "bool", work)),
        },
        _ => Err(Error::NoSuchOverload),
    }
}

fn to_bytes<'a>(value: &Value<'a>, _: &WorkBudget) -> ValueResult<'a> {
    match value {
        Value::Bytes(bytes) => Ok(Value::Bytes(bytes.clone())),
        Value::String(StringValue::Borrowed(text)) => Ok(Value::Bytes(text.as_bytes().into())),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().to_vec().into())),
        _ => Err(Error::NoSuchOverload),
    }
}

fn to_double<'a>(value: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
    let double = match value {
        Value::Double(double) => *double,
        Value::Int(int) => *int as f64,
        Value::Uint(uint) => *uint as f64,
        Value::String(text) => {
            super::float::parse(text).ok_or_else(|| conversion_error("string", "double", work))?
        }
        _ => return Err(Error::NoSuchOverload),
    };
    Ok(Value::Double(double))
}

fn to_duration<'a>(value: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    match value {
        Value::Duration(duration) => Ok(Value::Duration(*duration)),
        // The overload exists, but never succeeds.
        Value::Int(_) => Err(conversion_error("int", "google.protobuf.Duration", work)),
        Value::String(text) => time::parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| conversion_error("string", "google.protobuf.Duration", work)),
        _ => Err(Error::NoSuchOverload),
    }
}

fn to_int<'a>(value: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    Ok(Value::Int(match value {
        Value::Int(int) => *int,
        Value::Uint(uint) => i64::try_from(*uint).map_err(|_| INT_OVERFLOW)?,
        Value::Double(double) => {
            // Both ends are excluded, as in cel-go.
            let fits = *double > -2f64.powi(63) && *double < 2f64.powi(63);
            #[expect(clippy::cast_possible_truncation, reason = "it fits, and rounds to zero")]
            if fits { *double as i64 } else { return Err(INT_OVERFLOW) }
        }
        Value::Duration(duration) => *duration,
        Value::Timestamp(time) => time.seconds,
        Value::String(text) => text.parse().map_err(|_| conversion_error("string", "int", work))?,
        _ => return Err(Error::NoSuchOverload),
    }))
}

fn to_uint<'a>(value: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    Ok(Value::Uint(match value {
        Value::Uint(uint) => *uint,
        Value::Int(int) => u64::try_from(*int).map_err(|_| UINT_OVERFLOW)?,
        Value::Double(double) => {
            let fits = *double >= 0.0 && *double < 2f64.powi(64);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it fits, and rounds to zero"
            )]
            if fits { *double as u64 } else { return Err(UINT_OVERFLOW) }
        }
        Value::String(text) => {
            // A plus sign is invalid too.
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = if digits { text.parse().ok() } else { None };
            parsed.ok_or_else(|| conversion_error("string", "uint", work))?
        }
        _ => return Err(Error::NoSuchOverload),
    }))
}

pub(crate) fn to_string<'a>(value: &Value<'a>, _: &WorkBudget) -> ValueResult<'a> {
    Ok(match value {
        Value::String(text) => Value::String(text.clone()),
        Value::Bool(bool) => Value::text(if *bool { "true" } else { "false" }),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text.to_owned()),
            Err(_) => {
                return Err(Error::fixed("invalid UTF-8 in bytes, cannot convert to string"));
            }
        },
        Value::Double(double) => Value::text(go_double(*double)),
        Value::Duration(duration) => Value::text(time::format_seconds(*duration)),
        Value::Int(int) => Value::text(int.to_string()),
        Value::Timestamp(time) => Value::text(time.to_string()),
        Value::Uint(uint) => Value::text(uint.to_string()),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn to_timestamp<'a>(value: &Value<'a>, work: &WorkBudget) -> ValueResult<'a> {
    let time = match value {
        Value::Timestamp(time) => Some(*time),
        Value::Int(int) => Timestamp::new(*int, 0),
        Value::String(text) => {
            let time = Timestamp::parse(text)
                .ok_or_else(|| conversion_error("string", "google.protobuf.Timestamp", work))?;
            Some(time).filter(|time| time.in_range())
        }
        _ => return Err(Error::NoSuchOverload),
    };
    time.map(Value::Timestamp).ok_or(time::TIMESTAMP_OVERFLOW)
}
