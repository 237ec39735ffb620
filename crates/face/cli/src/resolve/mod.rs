//! `mainstay resolve`: what would be installed, and the reason where nothing can be.
//!
//! ```text
//! --universe FILE ─► Universe ─► World ─► resolve ─► the outcome in the recorded shape, and its time
//! ```

mod input;
mod published;
mod stopwatch;
mod universe;

use crate::exit::{Exit, Failure};
use crate::outlet::Outlet;
use clap::{Args, ValueEnum};
use mainstay_cause::Cause;
use std::io::{Read, Write};
use std::path::PathBuf;

/// Arguments of `resolve`.
#[derive(Args, Debug)]
pub struct ResolveArguments {
    /// A world in one file: a universe, or a case that holds one; `-` reads standard input.
    #[arg(long, value_name = "FILE", required = true)]
    universe: String,
    /// Folder with the published catalogs that a universe names with `realData`: `catalog-NAME/`
    /// or `catalog-NAME.tar.xz`.
    #[arg(long, value_name = "DIR", env = "MAINSTAY_TESTDATA")]
    published: Option<PathBuf>,
    /// How the answer is written.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// Formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON value.
    Json,
}

/// The outside of one run: everything that is not an argument.
pub struct Io<'a> {
    /// Where `-` is read from.
    pub stdin: &'a mut dyn Read,
    /// Where answers go.
    pub stdout: &'a mut dyn Write,
    /// Where it is said why there is none.
    pub stderr: &'a mut dyn Write,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Whether `stdout` is a terminal that wants colours.
    pub colour: bool,
}

impl Io<'_> {
    /// Writes to standard output. That it cannot be written is remembered there.
    fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes());
    }
}

/// Runs the command. An answer that cannot be written to its end is a failure, except where its
/// reader has gone away, as in `mainstay resolve … | head`.
pub fn run(arguments: &ResolveArguments, io: &mut Io<'_>) -> Exit {
    let mut stdout = Outlet::new(&mut *io.stdout);
    let mut inner = Io {
        stdin: &mut *io.stdin,
        stdout: &mut stdout,
        stderr: &mut *io.stderr,
        folder: io.folder.clone(),
        colour: io.colour,
    };
    let outcome = universe::run(arguments, &mut inner);
    // An error is remembered below.
    let _ = inner.stdout.flush();
    let unwritten = stdout.trouble().map(|error| {
        Failure::from(
            Cause::new("the answer cannot be written").because(Cause::new(error.to_string())),
        )
    });
    let outcome = outcome.and_then(|exit| unwritten.map_or(Ok(exit), Err));
    outcome.unwrap_or_else(|Failure { exit, cause }| {
        let _ = write!(io.stderr, "error: {}", cause.render());
        exit
    })
}
