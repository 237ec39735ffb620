//! Errors of JSON patch operations, with the texts of Go's library.

use crate::depth::MAX_DEPTH;
use std::fmt;

/// An operation of a JSON patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OperationError {
    /// The operation lacks a member.
    #[error(
        "{operation} operation failed to decode {field}: operation missing {field} field: missing value"
    )]
    NoField {
        /// The operation.
        operation: String,
        /// The member.
        field: &'static str,
    },
    /// The operation is unknown.
    #[error("Unexpected kind: {operation}")]
    UnknownOperation {
        /// The operation.
        operation: String,
    },
    /// The object has no value at a path of the operation.
    #[error("{operation} operation does not apply: {}: missing value", missing_path(operation, *member, path))]
    NoPath {
        /// The operation.
        operation: &'static str,
        /// The member of the operation with the path.
        member: PathMember,
        /// The path.
        path: String,
    },
    /// A list has no element at the path of a `replace`.
    #[error("replace operation does not apply: doc is missing key: {path}: missing value")]
    NoElement {
        /// The path.
        path: String,
    },
    /// The container at a path of the operation does not accept it.
    #[error("{0}: {1}")]
    Element(ErrorLocation, ElementError),
    /// The root is replaced by a value that is neither object nor list.
    #[error("replace operation value must be object or array")]
    RootType,
    /// The value of a `test` differs.
    #[error("testing value {path} failed: test failed")]
    TestFailed {
        /// The path.
        path: String,
    },
    /// The object would be nested too deeply.
    #[error("the object would be nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The copies of a patch are too large.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {limit}"
    )]
    CopyTooLarge {
        /// The bytes that the copies add.
        copied: usize,
        /// The bytes that they may add.
        limit: usize,
    },
}

/// The member of an operation that has a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathMember {
    /// `from`.
    From,
    /// `path`.
    Path,
}

fn missing_path(operation: &str, member: PathMember, path: &str) -> String {
    match (operation, member) {
        ("add" | "remove", _) => format!("doc is missing path: \"{path}\""),
        ("test", _) => format!("is missing path: {path}"),
        ("move" | "copy", PathMember::From) => format!("doc is missing from path: {path}"),
        ("move" | "copy", PathMember::Path) => format!("doc is missing destination path: {path}"),
        _ => format!("doc is missing path: {path}"),
    }
}

/// The location of an error of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorLocation {
    /// The path of an operation.
    Path(&'static str, String),
    /// The source of a copy.
    CopyFrom(String),
    /// The destination of a copy.
    CopyTo,
}

impl fmt::Display for ErrorLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(operation, path) => write!(f, "error in {operation} for path: '{path}'"),
            Self::CopyFrom(path) => write!(f, "error in copy for from: '{path}'"),
            Self::CopyTo => f.write_str("error while adding value during copy"),
        }
    }
}

/// An object or a list does not accept an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// The key of a list element is no number.
    #[error("strconv.Atoi: parsing {key:?}: invalid syntax")]
    NotANumber {
        /// The key.
        key: String,
    },
    /// The key of a new list element is no number.
    #[error(
        "value was not a proper array index: '{key}': strconv.Atoi: parsing {key:?}: invalid syntax"
    )]
    NotAnIndex {
        /// The key.
        key: String,
    },
    /// The list has no element with this index.
    #[error("Unable to access invalid index: {index}: invalid array index")]
    InvalidIndex {
        /// The index.
        index: i64,
    },
    /// The object has no such field.
    #[error("Unable to remove nonexistent key: {key}: missing value")]
    NoKey {
        /// The field.
        key: String,
    },
    /// The value is neither an object nor a list.
    #[error("missing value")]
    NoContainer,
}
