//! `mainstay image list`, `remove` and `gc`: the store of this machine.

use super::{
    access::StoreFolder, failure, location::reference, print, progress::bytes,
    transfer::find_in_store,
};
use clap::Args;
use mainstay_clock::Clock;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, columns, count, escape_controls};
use mainstay_image::{
    manifest::{Descriptor, ImageDocument},
    store::{ImageStore, UntaggedManifests},
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// Arguments of `list`.
#[derive(Args, Debug)]
pub(super) struct List {
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// Arguments of `remove`.
#[derive(Args, Debug)]
pub(super) struct Remove {
    /// Names of images of the store.
    #[arg(value_name = "IMAGE", required = true)]
    images: Vec<String>,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// Arguments of `gc`.
#[derive(Args, Debug)]
pub(super) struct Gc {
    /// Also remove images that have only a digest and no tag.
    #[arg(long)]
    untagged: bool,
    /// Keep content that was written or used within this number of seconds, because another program may
    /// need it.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    grace: u64,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// The platforms of an image that the store has, and their size in bytes.
fn platforms_and_size(store: &ImageStore, image: &Descriptor) -> (Vec<String>, u64) {
    let (mut platforms, mut size) = (Vec::new(), 0);
    let mut open = vec![(image.clone(), 0)];
    while let Some((image, depth)) = open.pop() {
        let Ok(document) = store.document_of(&image) else { continue };
        size += image.size;
        match &document {
            ImageDocument::Index(index) if depth < mainstay_image::manifest::DEEPEST_INDEX => {
                open.extend(index.manifests.iter().rev().map(|one| (one.clone(), depth + 1)));
            }
            ImageDocument::Index(_) => {}
            ImageDocument::Manifest(manifest) => {
                let parts = document.parts().into_iter();
                size += parts.map(|part| part.size).fold(0, u64::saturating_add);
                let platform = image.platform.clone();
                let platform =
                    platform.or_else(|| store.config(manifest).ok().map(|config| config.platform));
                let known = platform.filter(|platform| !platform.architecture.is_empty());
                platforms.extend(known.map(|platform| escape_controls(&platform.to_string())));
            }
        }
    }
    platforms.dedup();
    (platforms, size)
}

pub(super) fn list(arguments: &List, io: &mut CommandIo<'_>) -> Result<(), CommandFailure> {
    let store = arguments.store.open(io)?;
    let found = store.references();
    let found = found.map_err(|error| failure::store("the store cannot be read", &error))?;
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for (name, image) in found {
        let (platforms, size) = platforms_and_size(&store, &image);
        values.push(json!({
            "image": name.to_string(),
            "digest": image.digest.to_string(),
            "mediaType": image.media_type,
            "platforms": platforms,
            "bytes": size,
        }));
        let short: String = image.digest.to_string().chars().take(19).collect();
        rows.push(vec![name.to_string(), short, platforms.join(","), bytes(size)]);
    }
    print(io, arguments.output, &Value::Array(values), || {
        columns(&["IMAGE", "DIGEST", "PLATFORMS", "SIZE"], &rows)
    });
    Ok(())
}

pub(super) fn remove(arguments: &Remove, io: &mut CommandIo<'_>) -> Result<(), CommandFailure> {
    let store = arguments.store.open(io)?;
    let read = |text: &String| {
        reference(text.strip_prefix("store:").unwrap_or(text)).map_err(CommandFailure::usage)
    };
    let images = arguments.images.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // All names are resolved first: a mistyped one removes nothing.
    for image in &images {
        find_in_store(&store, image)?;
    }
    let (mut text, mut values, mut failed) = (String::new(), Vec::new(), None);
    for image in &images {
        if let Err(error) = store.forget(image) {
            failed = Some(failure::store(&format!("{image} cannot be removed"), &error));
            break;
        }
        // Writing into a String does not fail.
        let _ = writeln!(text, "{image} removed");
        values.push(json!({"image": image.to_string(), "removed": true}));
    }
    // Images removed before a failure stay removed.
    print(io, arguments.output, &Value::Array(values), || text);
    failed.map_or(Ok(()), Err)
}

pub(super) fn gc(arguments: &Gc, io: &mut CommandIo<'_>) -> Result<(), CommandFailure> {
    let store = arguments.store.open(io)?;
    let untagged =
        if arguments.untagged { UntaggedManifests::Forget } else { UntaggedManifests::Keep };
    let grace = Duration::from_secs(arguments.grace);
    let collected = store.collect(Clock::system().now(), grace, untagged);
    let collected =
        collected.map_err(|error| failure::store("the store cannot be cleaned", &error))?;
    let value = json!({
        "blobs": collected.blobs,
        "bytes": collected.bytes,
        "unfinished": collected.unfinished,
    });
    print(io, arguments.output, &value, || {
        let mut text =
            format!("removed {}, {}", count(collected.blobs, "blob"), bytes(collected.bytes));
        if collected.unfinished > 0 {
            text = text + ", and " + &count(collected.unfinished, "unfinished download");
        }
        text + "\n"
    });
    Ok(())
}
