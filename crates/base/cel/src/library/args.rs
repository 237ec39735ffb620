//! Conversion of arguments and results of functions.

use crate::types::Type;
use crate::value::{Error, Opaque, StringValue, Value};
use std::sync::Arc;

/// The longest text, in bytes, that a function creates. A budget stops programs long before, but
/// the cost of a result is charged only after its creation.
pub(crate) const MAX_TEXT_BYTES: usize = 1 << 24;

/// The string of an argument.
pub(crate) fn text<'v, 'a>(value: &'v Value<'a>) -> Result<&'v StringValue<'a>, Error> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Error::NoSuchOverload),
    }
}

/// The string of an argument as `str`.
pub(crate) fn str<'v>(value: &'v Value<'_>) -> Result<&'v str, Error> {
    text(value).map(StringValue::as_str)
}

/// The `int` of an argument.
pub(crate) fn int(value: &Value<'_>) -> Result<i64, Error> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A value of a library type.
pub(crate) fn opaque<'v, T: Opaque>(value: &'v Value<'_>) -> Result<&'v T, Error> {
    match value {
        Value::Opaque(opaque) => opaque.as_any().downcast_ref().ok_or(Error::NoSuchOverload),
        _ => Err(Error::NoSuchOverload),
    }
}

/// A value of a library type.
pub(crate) fn wrap<'a>(value: impl Opaque) -> Value<'a> {
    Value::Opaque(Arc::new(value))
}

/// A new string.
pub(crate) fn new_string<'a>(text: impl Into<Arc<str>>) -> Value<'a> {
    Value::String(StringValue::Shared(text.into()))
}

/// A part of a string, without a copy if the string belongs to an object or to the program.
pub(crate) fn substring_of<'a>(text: &StringValue<'a>, range: std::ops::Range<usize>) -> Value<'a> {
    match text {
        StringValue::Borrowed(text) => Value::String(StringValue::Borrowed(&text[range])),
        StringValue::Shared(text) if range == (0..text.len()) => {
            Value::String(StringValue::Shared(text.clone()))
        }
        StringValue::Shared(text) => new_string(&text[range]),
    }
}

/// A new list.
pub(crate) fn new_list(values: Vec<Value<'_>>) -> Value<'_> {
    Value::List(crate::value::ListValue::Values(Arc::new(values)))
}

/// Exactly `N` arguments; another number matches no overload.
pub(crate) fn exactly<'v, 'a, const N: usize>(
    args: &'v [Value<'a>],
) -> Result<&'v [Value<'a>; N], Error> {
    args.try_into().map_err(|_| Error::NoSuchOverload)
}

/// Compares two values of a library type; a value of another type is no matching overload, as for
/// most types of Kubernetes.
pub(crate) fn compare_opaque<T: Opaque>(
    other: &Value<'_>,
    equals: impl FnOnce(&T) -> bool,
) -> Result<bool, Error> {
    opaque(other).map(equals)
}

/// A library type without parameters.
pub(crate) fn library_type(name: &str) -> Type {
    Type::opaque(name, Vec::new())
}
