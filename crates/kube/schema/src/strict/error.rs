//! Errors of malformed JSON and of values of wrong types, with Go's messages.

use crate::builtin::ParseTextError;
use mainstay_gocompat::Base64Error;
use mainstay_object::FieldError;
use mainstay_quantity::ParseQuantityError;

/// Bytes are not JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text ends too early.
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A byte is not allowed at its position.
    #[error("invalid character '{}' {context}", quote_byte(*byte))]
    InvalidByte {
        /// The byte.
        byte: u8,
        /// The position.
        context: Context,
    },
    /// Values are nested deeper than the limit of this server.
    #[error("exceeded max depth")]
    TooDeep,
    /// A text that Go accepts and this server does not; the message is that of the Rust parser.
    #[error("{message}")]
    Unreadable {
        /// The message of the parser.
        message: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
    },
}

/// The position of an invalid byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Context {
    /// At the beginning of a value.
    #[error("looking for beginning of value")]
    Value,
    /// At the beginning of a key.
    #[error("looking for beginning of object key string")]
    Key,
    /// After a key.
    #[error("after object key")]
    AfterKey,
    /// After a field.
    #[error("after object key:value pair")]
    AfterField,
    /// After an element of a list.
    #[error("after array element")]
    AfterElement,
    /// After the whole value.
    #[error("after top-level value")]
    AfterDocument,
    /// In a string.
    #[error("in string literal")]
    Text,
    /// In an escape.
    #[error("in string escape code")]
    Escape,
    /// In the digits of an escape.
    #[error("in \\u hexadecimal character escape")]
    HexEscape,
    /// In `true`, `false` or `null`.
    #[error("in literal {word} (expecting '{expected}')")]
    Word {
        /// The literal.
        word: &'static str,
        /// The expected letter.
        expected: char,
    },
    /// In a number.
    #[error("in numeric literal")]
    Number,
    /// After the decimal point of a number.
    #[error("after decimal point in numeric literal")]
    Fraction,
    /// In the exponent of a number.
    #[error("in exponent of numeric literal")]
    Exponent,
    /// Values are nested too deeply.
    #[error("exceeded max depth")]
    Depth,
}

/// A byte as Go's JSON scanner prints it: as the character with that code.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => "\\'".to_owned(),
        b'"' => "\"".to_owned(),
        _ => {
            let quoted = mainstay_gocompat::quote(char::from(byte).encode_utf8(&mut [0; 2]));
            quoted.trim_matches('"').to_owned()
        }
    }
}

/// A value cannot be decoded into its Go type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnmarshalError {
    /// The value has another JSON type, or is too large.
    #[error("json: cannot unmarshal {found} into {} of type {expected}", target(field.as_deref()))]
    Unmarshal {
        /// The JSON type found.
        found: String,
        /// The Go struct and the path of the field; none for a whole value.
        field: Option<String>,
        /// The Go type.
        expected: String,
    },
    /// A type that parses its own text refuses it.
    #[error(transparent)]
    ParseText(#[from] ParseTextError),
    /// Patch result: a list is expected.
    #[error("cannot restore slice from {found}")]
    RestoreSlice {
        /// The Go type found.
        found: &'static str,
    },
    /// Patch result: a map is expected.
    #[error("cannot restore map from {found}")]
    RestoreMap {
        /// The Go type found.
        found: &'static str,
    },
    /// Patch result: an object is expected.
    #[error("cannot restore struct from: {found}")]
    RestoreStruct {
        /// The Go type found.
        found: &'static str,
    },
    /// Patch result: a number has another type.
    #[error("cannot convert {found} to {expected}")]
    Convert {
        /// The Go type found.
        found: &'static str,
        /// The Go type.
        expected: String,
    },
    /// Patch result: a scalar has another type.
    #[error("unrecognized type: {expected}")]
    UnrecognizedType {
        /// The Go type.
        expected: String,
    },
    /// A text is no base64.
    #[error(transparent)]
    Base64(#[from] Base64Error),
    /// Patch result: a text is no base64.
    #[error("error decoding from json: {0}")]
    RestoreBytes(Base64Error),
    /// A text is no time.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A value is no quantity.
    #[error(transparent)]
    Quantity(#[from] ParseQuantityError),
    /// A field needs a schema or a boolean.
    #[error("boolean or JSON schema expected")]
    NoSchema,
    /// The object is too large with the fields that are always written.
    #[error("the object has too many empty parts")]
    TooManyEmptyParts,
    /// An embedded object of a custom object is invalid.
    #[error("{0}")]
    Embedded(Box<FieldError>),
}

fn target(field: Option<&str>) -> String {
    field.map_or_else(|| "Go value".to_owned(), |field| format!("Go struct field {field}"))
}

/// A text is no RFC 3339 time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    /// The text does not have the layout.
    #[error("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}")]
    Layout {
        /// The text.
        text: String,
        /// The layout.
        layout: &'static str,
        /// The rest of the text.
        rest: String,
        /// The part of the layout that the rest does not match.
        part: &'static str,
    },
    /// A part is out of range.
    #[error("parsing time {text:?}: {part} out of range")]
    OutOfRange {
        /// The text.
        text: String,
        /// The first part out of range.
        part: &'static str,
    },
}
