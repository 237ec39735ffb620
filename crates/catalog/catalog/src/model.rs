//! The catalog index: packages, channels with their upgrade edges, and bundles.
//!
//! Values of these types exist only inside a [`Catalog`], and only for sound content: each entry
//! has its bundle, each channel one head, each bundle one version.

use crate::{
    case_fold,
    content::{Area, Blob, BlobError, BundleManifestError, Slot},
    order::ChannelOrder,
};
use mainstay_object::Object;
use mainstay_version::Version;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Property type that carries one manifest of a bundle, base64 in `data`.
pub(crate) const BUNDLE_OBJECT: &str = "olm.bundle.object";
/// Property type that carries the part of a ClusterServiceVersion that clients show.
pub(crate) const CSV_METADATA: &str = "olm.csv.metadata";

/// One sound catalog. Immutable; share it as `Arc<Catalog>`.
#[derive(Debug)]
pub struct Catalog {
    pub(crate) digest: String,
    pub(crate) packages: BTreeMap<Arc<str>, Package>,
    pub(crate) others: Vec<Blob>,
    pub(crate) area: Arc<Area>,
}

impl Catalog {
    /// `sha256:` and the hash over all canonical blobs in sorted order. Equal digests mean equal
    /// content, independent of file names and formatting. Empty for a catalog that was loaded with
    /// less than [`Keep::All`](crate::KeptContent::All).
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// All packages, by name.
    pub fn packages(&self) -> impl ExactSizeIterator<Item = &Package> {
        self.packages.values()
    }

    /// The package of that name.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.get(name)
    }

    /// The bundle of that name in that package.
    pub fn bundle(&self, package: &str, name: &str) -> Option<&Arc<Bundle>> {
        self.package(package)?.bundle(name)
    }

    /// Blobs of custom schemas, in the order they were read. They are not checked.
    pub fn others(&self) -> &[Blob] {
        &self.others
    }

    /// All blobs in the order they were read: by path of the file, then by line.
    pub fn blobs(&self) -> impl ExactSizeIterator<Item = Blob> {
        (0..self.blob_count()).map(|slot| self.area.blob(slot))
    }

    /// The blob at that index of [`Catalog::blobs`].
    pub fn blob_at(&self, index: usize) -> Option<Blob> {
        (index < self.blob_count()).then(|| self.area.blob(index))
    }

    /// How many blobs the catalog holds, known schemas and others.
    pub fn blob_count(&self) -> usize {
        self.area.slots.len()
    }

    /// Bytes of memory that the (compressed) blobs occupy.
    pub fn stored_bytes(&self) -> usize {
        let stored =
            |slot: &Slot| slot.compressed.as_ref().map_or(0, |compressed| compressed.stored.len());
        self.area.slots.iter().map(stored).sum()
    }
}

/// A package: one operator, with all its channels and versions in the catalog.
#[derive(Debug)]
pub struct Package {
    /// The package's name.
    pub name: Arc<str>,
    /// The channel for a Subscription that names none. Always one of `channels`.
    pub default_channel: Arc<str>,
    /// The deprecation message of the package.
    pub deprecation: Option<Arc<str>>,
    pub(crate) channels: BTreeMap<Arc<str>, Channel>,
    pub(crate) bundles: BTreeMap<Arc<str>, Arc<Bundle>>,
    pub(crate) blob: Blob,
}

impl Package {
    /// All channels, by name.
    pub fn channels(&self) -> impl ExactSizeIterator<Item = &Channel> {
        self.channels.values()
    }

    /// All channels in display order, see [`ChannelOrder`].
    pub fn ordered_channels(&self) -> Vec<&Channel> {
        let mut channels: Vec<&Channel> = self.channels().collect();
        channels
            .sort_by_cached_key(|channel| ChannelOrder::of(&channel.name, &self.default_channel));
        channels
    }

    /// The channel of that name.
    pub fn channel(&self, name: &str) -> Option<&Channel> {
        self.channels.get(name)
    }

    /// All bundles, by name.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &Arc<Bundle>> {
        self.bundles.values()
    }

    /// The bundle of that name.
    pub fn bundle(&self, name: &str) -> Option<&Arc<Bundle>> {
        self.bundles.get(name)
    }

    /// The description, empty when there is none. Decompresses the package's document.
    pub fn description(&self) -> Result<String, BlobError> {
        let blob = self.blob.value()?;
        Ok(case_fold::get(&blob, "description").and_then(Value::as_str).unwrap_or("").to_owned())
    }

    /// The icon, if there is one. Decompresses the package's document.
    pub fn icon(&self) -> Result<Option<PackageIcon>, BlobError> {
        let blob = self.blob.value()?;
        let Some(icon) = case_fold::get(&blob, "icon").filter(|icon| icon.is_object()) else {
            return Ok(None);
        };
        let text = |field| {
            case_fold::get(icon, field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        Ok(Some(PackageIcon { base64data: text("base64data"), mediatype: text("mediatype") }))
    }

    /// The document that declares the package.
    pub fn blob(&self) -> &Blob {
        &self.blob
    }
}

/// The icon of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageIcon {
    /// The image in base64.
    pub base64data: String,
    /// The media type, such as `image/svg+xml`. It is not checked.
    pub mediatype: String,
}

/// A channel: an upgrade graph with exactly one head.
#[derive(Debug)]
pub struct Channel {
    /// The channel's name.
    pub name: Arc<str>,
    /// The package it belongs to.
    pub package: Arc<str>,
    /// The deprecation message of the channel.
    pub deprecation: Option<Arc<str>>,
    pub(crate) entries: Vec<CatalogEntry>,
    pub(crate) by_name: BTreeMap<Arc<str>, usize>,
    /// All names in the `skips` of entries.
    pub(crate) skipped: BTreeSet<Arc<str>>,
    pub(crate) head: usize,
    pub(crate) blob: Blob,
}

impl Channel {
    /// The entries in the order of the file.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&CatalogEntry> {
        self.by_name.get(name).map(|&index| &self.entries[index])
    }

    /// The one entry that no other entry replaces or skips.
    pub fn head(&self) -> &CatalogEntry {
        &self.entries[self.head]
    }

    /// Whether some entry of the channel lists this name in `skips`.
    pub fn is_skipped(&self, name: &str) -> bool {
        self.skipped.contains(name)
    }

    /// The document that declares the channel.
    pub fn blob(&self) -> &Blob {
        &self.blob
    }
}

/// A bundle in a channel, with the edges that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// The name of the bundle, which exists in the package.
    pub name: Arc<str>,
    /// The bundle that this one replaces; it need not exist.
    pub replaces: Option<Arc<str>>,
    /// Bundles that may update to this one directly; they need not exist.
    pub skips: Vec<Arc<str>>,
    /// The range of versions that may update to this one directly; it is valid.
    pub skip_range: Option<Arc<str>>,
}

/// One released version of an operator.
#[derive(Debug)]
pub struct Bundle {
    /// The bundle's name, which is also the name of its ClusterServiceVersion.
    pub name: Arc<str>,
    /// The package it belongs to.
    pub package: Arc<str>,
    /// The version in the `olm.package` property.
    pub version: Version,
    /// The release in that property; it orders bundles of one version.
    pub release: Option<Arc<str>>,
    /// The image reference; empty for a bundle that is only in the catalog.
    pub image: Arc<str>,
    /// All properties except the large ones (`olm.bundle.object`, `olm.csv.metadata`), in file
    /// order.
    pub properties: Vec<BundleProperty>,
    /// The minimum Kubernetes version, as the ClusterServiceVersion or the first `olm.csv.metadata`
    /// writes it.
    pub min_kube_version: Option<Arc<str>>,
    /// The deprecation message of the bundle.
    pub deprecation: Option<Arc<str>>,
    pub(crate) object_count: usize,
    pub(crate) csv_metadata_count: usize,
    pub(crate) blob: Blob,
}

/// A small property of a bundle: a type, and a JSON value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleProperty {
    /// The type, such as `olm.gvk`.
    pub kind: Arc<str>,
    /// The value as compact JSON with sorted keys.
    pub json: Box<str>,
}

impl BundleProperty {
    /// The value, decoded.
    pub fn value(&self) -> Value {
        self.decode().unwrap_or(Value::Null)
    }

    /// The value as a type of the caller; `None` if it has another shape.
    pub fn decode<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_str(&self.json).ok()
    }
}

/// The group, version and kind of an API in a property.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleApi {
    /// The API group.
    pub group: String,
    /// The version in the group.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl<'de> Deserialize<'de> for BundleApi {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let [group, version, kind] = case_fold::texts(from, ["group", "version", "kind"])?;
        Ok(Self { group, version, kind })
    }
}

/// The value of an `olm.package.required` property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRequirement {
    /// The package that must be installed.
    pub package_name: String,
    /// The range of its version.
    pub version_range: String,
}

impl<'de> Deserialize<'de> for PackageRequirement {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let [package_name, version_range] =
            case_fold::texts(from, ["packageName", "versionRange"])?;
        Ok(Self { package_name, version_range })
    }
}

/// An image that a bundle lists as used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelatedImage {
    /// The purpose of the image; may be empty.
    pub name: String,
    /// The reference; empty in some published catalogs.
    pub image: String,
}

/// The fields of a bundle blob that are read on demand, borrowed from the JSON.
#[derive(Deserialize)]
struct Properties<'a> {
    #[serde(borrow, default)]
    properties: Option<Vec<RawProperty<'a>>>,
}

#[derive(Deserialize)]
struct RawProperty<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    value: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ObjectData<'a> {
    #[serde(borrow, default)]
    data: Cow<'a, str>,
}

impl Bundle {
    /// The properties of one type, in file order.
    pub fn properties_of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a BundleProperty> {
        self.properties.iter().filter(move |property| *property.kind == *kind)
    }

    /// The APIs that this bundle provides (`olm.gvk`).
    pub fn provided_apis(&self) -> impl Iterator<Item = BundleApi> {
        self.properties_of("olm.gvk").filter_map(BundleProperty::decode)
    }

    /// The APIs that this bundle requires (`olm.gvk.required`).
    pub fn required_apis(&self) -> impl Iterator<Item = BundleApi> {
        self.properties_of("olm.gvk.required").filter_map(BundleProperty::decode)
    }

    /// The packages that this bundle requires (`olm.package.required`).
    pub fn required_packages(&self) -> impl Iterator<Item = PackageRequirement> {
        self.properties_of("olm.package.required").filter_map(BundleProperty::decode)
    }

    /// How many manifests the catalog carries for this bundle; with none they are only in the
    /// image.
    pub fn object_count(&self) -> usize {
        self.object_count
    }

    /// How many `olm.csv.metadata` properties the bundle has; more than one cannot be served.
    pub fn csv_metadata_count(&self) -> usize {
        self.csv_metadata_count
    }

    /// The manifests that the catalog carries, in file order. Each call decompresses and parses
    /// them again.
    pub fn objects(&self) -> Result<Vec<Object>, BlobError> {
        let mut objects = Vec::with_capacity(self.object_count);
        let json = self.blob.json()?;
        self.each_manifest(&json, |bytes| {
            objects.push(parse_object(bytes)?);
            Ok(true)
        })?;
        Ok(objects)
    }

    /// The first ClusterServiceVersion among the manifests, which is the one that upstream takes.
    pub fn csv(&self) -> Result<Option<Object>, BlobError> {
        const KIND: &str = "ClusterServiceVersion";
        let json = self.blob.json()?;
        let mut csv = None;
        // CRDs are much longer, so their values are not built to find out their kind.
        self.each_manifest(&json, |bytes| {
            if kind_of(bytes).is_some_and(|kind| kind != KIND) {
                return Ok(true);
            }
            csv = Some(parse_object(bytes)?).filter(|object| object.kind() == KIND);
            Ok(csv.is_none())
        })?;
        Ok(csv)
    }

    /// The value of the first `olm.csv.metadata` property.
    pub fn csv_metadata(&self) -> Result<Option<Value>, BlobError> {
        let json = self.blob.json()?;
        let mut found = None;
        self.each_property(&json, |_, kind, value| {
            if kind == CSV_METADATA {
                found = value.and_then(|value| serde_json::from_str(value.get()).ok());
            }
            Ok(found.is_none())
        })?;
        Ok(found)
    }

    /// The images that the bundle lists as used.
    pub fn related_images(&self) -> Result<Vec<RelatedImage>, BlobError> {
        let blob = self.blob.value()?;
        let images = case_fold::get(&blob, "relatedImages").and_then(Value::as_array);
        Ok(images
            .into_iter()
            .flatten()
            .map(|image| {
                let text = |field| {
                    case_fold::get(image, field).and_then(Value::as_str).unwrap_or_default()
                };
                RelatedImage { name: text("name").to_owned(), image: text("image").to_owned() }
            })
            .collect())
    }

    /// The document that declares the bundle.
    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// Calls `visit` with each property until it returns `false`.
    fn each_property(
        &self,
        json: &[u8],
        mut visit: impl FnMut(usize, &str, Option<&RawValue>) -> Result<bool, BlobError>,
    ) -> Result<(), BlobError> {
        // Go accepts field names in any case. Loading has renamed the fields of properties to their
        // canonical names, so this borrowed form sees all of them.
        let parts: Properties<'_> =
            serde_json::from_slice(json).map_err(|_| self.blob.damaged())?;
        for (index, property) in parts.properties.into_iter().flatten().enumerate() {
            if !visit(index, &property.kind, property.value)? {
                break;
            }
        }
        Ok(())
    }

    /// Calls `visit` with the bytes of each manifest until it returns `false`.
    fn each_manifest(
        &self,
        json: &[u8],
        mut visit: impl FnMut(&[u8]) -> Result<bool, BundleManifestError>,
    ) -> Result<(), BlobError> {
        self.each_property(json, |index, kind, value| {
            if kind != BUNDLE_OBJECT {
                return Ok(true);
            }
            decode_manifest(value).and_then(|bytes| visit(&bytes)).map_err(|source| {
                BlobError::Object {
                    package: self.package.clone(),
                    bundle: self.name.clone(),
                    index,
                    source,
                }
            })
        })
    }
}

/// Decodes the base64 manifest in an `olm.bundle.object` value.
fn decode_manifest(value: Option<&RawValue>) -> Result<Vec<u8>, BundleManifestError> {
    let value = value.ok_or(BundleManifestError::NoValue)?;
    let data: ObjectData<'_> = serde_json::from_str(value.get())?;
    Ok(mainstay_gocompat::decode_base64(&data.data)?)
}

/// The kind of a JSON manifest; none if it is not JSON, or has no kind.
fn kind_of(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Kind {
        kind: String,
    }
    serde_json::from_slice::<Kind>(bytes).ok().map(|document| document.kind)
}

/// Parses a manifest in JSON or YAML.
fn parse_object(bytes: &[u8]) -> Result<Object, BundleManifestError> {
    let manifest: Value = match serde_json::from_slice(bytes) {
        Ok(manifest) => manifest,
        // Upstream parses all manifests as YAML; JSON is a faster path to the same value.
        Err(_) => mainstay_yaml::one(bytes, &mainstay_yaml::Options::default())?,
    };
    Ok(Object::from_value(manifest)?)
}
