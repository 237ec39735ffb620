//! Errors of bundle ConfigMaps and of references to them.

use mainstay_image::tar::TarError;
use mainstay_images::MissingIdentity;
use mainstay_object::NotAnObject;
use mainstay_yaml::YamlError;
use std::io;

/// The objects of a bundle cannot be read from its ConfigMap.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleMapError {
    /// A key cannot be decoded.
    #[error("{key}: {source}")]
    DecodeKey {
        /// The key.
        key: String,
        /// Why not.
        source: DecodeError,
    },
    /// A file is not YAML.
    #[error("{file}: {source}")]
    ParseYaml {
        /// The file.
        file: String,
        /// Why not.
        source: YamlError,
    },
    /// A document is not an object.
    #[error("{file}: {source}")]
    ReadObject {
        /// The file.
        file: String,
        /// Why not.
        source: NotAnObject,
    },
    /// An object has no name or kind.
    #[error("{file}: {source}")]
    Identity {
        /// The file.
        file: String,
        /// What is missing.
        source: MissingIdentity,
    },
}

/// A key of the ConfigMap of a bundle cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// The value is not Base64.
    #[error(transparent)]
    Base64(#[from] base64::DecodeError),
    /// The value cannot be decompressed, or is too large.
    #[error(transparent)]
    Decompress(#[from] io::Error),
    /// The value is not an archive.
    #[error(transparent)]
    Archive(#[from] TarError),
}

/// The manifests that a step refers to are not in its ConfigMap.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReferenceError {
    /// The ConfigMap cannot be read.
    #[error(transparent)]
    ReadBundle(#[from] BundleMapError),
    /// The ConfigMap has other objects than the resolved ones.
    #[error(
        "it was changed since the plan was made; delete the InstallPlan and ConfigMap {namespace}/{name} to have both made again"
    )]
    Changed {
        /// The namespace of the ConfigMap.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The ConfigMap has no ClusterServiceVersion.
    #[error("it has no ClusterServiceVersion")]
    NoCsv,
}
