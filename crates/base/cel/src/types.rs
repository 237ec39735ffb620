//! Types, as the checker sees them.

use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Clone, Debug)]
pub enum Type {
    /// Known only when it is evaluated.
    Dyn,
    /// As [`Type::Dyn`], under the name that operators' constraints declare (`any`).
    Any,
    /// What the checker gives to what it has refused already.
    Error,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `duration`
    Duration,
    /// `timestamp`
    Timestamp,
    /// `list(T)`
    List(Arc<Self>),
    /// `map(K, V)`
    Map(Arc<(Self, Self)>),
    /// The type of a type; of all types if it has no parameter.
    Type(Option<Arc<Self>>),
    /// A type parameter of a function's declaration, or one that is not settled yet.
    Param(Arc<str>),
    /// A type of a library, such as `optional_type(T)` or `net.IP`.
    Opaque(Arc<OpaqueType>),
    /// An object with declared fields.
    Object(ObjectType),
}

/// A type of a library.
#[derive(Clone, Debug, PartialEq)]
pub struct OpaqueType {
    /// Its name.
    pub name: Arc<str>,
    /// Its parameters.
    pub params: Vec<Type>,
}

/// An object with declared fields. Two are the same type if their names are.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Its name.
    pub name: Arc<str>,
    /// Its fields.
    pub fields: Arc<dyn Fields>,
}

/// The fields of an object's type, asked for one by one: a type of Kubernetes may be large, and a
/// rule looks at little of it.
pub trait Fields: fmt::Debug + Send + Sync {
    /// The type of a field of the object type that has the name `owner`; none if there is none.
    fn field(&self, owner: &str, field: &str) -> Option<Type>;
}

impl Type {
    /// `list(element)`
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new((key, value)))
    }

    /// `optional_type(inner)`
    pub fn optional(inner: Self) -> Self {
        Self::opaque("optional_type", vec![inner])
    }

    /// A type of a library.
    pub fn opaque(name: &str, params: Vec<Self>) -> Self {
        Self::Opaque(Arc::new(OpaqueType { name: name.into(), params }))
    }

    /// A parameter of a function's declaration.
    pub fn param(name: &str) -> Self {
        Self::Param(name.into())
    }

    /// What an optional holds; none if this is no optional.
    pub fn optional_inner(&self) -> Option<&Self> {
        match self {
            Self::Opaque(opaque) if &*opaque.name == "optional_type" => opaque.params.first(),
            _ => None,
        }
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Dyn, Self::Dyn)
            | (Self::Any, Self::Any)
            | (Self::Error, Self::Error)
            | (Self::Null, Self::Null)
            | (Self::Bool, Self::Bool)
            | (Self::Int, Self::Int)
            | (Self::Uint, Self::Uint)
            | (Self::Double, Self::Double)
            | (Self::String, Self::String)
            | (Self::Bytes, Self::Bytes)
            | (Self::Duration, Self::Duration)
            | (Self::Timestamp, Self::Timestamp) => true,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Map(one), Self::Map(other)) => one == other,
            (Self::Type(one), Self::Type(other)) => one == other,
            (Self::Param(one), Self::Param(other)) => one == other,
            (Self::Opaque(one), Self::Opaque(other)) => one == other,
            (Self::Object(one), Self::Object(other)) => one.name == other.name,
            _ => false,
        }
    }
}

/// As cel-go writes types in its messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Dyn => "dyn",
            Self::Any => "any",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(element) => return write!(f, "list({element})"),
            Self::Map(entry) => return write!(f, "map({}, {})", entry.0, entry.1),
            Self::Type(None) => "type",
            Self::Type(Some(of)) => return write!(f, "type({of})"),
            Self::Param(name) => name,
            Self::Object(object) => &object.name,
            Self::Opaque(opaque) => {
                f.write_str(&opaque.name)?;
                for (index, param) in opaque.params.iter().enumerate() {
                    write!(f, "{}{param}", if index == 0 { "(" } else { ", " })?;
                }
                if !opaque.params.is_empty() {
                    f.write_str(")")?;
                }
                return Ok(());
            }
        };
        f.write_str(name)
    }
}
