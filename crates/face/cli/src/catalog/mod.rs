//! `mainstay catalog`: our own voice about file-based catalogs.
//!
//! Where `opm` says the first thing that stops it, this says everything that is wrong, where, and
//! what to do; also what other tools would lose without a word. The same folders, the same rules:
//! what is refused here for more than being lost or suspicious is refused there too.
//!
//! ```text
//! arguments (clap) ─► open the folders ─► validate: findings ─► text, JSON, YAML, SARIF
//!                                      ├► list, show, render: tables and documents
//!                                      ├► graph: pictures
//!                                      └► build: an image
//! ```

mod build;
mod graph;
mod list;
mod open;
mod render;
mod show;
mod updates;
mod validate;

pub(crate) use open::open;

use crate::examples;
use crate::exit::{Exit, Failure};
use crate::output::OutputSink;
use clap::{Args, Subcommand, ValueEnum};
use mainstay_cause::Cause;
use std::{io::Write, path::PathBuf};

/// Arguments of `catalog`.
#[derive(Args, Debug)]
pub struct CatalogArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Say everything that is wrong with catalogs or bundle folders, and where.
    ///
    /// Ends with 0 if nothing is wrong, with 1 if there are errors, with 2 if a folder cannot be
    /// looked at. Warnings are about what is allowed and rarely meant.
    #[command(visible_alias = "check", after_help = examples::CATALOG_VALIDATE)]
    Validate(validate::Arguments),
    /// List what a catalog has.
    #[command(after_help = examples::CATALOG_LIST)]
    List(list::Arguments),
    /// Show a package, or one of its bundles: channels, versions, updates, dependencies.
    #[command(after_help = examples::CATALOG_SHOW)]
    Show(show::Arguments),
    /// Draw who is updated to what in a package: channels, updates, and the way from a bundle.
    #[command(after_help = examples::CATALOG_GRAPH)]
    Graph(graph::Arguments),
    /// Print the documents of catalogs and bundle folders, all or some of them.
    #[command(visible_alias = "query", after_help = examples::CATALOG_RENDER)]
    Render(render::Arguments),
    /// Build the image of a catalog, and put it into a registry or a file.
    ///
    /// The catalog is judged first, as `validate` does it; one with errors is refused. The image has the
    /// files that are read of the folder below /configs, for several platforms; the same folder gives
    /// the same digest, on any day and machine.
    #[command(after_help = examples::CATALOG_BUILD)]
    Build(Box<build::Arguments>),
}

/// Formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON value.
    Json,
    /// The same as YAML.
    Yaml,
}

/// The outside of one run: everything that is not an argument.
pub struct Io<'a> {
    /// Where answers go.
    pub stdout: &'a mut dyn Write,
    /// Where it is said why there is none.
    pub stderr: &'a mut dyn Write,
    /// The folder that relative paths start from.
    pub folder: PathBuf,
    /// Whether `stdout` is a terminal that wants colours.
    pub colour: bool,
    /// Whether `stderr` is a terminal, so that progress may be shown there.
    pub terminal: bool,
    /// Reads a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Io<'_> {
    /// Writes to standard output. That it cannot be written is remembered there.
    pub(crate) fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes());
    }
}

/// Runs one command. An answer that cannot be written to its end is a failure, except where its
/// reader has gone away, as in `mainstay catalog … | head`.
pub async fn run(arguments: CatalogArguments, io: &mut Io<'_>) -> Exit {
    finish(io, async |io| answer(arguments, io).await).await
}

/// Runs a command, sees to it that its answer is written, and says why there is none.
pub(crate) async fn finish(
    io: &mut Io<'_>,
    answer: impl AsyncFnOnce(&mut Io<'_>) -> Result<Exit, Failure>,
) -> Exit {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let mut inner = Io {
        stdout: &mut stdout,
        stderr: &mut *io.stderr,
        folder: io.folder.clone(),
        colour: io.colour,
        terminal: io.terminal,
        variable: io.variable,
    };
    let outcome = answer(&mut inner).await;
    // An error is remembered below.
    let _ = inner.stdout.flush();
    let unwritten = stdout.error().map(|error| {
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

async fn answer(arguments: CatalogArguments, io: &mut Io<'_>) -> Result<Exit, Failure> {
    match arguments.command {
        Command::Validate(arguments) => validate::run(&arguments, io),
        Command::List(arguments) => list::run(&arguments, io).map(|()| Exit::Done),
        Command::Graph(arguments) => graph::run(&arguments, io).map(|()| Exit::Done),
        Command::Render(arguments) => render::run(&arguments, io).map(|()| Exit::Done),
        Command::Build(arguments) => build::run(&arguments, io).await.map(|()| Exit::Done),
        Command::Show(arguments) => show::run(&arguments, io).map(|()| Exit::Done),
    }
}

/// A text that shows control characters instead of sending them to a terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if sign.is_control() { out.extend(sign.escape_default()) } else { out.push(sign) }
    }
    out
}

/// A number with the word for what is counted.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
