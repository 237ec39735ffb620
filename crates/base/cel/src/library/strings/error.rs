//! Errors of `format`, with cel-go's messages.

use crate::value::Error;
use mainstay_gocompat::quote;

/// A formatting clause is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClauseError {
    /// The text ends in the precision.
    #[error(
        "could not parse formatting clause: error while parsing precision: could not find end of \
         precision specifier"
    )]
    NoEnd,
    /// The precision is not a number, or too large.
    #[error(
        "could not parse formatting clause: error while parsing precision: error while converting \
         precision to integer: strconv.Atoi: parsing \"{digits}\": {}",
        if digits.is_empty() { "invalid syntax" } else { "value out of range" }
    )]
    Precision {
        /// The digits of the precision.
        digits: String,
    },
    /// The letter is unknown.
    #[error("could not parse formatting clause: unrecognized formatting clause \"{letter}\"")]
    Letter {
        /// The letter.
        letter: char,
    },
}

/// An argument cannot be formatted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormatError {
    /// The clause does not accept the type.
    #[error("{takes}, was given {given}")]
    Type {
        /// The types that the clause accepts.
        takes: &'static str,
        /// The type of the argument.
        given: String,
    },
    /// The value cannot be formatted within a list or a map.
    #[error("no formatting function for {given}")]
    Element {
        /// The type of the value.
        given: String,
    },
    /// The value cannot be converted to a string.
    #[error("could not convert argument {} to string", quote(&.0.to_string()))]
    Convert(Error),
    /// The precision is too large.
    #[error("precision {digits} is too large")]
    Precision {
        /// The precision.
        digits: i64,
    },
    /// The text would exceed the maximum length.
    #[error("the result is too long")]
    TooLong,
    /// An element of the value is an error, or the work is used up.
    #[error(transparent)]
    Value(#[from] Error),
}
