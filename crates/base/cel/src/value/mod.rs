//! CEL values of the evaluator.
//!
//! Values borrow: `'a` is the lifetime of the objects and of the program. Strings of objects are
//! not copied, and elements of lists and maps become values one by one, on access.

mod access;
mod display;
mod equal;
mod json;
mod list;
mod list_type;
mod map;
mod number;
mod text;
pub mod time;
pub(crate) mod work;

pub use display::{Display, go_decimal, go_double};
pub use map::{LookupResult, MapEntries};
pub use work::WorkBudget;

use crate::kubernetes::ValueShape;
use crate::types::Type;
use serde_json::{Map as JsonMap, Value as Json};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// A `bool`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// A `uint`.
    Uint(u64),
    /// A `double`.
    Double(f64),
    /// A `string`.
    String(StringValue<'a>),
    /// `bytes`
    Bytes(BytesValue<'a>),
    /// A `duration` in nanoseconds, as in Go.
    Duration(i64),
    /// A `timestamp`.
    Timestamp(Timestamp),
    /// A type.
    Type(Arc<Type>),
    /// A list.
    List(ListValue<'a>),
    /// A map.
    Map(MapValue<'a>),
    /// An object with declared fields.
    Object(ObjectValue<'a>),
    /// An optional.
    Optional(Option<Arc<Self>>),
    /// A value of a library type.
    Opaque(Arc<dyn Opaque>),
    /// Data without a type in its schema (`x-kubernetes-preserve-unknown-fields`), which can only
    /// be compared.
    Preserved(&'a Json),
}

/// A string.
#[derive(Clone, Debug)]
pub enum StringValue<'a> {
    /// Part of an object or of the program.
    Borrowed(&'a str),
    /// Created during evaluation.
    Shared(Arc<str>),
}

/// Bytes.
#[derive(Clone, Debug)]
pub enum BytesValue<'a> {
    /// Part of the program.
    Borrowed(&'a [u8]),
    /// Created during evaluation.
    Shared(Arc<[u8]>),
}

/// A point in time. Timestamps that CEL creates are within the years 1 to 9999.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds of the second, below 1,000,000,000.
    pub nanos: u32,
    /// The offset from UTC in seconds of the zone in which it was written; only its text depends on
    /// it.
    pub offset: i32,
}

/// A list.
#[derive(Clone, Debug)]
pub enum ListValue<'a> {
    /// Part of an object.
    Json {
        /// The elements.
        items: &'a [Json],
        /// Its shape: [`ShapeKind::List`] or [`ShapeKind::Dynamic`].
        ///
        /// [`ShapeKind::List`]: crate::kubernetes::ShapeKind::List
        /// [`ShapeKind::Dynamic`]: crate::kubernetes::ShapeKind::Dynamic
        shape: &'a ValueShape,
    },
    /// Created during evaluation.
    Values(Arc<Vec<Value<'a>>>),
    /// A list of an object with added elements. It keeps the list type.
    Joined {
        /// The elements.
        elements: Arc<Vec<ListElement<'a>>>,
        /// Its shape.
        shape: &'a ValueShape,
    },
}

/// An element of an object's list with additions.
#[derive(Clone, Debug)]
pub enum ListElement<'a> {
    /// An element of the object.
    Original(&'a Json),
    /// An added element. The list converts it by its schema like its own elements: if the schema
    /// expects a text, the element must be one.
    Added(Value<'a>),
}

/// A map.
#[derive(Clone, Debug)]
pub enum MapValue<'a> {
    /// Part of an object.
    Json {
        /// The entries.
        entries: &'a JsonMap<String, Json>,
        /// Its shape: [`ShapeKind::Map`] or [`ShapeKind::Dynamic`].
        ///
        /// [`ShapeKind::Map`]: crate::kubernetes::ShapeKind::Map
        /// [`ShapeKind::Dynamic`]: crate::kubernetes::ShapeKind::Dynamic
        shape: &'a ValueShape,
    },
    /// Created during evaluation, in the order of keys.
    Values(Arc<std::collections::BTreeMap<MapKey<'a>, Value<'a>>>),
}

/// The key of a map. Equal numbers are the same key, whatever their type. The type is kept.
#[derive(Clone, Debug)]
pub enum MapKey<'a> {
    /// `true`, `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A `uint`.
    Uint(u64),
    /// A string.
    String(StringValue<'a>),
}

/// An object with declared fields.
#[derive(Clone, Debug)]
pub enum ObjectValue<'a> {
    /// Part of an object.
    Json {
        /// Its fields.
        fields: &'a JsonMap<String, Json>,
        /// Its shape: [`ShapeKind::Object`].
        ///
        /// [`ShapeKind::Object`]: crate::kubernetes::ShapeKind::Object
        shape: &'a ValueShape,
    },
    /// Created by an expression: `Type{field: value}`.
    Values {
        /// The name of the type.
        name: Arc<str>,
        /// The fields with values.
        fields: Arc<std::collections::BTreeMap<Arc<str>, Value<'a>>>,
    },
}

/// A value of a library type.
pub trait Opaque: fmt::Debug + Send + Sync + 'static {
    /// Its type.
    fn cel_type(&self) -> Type;
    /// Whether it equals another value.
    ///
    /// # Errors
    ///
    /// If it cannot be compared with the other value: [`Error::NoSuchOverload`] for most types of
    /// Kubernetes if the other has another type.
    fn equals(&self, other: &Value<'_>) -> Result<bool, Error>;
    /// Its size for costs (`Size()` of cel-go's traits); none if it has no size.
    fn size(&self) -> Option<u64> {
        None
    }
    /// For a format, the length of its regular expression for costs.
    fn pattern_size(&self) -> Option<u64> {
        None
    }
    /// The Go type in messages, if it is not `cel.` and the last part of the type name.
    fn go_type(&self) -> Option<&'static str> {
        None
    }
    /// The Go type and text of the wrapped value (`(netip.Addr)10.0.0.1`), if cel-go cannot convert
    /// it back to a CEL value. It is part of the error message.
    fn go_inside(&self) -> Option<String> {
        None
    }
    /// The error, if this value stands for one. Access to the value returns the error.
    fn failure(&self) -> Option<&Error> {
        None
    }
    /// The value for downcasts.
    fn as_any(&self) -> &dyn Any;
}

/// An error of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No overload takes these arguments.
    #[error("no such overload")]
    NoSuchOverload,
    /// No overload of this name takes these arguments.
    #[error("no such overload: {0}")]
    NoSuchOverloadOf(Box<str>),
    /// The cost exceeds the budget.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// The caller interrupted the evaluation.
    #[error("operation interrupted")]
    Interrupted,
    /// A panic of upstream's code. No operator absorbs it.
    #[error("internal error: {0}")]
    Internal(&'static str),
    /// Any other error, in cel-go's words.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl Error {
    /// An error with a fixed text.
    pub const fn fixed(text: &'static str) -> Self {
        Self::Other(Cow::Borrowed(text))
    }

    /// The error for a missing key.
    pub fn no_such_key(key: &Value<'_>, work: &WorkBudget) -> Self {
        Self::text(format!("no such key: {}", key.display(work)), work)
    }

    /// The error for an index beyond a list.
    pub fn out_of_bounds(index: &Value<'_>, work: &WorkBudget) -> Self {
        Self::text(format!("index out of bounds: {}", index.display(work)), work)
    }

    /// An error with a computed text. Creating the text costs work, even if the error is absorbed.
    pub fn text(text: impl Into<String>, work: &WorkBudget) -> Self {
        let text = text.into();
        // The evaluation checks later whether work remains.
        let _ = work.create_text(text.len());
        Self::Other(Cow::Owned(text))
    }
}

/// A value or an error.
pub type ValueResult<'a> = Result<Value<'a>, Error>;
