//! Access to values: type, size, elements.

use super::{
    BytesValue, Error, ListValue, LookupResult, MapValue, ObjectValue, StringValue, Value,
    ValueResult, WorkBudget, number,
};
use crate::syntax::ast::Literal;
use crate::types::Type;
use std::sync::{Arc, LazyLock};

impl<'a> Value<'a> {
    /// A string.
    pub fn text(text: impl Into<StringValue<'a>>) -> Self {
        Self::String(text.into())
    }

    /// The value of a literal.
    pub(crate) fn from_literal(literal: &Literal) -> Self {
        match literal {
            Literal::Null => Self::Null,
            Literal::Bool(value) => Self::Bool(*value),
            Literal::Int(value) => Self::Int(*value),
            Literal::Uint(value) => Self::Uint(*value),
            Literal::Double(value) => Self::Double(*value),
            Literal::String(value) => Self::String(StringValue::Shared(value.clone())),
            Literal::Bytes(value) => Self::Bytes(BytesValue::Shared(value.clone())),
        }
    }

    /// A list.
    pub fn list(values: Vec<Self>) -> Self {
        Self::List(ListValue::of(values))
    }

    /// An optional with a value.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// A type as a value.
    pub fn from_type(cel_type: Type) -> Self {
        Self::Type(Arc::new(cel_type))
    }

    /// The value, or the error that it stands for.
    ///
    /// # Errors
    ///
    /// That error ([`super::Opaque::failure`]).
    pub(crate) fn into_result(self) -> ValueResult<'a> {
        match &self {
            Self::Opaque(opaque) => match opaque.failure() {
                Some(error) => Err(error.clone()),
                None => Ok(self),
            },
            _ => Ok(self),
        }
    }

    /// Its type, without parameters: `list(dyn)`, `map(dyn, dyn)`. Objects of a schema are maps, as
    /// in Kubernetes.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::Duration(_) => Type::Duration,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Type(_) => Type::Type(None),
            Self::List(_) => Type::list(Type::Dyn),
            Self::Map(_) | Self::Object(ObjectValue::Json { .. }) => {
                Type::map(Type::Dyn, Type::Dyn)
            }
            Self::Object(ObjectValue::Values { name, .. }) => Type::opaque(name, Vec::new()),
            Self::Optional(_) => Type::opaque("optional_type", Vec::new()),
            Self::Opaque(opaque) => opaque.cel_type(),
            Self::Preserved(_) => Type::opaque("unknown", Vec::new()),
        }
    }

    /// [`Self::type_of`] as a value; common types are not allocated again.
    #[must_use]
    pub fn type_value(&self) -> Self {
        static COMMON: LazyLock<[Arc<Type>; 12]> = LazyLock::new(|| {
            [
                Value::Null,
                Value::Bool(false),
                Value::Int(0),
                Value::Uint(0),
                Value::Double(0.0),
                Value::text(""),
                Value::Bytes(Vec::new().into()),
                Value::Duration(0),
                Value::Timestamp(super::Timestamp { seconds: 0, nanos: 0, offset: 0 }),
                Value::Type(Arc::new(Type::Dyn)),
                Value::list(Vec::new()),
                Value::Map(MapValue::of(std::collections::BTreeMap::new())),
            ]
            .map(|value| Arc::new(value.type_of()))
        });
        let common_index = match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Uint(_) => 3,
            Self::Double(_) => 4,
            Self::String(_) => 5,
            Self::Bytes(_) => 6,
            Self::Duration(_) => 7,
            Self::Timestamp(_) => 8,
            Self::Type(_) => 9,
            Self::List(_) => 10,
            Self::Map(_) | Self::Object(ObjectValue::Json { .. }) => 11,
            _ => return Self::from_type(self.type_of()),
        };
        Self::Type(COMMON[common_index].clone())
    }

    /// The name of its type.
    pub fn type_name(&self) -> StringValue<'static> {
        match self {
            Self::Object(ObjectValue::Values { name, .. }) => StringValue::Shared(name.clone()),
            Self::Opaque(_) => StringValue::Shared(self.type_of().name().into()),
            Self::Optional(_) => "optional_type".into(),
            Self::Preserved(_) => "unknown".into(),
            Self::Null => "null_type".into(),
            Self::Bool(_) => "bool".into(),
            Self::Int(_) => "int".into(),
            Self::Uint(_) => "uint".into(),
            Self::Double(_) => "double".into(),
            Self::String(_) => "string".into(),
            Self::Bytes(_) => "bytes".into(),
            Self::Duration(_) => "google.protobuf.Duration".into(),
            Self::Timestamp(_) => "google.protobuf.Timestamp".into(),
            Self::Type(_) => "type".into(),
            Self::List(_) => "list".into(),
            Self::Map(_) | Self::Object(ObjectValue::Json { .. }) => "map".into(),
        }
    }

    /// Code points of a string, bytes, elements of a list, entries of a map; none for other values.
    pub fn size(&self) -> Option<usize> {
        Some(match self {
            Self::String(text) if text.is_ascii() => text.len(),
            Self::String(text) => text.chars().count(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(list) => list.len(),
            Self::Map(map) => map.len(),
            Self::Object(object @ ObjectValue::Json { .. }) => object.len(),
            _ => return None,
        })
    }

    /// Whether `optional.ofNonZeroValue` returns no value for it.
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(bool) => !bool,
            Self::Int(int) => *int == 0,
            Self::Uint(uint) => *uint == 0,
            Self::Double(double) => *double == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Duration(duration) => *duration == 0,
            // Go's zero time is the first second of the year 1.
            Self::Timestamp(time) => time.seconds == -62_135_596_800 && time.nanos == 0,
            // Lists and maps of objects are never zero in cel-go.
            Self::List(list) => list.declared().is_none() && list.is_empty(),
            Self::Map(MapValue::Json { entries, shape }) => {
                shape.is_dynamic() && entries.is_empty()
            }
            Self::Map(map) => map.is_empty(),
            Self::Object(ObjectValue::Values { fields, .. }) => fields.is_empty(),
            _ => false,
        }
    }

    /// Whether it is a list, map or object of a schema, which cannot be compared with other values.
    pub(super) fn is_declared(&self) -> bool {
        match self {
            Self::List(list) => list.declared().is_some(),
            Self::Map(MapValue::Json { shape, .. }) => !shape.is_dynamic(),
            Self::Object(ObjectValue::Json { .. }) => true,
            _ => false,
        }
    }

    /// The value of a key or index, if it exists. For an optional it is looked up in the optional's
    /// value, and is an optional again.
    ///
    /// # Errors
    ///
    /// `no such key: …` if the value has no elements; an error for an invalid index.
    pub fn find(&self, key: &Value<'_>, work: &WorkBudget) -> LookupResult<'a> {
        match self {
            Self::Map(map) => map.get(key, work),
            Self::Object(object) => object.get_by_value(key, work),
            Self::List(list) => {
                to_list_index(key, work)?.and_then(|index| list.get(index, work)).transpose()
            }
            _ => Err(Error::no_such_key(key, work)),
        }
    }

    /// The value of a key or index.
    ///
    /// # Errors
    ///
    /// `no such key: …` and `index out of bounds: …` if it does not exist, else as [`Self::find`].
    pub fn index(&self, key: &Value<'_>, work: &WorkBudget) -> ValueResult<'a> {
        match self.find(key, work)? {
            Some(value) => Ok(value),
            None if matches!(self, Self::List(_)) => Err(Error::out_of_bounds(key, work)),
            None => Err(Error::no_such_key(key, work)),
        }
    }

    /// The value of a field or string key, if it exists.
    ///
    /// # Errors
    ///
    /// As [`Self::find`].
    pub fn find_field(&self, name: &str, work: &WorkBudget) -> LookupResult<'a> {
        match self {
            Self::Map(map) => map.get_str(name, work),
            Self::Object(object) => object.get(name, work),
            Self::List(_) => Err(Error::fixed("unsupported index type 'string' in list")),
            _ => Err(Error::no_such_key(&Value::text(name), work)),
        }
    }

    /// The value of a field or string key.
    ///
    /// # Errors
    ///
    /// As [`Self::index`].
    pub fn field(&self, name: &str, work: &WorkBudget) -> ValueResult<'a> {
        self.find_field(name, work)?.ok_or_else(|| Error::no_such_key(&Value::text(name), work))
    }

    /// Whether it is an element of a list or a key of a map.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchOverload`] if the container is neither, or if a key of an object's map is not
    /// a string; an error if elements of an object's list cannot be compared with it.
    pub fn is_in(&self, container: &Value<'_>, work: &WorkBudget) -> Result<bool, Error> {
        match container {
            Value::List(list) => list.contains(self, work),
            Value::Map(map) => map.contains(self, work),
            Value::Object(object @ ObjectValue::Json { .. }) => {
                Ok(object.get_by_value(self, work)?.is_some())
            }
            _ => Err(Error::NoSuchOverload),
        }
    }
}

/// The list index for a value; none if no list has such an index.
fn to_list_index(index: &Value<'_>, work: &WorkBudget) -> Result<Option<usize>, Error> {
    let list_index = match index {
        Value::Int(int) => i128::from(*int),
        Value::Uint(uint) if i64::try_from(*uint).is_ok() => i128::from(*uint),
        Value::Double(double)
            if number::whole(*double).is_some_and(|whole| i64::try_from(whole).is_ok()) =>
        {
            number::whole(*double).unwrap_or(-1)
        }
        Value::Uint(_) | Value::Double(_) => {
            return Err(Error::text(
                format!("unsupported index value {} in list", index.display(work)),
                work,
            ));
        }
        _ => {
            let name = super::display::type_text(&index.type_of());
            return Err(Error::text(format!("unsupported index type '{name}' in list"), work));
        }
    };
    Ok(usize::try_from(list_index).ok())
}
