//! `mainstay image inspect`: manifest, configuration and platforms of an image, without its layers.

use super::{
    access::{Mirrors, RegistryAccess, StoreFolder},
    content::{BUNDLE_LABEL, CONFIGS_LABEL},
    copy::working_store,
    failure,
    location::Location,
    print, progress,
    transfer::ImageTransfer,
    unpack::OnePlatform,
};
use clap::Args;
use mainstay_cause::Cause;
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::{Format, count, escape_controls};
use mainstay_image::{
    fetch::FetchError,
    manifest::{
        DEEPEST_INDEX, Descriptor, ImageConfig, ImageDocument, LONGEST_CONFIG, LONGEST_MANIFEST,
    },
    mirror::{MirrorError, MirrorSource},
    registry::{ImageSelection, RegistryError},
    store::ImageStore,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// Arguments of `inspect`.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Location of the image.
    #[arg(value_name = "IMAGE")]
    image: String,
    /// Print the manifest or the index byte for byte.
    #[arg(long, conflicts_with_all = ["config", "output", "platform"])]
    raw: bool,
    /// Print the image configuration byte for byte.
    #[arg(long, conflicts_with = "output")]
    config: bool,
    #[command(flatten)]
    platforms: OnePlatform,
    #[command(flatten)]
    store: StoreFolder,
    /// Output format.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    #[command(flatten)]
    registry_access: RegistryAccess,
    #[command(flatten)]
    mirrors: Mirrors,
}

/// The source of manifests and configurations.
enum Origin<'o> {
    Registry(&'o ImageTransfer<'o>, MirrorSource),
    Store(ImageStore),
}

impl Origin<'_> {
    async fn document(
        &self,
        descriptor: &Descriptor,
    ) -> Result<(ImageDocument, Vec<u8>), RegistryError> {
        match self {
            Self::Registry(transfer, source) => {
                let reference = source.reference.with_digest(descriptor.digest.clone());
                let found = transfer.client.document(&reference, source.security).await;
                found.map(|(_, document, bytes)| (document, bytes))
            }
            Self::Store(store) => {
                let document = store.document_of(descriptor)?;
                Ok((document, store.bytes(&descriptor.digest, LONGEST_MANIFEST)?))
            }
        }
    }

    async fn config(&self, descriptor: &Descriptor) -> Result<Vec<u8>, RegistryError> {
        match self {
            Self::Registry(transfer, source) => {
                let (client, reference) = (&transfer.client, &source.reference);
                client.bytes(reference, source.security, descriptor, LONGEST_CONFIG).await
            }
            Self::Store(store) => Ok(store.bytes(&descriptor.digest, LONGEST_CONFIG)?),
        }
    }
}

/// An inspected image.
struct InspectedImage {
    top: Descriptor,
    document: ImageDocument,
    bytes: Vec<u8>,
    /// The image for the platform, if there is one.
    image: Option<(Descriptor, ImageDocument)>,
    config: Option<Vec<u8>>,
}

pub(super) async fn run(
    arguments: &Arguments,
    io: &mut CommandIo<'_>,
) -> Result<(), CommandFailure> {
    let place = Location::read(&arguments.image).map_err(CommandFailure::usage)?;
    let transfer =
        ImageTransfer::new(&arguments.registry_access, io)?.with_mirrors(&arguments.mirrors, io)?;
    let (store, _scratch) = match &place {
        Location::Registry(_) => (None, None),
        other => {
            let (store, scratch) = working_store(&arguments.store, &[other], io)?;
            (Some(store), scratch)
        }
    };
    let want = arguments.platforms.want();
    let found = progress::transfer(io, transfer.progress_to_show(), async {
        let (origin, top) = match &store {
            None => in_registry(&transfer, &place).await?,
            Some(store) => {
                let top = transfer.obtain(store, &place, &ImageSelection::All).await?;
                (Origin::Store(store.clone()), top)
            }
        };
        let what = format!("{place} cannot be inspected");
        inspect_from(&origin, top, &want).await.map_err(|error| failure::registry(&what, &error))
    })
    .await?;
    if arguments.raw {
        let _ = io.stdout.write_all(&found.bytes);
        return Ok(());
    }
    let platform = arguments.platforms.platform.as_ref();
    if let (None, Some(platform)) = (&found.image, platform) {
        let cause = Cause::new(format!("{place} has no image for {platform}"));
        let cause =
            cause.because(Cause::new(format!("it has {}", platforms_of(&found).join(", "))));
        return Err(CommandFailure::usage(
            cause.remedy("name one that it has with --platform OS/ARCH"),
        ));
    }
    if arguments.config {
        let Some(config) = &found.config else {
            let cause = Cause::new(format!("{place} has no image for this machine"));
            return Err(CommandFailure::usage(
                cause.remedy("name a platform with --platform OS/ARCH"),
            ));
        };
        let _ = io.stdout.write_all(config);
        return Ok(());
    }
    let value = value(&place, &found);
    print(io, arguments.output, &value, || text(&value));
    Ok(())
}

/// Resolves an image in the first mirror or registry that has it.
async fn in_registry<'c>(
    transfer: &'c ImageTransfer<'c>,
    place: &Location,
) -> Result<(Origin<'c>, Descriptor), CommandFailure> {
    let what = format!("{place} cannot be inspected");
    let failed = |error| failure::fetch(&what, &FetchError::Mirror(error));
    let Location::Registry(reference) = place else { return Err(Cause::new(what).into()) };
    let mut attempts = Vec::new();
    let security = transfer.registry_access.security(reference);
    for source in transfer.rules.sources(reference, security).map_err(failed)? {
        match transfer.client.resolve(&source.reference, source.security).await {
            Ok((top, _)) => return Ok((Origin::Registry(transfer, source), top)),
            Err(error) => attempts.push((source.reference.repository(), error)),
        }
    }
    Err(failed(MirrorError::All { reference: reference.to_string(), attempts }))
}

async fn inspect_from(
    origin: &Origin<'_>,
    top: Descriptor,
    want: &ImageSelection,
) -> Result<InspectedImage, RegistryError> {
    let (document, bytes) = origin.document(&top).await?;
    let mut image = Some((top.clone(), document.clone()));
    for _ in 0..DEEPEST_INDEX {
        let (Some((_, ImageDocument::Index(index))), ImageSelection::Platform(platform)) =
            (&image, want)
        else {
            break;
        };
        let Some(select_platform) = index.choose(platform).cloned() else {
            image = None;
            break;
        };
        let (document, _) = origin.document(&select_platform).await?;
        image = Some((select_platform, document));
    }
    let config = match &image {
        Some((_, ImageDocument::Manifest(manifest))) => {
            Some(origin.config(&manifest.config).await?)
        }
        _ => None,
    };
    Ok(InspectedImage { top, document, bytes, image, config })
}

fn platforms_of(found: &InspectedImage) -> Vec<String> {
    let ImageDocument::Index(index) = &found.document else { return Vec::new() };
    let platforms = index.manifests.iter().filter_map(|descriptor| descriptor.platform.as_ref());
    platforms.map(|platform| escape_controls(&platform.to_string())).collect()
}

fn value(place: &Location, found: &InspectedImage) -> Value {
    let mut value = json!({
        "image": place.to_string(),
        "digest": found.top.digest.to_string(),
        "mediaType": found.document.media_type(),
    });
    if !found.document.annotations().is_empty() {
        value["annotations"] = json!(found.document.annotations());
    }
    if let ImageDocument::Index(index) = &found.document {
        let images = index.manifests.iter().map(|descriptor| {
            let platform = descriptor.platform.as_ref().map(ToString::to_string);
            json!({"digest": descriptor.digest.to_string(), "platform": platform, "mediaType": descriptor.media_type})
        });
        value["manifests"] = images.collect();
    }
    let Some((image, ImageDocument::Manifest(manifest))) = &found.image else { return value };
    value["imageDigest"] = image.digest.to_string().into();
    if let Some(kind) = &manifest.artifact_type {
        value["artifactType"] = kind.as_str().into();
    }
    let layers = manifest.layers.iter().map(|descriptor| {
        json!({"digest": descriptor.digest.to_string(), "mediaType": descriptor.media_type, "size": descriptor.size})
    });
    value["layers"] = layers.collect();
    value["configDigest"] = manifest.config.digest.to_string().into();
    let config = found.config.as_deref().and_then(|bytes| ImageConfig::read(bytes, manifest).ok());
    // An artifact that is no image has no image configuration.
    let Some(config) = config.filter(|config| !config.platform.os.is_empty()) else { return value };
    value["platform"] = config.platform.to_string().into();
    if let Some(created) = &config.created {
        value["created"] = created.as_str().into();
    }
    let run = &config.config;
    value["labels"] = json!(run.labels);
    let holds = run.labels.get(BUNDLE_LABEL).map(|package| format!("bundle of {package}"));
    let holds =
        holds.or_else(|| run.labels.get(CONFIGS_LABEL).map(|at| format!("catalog in {at}")));
    if let Some(holds) = holds {
        value["holds"] = holds.into();
    }
    for (name, list) in [("entrypoint", &run.entrypoint), ("cmd", &run.cmd), ("env", &run.env)] {
        if !list.is_empty() {
            value[name] = json!(list);
        }
    }
    for (name, text) in [("workingDir", &run.working_dir), ("user", &run.user)] {
        if !text.is_empty() {
            value[name] = text.as_str().into();
        }
    }
    value
}

fn text(value: &Value) -> String {
    let mut out = String::new();
    let line = |out: &mut String, name: &str, text: &str| {
        let _ = writeln!(out, "{:<12}{}", format!("{name}:"), escape_controls(text));
    };
    for (name, field) in [
        ("Image", "image"),
        ("Holds", "holds"),
        ("Digest", "digest"),
        ("Media type", "mediaType"),
        ("Artifact", "artifactType"),
        ("Platform", "platform"),
        ("Created", "created"),
        ("User", "user"),
        ("Folder", "workingDir"),
    ] {
        if let Some(text) = value[field].as_str() {
            line(&mut out, name, text);
        }
    }
    for (name, field) in [("Entrypoint", "entrypoint"), ("Command", "cmd")] {
        if !value[field].is_null() {
            line(&mut out, name, &value[field].to_string());
        }
    }
    if let Some(layers) = value["layers"].as_array() {
        let sizes = layers.iter().filter_map(|layer| layer["size"].as_u64());
        let size = progress::bytes(sizes.fold(0, u64::saturating_add));
        line(&mut out, "Layers", &format!("{}, {size}", count(layers.len(), "layer")));
    }
    for (name, field) in [("Labels", "labels"), ("Annotations", "annotations")] {
        let Some(fields) = value[field].as_object().filter(|fields| !fields.is_empty()) else {
            continue;
        };
        let _ = writeln!(out, "{name}:");
        for (key, text) in fields {
            let _ = writeln!(
                out,
                "  {}: {}",
                escape_controls(key),
                escape_controls(text.as_str().unwrap_or_default())
            );
        }
    }
    if let Some(images) = value["manifests"].as_array() {
        let _ = writeln!(out, "Images:");
        for image in images {
            let platform = image["platform"].as_str().unwrap_or("-");
            let digest = image["digest"].as_str().unwrap_or_default();
            let _ = writeln!(out, "  {:<16}{digest}", escape_controls(platform));
        }
    }
    out
}
