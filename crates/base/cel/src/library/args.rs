//! What functions take, asked for by its type, and what they give.

use crate::types::Type;
use crate::value::{Error, Opaque, StringValue, Value};
use std::sync::Arc;

/// The longest text, in bytes, that a function makes. A budget stops programs long before, but
/// what a function makes is paid for only when it is made.
pub(crate) const LONGEST: usize = 1 << 24;

/// A string.
pub(crate) fn text<'v, 'a>(value: &'v Value<'a>) -> Result<&'v StringValue<'a>, Error> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Error::NoSuchOverload),
    }
}

/// The characters of a string.
pub(crate) fn str<'v>(value: &'v Value<'_>) -> Result<&'v str, Error> {
    text(value).map(StringValue::as_str)
}

/// An `int`.
pub(crate) fn int(value: &Value<'_>) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A value of a library's type.
pub(crate) fn opaque<'v, T: Opaque>(value: &'v Value<'_>) -> Result<&'v T, Error> {
    match value {
        Value::Opaque(opaque) => opaque.as_any().downcast_ref().ok_or(Error::NoSuchOverload),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A value of a library's type.
pub(crate) fn wrap<'a>(value: impl Opaque) -> Value<'a> {
    Value::Opaque(Arc::new(value))
}

/// A string that was made.
pub(crate) fn made<'a>(text: impl Into<Arc<str>>) -> Value<'a> {
    Value::String(StringValue::Shared(text.into()))
}

/// A part of a string, without copying where it is of an object or of the program.
pub(crate) fn part<'a>(text: &StringValue<'a>, range: std::ops::Range<usize>) -> Value<'a> {
    match text {
        StringValue::Borrowed(text) => Value::String(StringValue::Borrowed(&text[range])),
        StringValue::Shared(text) if range == (0..text.len()) => {
            Value::String(StringValue::Shared(text.clone()))
        }
        StringValue::Shared(text) => made(&text[range]),
    }
}

/// A list of strings that are parts of one.
pub(crate) fn list(values: Vec<Value<'_>>) -> Value<'_> {
    Value::List(crate::value::ListValue::Values(Arc::new(values)))
}

/// How many arguments there are is part of every overload; others are not of it.
pub(crate) fn exactly<'v, 'a, const N: usize>(
    args: &'v [Value<'a>],
) -> Result<&'v [Value<'a>; N], Error> {
    args.try_into().map_err(|_| Error::NoSuchOverload)
}

/// Compares two values of a library's type as most types of Kubernetes do: others are no overload.
pub(crate) fn same<T: Opaque>(
    other: &Value<'_>,
    equals: impl FnOnce(&T) -> bool,
) -> Result<bool, Error> {
    opaque(other).map(equals)
}

/// A named type without parameters.
pub(crate) fn named(name: &str) -> Type {
    Type::opaque(name, Vec::new())
}
