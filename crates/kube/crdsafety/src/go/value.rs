//! Values of the Go types, their zero values and their equality.

use super::types::{Kind, SCHEMA, Type, field};
use std::collections::BTreeMap;

/// A value of a Go type. The [`Type`] is kept beside it, not in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    Int(i64),
    Float(f64),
    Byte(u8),
    Text(String),
    Pointer(Option<Box<Self>>),
    Struct(Vec<Self>),
    /// `None` is nil, which Go's texts show apart from an empty slice.
    Slice(Option<Vec<Self>>),
    /// `None` is nil.
    Map(Option<BTreeMap<String, Self>>),
}

impl Value {
    /// The zero value of a type.
    pub(crate) fn zero(kind: &Type) -> Self {
        match kind.kind {
            Kind::Bool => Self::Bool(false),
            Kind::Int => Self::Int(0),
            Kind::Float => Self::Float(0.0),
            Kind::Byte => Self::Byte(0),
            Kind::Text => Self::Text(String::new()),
            Kind::Pointer => Self::Pointer(None),
            Kind::Struct => Self::Struct(kind.fields.iter().map(|f| Self::zero(f.kind)).collect()),
            Kind::Slice => Self::Slice(None),
            Kind::Map => Self::Map(None),
        }
    }

    /// Whether this is the zero value of its type. An empty slice or map is not.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Bool(on) => !on,
            Self::Int(number) => *number == 0,
            Self::Float(number) => *number == 0.0 && number.is_sign_positive(),
            Self::Byte(byte) => *byte == 0,
            Self::Text(text) => text.is_empty(),
            Self::Pointer(target) => target.is_none(),
            Self::Struct(fields) => fields.iter().all(Self::is_zero),
            Self::Slice(items) => items.is_none(),
            Self::Map(entries) => entries.is_none(),
        }
    }

    /// The bytes of a `[]byte`.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Self::Slice(Some(items)) = self else { return Vec::new() };
        items.iter().map(|item| if let Self::Byte(byte) = item { *byte } else { 0 }).collect()
    }
}

/// Whether two values are equal, where nil equals empty, as Kubernetes compares objects.
pub(crate) fn is_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Pointer(Some(left)), Value::Pointer(Some(right))) => is_equal(left, right),
        (Value::Struct(left), Value::Struct(right)) => {
            left.iter().zip(right).all(|(left, right)| is_equal(left, right))
        }
        (Value::Slice(left), Value::Slice(right)) => {
            let (left, right) = (left.as_deref().unwrap_or(&[]), right.as_deref().unwrap_or(&[]));
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| is_equal(l, r))
        }
        (Value::Map(left), Value::Map(right)) => {
            let empty = BTreeMap::new();
            let (left, right) = (left.as_ref().unwrap_or(&empty), right.as_ref().unwrap_or(&empty));
            left.len() == right.len()
                && left.iter().zip(right).all(|((lk, lv), (rk, rv))| lk == rk && is_equal(lv, rv))
        }
        _ => left == right,
    }
}

/// A schema: a value of the type `JSONSchemaProps`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schema(Vec<Value>);

impl Default for Schema {
    fn default() -> Self {
        Self(SCHEMA.fields.iter().map(|field| Value::zero(field.kind)).collect())
    }
}

impl Schema {
    /// The schema in a value of the type `JSONSchemaProps`.
    pub(crate) fn from_value(value: &Value) -> Self {
        if let Value::Struct(fields) = value { Self(fields.clone()) } else { Self::default() }
    }

    /// The schema as a value.
    pub(crate) fn to_value(&self) -> Value {
        Value::Struct(self.0.clone())
    }

    /// The field with an index of [`field`].
    pub(crate) fn get(&self, index: usize) -> &Value {
        &self.0[index]
    }

    /// Sets a field to its zero value.
    pub(crate) fn reset(&mut self, index: usize) {
        self.0[index] = Value::zero(SCHEMA.fields[index].kind);
    }

    /// A field of the kind string.
    pub(crate) fn text(&self, index: usize) -> &str {
        if let Value::Text(text) = self.get(index) { text } else { "" }
    }

    /// A field of the kind bool.
    pub(crate) fn is_set(&self, index: usize) -> bool {
        matches!(self.get(index), Value::Bool(true))
    }

    /// The target of a pointer field.
    pub(crate) fn target(&self, index: usize) -> Option<&Value> {
        if let Value::Pointer(target) = self.get(index) { target.as_deref() } else { None }
    }

    /// A field that is a pointer to a string.
    pub(crate) fn text_target(&self, index: usize) -> Option<&str> {
        if let Some(Value::Text(text)) = self.target(index) { Some(text) } else { None }
    }

    /// A field that is a pointer to an integer or a float.
    pub(crate) fn number_target(&self, index: usize) -> Option<f64> {
        match self.target(index) {
            Some(Value::Float(number)) => Some(*number),
            #[expect(clippy::cast_precision_loss, reason = "bounds are compared, and only roughly")]
            Some(Value::Int(number)) => Some(*number as f64),
            _ => None,
        }
    }

    /// A field of the kind slice.
    pub(crate) fn items(&self, index: usize) -> &[Value] {
        if let Value::Slice(Some(items)) = self.get(index) { items } else { &[] }
    }

    /// A field of the type `[]string`.
    pub(crate) fn texts(&self, index: usize) -> impl Iterator<Item = &str> {
        let text = |value| if let &Value::Text(ref text) = value { Some(text.as_str()) } else { None };
        self.items(index).iter().filter_map(text)
    }

    /// A field that is a slice of schemas.
    pub(crate) fn schemas(&self, index: usize) -> impl Iterator<Item = Self> + '_ {
        self.items(index).iter().map(Self::from_value)
    }

    /// A field of the kind map.
    pub(crate) fn entries(&self, index: usize) -> impl Iterator<Item = (&str, &Value)> {
        let entries = if let Value::Map(entries) = self.get(index) { entries.as_ref() } else { None };
        entries.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// The JSON text of a `*JSON` field.
    pub(crate) fn raw(&self, index: usize) -> Option<String> {
        self.target(index).map(raw_text)
    }

    /// The JSON texts of the enum, in their order.
    pub(crate) fn enum_texts(&self) -> impl Iterator<Item = String> + '_ {
        self.items(field::ENUM).iter().map(raw_text)
    }

    /// The schema of `additionalProperties` or `additionalItems`.
    pub(crate) fn additional(&self, index: usize) -> Option<Self> {
        let Some(Value::Struct(fields)) = self.target(index) else { return None };
        if let Value::Pointer(Some(schema)) = &fields[1] { Some(Self::from_value(schema)) } else { None }
    }

    /// Whether `additionalProperties` or `additionalItems` allows any value.
    pub(crate) fn allows_any(&self, index: usize) -> bool {
        let Some(Value::Struct(fields)) = self.target(index) else { return false };
        fields[0] == Value::Bool(true) && fields[1] == Value::Pointer(None)
    }

    /// The schema of all items, if there is one.
    pub(crate) fn item_schema(&self) -> Option<Self> {
        let Some(Value::Struct(fields)) = self.target(field::ITEMS) else { return None };
        if let Value::Pointer(Some(schema)) = &fields[0] { Some(Self::from_value(schema)) } else { None }
    }

    /// The schemas of single items.
    pub(crate) fn item_schemas(&self) -> Vec<Self> {
        let Some(Value::Struct(fields)) = self.target(field::ITEMS) else { return Vec::new() };
        let Value::Slice(Some(schemas)) = &fields[1] else { return Vec::new() };
        schemas.iter().map(Self::from_value).collect()
    }
}

/// The text of a value of the type `JSON`.
fn raw_text(value: &Value) -> String {
    let Value::Struct(fields) = value else { return String::new() };
    let bytes = fields.first().map(Value::bytes).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
