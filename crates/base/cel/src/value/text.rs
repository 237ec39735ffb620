//! Strings, bytes and keys: borrowed where they lie, shared where they were made.

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

/// By bytes, which for UTF-8 is by code points.
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
    /// A value as a key; none if it cannot be one (of numbers, doubles cannot).
    pub fn of(value: &Value<'a>) -> Option<Self> {
        match value {
            Value::Bool(bool) => Some(Self::Bool(*bool)),
            Value::Int(int) => Some(Self::Int(*int)),
            Value::Uint(uint) => Some(Self::Uint(*uint)),
            Value::String(text) => Some(Self::String(text.clone())),
            _ => None,
        }
    }

    /// The key as a value, of the type that it was given with.
    pub fn to_value(&self) -> Value<'a> {
        match self {
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Int(int) => Value::Int(*int),
            Self::Uint(uint) => Value::Uint(*uint),
            Self::String(text) => Value::String(text.clone()),
        }
    }

    /// The string that it is.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }
}

/// What a key is, to be compared whatever it borrows from: kinds in this order, numbers by value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Plain<'k> {
    Bool(bool),
    Number(i128),
    String(&'k str),
}

impl<'k> Plain<'k> {
    /// What a value is as a key; a double without fraction is the whole number.
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

/// What can be looked for in a map without being made a [`Key`] that lives as long as the map's.
pub(super) trait Probe {
    fn plain(&self) -> Plain<'_>;
}

impl Probe for Plain<'_> {
    fn plain(&self) -> Plain<'_> {
        *self
    }
}

impl Probe for MapKey<'_> {
    fn plain(&self) -> Plain<'_> {
        match self {
            Self::Bool(bool) => Plain::Bool(*bool),
            Self::Int(int) => Plain::Number((*int).into()),
            Self::Uint(uint) => Plain::Number((*uint).into()),
            Self::String(text) => Plain::String(text),
        }
    }
}

impl<'a, 'p> Borrow<dyn Probe + 'p> for MapKey<'a>
where
    'a: 'p,
{
    fn borrow(&self) -> &(dyn Probe + 'p) {
        self
    }
}

impl PartialEq for dyn Probe + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.plain() == other.plain()
    }
}

impl Eq for dyn Probe + '_ {}

impl PartialOrd for dyn Probe + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Probe + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.plain().cmp(&other.plain())
    }
}

impl PartialEq for MapKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.plain() == other.plain()
    }
}

impl Eq for MapKey<'_> {}

impl PartialOrd for MapKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// `false`, `true`, numbers, strings.
impl Ord for MapKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.plain().cmp(&other.plain())
    }
}

impl Hash for MapKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plain().hash(state);
    }
}
