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
pub mod cluster_catalog;
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

pub use cluster_catalog::package_content;
use mainstay_command::io::CommandIo;
use mainstay_command::io::finish;
pub use open::{OpenedFolder, open};
use open::{open_path, open_paths};
pub use packages::read_catalogs;

use crate::examples;
use clap::{Args, Subcommand};
use mainstay_command::cluster::{ClusterHandle, ConnectionArguments};
use mainstay_command::exit::{CommandFailure, ExitStatus};

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

/// Runs a command of `catalog`. A command that reads a ClusterCatalog connects to its cluster by `connect`.
pub async fn run<C: ClusterHandle>(
    arguments: CatalogArguments,
    io: &mut CommandIo<'_>,
    connect: impl AsyncFnOnce(&ConnectionArguments) -> Result<C, CommandFailure>,
) -> ExitStatus {
    finish(io, async |io| run_command(arguments, io, connect).await).await
}

async fn run_command<C: ClusterHandle>(
    arguments: CatalogArguments,
    io: &mut CommandIo<'_>,
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
