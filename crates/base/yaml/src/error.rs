//! Errors of reading YAML and JSON.

use crate::Options;
use std::borrow::Cow;

/// An error in a text, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct YamlError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The error.
    pub fault: YamlFault,
}

/// The kinds of errors in a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlFault {
    /// The text is encoded as UTF-16.
    #[error("the text is UTF-16; only UTF-8 is read")]
    Utf16,
    /// The text is not valid UTF-8.
    #[error("byte 0x{byte:02x} is not UTF-8 text")]
    NotUtf8 {
        /// The first invalid byte.
        byte: u8,
    },
    /// The text has a character that YAML does not allow.
    #[error("control characters are not allowed")]
    ControlCharacter,
    /// Text follows a document separator on its line.
    #[error("invalid Yaml document separator: {rest}")]
    Separator {
        /// The text.
        rest: String,
    },
    /// Content follows the end of a document.
    #[error("did not find expected <document start>")]
    BehindDocument,
    /// The text is not valid YAML; the message is upstream's.
    #[error("{message}")]
    Syntax {
        /// The message of the parser.
        message: Cow<'static, str>,
    },
    /// The text is not valid JSON, or too large; the message is that of the JSON reader.
    #[error("{message}")]
    Json {
        /// The message of the reader.
        message: String,
        /// Whether the text is truncated.
        ends_early: bool,
    },
    /// A node of the document is invalid.
    #[error(transparent)]
    Node(#[from] NodeFault),
    /// The input has a second document where one is expected.
    #[error("there is a second document where one is expected")]
    SecondDocument,
}

impl YamlFault {
    /// Whether a truncated text can have this error. A complete text can have it for other reasons.
    pub fn may_be_cut_off(&self) -> bool {
        const ENDS: [&str; 3] = ["unexpected end", "end of stream", "did not find expected"];
        match self {
            Self::BehindDocument | Self::Json { ends_early: true, .. } => true,
            Self::Json { message, .. } => ENDS.iter().any(|end| message.contains(end)),
            Self::Syntax { message } => ENDS.iter().any(|end| message.contains(end)),
            _ => false,
        }
    }
}

/// The kinds of errors in a node of a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeFault {
    /// A scalar does not have the type of its tag.
    #[error(transparent)]
    Tag(Box<TagFault>),
    /// A scalar with the tag `!!binary` is not base64.
    #[error("!!binary value contains invalid base64 data")]
    Binary,
    /// JSON has no such number.
    #[error("json: unsupported value: {number}")]
    Number {
        /// The number in Go's notation.
        number: &'static str,
    },
    /// A scalar is too long.
    #[error("a value of {bytes} bytes is above the limit of {limit} bytes for one value")]
    TooLong {
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A key is `null`.
    #[error("null cannot be the key of a mapping")]
    NullKey,
    /// A key is a number that is too large for a key.
    #[error("{number} cannot be the key of a mapping: too large")]
    LargeKey {
        /// The number.
        number: u64,
    },
    /// A key is a mapping or a sequence.
    #[error("a mapping or sequence cannot be the key of a mapping")]
    CollectionKey,
    /// A key is an alias of a node that cannot be a key.
    #[error("invalid map key: {value}")]
    AliasedKey {
        /// The beginning of that node.
        value: String,
    },
    /// A key occurs twice in a mapping.
    #[error("key {key:?} already set in map")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// A merge key has a value that is neither a mapping nor a sequence of mappings.
    #[error("map merge requires map or sequence of maps as the value")]
    Merge,
    /// An alias is inside of the node that it stands for.
    #[error("anchor '{anchor}' value contains itself")]
    AliasOfItself {
        /// The name of the anchor.
        anchor: String,
    },
    /// An alias has no anchor.
    #[error("unknown anchor '{anchor}' referenced")]
    UnknownAnchor {
        /// The name of the anchor.
        anchor: String,
    },
    /// Aliases add too much to a document.
    #[error("document contains excessive aliasing")]
    ExcessiveAliasing,
    /// Mappings and sequences nest too deep.
    #[error("exceeded max depth of {limit}")]
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
}

/// A scalar does not have the type of its tag.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode {found} `{text}` as a !!{tag}")]
pub struct TagFault {
    /// The tag of its actual type.
    pub found: &'static str,
    /// The scalar.
    pub text: String,
    /// The name of the tag in the text.
    pub tag: String,
}

/// Checks that a scalar is not longer than the limit.
pub(crate) fn check_length(bytes: usize, options: &Options) -> Result<(), NodeFault> {
    let limit = options.max_scalar_bytes;
    if bytes <= limit { Ok(()) } else { Err(NodeFault::TooLong { bytes, limit }) }
}
