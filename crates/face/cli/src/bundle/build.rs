//! `mainstay bundle build`: a bundle folder as an image, without a container engine.

use super::validate::{folder, judge};
use crate::{
    catalog::{Io, plain},
    exit::Failure,
    image::building::{self, Common},
};
use clap::Args;
use mainstay_cause::{Cause, Place};

const EXAMPLES: &str = "Examples:
  mainstay bundle build ./kiwi oci:kiwi-v1:v1.0.0
  mainstay bundle build ./kiwi registry.example/kiwi-bundle:v1.0.0 --authfile auth.json
  mainstay bundle build ./kiwi store:registry.example/kiwi-bundle:v1.0.0";

/// Arguments of `build`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folder of a bundle (with `manifests` and `metadata`).
    #[arg(value_name = "DIR")]
    folder: String,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let typed = &arguments.folder;
    let order = arguments.common.read()?;
    let path = folder(io, typed)?;
    let findings = judge(typed, &path);
    let [errors, warnings] = findings.counts();
    if errors + warnings > 0 {
        let text = findings.text(false);
        let _ = io.stderr.write_all(text.as_bytes());
    }
    if errors > 0 && !order.force {
        let cause = Cause::new("the bundle has errors").at(Place::file(plain(typed)));
        let cause = cause.remedy("correct them").remedy("build the image anyway with --force");
        return Err(cause.into());
    }
    building::run(&arguments.common, &order, io, |store| {
        crate::image::content::bundle(store, &path, typed, &order.wishes)
    })
}
