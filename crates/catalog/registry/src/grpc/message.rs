//! API messages, built from the index.

use super::{
    api,
    document::{self, Document},
    synthesis,
};
use crate::index::ChannelMember;
use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_catalog::{
    BlobError, Bundle, BundleApi, BundleProperty, CatalogEntry, Package, PackageRequirement,
};
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_gocompat::quote;
use serde_json::Value;
use std::sync::Arc;
use tonic::Status;

/// The parts of a bundle in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BundleParts {
    /// The bundle's content, without its edges.
    Content,
    /// The edges, and the content unless it is in an image.
    EdgesAndContent,
}

/// A bundle with its entry in a channel.
pub(super) fn bundle(
    standing: &ChannelMember<'_>,
    bundle_parts: BundleParts,
) -> Result<api::Bundle, Status> {
    let ChannelMember { package, channel, entry, bundle } = standing;
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    let listed = bundle_parts == BundleParts::EdgesAndContent;
    let mut message = api::Bundle {
        csv_name: bundle.name.as_ref().to_owned(),
        package_name: package.name.as_ref().to_owned(),
        channel_name: channel.name.as_ref().to_owned(),
        bundle_path: bundle.image.as_ref().to_owned(),
        provided_apis: bundle.provided_apis().map(kind).collect(),
        required_apis: bundle.required_apis().map(kind).collect(),
        version: bundle.version.to_string(),
        skip_range: text(&entry.skip_range),
        dependencies: bundle.properties.iter().filter_map(dependency).collect(),
        properties: bundle
            .properties
            .iter()
            .map(|property| api::Property {
                r#type: property.kind.to_string(),
                value: value(property),
            })
            .collect(),
        replaces: if listed { text(&entry.replaces) } else { String::new() },
        skips: if listed {
            entry.skips.iter().map(ToString::to_string).collect()
        } else {
            Vec::new()
        },
        deprecation: deprecation(bundle.deprecation.as_ref()),
        csv_json: String::new(),
        object: Vec::new(),
    };
    if !listed || bundle.image.is_empty() {
        (message.csv_json, message.object) = manifests(standing)?;
    }
    Ok(message)
}

/// The ClusterServiceVersion and all manifests.
fn manifests(standing: &ChannelMember<'_>) -> Result<(String, Vec<String>), Status> {
    let bundle = standing.bundle;
    if bundle.object_count() == 0 && bundle.csv_metadata_count() == 0 {
        return Ok(Default::default());
    }
    let json = bundle.blob().json().map_err(|error| content_error(&error))?;
    let Document { mut objects, metadata, csv } = Document::read(&json).map_err(|why| {
        let (package, name) = (quote(&bundle.package), quote(&bundle.name));
        Status::internal(format!("package {package}, bundle {name}: {why}"))
    })?;
    if let Some(csv) = csv.and_then(|at| objects.get(at)) {
        return Ok((csv.clone(), objects));
    }
    let csv = match metadata.as_slice() {
        [] => String::new(),
        [metadata] => {
            let csv = synthesised_csv(standing.package, bundle, metadata);
            let csv = csv.map_err(|error| content_error(&error))?;
            if objects.is_empty() {
                objects.push(csv.clone());
            }
            csv
        }
        several => return Err(Status::unknown(too_many(several.len()))),
    };
    Ok((csv, objects))
}

/// Upstream's message for a bundle with more than one `olm.csv.metadata`.
pub(crate) fn too_many(count: usize) -> String {
    format!(
        "parse properties: expected at most 1 property of type \"olm.csv.metadata\", found {count}"
    )
}

/// The ClusterServiceVersion of a bundle: from its manifests, or synthesised if the catalog has
/// only its metadata. None if the catalog has neither.
pub(crate) fn csv(package: &Package, bundle: &Bundle) -> Result<Option<Value>, BlobError> {
    if let Some(csv) = bundle.csv()? {
        return Ok(Some(csv.into_value()));
    }
    if bundle.csv_metadata_count() != 1 {
        return Ok(None);
    }
    let Some(metadata) = bundle.csv_metadata()? else { return Ok(None) };
    let text = synthesised_csv(package, bundle, &metadata)?;
    Ok(serde_json::from_str(&text).ok())
}

fn synthesised_csv(
    package: &Package,
    bundle: &Bundle,
    metadata: &Value,
) -> Result<String, BlobError> {
    let package = package.blob().value()?;
    let images = bundle.related_images()?;
    let icon = document::last(&package, "icon", Value::is_object).map(|icon| {
        // Upstream decodes the icon and encodes it again.
        let data = document::unpack(document::text(icon, "base64data")).unwrap_or_default();
        (STANDARD.encode(data), document::text(icon, "mediatype").to_owned())
    });
    let parts = synthesis::Parts {
        name: &bundle.name,
        version: &bundle.version.to_string(),
        description: document::text(&package, "description"),
        icon,
        related_images: images.into_iter().map(|image| (image.name, image.image)).collect(),
    };
    Ok(synthesis::csv(metadata, &parts))
}

pub(super) fn content_error(error: &BlobError) -> Status {
    Status::internal(error.to_string())
}

fn kind(api: BundleApi) -> api::GroupVersionKind {
    let BundleApi { group, version, kind } = api;
    api::GroupVersionKind { group, version, kind, plural: String::new() }
}

/// The value of a property as upstream formats it.
fn value(property: &BundleProperty) -> String {
    mainstay_gocompat::json::value(&property.value(), Html::Plain, Numbers::Float)
}

fn dependency(property: &BundleProperty) -> Option<api::Dependency> {
    let (kind, value) = match &*property.kind {
        "olm.gvk.required" => ("olm.gvk", value(property)),
        "olm.package.required" => {
            let PackageRequirement { package_name, version_range } = property.decode()?;
            let text = mainstay_gocompat::json::quoted;
            let (name, range) = (text(&package_name), text(&version_range));
            ("olm.package", format!("{{\"packageName\":{name},\"version\":{range}}}"))
        }
        _ => return None,
    };
    Some(api::Dependency { r#type: kind.to_owned(), value })
}

fn deprecation(message: Option<&Arc<str>>) -> Option<api::Deprecation> {
    message.map(|message| api::Deprecation { message: message.as_ref().to_owned() })
}

/// A package with its channels.
pub(super) fn package(package: &Package) -> api::Package {
    let channels = package.channels().map(|channel| api::Channel {
        name: channel.name.as_ref().to_owned(),
        csv_name: channel.head().name.as_ref().to_owned(),
        deprecation: deprecation(channel.deprecation.as_ref()),
    });
    api::Package {
        name: package.name.as_ref().to_owned(),
        channels: channels.collect(),
        default_channel_name: package.default_channel.as_ref().to_owned(),
        deprecation: deprecation(package.deprecation.as_ref()),
    }
}

/// The edge to a bundle from another.
pub(super) fn edge(standing: &ChannelMember<'_>, from: &str) -> api::ChannelEntry {
    api::ChannelEntry {
        package_name: standing.package.name.as_ref().to_owned(),
        channel_name: standing.channel.name.as_ref().to_owned(),
        bundle_name: standing.entry.name.as_ref().to_owned(),
        replaces: from.to_owned(),
    }
}

/// All edges to a bundle: from the one it replaces, and from those it skips if `skips` passes.
pub(super) fn edges(
    standing: ChannelMember<'_>,
    pass: impl Fn(&str) -> bool,
) -> impl Iterator<Item = api::ChannelEntry> {
    let replaces = replaced(standing.entry);
    let skipped = standing.entry.skips.iter().map(AsRef::as_ref);
    let skipped = skipped.filter(move |skip| *skip != replaces && pass(skip));
    std::iter::once(replaces).chain(skipped).map(move |from| edge(&standing, from))
}

/// The name of the bundle that an entry replaces; empty if none.
pub(super) fn replaced(entry: &CatalogEntry) -> &str {
    entry.replaces.as_deref().unwrap_or_default()
}
