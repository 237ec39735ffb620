//! `mainstay catalog`: commands about file-based catalogs.
//!
//! `opm` stops at the first error; these commands report all errors with place and remedy. They
//! also report content that other tools drop silently. Folders and rules are those of `opm`:
//! content that these commands refuse is refused by `opm` too, except findings about dropped or
//! suspicious content.
//!
//! ```text
//! arguments (clap) ─► open the PATHs: folders, ClusterCatalogs
//!                       ├► validate: findings ─► text, JSON, YAML, SARIF
//!                       ├► list, show, search, render: tables and documents
//!                       ├► graph: pictures
//!                       └► build: an image
//! ```

mod build;
mod bundle_filter;
pub(crate) mod cluster_catalog;
mod graph;
mod list;
mod open;
mod packages;
mod render;
mod rows;
mod search;
mod show;
mod updates;
mod validate;

pub(crate) use cluster_catalog::package_content;
pub(crate) use open::open;
use open::{open_path, open_paths};
pub(crate) use packages::read_catalogs;

use crate::cluster::{ClusterHandle, ConnectionArguments};
use crate::examples;
use crate::exit::{CommandFailure, ExitStatus};
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
    /// Report all problems of catalogs or bundle folders, with their places.
    ///
    /// Exit codes: 0 without errors, 1 with errors, 2 if a folder cannot be read. A warning is about
    /// content that is allowed, but probably a mistake.
    #[command(visible_alias = "check", after_help = examples::CATALOG_VALIDATE)]
    Validate(validate::Arguments),
    /// List the packages, channels or bundles of a catalog.
    #[command(after_help = examples::CATALOG_LIST)]
    List(list::Arguments),
    /// Search packages by words, in the ClusterCatalogs of a cluster or in the given catalogs.
    ///
    /// Packages of the catalog with the highest priority come first. A catalog that cannot be read is
    /// reported, and the exit code is then 1.
    #[command(after_help = examples::CATALOG_SEARCH)]
    Search(search::Arguments),
    /// Show a package, or one of its bundles: channels, versions, updates, dependencies.
    #[command(after_help = examples::CATALOG_SHOW)]
    Show(show::Arguments),
    /// Draw the upgrade graph of a package: channels, updates, and the upgrade path from a bundle.
    #[command(after_help = examples::CATALOG_GRAPH)]
    Graph(graph::Arguments),
    /// Print all or some of the documents of catalogs and bundle folders.
    #[command(visible_alias = "query", after_help = examples::CATALOG_RENDER)]
    Render(render::Arguments),
    /// Build the image of a catalog, and write it to a registry or a file.
    ///
    /// The catalog is validated first, as by `validate`; a catalog with errors is refused. The image has
    /// the files of the catalog below /configs, for several platforms. The same folder always gives the
    /// same digest.
    #[command(after_help = examples::CATALOG_BUILD)]
    Build(Box<build::Arguments>),
}

/// Formats of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    Text,
    /// One JSON value.
    Json,
    /// The same as YAML.
    Yaml,
}

/// The environment of a command: everything that is not an argument.
pub struct CatalogCommandIo<'a> {
    /// Standard output.
    pub stdout: &'a mut dyn Write,
    /// Standard error, for the reason of a failure.
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

impl CatalogCommandIo<'_> {
    /// Writes to standard output. [`OutputSink`] keeps a write error.
    pub(crate) fn print(&mut self, text: &str) {
        let _ = self.stdout.write_all(text.as_bytes());
    }
}

/// Runs a command of `catalog`. Output that cannot be written is a failure, unless the reader closed
/// the pipe, as in `mainstay catalog … | head`.
/// A command that reads a ClusterCatalog connects to its cluster by `connect`.
pub async fn run<C: ClusterHandle>(
    arguments: CatalogArguments,
    io: &mut CatalogCommandIo<'_>,
    connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
) -> ExitStatus {
    finish(io, async |io| run_command(arguments, io, connect).await).await
}

/// Runs a command, flushes its output, and reports why it failed.
pub(crate) async fn finish(
    io: &mut CatalogCommandIo<'_>,
    command: impl AsyncFnOnce(&mut CatalogCommandIo<'_>) -> Result<ExitStatus, CommandFailure>,
) -> ExitStatus {
    let mut stdout = OutputSink::new(&mut *io.stdout);
    let mut inner = CatalogCommandIo {
        stdout: &mut stdout,
        stderr: &mut *io.stderr,
        folder: io.folder.clone(),
        colour: io.colour,
        terminal: io.terminal,
        variable: io.variable,
    };
    let outcome = command(&mut inner).await;
    // The sink keeps a flush error.
    let _ = inner.stdout.flush();
    let write_error = stdout.error().map(|error| {
        CommandFailure::from(
            Cause::new("the output cannot be written").because(Cause::new(error.to_string())),
        )
    });
    let outcome = outcome.and_then(|exit| write_error.map_or(Ok(exit), Err));
    outcome.unwrap_or_else(|CommandFailure { exit, cause }| {
        let _ = write!(io.stderr, "error: {}", cause.render());
        exit
    })
}

async fn run_command<C: ClusterHandle>(
    arguments: CatalogArguments,
    io: &mut CatalogCommandIo<'_>,
    connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
) -> Result<ExitStatus, CommandFailure> {
    match arguments.command {
        Command::Build(arguments) => build::run(&arguments, io).await?,
        Command::Search(arguments) => return search::run(&arguments, io, connect).await,
        Command::Validate(arguments) => {
            let (paths, connection) = (&arguments.paths, &arguments.connection);
            let opened = open_paths(io, paths, None, connection, connect).await?;
            return validate::run(&arguments, &opened, io);
        }
        Command::Render(arguments) => {
            let (paths, package) = (&arguments.paths, arguments.package.as_deref());
            let opened = open_paths(io, paths, package, &arguments.connection, connect).await?;
            render::run(&arguments, &opened, io)?;
        }
        Command::List(arguments) => {
            let (path, package) = (&arguments.path, arguments.package.as_deref());
            let opened = open_path(io, path, package, &arguments.connection, connect).await?;
            list::run(&arguments, &opened, io)?;
        }
        Command::Graph(arguments) => {
            let (path, package) = (&arguments.path, Some(&*arguments.package));
            let opened = open_path(io, path, package, &arguments.connection, connect).await?;
            graph::run(&arguments, &opened, io)?;
        }
        Command::Show(arguments) => {
            let (path, package) = (&arguments.path, Some(&*arguments.package));
            let opened = open_path(io, path, package, &arguments.connection, connect).await?;
            show::run(&arguments, &opened, io)?;
        }
    }
    Ok(ExitStatus::Done)
}

/// Escapes control characters instead of sending them to a terminal.
pub(crate) fn escape_controls(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

/// Escapes control characters in each line of a text. Every line then ends with a line feed.
pub(crate) fn escape_controls_in_lines(text: &str) -> String {
    text.lines().map(|line| escape_controls(line) + "\n").collect()
}

/// A number and its noun, in singular or plural.
pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
