//! `mainstay image pull` and `push`: transfers between registries and the store.

use super::{
    access::{RegistryAccess, StoreFolder, TrustArguments},
    location::{Location, reference},
    location_value, print, progress,
    transfer::{ImageTransfer, Platforms, find_in_store},
};
use clap::Args;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::Format;
use serde_json::Value;
use std::fmt::Write;

/// Arguments of `pull`.
#[derive(Args, Debug)]
pub(super) struct Pull {
    /// Names of images, REGISTRY/NAME[:TAG][@DIGEST].
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<String>,
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

pub(super) async fn pull(arguments: &Pull, io: &mut CommandIo<'_>) -> Result<(), CommandFailure> {
    let read = |text: &String| {
        let text = text.strip_prefix("docker://").unwrap_or(text);
        reference(text).map_err(CommandFailure::usage)
    };
    let images = arguments.images.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let store = arguments.store.open(io)?;
    let transfer = ImageTransfer::with_policy(&arguments.trust, io)?;
    let want = arguments.platforms.or_host();
    let (mut text, mut values) = (String::new(), Vec::new());
    let pulled = progress::transfer(io, transfer.progress_to_show(), async {
        for image in &images {
            let (top, one) = transfer.pull(&store, image, &want).await?;
            let mut value = location_value(&image.to_string(), &top);
            let _ = writeln!(text, "{image} {}", top.digest);
            if let Some(one) = one.filter(|one| one.digest != top.digest) {
                value["imageDigest"] = one.digest.to_string().into();
                value["platform"] =
                    one.platform.map_or(Value::Null, |platform| platform.to_string().into());
            }
            values.push(value);
        }
        Ok(())
    })
    .await;
    // Images pulled before a failure stay in the store.
    if pulled.is_ok() || !values.is_empty() {
        print(io, arguments.output, &Value::Array(values), || text);
    }
    pulled
}

/// Arguments of `push`.
#[derive(Args, Debug)]
pub(super) struct Push {
    /// Name of an image of the store.
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Name of the image in the registry [default: the same name].
    #[arg(value_name = "AS")]
    target: Option<String>,
    #[command(flatten)]
    platforms: Platforms,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    registry_access: RegistryAccess,
}

pub(super) async fn push(arguments: &Push, io: &mut CommandIo<'_>) -> Result<(), CommandFailure> {
    let read = |text: &str| reference(text).map_err(CommandFailure::usage);
    let image = read(arguments.image.strip_prefix("store:").unwrap_or(&arguments.image))?;
    let target = match &arguments.target {
        Some(target) => read(target.strip_prefix("docker://").unwrap_or(target))?,
        None => image.clone(),
    };
    let store = arguments.store.open(io)?;
    find_in_store(&store, &image)?;
    let transfer = ImageTransfer::new(&arguments.registry_access, io)?;
    let want = arguments.platforms.or_all();
    let target = Location::Registry(target);
    // Boxed, as it is large.
    let push = Box::pin(async {
        let found = transfer.obtain(&store, &Location::Store(image), &want).await?;
        transfer.deliver(&store, &found, &target).await?;
        Ok(found)
    });
    let pushed = progress::transfer(io, transfer.progress_to_show(), push).await?;
    let place = target.to_string();
    let text = || format!("{place} {}\n", pushed.digest);
    print(io, arguments.output, &location_value(&place, &pushed), text);
    Ok(())
}
