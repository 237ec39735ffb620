//! `mainstay bundle build`: a bundle folder as an image, without a container engine.

use super::validate::{folder, validate_folder};
use crate::image::building::{self, BuildArguments};
use clap::Args;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;

/// Arguments of `build`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folder of a bundle (with `manifests` and `metadata`).
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
    let path = folder(io, argument)?;
    let findings = validate_folder(argument, &path);
    building::check_findings(&request, io, "bundle", argument, &findings)?;
    building::run(&arguments.common, &request, io, |store| {
        crate::image::content::bundle(store, &path, argument, &request.options)
    })
    .await
}
