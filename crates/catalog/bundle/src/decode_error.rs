//! Decoding errors of documents and values, in the words of Go's decoders.

pub use mainstay_schema::gojson::TypeError;
use mainstay_schema::strict;

/// Why a decoded value cannot be converted to a Go type, in the words of Kubernetes' converter of
/// unstructured objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FromUnstructuredError {
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
    /// Go could convert the kind of the value to the type, but Kubernetes does not.
    #[error("cannot convert {found} to {expected}")]
    ConvertKind {
        /// What Go calls the kind of the value.
        found: &'static str,
        /// The Go type.
        expected: String,
    },
    /// No conversion exists from the kind of the value to the type.
    #[error("unrecognized type: {0}")]
    UnrecognizedType(String),
    /// A type that decodes itself refuses the value.
    #[error(transparent)]
    Decode(#[from] TypeError),
    /// A value does not have its type of Kubernetes.
    #[error(transparent)]
    DecodeKubernetes(#[from] strict::UnmarshalError),
}

/// Why a value is not a Kubernetes object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The value has no kind, or an apiVersion with two slashes.
    #[error("Object 'Kind' is missing in '{json}'")]
    MissingKind {
        /// The value.
        json: String,
    },
    /// The value, or a part that every object has, does not have its type.
    #[error(transparent)]
    Decode(#[from] TypeError),
}

/// Why the first document of a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FirstDocumentError {
    /// The file has no document.
    #[error("EOF")]
    NoDocument,
    /// The document is not YAML; the message of upstream's parser.
    #[error("error converting YAML to JSON: yaml: {0}")]
    ParseYaml(String),
    /// Only this parser refuses the document, for example for its depth.
    #[error("{}", .0.fault)]
    ReadDocument(mainstay_yaml::YamlError),
    /// The document does not have the expected type.
    #[error("error unmarshaling JSON: while decoding JSON: {0}")]
    Decode(ObjectError),
}

impl From<TypeError> for FirstDocumentError {
    fn from(error: TypeError) -> Self {
        Self::Decode(error.into())
    }
}
