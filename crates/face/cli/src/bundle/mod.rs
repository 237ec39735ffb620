//! `mainstay bundle`: our own voice about bundle folders.

mod findings;
mod validate;

use crate::catalog::{self, Io};
use crate::exit::Exit;
use clap::{Args, Subcommand};

/// Arguments of `bundle`.
#[derive(Args, Debug)]
pub struct BundleArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say everything that is wrong with bundle folders, where, and what to do.
    ///
    /// Ends with 0 if nothing is wrong, with 1 if there are errors, with 2 if a folder cannot be
    /// looked at.
    #[command(visible_alias = "check")]
    Validate(validate::Arguments),
}

/// Runs one command.
pub fn run(arguments: BundleArguments, io: &mut Io<'_>) -> Exit {
    let BundleArguments { command: Command::Validate(arguments) } = arguments;
    catalog::finish(io, |io| validate::run(&arguments, io))
}
