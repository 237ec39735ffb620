//! Kubernetes' side of the language: objects with schemas as typed values.
//!
//! A [`ValueShape`] is made once from a schema (`shape`). From it come the types that the checker sees
//! (`types`), the sizes that costs are estimated with (`sizes`) and the values that the
//! evaluator sees. [`rules`] compiles what a definition says of values of a shape.

pub mod limits;
pub mod names;
pub mod rules;
mod shape;
mod sizes;
mod types;
mod view;

pub use shape::ShapeProperty;

use std::collections::BTreeMap;
use std::sync::Arc;

/// What a value of an object is, as its schema says: the one structure behind the types that the
/// checker sees, the values that the evaluator sees, and the sizes that costs are estimated from
/// (what apiserver's `DeclType` and `Schema` are together).
#[derive(Clone, Debug)]
pub struct ValueShape {
    /// What it is.
    pub kind: ShapeKind,
    /// Whether `null` may stand there.
    pub nullable: bool,
    /// The most code points, bytes, elements or entries it can have.
    pub max_elements: u64,
    /// The fewest bytes that it takes as JSON.
    pub min_size: u64,
}

/// What a value of an object is.
#[derive(Clone, Debug)]
pub enum ShapeKind {
    /// An object with declared fields.
    Object(Arc<ObjectShape>),
    /// An object whose fields all are the same.
    Map(Arc<ValueShape>),
    /// A list.
    List {
        /// Its elements.
        items: Arc<ValueShape>,
        /// How it compares and grows.
        kind: ListShape,
    },
    /// A string without a format that matters.
    String,
    /// `format: byte`
    Bytes,
    /// `format: duration`
    Duration,
    /// `format: date`
    Date,
    /// `format: date-time`
    DateTime,
    /// `type: integer`
    Integer,
    /// `type: number`
    Number,
    /// `type: boolean`
    Boolean,
    /// `x-kubernetes-int-or-string`
    IntOrString,
    /// No type, `x-kubernetes-preserve-unknown-fields`: can only be compared, and has no type that
    /// rules could see.
    Preserved,
    /// Data without a schema: whatever it is when it is looked at.
    Dynamic,
}

/// `x-kubernetes-list-type`
#[derive(Clone, Debug)]
pub enum ListShape {
    /// `atomic`, or none.
    Atomic,
    /// `set`
    Set,
    /// `map`, with its keys.
    Map(Box<[Box<str>]>),
}

/// An object with declared fields.
#[derive(Clone, Debug, Default)]
pub struct ObjectShape {
    /// The name that the type has of itself; none where it is named by its place.
    pub name: Option<Arc<str>>,
    /// The properties, under the names that they have in data.
    pub fields: BTreeMap<Box<str>, ShapeField>,
    /// Names in rules that differ from those in data (`__namespace__`), to the latter.
    pub escaped: BTreeMap<Box<str>, Box<str>>,
}

/// A declared field.
#[derive(Clone, Debug)]
pub struct ShapeField {
    /// What it is.
    pub shape: ValueShape,
    /// Whether it must be there.
    pub required: bool,
}
