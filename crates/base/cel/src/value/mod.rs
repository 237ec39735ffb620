//! Values, as the evaluator sees them.
//!
//! A value borrows what it can: objects are looked at where they lie (`'a` is the life of the
//! object and of the program), strings of them are not copied, and the elements of lists and maps
//! become values one by one when they are asked for.

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
    /// A `duration` in nanoseconds, as Go has it.
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
    /// A value of a library's type.
    Opaque(Arc<dyn Opaque>),
    /// Data that has no type in its schema and can only be compared.
    Preserved(&'a Json),
}

/// A string.
#[derive(Clone, Debug)]
pub enum StringValue<'a> {
    /// Of an object or of the program.
    Borrowed(&'a str),
    /// Made on the way.
    Shared(Arc<str>),
}

/// Bytes.
#[derive(Clone, Debug)]
pub enum BytesValue<'a> {
    /// Of the program.
    Borrowed(&'a [u8]),
    /// Made on the way.
    Shared(Arc<[u8]>),
}

/// A point in time. What the language makes is within the years 1 to 9999.
#[derive(Clone, Copy, Debug)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub seconds: i64,
    /// Nanoseconds after them, below 1,000,000,000.
    pub nanos: u32,
    /// Seconds east of Greenwich of the zone that it was written in; only its text knows it.
    pub offset: i32,
}

/// A list.
#[derive(Clone, Debug)]
pub enum ListValue<'a> {
    /// Of an object.
    Json {
        /// The elements.
        items: &'a [Json],
        /// What the list is ([`ShapeKind::List`]), or that nothing says what it is.
        ///
        /// [`ShapeKind::List`]: crate::kubernetes::ShapeKind::List
        shape: &'a ValueShape,
    },
    /// Made on the way.
    Values(Arc<Vec<Value<'a>>>),
    /// A list of an object to which something was added: it compares and grows as that does.
    Joined {
        /// The elements.
        elements: Arc<Vec<ListElement<'a>>>,
        /// What the list is.
        shape: &'a ValueShape,
    },
}

/// An element of a list of an object that has grown.
#[derive(Clone, Debug)]
pub enum ListElement<'a> {
    /// It lies in the object.
    Original(&'a Json),
    /// It was added. The list takes it for data and looks at it as its schema says, as it does with
    /// its own: what was a text to begin with must be one still.
    Added(Value<'a>),
}

/// A map.
#[derive(Clone, Debug)]
pub enum MapValue<'a> {
    /// Of an object.
    Json {
        /// The entries.
        entries: &'a JsonMap<String, Json>,
        /// What the map is ([`ShapeKind::Map`]), or that nothing says what it is.
        ///
        /// [`ShapeKind::Map`]: crate::kubernetes::ShapeKind::Map
        shape: &'a ValueShape,
    },
    /// Made on the way, in the order of keys.
    Values(Arc<std::collections::BTreeMap<MapKey<'a>, Value<'a>>>),
}

/// The key of a map. Numbers that are equal are the same key, whatever their type; which type it
/// was is kept in the first form (`Int` where it fits).
#[derive(Clone, Debug)]
pub enum MapKey<'a> {
    /// `true`, `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number that was written as, or only fits, a `uint`.
    Uint(u64),
    /// A string.
    String(StringValue<'a>),
}

/// An object with declared fields.
#[derive(Clone, Debug)]
pub enum ObjectValue<'a> {
    /// One that lies somewhere.
    Json {
        /// Its fields.
        fields: &'a JsonMap<String, Json>,
        /// What the object is ([`ShapeKind::Object`]).
        ///
        /// [`ShapeKind::Object`]: crate::kubernetes::ShapeKind::Object
        shape: &'a ValueShape,
    },
    /// Made on the way: `Type{field: value}`.
    Values {
        /// The type's name.
        name: Arc<str>,
        /// The fields that were given.
        fields: Arc<std::collections::BTreeMap<Arc<str>, Value<'a>>>,
    },
}

/// A value of a library's type.
pub trait Opaque: fmt::Debug + Send + Sync + 'static {
    /// Its type.
    fn cel_type(&self) -> Type;
    /// Whether it is the same value.
    ///
    /// # Errors
    ///
    /// Where it is not to be compared with this at all: [`Error::NoSuchOverload`] from most types
    /// of Kubernetes if the other is of another type.
    fn equals(&self, other: &Value<'_>) -> Result<bool, Error>;
    /// Its size, as costs count it (`Size()` of cel-go's traits); none if it has none.
    fn size(&self) -> Option<u64> {
        None
    }
    /// If it is a format: the length that costs take its regular expression to have.
    fn pattern_size(&self) -> Option<u64> {
        None
    }
    /// What upstream calls the type inside, in messages, where that is not `cel.` and the last part
    /// of its name.
    fn go_type(&self) -> Option<&'static str> {
        None
    }
    /// Go's type and text of what is inside, in messages, where upstream cannot make a value of
    /// that again once it has unpacked it (`(netip.Addr)10.0.0.1`).
    fn go_inside(&self) -> Option<String> {
        None
    }
    /// If it stands for a failure: that. Whoever looks into what holds such a value fails so.
    fn failure(&self) -> Option<&Error> {
        None
    }
    /// Itself, to be asked what it really is.
    fn as_any(&self) -> &dyn Any;
}

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No overload takes these arguments.
    #[error("no such overload")]
    NoSuchOverload,
    /// No overload of this name takes these arguments.
    #[error("no such overload: {0}")]
    NoSuchOverloadOf(Box<str>),
    /// The budget is used up.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostLimit,
    /// Somebody asked to stop.
    #[error("operation interrupted")]
    Interrupted,
    /// Upstream's code fails where it takes something for granted: nothing absorbs that.
    #[error("internal error: {0}")]
    Internal(&'static str),
    /// Anything else, in cel-go's words.
    #[error("{0}")]
    Other(Cow<'static, str>),
}

impl Error {
    /// An error with a fixed text.
    pub const fn fixed(text: &'static str) -> Self {
        Self::Other(Cow::Borrowed(text))
    }

    /// Nothing is under this key.
    pub fn no_such_key(key: &Value<'_>, work: &WorkBudget) -> Self {
        Self::text(format!("no such key: {}", key.display(work)), work)
    }

    /// A list has no such place.
    pub fn out_of_bounds(index: &Value<'_>, work: &WorkBudget) -> Self {
        Self::text(format!("index out of bounds: {}", index.display(work)), work)
    }

    /// An error with a text of its own. Making the text is work, even if nobody sees the error.
    pub fn text(text: impl Into<String>, work: &WorkBudget) -> Self {
        let text = text.into();
        // The evaluation checks later whether work remains.
        let _ = work.make_text(text.len());
        Self::Other(Cow::Owned(text))
    }
}

/// A value, or why there is none.
pub type ValueResult<'a> = Result<Value<'a>, Error>;
