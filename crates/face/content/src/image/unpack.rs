//! `mainstay image unpack`: writes the files of an image to a folder.

use super::{
    access::{StoreFolder, TrustArguments},
    copy::working_store,
    failure,
    location::Location,
    print, progress,
    transfer::{ImageTransfer, Platforms, blocking},
};
use clap::Args;
use mainstay_cause::Cause;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use mainstay_image::{manifest::ImageDocument, unpack};
use serde_json::json;

/// Arguments of `unpack`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Location of the image.
    #[arg(value_name = "IMAGE")]
    image: String,
    /// The folder to create.
    #[arg(value_name = "DIR")]
    folder: String,
    /// Unpack only the content of this folder of the image (repeatable).
    #[arg(long, value_name = "FOLDER")]
    only: Vec<String>,
    #[command(flatten)]
    platforms: OnePlatform,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    trust: TrustArguments,
}

/// Which image of an index is meant.
#[derive(Args, Debug)]
pub(super) struct OnePlatform {
    /// The image for this platform, OS/ARCH or OS/ARCH/VARIANT [default: this machine's].
    #[arg(long, value_name = "PLATFORM")]
    pub(super) platform: Option<mainstay_image::platform::Platform>,
}

impl OnePlatform {
    pub(super) fn want(&self) -> mainstay_image::registry::ImageSelection {
        Platforms { platform: self.platform.clone(), all_platforms: false }.or_host()
    }
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let source = Location::read(&arguments.image).map_err(CommandFailure::usage)?;
    let target = io.folder.join(&arguments.folder);
    let what = format!("{source} cannot be unpacked");
    if arguments.folder.is_empty() || target.symlink_metadata().is_ok() {
        return Err(failure::unpack(&what, &unpack::UnpackError::Exists(target)));
    }
    let (store, _scratch) = working_store(&arguments.store, &[&source], io)?;
    let transfer = ImageTransfer::with_policy(&arguments.trust, io)?;
    let only = arguments.only.iter().map(|one| one.trim_matches('/').to_owned()).collect();
    let want = arguments.platforms.want();
    let (image, summary) = progress::transfer(io, transfer.progress_to_show(), async {
        let image = transfer.obtain(&store, &source, &want).await?;
        let unread = |error| failure::store(&what, &error);
        let ImageDocument::Manifest(manifest) = store.document_of(&image).map_err(unread)? else {
            return Err(Cause::new(format!("{source} is an index of indexes")).into());
        };
        let config = store.config(&manifest).map_err(unread)?;
        let options = unpack::Options { only, ..unpack::Options::default() };
        let unpacked =
            blocking(move || unpack::image(&store, &manifest, &config, &target, options)).await?;
        Ok((image, unpacked.map_err(|error| failure::unpack(&what, &error))?))
    })
    .await?;
    let value = json!({
        "image": source.to_string(),
        "digest": image.digest.to_string(),
        "folder": arguments.folder,
        "entries": summary.entries,
        "bytes": summary.bytes,
    });
    print(io, arguments.output, &value, || {
        let entries = match summary.entries {
            1 => "1 entry".to_owned(),
            several => format!("{several} entries"),
        };
        format!("{} {entries}, {}\n", arguments.folder, progress::bytes(summary.bytes))
    });
    Ok(())
}
