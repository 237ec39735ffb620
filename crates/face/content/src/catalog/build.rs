//! `mainstay catalog build`: a catalog folder as an image, without a container engine.

use super::open;
use super::open::OpenedPath;
use super::validate::inspect_all;
use crate::image::building::{self, BuildArguments};
use clap::Args;
use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;

/// Arguments of `build`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folder of a file-based catalog.
    #[arg(value_name = "DIR")]
    folder: String,
    #[command(flatten)]
    common: BuildArguments,
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let argument = &arguments.folder;
    let request = arguments.common.read()?;
    let opened = open(io, argument)?;
    if opened.is_bundle {
        let cause = Cause::new("the folder holds a bundle, not a catalog")
            .at(FileLocation::file(escape_controls(argument)));
        return Err(CommandFailure::usage(cause.remedy(format!(
            "build its image with: mainstay bundle build {}",
            escape_controls(argument)
        ))));
    }
    let path = opened.path.clone();
    let inspection = inspect_all(&[OpenedPath::Folder(opened)]);
    building::check_findings(&request, io, "catalog", argument, &inspection.findings)?;
    building::run(&arguments.common, &request, io, |store| {
        crate::image::content::catalog(store, &path, argument, &request.options)
    })
    .await
}
