//! `mainstay bundle`: commands about bundle folders.
//!
//! ```text
//! arguments (clap) ─► open the folder ─┬─► validate: findings
//!                                      ├─► render: plain manifests as YAML or JSON
//!                                      └─► build: an image
//! ```

mod build;
mod findings;
mod format;
mod render;
mod validate;

use crate::catalog::{self, CatalogCommandIo};
use crate::examples;
use crate::exit::{CommandFailure, ExitStatus};
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
    #[command(visible_alias = "check", after_help = examples::BUNDLE_VALIDATE)]
    Validate(validate::Arguments),
    /// Print the plain manifests that install bundles, as extensions (OLM v1) install them.
    ///
    /// What is printed can be applied as it is: accounts, roles, definitions, deployments, webhooks
    /// and what provides their certificates. Of several bundles the manifests come one after the
    /// other; what is wrong with one of them keeps nothing of the others back. Ends with 1 if a bundle
    /// cannot be rendered, with 2 if a folder, the configuration or the namespaces cannot be used.
    #[command(after_help = examples::BUNDLE_RENDER)]
    Render(render::Arguments),
    /// Build the image of a bundle, and put it into a registry or a file.
    ///
    /// The bundle is judged first, as `validate` does it; one with errors is refused. The labels are the
    /// annotations of the bundle, and the same folder gives the same digest, on any day and machine.
    #[command(after_help = examples::BUNDLE_BUILD)]
    Build(Box<build::Arguments>),
}

/// Runs one command.
pub async fn run(arguments: BundleArguments, io: &mut CatalogCommandIo<'_>) -> ExitStatus {
    catalog::finish(io, async |io| run_command(arguments, io).await).await
}

async fn run_command(
    arguments: BundleArguments,
    io: &mut CatalogCommandIo<'_>,
) -> Result<ExitStatus, CommandFailure> {
    match arguments.command {
        Command::Validate(arguments) => validate::run(&arguments, io),
        Command::Render(arguments) => render::run(&arguments, io),
        Command::Build(arguments) => build::run(&arguments, io).await.map(|()| ExitStatus::Done),
    }
}
