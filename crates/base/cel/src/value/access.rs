//! What every value can be asked: its type, its size, what is in it.

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

    /// What is written out in an expression.
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

    /// An optional that holds something.
    pub fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// A type as a value.
    pub fn from_type(of: Type) -> Self {
        Self::Type(Arc::new(of))
    }

    /// The value, or the failure that it stands for.
    ///
    /// # Errors
    ///
    /// That failure ([`super::Opaque::failure`]).
    pub(crate) fn into_result(self) -> ValueResult<'a> {
        match &self {
            Self::Opaque(opaque) => match opaque.failure() {
                Some(error) => Err(error.clone()),
                None => Ok(self),
            },
            _ => Ok(self),
        }
    }

    /// Its type, without parameters: `list(dyn)`, `map(dyn, dyn)`. Objects of a schema are maps,
    /// as in Kubernetes.
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

    /// [`Self::type_of`] as a value; of common types nothing is made.
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
        let at = match self {
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
        Self::Type(COMMON[at].clone())
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

    /// Code points of a string, bytes, elements of a list, entries of a map; none of what has no
    /// size.
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

    /// Whether it is what `optional.ofNonZeroValue` takes for nothing.
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
            // Lists and maps of objects do not say of themselves that they are nothing.
            Self::List(list) => list.declared().is_none() && list.is_empty(),
            Self::Map(MapValue::Json { entries, shape }) => {
                shape.is_dynamic() && entries.is_empty()
            }
            Self::Map(map) => map.is_empty(),
            Self::Object(ObjectValue::Values { fields, .. }) => fields.is_empty(),
            _ => false,
        }
    }

    /// Whether it is a list, map or object of a schema, which refuses to be compared with others.
    pub(super) fn is_declared(&self) -> bool {
        match self {
            Self::List(list) => list.declared().is_some(),
            Self::Map(MapValue::Json { shape, .. }) => !shape.is_dynamic(),
            Self::Object(ObjectValue::Json { .. }) => true,
            _ => false,
        }
    }

    /// What is under a key or at an index; none if nothing is. Of an optional it is looked for in
    /// what it holds, and is an optional again.
    ///
    /// # Errors
    ///
    /// `no such key: …` if there is nothing to look into; what is wrong with an index.
    pub fn find(&self, key: &Value<'_>, work: &WorkBudget) -> LookupResult<'a> {
        match self {
            Self::Map(map) => map.get(key, work),
            Self::Object(object) => object.get_by(key, work),
            Self::List(list) => {
                list_index(key, work)?.and_then(|at| list.get(at, work)).transpose()
            }
            _ => Err(Error::no_such_key(key, work)),
        }
    }

    /// What is under a key or at an index.
    ///
    /// # Errors
    ///
    /// `no such key: …` and `index out of bounds: …` if nothing is, else as [`Self::find`].
    pub fn index(&self, key: &Value<'_>, work: &WorkBudget) -> ValueResult<'a> {
        match self.find(key, work)? {
            Some(value) => Ok(value),
            None if matches!(self, Self::List(_)) => Err(Error::out_of_bounds(key, work)),
            None => Err(Error::no_such_key(key, work)),
        }
    }

    /// A field, or what is under a string; none if nothing is.
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

    /// A field, or what is under a string.
    ///
    /// # Errors
    ///
    /// As [`Self::index`].
    pub fn field(&self, name: &str, work: &WorkBudget) -> ValueResult<'a> {
        self.find_field(name, work)?.ok_or_else(|| Error::no_such_key(&Value::text(name), work))
    }

    /// Whether it is in a list, or a key of a map.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchOverload`] if the other is neither, or the key of a map of an object is no
    /// string; where elements of an object's list cannot be compared with it.
    pub fn is_in(&self, container: &Value<'_>, work: &WorkBudget) -> Result<bool, Error> {
        match container {
            Value::List(list) => list.contains(self, work),
            Value::Map(map) => map.contains(self, work),
            Value::Object(object @ ObjectValue::Json { .. }) => {
                Ok(object.get_by(self, work)?.is_some())
            }
            _ => Err(Error::NoSuchOverload),
        }
    }
}

/// The place that a value means in a list; none if no list has it.
fn list_index(index: &Value<'_>, work: &WorkBudget) -> Result<Option<usize>, Error> {
    let place = match index {
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
    Ok(usize::try_from(place).ok())
}
