//! Usage errors of a command line, with the texts of upstream's libraries.

use super::csv::CsvError;
use super::go::{self, ParseBoolError};

/// The command line does not fit its command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// There is no such sub-command.
    #[error("unknown command {} for {}", go::quote(name), go::quote(path))]
    UnknownCommand {
        /// The word in place of a command.
        name: String,
        /// The full name of the command above.
        path: String,
    },
    /// The number of arguments is wrong.
    #[error("accepts {expected} arg(s), received {given}")]
    ArgumentCount {
        /// The accepted number.
        expected: usize,
        /// The given number.
        given: usize,
    },
    /// There are fewer arguments than the command needs.
    #[error("requires at least {min} arg(s), only received {given}")]
    TooFewArguments {
        /// The required number.
        min: usize,
        /// The given number.
        given: usize,
    },
    /// There are more arguments than the command takes.
    #[error("accepts at most {max} arg(s), received {given}")]
    TooManyArguments {
        /// The accepted number.
        max: usize,
        /// The given number.
        given: usize,
    },
    /// The number of arguments is outside of the range.
    #[error("accepts between {min} and {max} arg(s), received {given}")]
    ArgumentRange {
        /// The required number.
        min: usize,
        /// The accepted number.
        max: usize,
        /// The given number.
        given: usize,
    },
    /// Required flags are missing.
    #[error("required flag(s) {} not set", quoted(.0))]
    RequiredFlags(Vec<&'static str>),
    /// Mutually exclusive flags are given.
    #[error(
        "if any flags in the group [{}] are set none of the others can be; [{}] were all set",
        group.join(" "),
        given.join(" ")
    )]
    ExclusiveFlags {
        /// The mutually exclusive flags.
        group: &'static [&'static str],
        /// The given flags, by name.
        given: Vec<&'static str>,
    },
    /// A flag is invalid.
    #[error(transparent)]
    Flag(#[from] FlagError),
}

fn quoted(names: &[&'static str]) -> String {
    names.iter().map(|name| go::quote(name)).collect::<Vec<_>>().join(", ")
}

/// A flag is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// The flag has no name.
    #[error("bad flag syntax: {argument}")]
    Syntax {
        /// The argument.
        argument: String,
    },
    /// The command has no flag of this name.
    #[error("unknown flag: --{name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The command has no flag with this letter.
    #[error("unknown shorthand flag: {} in -{letters}", go::quote_char(*letter))]
    UnknownLetter {
        /// The letter.
        letter: char,
        /// The remaining letters of the argument.
        letters: String,
    },
    /// The flag has no value.
    #[error("flag needs an argument: --{name}")]
    NoValue {
        /// The name.
        name: String,
    },
    /// The flag, given by its letter, has no value.
    #[error("flag needs an argument: {} in -{letters}", go::quote_char(*letter))]
    LetterNoValue {
        /// The letter.
        letter: char,
        /// The remaining letters of the argument.
        letters: String,
    },
    /// The value of the flag is invalid.
    #[error("invalid argument {} for {} flag: {source}", go::quote(value), go::quote(flag))]
    Value {
        /// The flag as in help.
        flag: String,
        /// The value.
        value: String,
        /// The error of the value.
        source: ValueError,
    },
}

/// The value of a flag is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// The value is not a boolean.
    #[error(transparent)]
    Bool(#[from] ParseBoolError),
    /// The value is not a list.
    #[error(transparent)]
    List(#[from] CsvError),
    /// The value is not a pair.
    #[error("{text} must be formatted as key=value")]
    Pair {
        /// The value.
        text: String,
    },
}
