//! Types, as the checker sees them.

use std::fmt;
use std::sync::{Arc, LazyLock};

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
    /// A type parameter of a declaration.
    Param(Arc<str>),
    /// A type that the checker has not settled yet; never part of what it returns.
    Var(u32),
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
    pub fields: Arc<dyn FieldResolver>,
}

/// The fields of an object's type, asked for one by one: a type of Kubernetes may be large, and a
/// rule looks at little of it.
pub trait FieldResolver: fmt::Debug + Send + Sync {
    /// The type of a field of the object type that has the name `owner`; none if there is none.
    fn field(&self, owner: &str, field: &str) -> Option<Type>;

    /// Whether anything is known of the fields of `owner`; where not, naming one is an error of
    /// its own ("unexpected failed resolution"), as for `kubernetes.Quantity`.
    fn declares(&self, _owner: &str) -> bool {
        true
    }
}

/// Fields of types that declare none.
#[derive(Debug)]
struct Undeclared;

impl FieldResolver for Undeclared {
    fn field(&self, _: &str, _: &str) -> Option<Type> {
        None
    }

    fn declares(&self, _: &str) -> bool {
        false
    }
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

    /// A type of a library that cel-go knows as a structure without declared fields
    /// (`kubernetes.Quantity`), unlike [`Type::opaque`] (`net.IP`).
    pub fn object(name: &str) -> Self {
        static UNDECLARED: LazyLock<Arc<dyn FieldResolver>> =
            LazyLock::new(|| Arc::new(Undeclared));
        Self::Object(ObjectType { name: name.into(), fields: Arc::clone(&UNDECLARED) })
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

    /// Whether it is known only when it is evaluated.
    pub const fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Its name without parameters: how types are told apart when they are evaluated, and what
    /// `string(type(x))` gives.
    pub fn name(&self) -> &str {
        match self {
            Self::Dyn => "dyn",
            Self::Any => "google.protobuf.Any",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Duration => "google.protobuf.Duration",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Type(_) => "type",
            Self::Param(name) => name,
            Self::Var(_) => "_var",
            Self::Opaque(opaque) => &opaque.name,
            Self::Object(object) => &object.name,
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
            (Self::List(one), Self::List(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::Map(one), Self::Map(other)) => Arc::ptr_eq(one, other) || one == other,
            (Self::Type(one), Self::Type(other)) => one == other,
            (Self::Param(one), Self::Param(other)) => one == other,
            (Self::Var(one), Self::Var(other)) => one == other,
            (Self::Opaque(one), Self::Opaque(other)) => one == other,
            (Self::Object(one), Self::Object(other)) => one.name == other.name,
            _ => false,
        }
    }
}

/// As the checker writes types in its messages.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Var(number) => write!(f, "_var{number}"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Self::Type(Some(of)) => write!(f, "type({of})"),
            Self::Opaque(opaque) if !opaque.params.is_empty() => {
                f.write_str(&opaque.name)?;
                for (index, param) in opaque.params.iter().enumerate() {
                    write!(f, "{}{param}", if index == 0 { "(" } else { ", " })?;
                }
                f.write_str(")")
            }
            _ => f.write_str(self.name()),
        }
    }
}
