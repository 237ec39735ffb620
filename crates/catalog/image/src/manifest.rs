//! Manifests, indexes and configurations: the documents an image is made of.
//!
//! Both families are read, OCI's and Docker's schema 2; they differ in nothing but their names.
//! Reading is strict where being lax lets one document mean two things: the media type inside and
//! the one a registry sent must agree, and a document must not be manifest and index at once. What
//! the specification leaves open (annotations, unknown fields) is kept in the bytes, which nothing
//! here ever writes anew.

use crate::{
    digest::{Digest, DigestError},
    platform::Platform,
};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use std::collections::BTreeMap;

/// Names of formats.
pub mod media_type {
    /// An OCI image manifest.
    pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
    /// An OCI image index.
    pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
    /// An OCI image configuration.
    pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
    /// An OCI layer, not compressed.
    pub const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    /// An OCI layer, compressed with gzip.
    pub const OCI_LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    /// An OCI layer, compressed with zstd.
    pub const OCI_LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
    /// Two bytes, `{}`: the configuration of what needs none.
    pub const OCI_EMPTY: &str = "application/vnd.oci.empty.v1+json";
    /// A Docker manifest, schema 2.
    pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
    /// A Docker manifest list.
    pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    /// A Docker image configuration.
    pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
    /// A Docker layer, compressed with gzip.
    pub const DOCKER_LAYER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    /// A Docker layer, not compressed.
    pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";
    /// A Docker manifest of schema 1, which is refused.
    pub const DOCKER_SCHEMA1: &str = "application/vnd.docker.distribution.manifest.v1+json";
    /// The same, signed.
    pub const DOCKER_SCHEMA1_SIGNED: &str =
        "application/vnd.docker.distribution.manifest.v1+prettyjws";

    /// What a registry is asked for.
    pub const ACCEPTED: [&str; 4] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_LIST];
}

use media_type as media;

/// How long a manifest or an index may be: the registries' own limit.
pub const LONGEST_MANIFEST: u64 = 4 << 20;
/// How long a configuration may be.
pub const LONGEST_CONFIG: u64 = 8 << 20;
/// How many layers an image may have: twice what any storage driver stacks.
pub const MOST_LAYERS: usize = 512;
/// How many images an index may name.
pub const MOST_IMAGES: usize = 1024;
/// How deep indexes may lie in each other.
pub const DEEPEST_INDEX: usize = 4;

/// Why a document is refused.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is no JSON of the right shape.
    #[error("it is not valid: {0}")]
    Json(#[from] serde_json::Error),
    /// It is longer than allowed.
    #[error("it has {length} bytes, and {limit} are allowed")]
    TooLong {
        /// Its length, or what was announced.
        length: u64,
        /// The limit.
        limit: u64,
    },
    /// Nobody writes the old format any more, and its digests cannot be verified simply.
    #[error(
        "it is a Docker manifest of schema 1, which is no longer supported; push the image again with a current tool"
    )]
    Schema1,
    /// `schemaVersion` is not 2.
    #[error("schemaVersion is {0}, and must be 2")]
    SchemaVersion(i64),
    /// The media type is none of an image.
    #[error("media type {0:?} is neither a manifest nor an index")]
    MediaType(String),
    /// The media types outside and inside differ.
    #[error("it is sent as {sent:?} and says that it is {inside:?}")]
    Disagree {
        /// What the registry or the descriptor says.
        sent: String,
        /// What the document says.
        inside: String,
    },
    /// It has the fields of both.
    #[error("it has the fields of a manifest and of an index, so it could mean two things")]
    Both,
    /// It has the fields of neither.
    #[error("it is neither a manifest nor an index")]
    Neither,
    /// Too many parts.
    #[error("it has {count} {what}, and {limit} are allowed")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A size below zero.
    #[error("the size of {0} is negative")]
    NegativeSize(Digest),
    /// A digest that cannot be read, by itself.
    #[error("invalid digest: {0}")]
    Digest(#[from] DigestError),
    /// The layers of the configuration are not those of the manifest.
    #[error("the configuration has {config} layers and the manifest {manifest}")]
    LayerCount {
        /// How many diff ids there are.
        config: usize,
        /// How many layers there are.
        manifest: usize,
    },
}

/// What names content: its format, digest and size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Format of the content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Length in bytes.
    #[serde(with = "size")]
    pub size: u64,
    /// What it runs on, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Where else it may be had. Read, never followed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
    /// What kind of artifact a manifest is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
}

impl Descriptor {
    /// A descriptor of bytes.
    pub fn of(media_type: &str, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// A descriptor without any notes.
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

/// Sizes are numbers of Go's `int64`.
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

/// What is absent or `null` is empty, as in Go.
fn or_default<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// An image for one platform: a configuration and layers, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub schema_version: i64,
    /// Format, which Docker always and OCI mostly writes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// What kind of artifact it is, if it is no image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, the lowest first.
    #[serde(default, deserialize_with = "or_default")]
    pub layers: Vec<Descriptor>,
    /// The manifest that this one says something of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

impl Manifest {
    /// An OCI manifest of these parts.
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

/// Images for several platforms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    pub schema_version: i64,
    /// Format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    /// What kind of artifact it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The images.
    #[serde(default, deserialize_with = "or_default")]
    pub manifests: Vec<Descriptor>,
    /// The manifest that this one says something of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Notes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub annotations: BTreeMap<String, String>,
}

impl Index {
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

/// A manifest or an index, with what both have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there are a few of them at a time")]
pub enum Document {
    /// An image.
    Manifest(Manifest),
    /// Images for several platforms.
    Index(Index),
}

/// The fields that tell what a document is.
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

impl Document {
    /// Reads a document; `sent` is the media type that whoever sent it gives, if any.
    pub fn read(bytes: &[u8], sent: Option<&str>) -> Result<Self, ManifestError> {
        within(bytes.len() as u64, LONGEST_MANIFEST)?;
        let old = |one: &str| one == media::DOCKER_SCHEMA1 || one == media::DOCKER_SCHEMA1_SIGNED;
        // Generic names say nothing.
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
            return Err(ManifestError::MediaType(sent.to_owned()));
        }
        let shape: Shape = serde_json::from_slice(bytes)?;
        if shape.schema_version == Some(1)
            || sent.is_some_and(old)
            || shape.media_type.as_deref().is_some_and(old)
        {
            return Err(ManifestError::Schema1);
        }
        let version = shape.schema_version.unwrap_or(0);
        if version != 2 {
            return Err(ManifestError::SchemaVersion(version));
        }
        let of_manifest = shape.config.is_some() || shape.layers.is_some();
        let of_old = shape.fs_layers.is_some() || shape.history.is_some();
        let of_index = shape.manifests.is_some();
        if of_index && of_manifest || of_old && (of_index || of_manifest) {
            return Err(ManifestError::Both);
        }
        let inside = shape.media_type.filter(|inside| !inside.is_empty());
        if let (Some(sent), Some(inside)) = (sent, &inside)
            && sent != inside
        {
            let (sent, inside) = (sent.to_owned(), inside.clone());
            return Err(ManifestError::Disagree { sent, inside });
        }
        let named = inside.as_deref().or(sent);
        let index = match named {
            Some(named) => {
                is_index(named).ok_or_else(|| ManifestError::MediaType(named.to_owned()))?
            }
            None if of_index => true,
            None if of_manifest => false,
            None => return Err(ManifestError::Neither),
        };
        if index && of_manifest || !index && of_index {
            return Err(ManifestError::Both);
        }
        let document = if index {
            let index: Index = serde_json::from_slice(bytes)?;
            few("images", index.manifests.len(), MOST_IMAGES)?;
            Self::Index(index)
        } else {
            let manifest: Manifest = serde_json::from_slice(bytes)?;
            few("layers", manifest.layers.len(), MOST_LAYERS)?;
            Self::Manifest(manifest)
        };
        Ok(document)
    }

    /// The format: what it says, or OCI's name where it says nothing.
    pub fn media_type(&self) -> &str {
        let (said, default) = match self {
            Self::Manifest(manifest) => (manifest.media_type.as_str(), media::OCI_MANIFEST),
            Self::Index(index) => (index.media_type.as_str(), media::OCI_INDEX),
        };
        if said.is_empty() { default } else { said }
    }

    /// What it names: configuration and layers, or images.
    pub fn parts(&self) -> Vec<&Descriptor> {
        match self {
            Self::Manifest(manifest) => {
                std::iter::once(&manifest.config).chain(&manifest.layers).collect()
            }
            Self::Index(index) => index.manifests.iter().collect(),
        }
    }

    /// The manifest that it says something of.
    pub fn subject(&self) -> Option<&Descriptor> {
        match self {
            Self::Manifest(manifest) => manifest.subject.as_ref(),
            Self::Index(index) => index.subject.as_ref(),
        }
    }

    /// The kind of artifact, as a list of referrers names it: that of the document, or the format
    /// of a manifest's configuration.
    pub fn artifact_type(&self) -> Option<&str> {
        match self {
            Self::Manifest(manifest) => {
                Some(manifest.artifact_type.as_deref().unwrap_or(&manifest.config.media_type))
            }
            Self::Index(index) => index.artifact_type.as_deref(),
        }
    }

    /// Its notes.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Manifest(manifest) => &manifest.annotations,
            Self::Index(index) => &index.annotations,
        }
    }
}

fn few(what: &'static str, count: usize, limit: usize) -> Result<(), ManifestError> {
    if count > limit { Err(ManifestError::TooMany { what, count, limit }) } else { Ok(()) }
}

/// That a length is within a limit.
pub(crate) fn within(length: u64, limit: u64) -> Result<(), ManifestError> {
    if length > limit { Err(ManifestError::TooLong { length, limit }) } else { Ok(()) }
}

/// An image's configuration: what it runs, and which layers it has when they are not compressed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// When it was made, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// What it runs on.
    #[serde(flatten)]
    pub platform: Platform,
    /// How it is run.
    #[serde(default, deserialize_with = "or_default")]
    pub config: Run,
    /// Its layers.
    #[serde(default, deserialize_with = "or_default")]
    pub rootfs: RootFs,
}

/// How an image is run, as far as anything here looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Run {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// What is run.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub entrypoint: Vec<String>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub cmd: Vec<String>,
    /// Its environment, `NAME=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "or_default")]
    pub env: Vec<String>,
    /// Where it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub working_dir: String,
    /// As whom it runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
}

/// The layers of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The digests of the layers when they are not compressed, the lowest first.
    #[serde(default, deserialize_with = "or_default")]
    pub diff_ids: Vec<Digest>,
}

impl Default for RootFs {
    fn default() -> Self {
        Self { kind: "layers".to_owned(), diff_ids: Vec::new() }
    }
}

impl Config {
    /// Reads the configuration of a manifest. Its layers must be as many; one that names none (an
    /// artifact that is no image) is taken.
    pub fn read(bytes: &[u8], manifest: &Manifest) -> Result<Self, ManifestError> {
        within(bytes.len() as u64, LONGEST_CONFIG)?;
        let config: Self = serde_json::from_slice(bytes)?;
        let (ours, theirs) = (config.rootfs.diff_ids.len(), manifest.layers.len());
        if ours != 0 && ours != theirs {
            return Err(ManifestError::LayerCount { config: ours, manifest: theirs });
        }
        Ok(config)
    }
}
