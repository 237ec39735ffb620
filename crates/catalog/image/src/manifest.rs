//! Image manifests, indexes and configurations.
//!
//! The formats of OCI and of Docker's schema 2 are supported; they differ only in media types.
//! Parsing is strict where ambiguity is dangerous: the media type in a document and the one that a
//! registry sends must agree, and a document must not be manifest and index at once. Content that
//! the specification leaves open (annotations, unknown fields) is preserved, because existing
//! documents are stored as bytes and never encoded again.

use crate::{
    digest::{Digest, DigestError},
    platform::Platform,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::collections::BTreeMap;

/// Media types of images.
pub mod media_type {
    /// An OCI image manifest.
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An OCI image index.
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// An OCI image configuration.
    pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// An uncompressed OCI layer.
    pub const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    /// An OCI layer with gzip compression.
    pub const OCI_LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// An OCI layer with zstd compression.
    pub const OCI_LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
    /// Two bytes, `{}`: the configuration of an artifact that needs none.
    pub const OCI_EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// A Docker manifest, schema 2.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// A Docker manifest list.
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// A Docker image configuration.
    pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
    /// A Docker layer with gzip compression.
    pub const DOCKER_LAYER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    /// An uncompressed Docker layer.
    pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";
    /// A Docker manifest of schema 1, which is refused.
    pub const DOCKER_SCHEMA1: &str = "application/vnd.docker.distribution.manifest.v1+json";
    /// A signed Docker manifest of schema 1, which is refused.
    pub const DOCKER_SCHEMA1_SIGNED: &str =
        "application/vnd.docker.distribution.manifest.v1+prettyjws";

    /// The media types in the `Accept` header of requests.
    pub const ACCEPTED: [&str; 4] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST];
}

use media_type as media;

/// The maximum length of a manifest or an index in bytes: the limit of registries.
pub const LONGEST_MANIFEST: u64 = 4 << 20;
/// The maximum length of a configuration in bytes.
pub const LONGEST_CONFIG: u64 = 8 << 20;
/// The maximum number of layers: twice what any storage driver supports.
pub const MOST_LAYERS: usize = 512;
/// The maximum number of images in an index.
pub const MOST_IMAGES: usize = 1024;
/// The maximum nesting of indexes.
pub const DEEPEST_INDEX: usize = 4;

/// Why a document is refused.
#[derive(Debug, thiserror::Error)]
pub enum ImageManifestError {
    /// The document is not JSON of its shape.
    #[error("it is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// The document is not JSON at all, but for example a web page.
    #[error("it is not JSON: it begins with {0:?}")]
    NotJson(char),
    /// The document exceeds the limit.
    #[error("it has {length} bytes, and {limit} are allowed")]
    TooLong {
        /// The length, or the announced length, in bytes.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// The document has the obsolete schema 1, whose digests are hard to verify.
    #[error(
        "it is a Docker manifest of schema 1, which is no longer supported; push the image again with a current tool"
    )]
    Schema1,
    /// `schemaVersion` is not 2.
    #[error("schemaVersion is {0}, and must be 2")]
    SchemaVersion(i64),
    /// The media type is not that of a manifest or index.
    #[error("media type {0:?} is neither a manifest nor an index")]
    MediaType(String),
    /// The media type in the document differs from that of the sender.
    #[error("it is sent as {sent:?} and says that it is {inside:?}")]
    Disagree {
        /// The media type of the registry or the descriptor.
        sent: String,
        /// The media type in the document.
        inside: String,
    },
    /// The document has fields of a manifest and of an index.
    #[error("it has the fields of a manifest and of an index, so it is ambiguous")]
    Both,
    /// The document has fields of neither.
    #[error("it is neither a manifest nor an index")]
    Neither,
    /// The document has too many parts.
    #[error("it has {count} {what}, and {limit} are allowed")]
    TooMany {
        /// The kind of the parts.
        what: &'static str,
        /// The number of parts.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A size is negative.
    #[error("the size of {0} is negative")]
    NegativeSize(Digest),
    /// A digest is invalid.
    #[error("invalid digest: {0}")]
    Digest(#[from] DigestError),
    /// Configuration and manifest have different numbers of layers.
    #[error("the configuration has {config} layers and the manifest {manifest}")]
    LayerCount {
        /// The number of diff ids.
        config: usize,
        /// The number of layers.
        manifest: usize,
    },
}

/// An OCI descriptor: media type, digest and size of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size in bytes.
    #[serde(with = "size")]
    pub size: u64,
    /// The platform of an image in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Alternative locations. They are preserved, and never followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// The artifact type of a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
}

impl Descriptor {
    /// A descriptor of bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// A descriptor without annotations.
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest,
            size,
            platform: None,
            urls: Vec::new(),
            annotations: BTreeMap::new(),
            artifact_type: None,
        }
    }
}

/// Encodes sizes as Go's `int64`.
mod size {
    use serde::{Deserialize, Deserializer, Serializer, de};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(size: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(*size)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let size = i64::deserialize(from)?;
        u64::try_from(size).map_err(|_| de::Error::custom("a size is negative"))
    }
}

/// Decodes an absent or `null` field as empty, like Go.
fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// An image manifest: the configuration and layers for one platform, the lowest layer first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// Always 2.
    pub schema_version: i64,
    /// Media type; Docker always writes it, and OCI tools mostly.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The artifact type, if it is not an image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, the lowest first.
    #[serde(default, deserialize_with = "or_default")]
    pub layers: Vec<Descriptor>,
    /// The manifest to which this one refers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

impl ImageManifest {
    /// An OCI manifest of a configuration and layers.
    pub fn oci(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: media::OCI_MANIFEST.to_owned(),
            artifact_type: None,
            config,
            layers,
            subject: None,
            annotations: BTreeMap::new(),
        }
    }
}

/// An image index: images for several platforms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    /// Always 2.
    pub schema_version: i64,
    /// Media type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// The artifact type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The images.
    #[serde(default, deserialize_with = "or_default")]
    pub manifests: Vec<Descriptor>,
    /// The manifest to which this one refers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

impl ImageIndex {
    /// An OCI index of these images.
    pub fn oci(manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: media::OCI_INDEX.to_owned(),
            artifact_type: None,
            manifests,
            subject: None,
            annotations: BTreeMap::new(),
        }
    }

    /// The image for a platform.
    pub fn choose(&self, platform: &Platform) -> Option<&Descriptor> {
        let offers = self.manifests.iter().map(|one| one.platform.as_ref());
        platform.choose(offers).and_then(|place| self.manifests.get(place))
    }
}

/// A manifest or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there are a few of them at a time")]
pub enum ImageDocument {
    /// A manifest: one image.
    Manifest(ImageManifest),
    /// An index: images for several platforms.
    Index(ImageIndex),
}

/// The fields that distinguish manifests from indexes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    schema_version: Option<i64>,
    media_type: Option<String>,
    manifests: Option<IgnoredAny>,
    config: Option<IgnoredAny>,
    layers: Option<IgnoredAny>,
    fs_layers: Option<IgnoredAny>,
    history: Option<IgnoredAny>,
}

fn is_index(media_type: &str) -> Option<bool> {
    match media_type {
        media::OCI_MANIFEST | media::DOCKER_MANIFEST => Some(false),
        media::OCI_INDEX | media::DOCKER_LIST => Some(true),
        _ => None,
    }
}

/// Whether a JSON value may begin with a character.
fn is_start_of_json(first: char) -> bool {
    first.is_ascii_digit() || matches!(first, '{' | '[' | '"' | '-' | 't' | 'f' | 'n')
}

impl ImageDocument {
    /// Parses a document; `sent` is the media type from its sender, if there is one.
    pub fn read(bytes: &[u8], sent: Option<&str>) -> Result<Self, ImageManifestError> {
        within(bytes.len() as u64, LONGEST_MANIFEST)?;
        let first = String::from_utf8_lossy(bytes.trim_ascii_start()).chars().next();
        if let Some(first) = first.filter(|first| !is_start_of_json(*first)) {
            return Err(ImageManifestError::NotJson(first));
        }
        let old = |one: &str| one == media::DOCKER_SCHEMA1 || one == media::DOCKER_SCHEMA1_SIGNED;
        // Generic media types are ignored.
        let sent =
            sent.map(|sent| sent.split(';').next().unwrap_or_default().trim()).filter(|sent| {
                !matches!(
                    *sent,
                    "" | "application/json" | "text/plain" | "application/octet-stream"
                )
            });
        if let Some(sent) = sent
            && is_index(sent).is_none()
            && !old(sent)
        {
            return Err(ImageManifestError::MediaType(sent.to_owned()));
        }
        let shape: Shape = serde_json::from_slice(bytes)?;
        if shape.schema_version == Some(1)
            || sent.is_some_and(old)
            || shape.media_type.as_deref().is_some_and(old)
        {
            return Err(ImageManifestError::Schema1);
        }
        let version = shape.schema_version.unwrap_or(0);
        if version != 2 {
            return Err(ImageManifestError::SchemaVersion(version));
        }
        let of_manifest = shape.config.is_some() || shape.layers.is_some();
        let of_old = shape.fs_layers.is_some() || shape.history.is_some();
        let of_index = shape.manifests.is_some();
        if of_index && of_manifest || of_old && (of_index || of_manifest) {
            return Err(ImageManifestError::Both);
        }
        let inside = shape.media_type.filter(|inside| !inside.is_empty());
        if let (Some(sent), Some(inside)) = (sent, &inside)
            && sent != inside
        {
            let (sent, inside) = (sent.to_owned(), inside.clone());
            return Err(ImageManifestError::Disagree { sent, inside });
        }
        let named = inside.as_deref().or(sent);
        let index = match named {
            Some(named) => {
                is_index(named).ok_or_else(|| ImageManifestError::MediaType(named.to_owned()))?
            }
            None if of_index => true,
            None if of_manifest => false,
            None => return Err(ImageManifestError::Neither),
        };
        if index && of_manifest || !index && of_index {
            return Err(ImageManifestError::Both);
        }
        let document = if index {
            let index: ImageIndex = serde_json::from_slice(bytes)?;
            few("images", index.manifests.len(), MOST_IMAGES)?;
            Self::Index(index)
        } else {
            let manifest: ImageManifest = serde_json::from_slice(bytes)?;
            few("layers", manifest.layers.len(), MOST_LAYERS)?;
            Self::Manifest(manifest)
        };
        Ok(document)
    }

    /// The media type in the document, or OCI's if it has none.
    pub fn media_type(&self) -> &str {
        let (said, default) = match self {
            Self::Manifest(manifest) => (manifest.media_type.as_str(), media::OCI_MANIFEST),
            Self::Index(index) => (index.media_type.as_str(), media::OCI_INDEX),
        };
        if said.is_empty() { default } else { said }
    }

    /// The descriptors in the document: configuration and layers, or images.
    pub fn parts(&self) -> Vec<&Descriptor> {
        match self {
            Self::Manifest(manifest) => {
                std::iter::once(&manifest.config).chain(&manifest.layers).collect()
            }
            Self::Index(index) => index.manifests.iter().collect(),
        }
    }

    /// The manifest to which the document refers.
    pub fn subject(&self) -> Option<&Descriptor> {
        match self {
            Self::Manifest(manifest) => manifest.subject.as_ref(),
            Self::Index(index) => index.subject.as_ref(),
        }
    }

    /// The artifact type for a list of referrers: that of the document, or the media type of a
    /// manifest's configuration.
    pub fn artifact_type(&self) -> Option<&str> {
        match self {
            Self::Manifest(manifest) => {
                Some(manifest.artifact_type.as_deref().unwrap_or(&manifest.config.media_type))
            }
            Self::Index(index) => index.artifact_type.as_deref(),
        }
    }

    /// The annotations.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Manifest(manifest) => &manifest.annotations,
            Self::Index(index) => &index.annotations,
        }
    }
}

fn few(what: &'static str, count: usize, limit: usize) -> Result<(), ImageManifestError> {
    if count > limit { Err(ImageManifestError::TooMany { what, count, limit }) } else { Ok(()) }
}

/// Checks that a length is within a limit.
pub(crate) fn within(length: u64, limit: u64) -> Result<(), ImageManifestError> {
    if length > limit { Err(ImageManifestError::TooLong { length, limit }) } else { Ok(()) }
}

/// An image configuration: how the image runs, and the diff ids of its layers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// The time of creation, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The platform.
    #[serde(flatten)]
    pub platform: Platform,
    /// How the image runs.
    #[serde(default, deserialize_with = "or_default")]
    pub config: RunConfig,
    /// The layers.
    #[serde(default, deserialize_with = "or_default")]
    pub rootfs: RootFs,
}

/// The run configuration of an image, as far as this workspace reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RunConfig {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// The command.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub entrypoint: Vec<String>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub cmd: Vec<String>,
    /// The environment, `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub env: Vec<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// The user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
}

/// The layers of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The digests of the uncompressed layers, the lowest first.
    #[serde(default, deserialize_with = "or_default")]
    pub diff_ids: Vec<Digest>,
}

impl Default for RootFs {
    fn default() -> Self {
        Self { kind: "layers".to_owned(), diff_ids: Vec::new() }
    }
}

impl ImageConfig {
    /// Parses the configuration of a manifest. The numbers of layers must agree; a configuration
    /// without diff ids (of an artifact that is not an image) is accepted.
    pub fn read(bytes: &[u8], manifest: &ImageManifest) -> Result<Self, ImageManifestError> {
        within(bytes.len() as u64, LONGEST_CONFIG)?;
        let config: Self = serde_json::from_slice(bytes)?;
        let (ours, theirs) = (config.rootfs.diff_ids.len(), manifest.layers.len());
        if ours != 0 && ours != theirs {
            return Err(ImageManifestError::LayerCount { config: ours, manifest: theirs });
        }
        Ok(config)
    }
}
