//! `mainstay image copy`: copies an image from any location to any other.

use super::{
    access::{StoreFolder, TrustArguments},
    location::Location,
    location_value, print,
    progress::{self, TemporaryStore},
    transfer::{ImageTransfer, Platforms},
};
use clap::Args;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_image::store::ImageStore;

/// Arguments of `copy`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Location of the image.
    #[arg(value_name = "FROM")]
    source: String,
    /// Target of the copy.
    #[arg(value_name = "TO")]
    target: String,
    #[command(flatten)]
    platforms: Platforms,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    trust: TrustArguments,
}

/// The store that a transfer uses: this machine's if it is source or target, else a temporary one.
pub(super) fn working_store(
    folder: &StoreFolder,
    ends: &[&Location],
    io: &CommandIo<'_>,
) -> Result<(ImageStore, Option<TemporaryStore>), CommandFailure> {
    if ends.iter().any(|end| matches!(end, Location::Store(_))) {
        return Ok((folder.open(io)?, None));
    }
    let scratch = TemporaryStore::new(io)?;
    Ok((scratch.store().clone(), Some(scratch)))
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let source = Location::read(&arguments.source).map_err(CommandFailure::usage)?;
    let target = Location::read(&arguments.target).map_err(CommandFailure::usage)?;
    let (store, _scratch) = working_store(&arguments.store, &[&source, &target], io)?;
    let transfer = ImageTransfer::with_policy(&arguments.trust, io)?;
    let want = arguments.platforms.or_all();
    let copied = progress::transfer(io, transfer.progress_to_show(), async {
        let image = transfer.obtain(&store, &source, &want).await?;
        transfer.deliver(&store, &image, &target).await?;
        Ok(image)
    })
    .await?;
    let place = target.to_string();
    let text = || format!("{place} {}\n", copied.digest);
    print(io, arguments.output, &location_value(&place, &copied), text);
    Ok(())
}
