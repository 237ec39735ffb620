//! Why a document is no object and a value does not have its Go type, in the words of Go's decoders.

pub use mainstay_schema::gojson::TypeError;
use mainstay_schema::strict;

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
    DecodeKubernetes(#[from] strict::UnmarshalError),
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
