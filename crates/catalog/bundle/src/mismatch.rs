//! Why a document is no object and a value does not have its Go type, in the words of Go's decoders.

use crate::shape::Step;
use mainstay_schema::builtin::TextError;
use mainstay_schema::strict;

/// A value that does not have its Go type, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) reason: TypeError,
    pub(crate) path: Vec<Step>,
    /// Whether the place is behind the first character of the value (of lists and mappings) and not
    /// behind its last.
    pub(crate) opens: bool,
}

/// Why a value does not have its Go type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeError {
    /// The value, which stands in no field, is of another kind than the type.
    #[error("json: cannot unmarshal {found} into Go value of type {expected}")]
    WrongValue {
        /// The kind of the value, and a number itself.
        found: String,
        /// The Go type.
        expected: String,
    },
    /// The value of a field is of another kind than the field's type.
    #[error(
        "json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {expected}"
    )]
    WrongField {
        /// The kind of the value, and a number itself.
        found: String,
        /// The struct that Go names.
        owner: &'static str,
        /// The fields that lead to the value.
        path: String,
        /// The Go type.
        expected: String,
    },
    /// A text is refused by a type that parses itself.
    #[error(transparent)]
    ParseText(#[from] TextError),
    /// A text is no quantity.
    #[error(transparent)]
    ParseQuantity(#[from] mainstay_quantity::Malformed),
    /// A text is no time.
    #[error(transparent)]
    ParseTime(strict::DecodeError),
    /// A field that takes a boolean or a schema has something else.
    #[error("boolean or JSON schema expected")]
    BooleanOrSchema,
}

/// Why a value that was read already cannot be converted to a Go type, in the words of the converter
/// of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A mapping is expected.
    #[error("cannot restore map from {found}")]
    RestoreMap {
        /// What Go calls the kind of the value.
        found: &'static str,
    },
    /// A list is expected.
    #[error("cannot restore slice from {found}")]
    RestoreSlice {
        /// What Go calls the kind of the value.
        found: &'static str,
    },
    /// A struct is expected.
    #[error("cannot restore struct from: {found}")]
    RestoreStruct {
        /// What Go calls the kind of the value.
        found: &'static str,
    },
    /// Go could convert the kind of the value to the type, and Kubernetes does not.
    #[error("cannot convert {found} to {expected}")]
    ConvertKind {
        /// What Go calls the kind of the value.
        found: &'static str,
        /// The Go type.
        expected: String,
    },
    /// Nothing converts the kind of the value to the type.
    #[error("unrecognized type: {0}")]
    UnrecognizedType(String),
    /// A type that decodes itself refuses the value.
    #[error(transparent)]
    Decode(#[from] TypeError),
    /// A value does not have its type of Kubernetes.
    #[error(transparent)]
    DecodeKubernetes(#[from] strict::DecodeError),
}

/// Why a value is no object of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The value has no kind, or an apiVersion with two slashes.
    #[error("Object 'Kind' is missing in '{json}'")]
    MissingKind {
        /// The value.
        json: String,
    },
    /// The value, or a part of it that every object has, is of another kind than its type.
    #[error(transparent)]
    Decode(#[from] TypeError),
}

/// Why the first document of a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The file has no document.
    #[error("EOF")]
    NoDocument,
    /// The document is no YAML; the words of upstream's parser.
    #[error("error converting YAML to JSON: yaml: {0}")]
    ParseYaml(String),
    /// The document is refused here and not by upstream's parser, such as for its depth.
    #[error("{}", .0.fault)]
    ReadDocument(mainstay_yaml::YamlError),
    /// The document does not hold what is expected.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Decode(ObjectError),
}

impl From<TypeError> for DocumentError {
    fn from(error: TypeError) -> Self {
        Self::Decode(error.into())
    }
}
