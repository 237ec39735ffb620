//! Why bytes are no JSON, and why a value is not of a type, in Go's words.

use crate::builtin::TextError;
use mainstay_gocompat::Base64Error;
use mainstay_object::FieldError;
use mainstay_quantity::ParseQuantityError;

/// Bytes are no JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// They end too early.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A byte stands where it cannot.
    #[error("invalid character '{}' {context}", quoted(*byte))]
    InvalidByte {
        /// The byte.
        byte: u8,
        /// Where it stands.
        context: Context,
    },
    /// Values are nested deeper than this server reads.
    #[error("exceeded max depth")]
    TooDeep,
    /// What Go reads and this server does not, in the words of its own reader.
    #[error("{message}")]
    Unreadable {
        /// What its reader says.
        message: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
}

/// Where a byte cannot stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Context {
    /// A value begins here.
    #[error("looking for beginning of value")]
    Value,
    /// A key begins here.
    #[error("looking for beginning of object key string")]
    Key,
    /// Behind a key.
    #[error("after object key")]
    AfterKey,
    /// Behind a field.
    #[error("after object key:value pair")]
    AfterField,
    /// Behind an element of a list.
    #[error("after array element")]
    AfterElement,
    /// Behind the whole value.
    #[error("after top-level value")]
    AfterDocument,
    /// In a text.
    #[error("in string literal")]
    Text,
    /// In an escape.
    #[error("in string escape code")]
    Escape,
    /// In the digits of an escape.
    #[error("in \\u hexadecimal character escape")]
    HexEscape,
    /// In one of the words `true`, `false` and `null`.
    #[error("in literal {word} (expecting '{expected}')")]
    Word {
        /// The word.
        word: &'static str,
        /// The letter that follows there.
        expected: char,
    },
    /// In a number.
    #[error("in numeric literal")]
    Number,
    /// Behind the point of a number.
    #[error("after decimal point in numeric literal")]
    Fraction,
    /// In the exponent of a number.
    #[error("in exponent of numeric literal")]
    Exponent,
    /// Values are nested too deep.
    #[error("exceeded max depth")]
    Depth,
}

/// A byte as Go's reader of JSON shows it: it takes the byte for a character of its own.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        _ => {
            let quoted = mainstay_gocompat::quote(char::from(byte).encode_utf8(&mut [0; 2]));
            quoted.trim_matches('"').to_owned()
        }
    }
}

/// A value is not of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It is of another kind, or too large.
    #[error("json: cannot unmarshal {found} into {} of type {expected}", target(field.as_deref()))]
    Unmarshal {
        /// What it is.
        found: String,
        /// The Go struct and the path of the field; none of a whole value.
        field: Option<String>,
        /// The Go type.
        expected: String,
    },
    /// A text is refused by a type that parses itself.
    #[error(transparent)]
    ParseText(#[from] TextError),
    /// A list is of another kind, in memory.
    #[error("cannot restore slice from {found}")]
    RestoreSlice {
        /// What it is.
        found: &'static str,
    },
    /// A map is of another kind, in memory.
    #[error("cannot restore map from {found}")]
    RestoreMap {
        /// What it is.
        found: &'static str,
    },
    /// An object is of another kind, in memory.
    #[error("cannot restore struct from: {found}")]
    RestoreStruct {
        /// What it is.
        found: &'static str,
    },
    /// A number is of another type, in memory.
    #[error("cannot convert {found} to {expected}")]
    Convert {
        /// What it is.
        found: &'static str,
        /// The Go type.
        expected: String,
    },
    /// A scalar is of another type, in memory.
    #[error("unrecognized type: {expected}")]
    UnrecognizedType {
        /// The Go type.
        expected: String,
    },
    /// A text is no base64.
    #[error(transparent)]
    Base64(#[from] Base64Error),
    /// A text in memory is no base64.
    #[error("error decoding from json: {0}")]
    RestoreBytes(Base64Error),
    /// A text is no time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A value is no quantity.
    #[error(transparent)]
    Quantity(#[from] ParseQuantityError),
    /// A field takes a schema or a boolean.
    #[error("boolean or JSON schema expected")]
    NoSchema,
    /// An object with what is always written of it is too large.
    #[error("the object has too many empty parts")]
    TooManyEmptyParts,
    /// An object inside a custom object is none.
    #[error("{0}")]
    Embedded(Box<FieldError>),
}

fn target(field: Option<&str>) -> String {
    field.map_or_else(|| "Go value".to_owned(), |field| format!("Go struct field {field}"))
}

/// A text is no RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// It is not written as one.
    #[error("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")]
    Layout {
        /// The text.
        text: String,
        /// How it should be written.
        layout: &'static str,
        /// The rest of the text.
        rest: String,
        /// The part of the layout that the rest does not begin with.
        part: &'static str,
    },
    /// No calendar or clock has it.
    #[error("parsing time {text:?}: {part} out of range")]
    OutOfRange {
        /// The text.
        text: String,
        /// The first part that is too large or too small.
        part: &'static str,
    },
}
