//! What is wrong with a command line, in the words of upstream's library.

use super::csv::CsvError;
use super::go::{self, ParseBoolError};

/// A command line is not one of the command that it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    /// There is no such command below another one.
    #[error("unknown command {} for {}", go::quote(name), go::quote(path))]
    UnknownCommand {
        /// What stands where a command should.
        name: String,
        /// The commands that lead there.
        path: String,
    },
    /// There are more or fewer arguments than the command takes.
    #[error("accepts {expected} arg(s), received {given}")]
    ArgumentCount {
        /// How many it takes.
        expected: usize,
        /// How many there are.
        given: usize,
    },
    /// There are fewer arguments than the command needs.
    #[error("requires at least {least} arg(s), only received {given}")]
    TooFewArguments {
        /// How many it needs.
        least: usize,
        /// How many there are.
        given: usize,
    },
    /// There are more arguments than the command takes.
    #[error("accepts at most {most} arg(s), received {given}")]
    TooManyArguments {
        /// How many it takes.
        most: usize,
        /// How many there are.
        given: usize,
    },
    /// There are fewer arguments than the command needs, or more than it takes.
    #[error("accepts between {least} and {most} arg(s), received {given}")]
    ArgumentRange {
        /// How many it needs.
        least: usize,
        /// How many it takes.
        most: usize,
        /// How many there are.
        given: usize,
    },
    /// Flags are missing.
    #[error("required flag(s) {} not set", quoted(.0))]
    RequiredFlags(Vec<&'static str>),
    /// Flags exclude each other.
    #[error(
        "if any flags in the group [{}] are set none of the others can be; [{}] were all set",
        group.join(" "),
        given.join(" ")
    )]
    ExclusiveFlags {
        /// The flags of which one may be given.
        group: &'static [&'static str],
        /// Those that are, by name.
        given: Vec<&'static str>,
    },
    /// A flag is wrong.
    #[error(transparent)]
    Flag(#[from] FlagError),
}

fn quoted(names: &[&'static str]) -> String {
    names.iter().map(|name| go::quote(name)).collect::<Vec<_>>().join(", ")
}

/// A flag is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// It has no name.
    #[error("bad flag syntax: {argument}")]
    Syntax {
        /// The argument.
        argument: String,
    },
    /// The command has none of the name.
    #[error("unknown flag: --{name}")]
    Unknown {
        /// The name.
        name: String,
    },
    /// The command has none of the letter.
    #[error("unknown shorthand flag: {} in -{letters}", go::quote_char(*letter))]
    UnknownLetter {
        /// The letter.
        letter: char,
        /// The letters that are left of the argument.
        letters: String,
    },
    /// It has no value.
    #[error("flag needs an argument: --{name}")]
    NoValue {
        /// The name.
        name: String,
    },
    /// It is named by its letter, and has no value.
    #[error("flag needs an argument: {} in -{letters}", go::quote_char(*letter))]
    LetterNoValue {
        /// The letter.
        letter: char,
        /// The letters that are left of the argument.
        letters: String,
    },
    /// It does not take its value.
    #[error("invalid argument {} for {} flag: {source}", go::quote(value), go::quote(flag))]
    Value {
        /// The flag, as help calls it.
        flag: String,
        /// The value.
        value: String,
        /// Why it does not.
        source: ValueError,
    },
}

/// The value of a flag is none for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// It is no truth value.
    #[error(transparent)]
    Bool(#[from] ParseBoolError),
    /// It is no list.
    #[error(transparent)]
    List(#[from] CsvError),
    /// It is no pair.
    #[error("{text} must be formatted as key=value")]
    Pair {
        /// What it is.
        text: String,
    },
}
