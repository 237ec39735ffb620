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
    pub(crate) fn from_value(value: Value) -> Self {
        if let Value::Struct(fields) = value { Self(fields) } else { Self::default() }
    }

    /// The schema as a value.
    pub(crate) fn to_value(&self) -> Value {
        Value::Struct(self.0.clone())
    }

    /// The fields of the schema.
    pub(crate) fn view(&self) -> View<'_> {
        View(&self.0)
    }

    /// The schema after one more trip through JSON, in which Go omits empty slices and maps.
    pub(crate) fn without_empty_fields(&self) -> Self {
        Self(self.0.iter().map(omit_empty).collect())
    }

    /// Sets a field to its zero value.
    pub(crate) fn reset(&mut self, index: usize) {
        self.0[index] = Value::zero(SCHEMA.fields[index].kind);
    }
}

/// A value in which empty slices and maps are nil.
fn omit_empty(value: &Value) -> Value {
    match value {
        Value::Pointer(Some(target)) => Value::Pointer(Some(Box::new(omit_empty(target)))),
        Value::Struct(fields) => Value::Struct(fields.iter().map(omit_empty).collect()),
        Value::Slice(Some(items)) if items.is_empty() => Value::Slice(None),
        Value::Slice(Some(items)) => Value::Slice(Some(items.iter().map(omit_empty).collect())),
        Value::Map(Some(entries)) if entries.is_empty() => Value::Map(None),
        Value::Map(Some(entries)) => {
            let entry = |(key, value): (&String, &Value)| (key.clone(), omit_empty(value));
            Value::Map(Some(entries.iter().map(entry).collect()))
        }
        other => other.clone(),
    }
}

/// The fields of a schema, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct View<'v>(&'v [Value]);

impl<'v> View<'v> {
    /// The schema in a value; `None` if it is no struct.
    pub(crate) fn of(value: &'v Value) -> Option<Self> {
        if let Value::Struct(fields) = value { Some(Self(fields)) } else { None }
    }

    /// A copy without the given fields.
    pub(crate) fn copy_without(self, fields: &[usize]) -> Schema {
        let copy = |(index, value): (usize, &Value)| {
            if fields.contains(&index) {
                Value::zero(SCHEMA.fields[index].kind)
            } else {
                value.clone()
            }
        };
        Schema(self.0.iter().enumerate().map(copy).collect())
    }

    /// The field with an index of [`field`].
    pub(crate) fn get(self, index: usize) -> &'v Value {
        &self.0[index]
    }

    /// Whether a field is the same in another schema, where nil equals empty.
    pub(crate) fn has_same(self, other: View<'_>, index: usize) -> bool {
        is_equal(self.get(index), other.get(index))
    }

    /// A field of the kind string.
    pub(crate) fn text(self, index: usize) -> &'v str {
        if let Value::Text(text) = self.get(index) { text } else { "" }
    }

    /// A field of the kind bool.
    pub(crate) fn is_set(self, index: usize) -> bool {
        matches!(self.get(index), Value::Bool(true))
    }

    /// The target of a pointer field.
    pub(crate) fn target(self, index: usize) -> Option<&'v Value> {
        if let Value::Pointer(target) = self.get(index) { target.as_deref() } else { None }
    }

    /// Whether a field that is a pointer to a bool is true.
    pub(crate) fn is_target_set(self, index: usize) -> bool {
        matches!(self.target(index), Some(Value::Bool(true)))
    }

    /// A field that is a pointer to a string.
    pub(crate) fn text_target(self, index: usize) -> Option<&'v str> {
        if let Some(Value::Text(text)) = self.target(index) { Some(text) } else { None }
    }

    /// A field that is a pointer to an integer or a float.
    pub(crate) fn number_target(self, index: usize) -> Option<f64> {
        match self.target(index) {
            Some(Value::Float(number)) => Some(*number),
            #[expect(clippy::cast_precision_loss, reason = "bounds beyond 2^53 do not occur")]
            Some(Value::Int(number)) => Some(*number as f64),
            _ => None,
        }
    }

    /// A field of the kind slice.
    pub(crate) fn items(self, index: usize) -> &'v [Value] {
        if let Value::Slice(Some(items)) = self.get(index) { items } else { &[] }
    }

    /// A field of the type `[]string`.
    pub(crate) fn texts(self, index: usize) -> impl Iterator<Item = &'v str> {
        self.items(index).iter().filter_map(|value| match value {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// A field that is a slice of schemas.
    pub(crate) fn schemas(self, index: usize) -> impl Iterator<Item = Self> {
        self.items(index).iter().filter_map(Self::of)
    }

    /// A field that is a map of schemas.
    pub(crate) fn entries(self, index: usize) -> impl Iterator<Item = (&'v str, Self)> {
        let entries =
            if let Value::Map(entries) = self.get(index) { entries.as_ref() } else { None };
        let schema = |(key, value): (&'v String, &'v Value)| Some((key.as_str(), Self::of(value)?));
        entries.into_iter().flatten().filter_map(schema)
    }

    /// The property with a name.
    pub(crate) fn property(self, name: &str) -> Option<Self> {
        let Value::Map(Some(entries)) = self.get(field::PROPERTIES) else { return None };
        entries.get(name).and_then(Self::of)
    }

    /// The JSON text of a `*JSON` field.
    pub(crate) fn raw(self, index: usize) -> Option<String> {
        self.target(index).map(raw_text)
    }

    /// The JSON texts of the enum, in their order.
    pub(crate) fn enum_texts(self) -> impl Iterator<Item = String> {
        self.items(field::ENUM).iter().map(raw_text)
    }

    /// The fields of a union type.
    fn union(self, index: usize) -> Option<(&'v Value, &'v Value)> {
        let Some(Value::Struct(fields)) = self.target(index) else { return None };
        Some((fields.first()?, fields.get(1)?))
    }

    /// The schema of `additionalProperties` or `additionalItems`.
    pub(crate) fn additional(self, index: usize) -> Option<Self> {
        pointer_target(self.union(index)?.1)
    }

    /// Whether `additionalProperties` is `true`, without a schema.
    pub(crate) fn allows_any(self, index: usize) -> bool {
        let union = self.union(index);
        union.is_some_and(|(allows, schema)| {
            *allows == Value::Bool(true) && *schema == Value::Pointer(None)
        })
    }

    /// The schema of all items, if there is one.
    pub(crate) fn item_schema(self) -> Option<Self> {
        pointer_target(self.union(field::ITEMS)?.0)
    }

    /// The schemas of single items.
    pub(crate) fn item_schemas(self) -> impl Iterator<Item = Self> {
        let schemas = match self.union(field::ITEMS) {
            Some((_, Value::Slice(Some(schemas)))) => &schemas[..],
            _ => &[],
        };
        schemas.iter().filter_map(Self::of)
    }

    /// The schema of `not`.
    pub(crate) fn negated(self) -> Option<Self> {
        pointer_target(self.get(field::NOT))
    }

    /// The schema of a dependency.
    pub(crate) fn dependency(self) -> Option<Self> {
        self.0.first().and_then(pointer_target)
    }
}

fn pointer_target(value: &Value) -> Option<View<'_>> {
    if let Value::Pointer(Some(target)) = value { View::of(target) } else { None }
}

/// The text of a value of the type `JSON`.
fn raw_text(value: &Value) -> String {
    let Value::Struct(fields) = value else { return String::new() };
    let bytes = fields.first().map(Value::bytes).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
