//! CEL in Kubernetes: objects with schemas as typed values.
//!
//! A [`ValueShape`] is built once from a schema (`shape`). It provides the types of the checker
//! (`types`), the sizes of the cost estimate (`sizes`) and the values of the evaluator (`view`).
//! [`rules`] compiles the rules of a CRD for values of a shape.

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

/// The shape of a value as its schema declares it. The types of the checker, the values of the
/// evaluator and the sizes of the cost estimate derive from it. (In apiserver `DeclType` and
/// `Schema` together.)
#[derive(Clone, Debug)]
pub struct ValueShape {
    /// Its kind.
    pub kind: ShapeKind,
    /// Whether `null` is allowed.
    pub nullable: bool,
    /// The maximum of its code points, bytes, elements or entries.
    pub max_elements: u64,
    /// The minimum length of its JSON in bytes.
    pub min_size: u64,
}

/// The kinds of shapes.
#[derive(Clone, Debug)]
pub enum ShapeKind {
    /// An object with declared fields.
    Object(Arc<ObjectShape>),
    /// An object whose fields all have the same shape.
    Map(Arc<ValueShape>),
    /// A list.
    List {
        /// Its elements.
        items: Arc<ValueShape>,
        /// Its list type.
        kind: ListShape,
    },
    /// A string, without one of the formats below.
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
    /// `x-kubernetes-preserve-unknown-fields` without a type: rules cannot see it, it can only be
    /// compared.
    Preserved,
    /// Data without a schema; its type is known when it is evaluated.
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
    /// The name of the type; none if it is named by its position.
    pub name: Option<Arc<str>>,
    /// The properties by their names in data.
    pub fields: BTreeMap<Box<str>, ShapeField>,
    /// Escaped names (`__namespace__`) to names in data, where they differ.
    pub escaped: BTreeMap<Box<str>, Box<str>>,
}

/// A declared field.
#[derive(Clone, Debug)]
pub struct ShapeField {
    /// Its kind.
    pub shape: ValueShape,
    /// Whether it is required.
    pub required: bool,
}
