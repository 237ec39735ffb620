//! Why a text cannot be read.

use crate::Options;
use std::borrow::Cow;

/// Why reading stopped, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {fault}")]
pub struct YamlError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: YamlFault,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum YamlFault {
    /// It is in another encoding.
    #[error("the text is UTF-16; only UTF-8 is read")]
    Utf16,
    /// It is in no encoding.
    #[error("byte 0x{byte:02x} is not UTF-8 text")]
    NotUtf8 {
        /// The first byte that is none of a character.
        byte: u8,
    },
    /// It has a character that YAML does not allow.
    #[error("control characters are not allowed")]
    ControlCharacter,
    /// Something stands behind a separator of documents.
    #[error("invalid Yaml document separator: {rest}")]
    Separator {
        /// What stands there.
        rest: String,
    },
    /// Something stands behind the first value of a document.
    #[error("did not find expected <document start>")]
    BehindDocument,
    /// It is no YAML, in the words of upstream's parser.
    #[error("{words}")]
    Syntax {
        /// What the parser says.
        words: Cow<'static, str>,
    },
    /// It is no JSON, or too large, in the words of the reader of JSON.
    #[error("{words}")]
    Json {
        /// What the reader says.
        words: String,
        /// Whether the text ends too early.
        ends_early: bool,
    },
    /// A part of it is no value.
    #[error(transparent)]
    Node(#[from] NodeFault),
    /// A second document stands where one is expected.
    #[error("there is a second document where one is expected")]
    SecondDocument,
}

impl YamlFault {
    /// Whether it is found in a text that ends too early. It may have other reasons in a text that
    /// goes on.
    pub fn may_be_cut_off(&self) -> bool {
        const ENDS: [&str; 3] = ["unexpected end", "end of stream", "did not find expected"];
        match self {
            Self::BehindDocument | Self::Json { ends_early: true, .. } => true,
            Self::Json { words, .. } => ENDS.iter().any(|end| words.contains(end)),
            Self::Syntax { words } => ENDS.iter().any(|end| words.contains(end)),
            _ => false,
        }
    }
}

/// Why a part of a document is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeFault {
    /// A scalar does not have the type that its tag says.
    #[error(transparent)]
    Tag(Box<TagFault>),
    /// A scalar that is tagged as base64 is none.
    #[error("!!binary value contains invalid base64 data")]
    Binary,
    /// JSON has no such number.
    #[error("json: unsupported value: {number}")]
    Number {
        /// The number, as Go shows it.
        number: &'static str,
    },
    /// A scalar is too long.
    #[error("a value of {bytes} bytes is above the limit of {limit} bytes for one value")]
    TooLong {
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// `null` is a key.
    #[error("null cannot be the key of a mapping")]
    NullKey,
    /// A number that is too large for that is a key.
    #[error("{number} cannot be the key of a mapping: too large")]
    LargeKey {
        /// The number.
        number: u64,
    },
    /// A mapping or a sequence is a key.
    #[error("a mapping or sequence cannot be the key of a mapping")]
    CollectionKey,
    /// An alias stands for a key that is none.
    #[error("invalid map key: {shown}")]
    AliasedKey {
        /// The beginning of what it stands for.
        shown: String,
    },
    /// A mapping has a key twice.
    #[error("key {key:?} already set in map")]
    RepeatedKey {
        /// The key.
        key: String,
    },
    /// Something else than mappings is merged into one.
    #[error("map merge requires map or sequence of maps as the value")]
    Merge,
    /// An alias is inside of what it stands for.
    #[error("anchor '{anchor}' value contains itself")]
    AliasOfItself {
        /// The name.
        anchor: String,
    },
    /// An alias stands for nothing.
    #[error("unknown anchor '{anchor}' referenced")]
    UnknownAnchor {
        /// The name.
        anchor: String,
    },
    /// Aliases add too much.
    #[error("document contains excessive aliasing")]
    ExcessiveAliasing,
    /// Mappings and sequences are nested too deep.
    #[error("exceeded max depth of {limit}")]
    TooDeep {
        /// How deep they may be.
        limit: usize,
    },
}

/// A scalar does not have the type that its tag says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot decode {found} `{text}` as a !!{tag}")]
pub struct TagFault {
    /// The tag of its type.
    pub found: &'static str,
    /// The scalar.
    pub text: String,
    /// The name of the tag that it has.
    pub tag: String,
}

/// Refuses scalars above the limit.
pub(crate) fn check_length(bytes: usize, options: &Options) -> Result<(), NodeFault> {
    let limit = options.max_scalar_bytes;
    if bytes <= limit { Ok(()) } else { Err(NodeFault::TooLong { bytes, limit }) }
}
