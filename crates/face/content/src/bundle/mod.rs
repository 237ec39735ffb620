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

use crate::examples;
use clap::{Args, Subcommand};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::io::finish;

/// Arguments of `bundle`.
#[derive(Args, Debug)]
pub struct BundleArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Report all problems of bundle folders, with places and remedies.
    ///
    /// Exit codes: 0 without errors, 1 with errors, 2 if a folder cannot be read.
    #[command(visible_alias = "check", after_help = examples::BUNDLE_VALIDATE)]
    Validate(validate::Arguments),
    /// Print the manifests with which extensions (OLM v1) install bundles.
    ///
    /// The output can be applied as it is: ServiceAccounts, RBAC, CustomResourceDefinitions, Deployments,
    /// webhooks, and the objects that provide their certificates. The manifests of several bundles follow
    /// one another. An error in one bundle does not affect the others. Exit codes: 1 if a bundle cannot
    /// be rendered, 2 if a folder, the configuration or the namespaces cannot be used.
    #[command(after_help = examples::BUNDLE_RENDER)]
    Render(render::Arguments),
    /// Build the image of a bundle, and write it to a registry or a file.
    ///
    /// The bundle is validated first, as by `validate`; a bundle with errors is refused. The labels of
    /// the image are the annotations of the bundle. The same folder always gives the same digest.
    #[command(after_help = examples::BUNDLE_BUILD)]
    Build(Box<build::Arguments>),
}

/// Runs one command.
pub async fn run(arguments: BundleArguments, io: &mut CommandIo<'_>) -> ExitStatus {
    finish(io, async |io| run_command(arguments, io).await).await
}

async fn run_command(
    arguments: BundleArguments,
    io: &mut CommandIo<'_>,
) -> Result<ExitStatus, CommandFailure> {
    match arguments.command {
        Command::Validate(arguments) => validate::run(&arguments, io),
        Command::Render(arguments) => render::run(&arguments, io),
        Command::Build(arguments) => build::run(&arguments, io).await.map(|()| ExitStatus::Done),
    }
}
