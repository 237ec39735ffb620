//! `mainstay image copy`: from any place to any other.

use super::{
    access::{StoreFolder, Trust},
    landed,
    location::Location,
    print,
    ship::{Carrier, Platforms},
    work::{self, Scratch},
};
use crate::{
    catalog::{Format, Io},
    exit::Failure,
};
use clap::Args;
use mainstay_image::store::Store;

/// Arguments of `copy`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Where the image is.
    #[arg(value_name = "FROM")]
    source: String,
    /// Where it shall be.
    #[arg(value_name = "TO")]
    target: String,
    #[command(flatten)]
    platforms: Platforms,
    #[command(flatten)]
    store: StoreFolder,
    /// How it is told what was copied.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    trust: Trust,
}

/// The store that a work goes through: that of the machine if it is one of the ends, or one that is
/// gone afterwards.
pub(super) fn between(
    folder: &StoreFolder,
    ends: &[&Location],
    io: &Io<'_>,
) -> Result<(Store, Option<Scratch>), Failure> {
    if ends.iter().any(|end| matches!(end, Location::Store(_))) {
        return Ok((folder.open(io)?, None));
    }
    let scratch = Scratch::new(io)?;
    Ok((scratch.store().clone(), Some(scratch)))
}

pub(super) async fn run(arguments: &Arguments, io: &mut Io<'_>) -> Result<(), Failure> {
    let source = Location::read(&arguments.source).map_err(Failure::usage)?;
    let target = Location::read(&arguments.target).map_err(Failure::usage)?;
    let (store, _scratch) = between(&arguments.store, &[&source, &target], io)?;
    let carrier = Carrier::trusting(&arguments.trust, io)?;
    let want = arguments.platforms.or_all();
    let copied = work::transfer(io, carrier.shown(), async {
        let image = carrier.obtain(&store, &source, &want).await?;
        carrier.deliver(&store, &image, &target).await?;
        Ok(image)
    })
    .await?;
    let place = target.to_string();
    let text = || format!("{place} {}\n", copied.digest);
    print(io, arguments.output, &landed(&place, &copied), text);
    Ok(())
}
