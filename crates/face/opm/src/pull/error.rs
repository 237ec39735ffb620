//! Errors of image pulls, with the texts of upstream's libraries.

use super::super::error::TempDirError;
use super::super::go;
use super::super::reference::NameError;
use mainstay_command::machine::MachineError;
use mainstay_image::fetch::FetchError;
use mainstay_image::registry::RegistryError;
use mainstay_image::store::ImageStoreError;
use mainstay_image::unpack;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The store or the client cannot be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The machine's mirror configuration is invalid.
    #[error("loading registries configuration: {fault}")]
    Mirrors {
        /// The file and the error.
        fault: MachineError,
    },
    /// The machine's image policy is invalid.
    #[error("{fault}")]
    Policy {
        /// The file and the error.
        fault: MachineError,
    },
    /// The machine has no image policy.
    #[error(
        "config file not found: no policy.json file found; searched paths: [{}]",
        quoted(places)
    )]
    NoPolicy {
        /// The searched paths.
        places: Vec<PathBuf>,
    },
    /// The machine's proxies or registry credentials are invalid.
    #[error("{fault}")]
    Credentials {
        /// The variable or file, and the error.
        fault: MachineError,
    },
    /// The folder of the store cannot be created.
    #[error(transparent)]
    TempDir(#[from] TempDirError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
    /// The client cannot be created.
    #[error(transparent)]
    Client(#[from] RegistryError),
}

fn quoted(places: &[PathBuf]) -> String {
    places.iter().map(|path| go::quote(&path.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// The pulled object is not an image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It has no image manifest.
    #[error("it is no image")]
    NoImage,
    /// Its manifest or its configuration is missing or invalid.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
}

/// An image cannot be pulled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store or the client cannot be opened.
    #[error(transparent)]
    Open(#[from] Arc<OpenError>),
    /// The fetch failed.
    #[error("{message}")]
    Fetch {
        /// The text of upstream's library.
        message: String,
        /// The error of the registry, a mirror or the policy.
        source: Box<FetchError>,
    },
    /// The pulled object is not an image; the text of containers/image.
    #[error("parsing image configuration: {0}")]
    ParseConfig(ConfigError),
    /// The pulled object is not an image; the text of containerd.
    #[error(transparent)]
    Config(ConfigError),
}

/// An image cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// The store or the client cannot be opened.
    #[error(transparent)]
    Open(#[from] Arc<OpenError>),
    /// A layer is invalid, or the file system fails.
    #[error(transparent)]
    Unpack(#[from] unpack::UnpackError),
}

/// The content of an image is not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentError {
    /// The image cannot be pulled.
    #[error("failed to pull image {}: {source}", go::quote(image))]
    Pull {
        /// The name of the image.
        image: String,
        /// The error of the pull.
        source: PullError,
    },
    /// The labels do not name its content.
    #[error("render {}: image type could not be determined{}", go::quote(image), found(labels))]
    Kind {
        /// The name of the image.
        image: String,
        /// The labels of the image.
        labels: BTreeMap<String, String>,
    },
    /// A temporary folder cannot be created.
    #[error(transparent)]
    TempDir(#[from] TempDirError),
    /// The image cannot be unpacked.
    #[error("failed to unpack image {}: {source}", go::quote(image))]
    Unpack {
        /// The name of the image.
        image: String,
        /// The error of the unpacking.
        source: UnpackError,
    },
}

fn found(labels: &BTreeMap<String, String>) -> String {
    if labels.is_empty() {
        return ": image has no labels".to_owned();
    }
    let mut text = ", found labels".to_owned();
    for (key, value) in labels {
        go::push(&mut text, format_args!("\n  {key}={value}"));
    }
    text
}
