//! Why an operation does not apply, in the words of Go's library.

use crate::depth::MAX_DEPTH;
use std::fmt;

/// An operation of a JSON patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// It does not have a part that it needs.
    #[error(
        "{operation} operation failed to decode {field}: operation missing {field} field: missing value"
    )]
    NoField {
        /// What it does.
        operation: String,
        /// The part.
        field: &'static str,
    },
    /// It does what no operation does.
    #[error("Unexpected kind: {operation}")]
    UnknownOperation {
        /// What it does.
        operation: String,
    },
    /// The object has nothing at one of its paths.
    #[error("{operation} operation does not apply: {}: missing value", missing(operation, *end, path))]
    NoPath {
        /// What it does.
        operation: &'static str,
        /// Which of its paths.
        end: End,
        /// The path.
        path: String,
    },
    /// A list has no element at the path whose value is replaced.
    #[error("replace operation does not apply: doc is missing key: {path}: missing value")]
    NoElement {
        /// The path.
        path: String,
    },
    /// What is at one of its paths does not take it.
    #[error("{0}: {1}")]
    Element(Place, ElementError),
    /// The root is replaced by a value that is neither object nor list.
    #[error("replace operation value must be object or array")]
    RootKind,
    /// The value that is tested is another one.
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// The path.
        path: String,
    },
    /// The object would be nested too deep.
    #[error("the object would be nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The copies of a patch are too large.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {limit}"
    )]
    CopyTooLarge {
        /// Bytes that they would add.
        copied: usize,
        /// Bytes that they may add.
        limit: usize,
    },
}

/// Which path of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where its value comes from.
    From,
    /// Where it is done.
    Path,
}

fn missing(operation: &str, end: End, path: &str) -> String {
    match (operation, end) {
        ("add" | "remove", _) => format!("doc is missing path: \"{path}\""),
        ("test", _) => format!("is missing path: {path}"),
        ("move" | "copy", End::From) => format!("doc is missing from path: {path}"),
        ("move" | "copy", End::Path) => format!("doc is missing destination path: {path}"),
        _ => format!("doc is missing path: {path}"),
    }
}

/// Where an operation stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the path of an operation.
    Path(&'static str, String),
    /// Where a copy comes from.
    CopyFrom(String),
    /// Where a copy goes.
    CopyTo,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(operation, path) => write!(f, "error in {operation} for path: '{path}'"),
            Self::CopyFrom(path) => write!(f, "error in copy for from: '{path}'"),
            Self::CopyTo => f.write_str("error while adding value during copy"),
        }
    }
}

/// An object or a list does not take an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// The key is no number, and a list has elements.
    #[error("strconv.Atoi: parsing {key:?}: invalid syntax")]
    NotANumber {
        /// The key.
        key: String,
    },
    /// The key of something new is no number, and a list has elements.
    #[error(
        "value was not a proper array index: '{key}': strconv.Atoi: parsing {key:?}: invalid syntax"
    )]
    NotAnIndex {
        /// The key.
        key: String,
    },
    /// The list has no such element.
    #[error("Unable to access invalid index: {at}: invalid array index")]
    NoIndex {
        /// Which one.
        at: i64,
    },
    /// The object has no such field.
    #[error("Unable to remove nonexistent key: {key}: missing value")]
    NoKey {
        /// The field.
        key: String,
    },
    /// There is neither object nor list.
    #[error("missing value")]
    NoHolder,
}
