//! CEL types of the checker.

use std::fmt;
use std::sync::{Arc, LazyLock};

/// The type of an expression.
#[derive(Clone, Debug)]
pub enum Type {
    /// A type that only the evaluation knows.
    Dyn,
    /// As [`Type::Dyn`], under the name `any`, which constraints of operators declare.
    Any,
    /// The type of an expression that has an error.
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
    /// The type of a type; without a parameter, of all types.
    Type(Option<Arc<Self>>),
    /// A type parameter of a declaration.
    Param(Arc<str>),
    /// A type variable of the checker; never part of its result.
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

/// An object type with declared fields. Object types of the same name are equal.
#[derive(Clone, Debug)]
pub struct ObjectType {
    /// Its name.
    pub name: Arc<str>,
    /// Its fields.
    pub fields: Arc<dyn FieldResolver>,
}

/// Resolves the fields of an object type on demand: a type of Kubernetes may be large, and a rule
/// uses few of its fields.
pub trait FieldResolver: fmt::Debug + Send + Sync {
    /// The type of a field of the object type `owner`; none if the field is not declared.
    fn field(&self, owner: &str, field: &str) -> Option<Type>;

    /// Whether the fields of `owner` are declared. If not, selecting one is an error of its own
    /// ("unexpected failed resolution"), as for `kubernetes.Quantity`.
    fn declares(&self, _owner: &str) -> bool {
        true
    }
}

/// The resolver for types without declared fields.
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

    /// A type of a library that is a structure without declared fields in cel-go
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

    /// The type of an optional's value; none for other types.
    pub fn optional_inner(&self) -> Option<&Self> {
        match self {
            Self::Opaque(opaque) if &*opaque.name == "optional_type" => opaque.params.first(),
            _ => None,
        }
    }

    /// Whether only the evaluation knows the type.
    pub const fn is_dyn(&self) -> bool {
        matches!(self, Self::Dyn | Self::Any)
    }

    /// Its name without parameters. The evaluation compares types by it, and `string(type(x))`
    /// returns it.
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

/// The text of a type in messages of the checker.
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
            Self::Type(Some(inner)) => write!(f, "type({inner})"),
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
