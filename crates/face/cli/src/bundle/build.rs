//! `mainstay bundle build`: a bundle folder as an image, without a container engine.

use super::validate::{folder, judge};
use crate::{
    catalog::Io,
    exit::Failure,
    image::building::{self, Common},
};
use clap::Args;

/// Arguments of `build`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folder of a bundle (with `manifests` and `metadata`).
    #[arg(value_name = "DIR")]
    folder: String,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let typed = &arguments.folder;
    let order = arguments.common.read()?;
    let path = folder(io, typed)?;
    let findings = judge(typed, &path);
    building::judged(&order, io, "bundle", typed, &findings)?;
    building::run(&arguments.common, &order, io, |store| {
        crate::image::content::bundle(store, &path, typed, &order.wishes)
    })
    .await
}
