//! `mainstay catalog build`: a catalog folder as an image, without a container engine.

use super::{Io, open, plain, validate::inspect_all};
use crate::{
    exit::Failure,
    image::building::{self, Common},
};
use clap::Args;
use mainstay_cause::{Cause, Place};

/// Arguments of `build`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folder of a file-based catalog.
    #[arg(value_name = "DIR")]
    folder: String,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let typed = &arguments.folder;
    let order = arguments.common.read()?;
    let opened = open(io, typed)?;
    if opened.is_bundle {
        let cause =
            Cause::new("the folder holds a bundle, not a catalog").at(Place::file(plain(typed)));
        return Err(Failure::usage(
            cause.remedy(format!("build its image with: mainstay bundle build {}", plain(typed))),
        ));
    }
    let inspected = inspect_all(std::slice::from_ref(&opened));
    building::judged(&order, io, "catalog", typed, &inspected.findings)?;
    building::run(&arguments.common, &order, io, |store| {
        crate::image::content::catalog(store, &opened.path, typed, &order.wishes)
    })
    .await
}
