//! Why `format` cannot write an argument, in the words of cel-go's library.

use crate::value::Error;
use mainstay_gocompat::quote;

/// What stands behind a percent sign is no clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ClauseError {
    /// The text ends in its precision.
    #[error(
        "could not parse formatting clause: error while parsing precision: could not find end of \
         precision specifier"
    )]
    NoEnd,
    /// Its precision is no number, or too large.
    #[error(
        "could not parse formatting clause: error while parsing precision: error while converting \
         precision to integer: strconv.Atoi: parsing \"{digits}\": {}",
        if digits.is_empty() { "invalid syntax" } else { "value out of range" }
    )]
    Precision {
        /// The digits of it.
        digits: String,
    },
    /// No clause has its letter.
    #[error("could not parse formatting clause: unrecognized formatting clause \"{letter}\"")]
    Letter {
        /// The letter.
        letter: char,
    },
}

/// An argument cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FormatError {
    /// Its clause does not take its type.
    #[error("{takes}, was given {given}")]
    Type {
        /// What the clause takes.
        takes: &'static str,
        /// The type of the argument.
        given: String,
    },
    /// It has no form within a list or a map.
    #[error("no formatting function for {given}")]
    Element {
        /// Its type.
        given: String,
    },
    /// It cannot be made a string.
    #[error("could not convert argument {} to string", quote(&.0.to_string()))]
    Convert(Error),
    /// It is to have too many digits.
    #[error("precision {digits} is too large")]
    Precision {
        /// How many.
        digits: i64,
    },
    /// The text would be longer than texts may be.
    #[error("the result is too long")]
    TooLong,
    /// A part of it has no value, or the budget is used up.
    #[error(transparent)]
    Value(#[from] Error),
}
