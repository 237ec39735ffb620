//! Strings, bytes and map keys, borrowed or shared.

use super::{BytesValue, MapKey, StringValue, Value};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

impl StringValue<'_> {
    /// The string itself.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl Deref for StringValue<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for StringValue<'_> {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for StringValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl PartialEq for StringValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for StringValue<'_> {}

impl PartialOrd for StringValue<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By bytes, which in UTF-8 is the order of code points.
impl Ord for StringValue<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for StringValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl<'a> From<&'a str> for StringValue<'a> {
    fn from(text: &'a str) -> Self {
        Self::Borrowed(text)
    }
}

impl From<String> for StringValue<'_> {
    fn from(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl From<Arc<str>> for StringValue<'_> {
    fn from(text: Arc<str>) -> Self {
        Self::Shared(text)
    }
}

impl BytesValue<'_> {
    /// The bytes themselves.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Deref for BytesValue<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl PartialEq for BytesValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for BytesValue<'_> {}

impl PartialOrd for BytesValue<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BytesValue<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl Hash for BytesValue<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<'a> From<&'a [u8]> for BytesValue<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Borrowed(bytes)
    }
}

impl From<Vec<u8>> for BytesValue<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Shared(bytes.into())
    }
}

impl<'a> MapKey<'a> {
    /// A value as a key; none if it cannot be one. Doubles cannot.
    pub fn of(value: &Value<'a>) -> Option<Self> {
        match value {
            Value::Bool(bool) => Some(Self::Bool(*bool)),
            Value::Int(int) => Some(Self::Int(*int)),
            Value::Uint(uint) => Some(Self::Uint(*uint)),
            Value::String(text) => Some(Self::String(text.clone())),
            _ => None,
        }
    }

    /// The key as a value of its original type.
    pub fn to_value(&self) -> Value<'a> {
        match self {
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Int(int) => Value::Int(*int),
            Self::Uint(uint) => Value::Uint(*uint),
            Self::String(text) => Value::String(text.clone()),
        }
    }

    /// The string of a string key.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

/// The comparable form of a key, with any lifetime: kinds in this order, numbers by value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum KeyValue<'k> {
    Bool(bool),
    Number(i128),
    String(&'k str),
}

impl<'k> KeyValue<'k> {
    /// The comparable form of a value; a double without a fraction is a whole number.
    pub(super) fn of(value: &'k Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Number((*int).into()),
            Value::Uint(uint) => Self::Number((*uint).into()),
            Value::Double(double) => Self::Number(super::number::whole(*double)?),
            Value::String(text) => Self::String(text),
            _ => return None,
        })
    }
}

/// Something that can be looked up in a map without a [`MapKey`] of the map's lifetime.
pub(super) trait AsKeyValue {
    fn key_value(&self) -> KeyValue<'_>;
}

impl AsKeyValue for KeyValue<'_> {
    fn key_value(&self) -> KeyValue<'_> {
        *self
    }
}

impl AsKeyValue for MapKey<'_> {
    fn key_value(&self) -> KeyValue<'_> {
        match self {
            Self::Bool(bool) => KeyValue::Bool(*bool),
            Self::Int(int) => KeyValue::Number((*int).into()),
            Self::Uint(uint) => KeyValue::Number((*uint).into()),
            Self::String(text) => KeyValue::String(text),
        }
    }
}

impl<'a, 'p> Borrow<dyn AsKeyValue + 'p> for MapKey<'a>
where
    'a: 'p,
{
    fn borrow(&self) -> &(dyn AsKeyValue + 'p) {
        self
    }
}

impl PartialEq for dyn AsKeyValue + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.key_value() == other.key_value()
    }
}

impl Eq for dyn AsKeyValue + '_ {}

impl PartialOrd for dyn AsKeyValue + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn AsKeyValue + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key_value().cmp(&other.key_value())
    }
}

impl PartialEq for MapKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key_value() == other.key_value()
    }
}

impl Eq for MapKey<'_> {}

impl PartialOrd for MapKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order is `false`, `true`, numbers, strings.
impl Ord for MapKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key_value().cmp(&other.key_value())
    }
}

impl Hash for MapKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key_value().hash(state);
    }
}
