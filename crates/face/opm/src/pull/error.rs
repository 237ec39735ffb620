//! Why there is no image, or nothing in it, in the words of the library that upstream pulls with.

use super::super::error::TempDirError;
use super::super::go;
use super::super::reference::NameError;
use mainstay_cli::machine::MachineError;
use mainstay_image::fetch::FetchError;
use mainstay_image::registry::RegistryError;
use mainstay_image::store::ImageStoreError;
use mainstay_image::unpack;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Nothing can be pulled: the machine's configuration, or a folder to work in, is missing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// The machine's mirrors cannot be read.
    #[error("loading registries configuration: {fault}")]
    Mirrors {
        /// Which file, and why.
        fault: MachineError,
    },
    /// The machine's policy cannot be read.
    #[error("{fault}")]
    Policy {
        /// Which file, and why.
        fault: MachineError,
    },
    /// The machine has no policy.
    #[error(
        "config file not found: no policy.json file found; searched paths: [{}]",
        quoted(places)
    )]
    NoPolicy {
        /// Where it was looked for.
        places: Vec<PathBuf>,
    },
    /// The machine's proxies, or names and passwords, cannot be read.
    #[error("{fault}")]
    Credentials {
        /// Which variable or file, and why.
        fault: MachineError,
    },
    /// There is no folder for the store.
    #[error(transparent)]
    TempDir(#[from] TempDirError),
    /// The store cannot be made.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
    /// Registries cannot be reached at all.
    #[error(transparent)]
    Client(#[from] RegistryError),
}

fn quoted(places: &[PathBuf]) -> String {
    places.iter().map(|path| go::quote(&path.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

/// What was pulled is no image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// It has no manifest.
    #[error("it is no image")]
    NoImage,
    /// Its manifest or its configuration is not in the store, or cannot be read.
    #[error(transparent)]
    Store(#[from] ImageStoreError),
}

/// An image cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PullError {
    /// The name stands for none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Nothing can be pulled.
    #[error(transparent)]
    Open(#[from] Arc<OpenError>),
    /// The registry does not give it.
    #[error("{said}")]
    Fetch {
        /// What upstream's library says to that.
        said: String,
        /// What the registry, a mirror or the policy said.
        source: Box<FetchError>,
    },
    /// What was pulled is no image, as the one library says it.
    #[error("parsing image configuration: {0}")]
    ParseConfig(ConfigError),
    /// What was pulled is no image, as the other one says it.
    #[error(transparent)]
    Config(ConfigError),
}

/// An image is not unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnpackError {
    /// Nothing can be pulled.
    #[error(transparent)]
    Open(#[from] Arc<OpenError>),
    /// A layer is none, or the system refuses.
    #[error(transparent)]
    Unpack(#[from] unpack::UnpackError),
}

/// There is no content of an image.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContentError {
    /// There is no image.
    #[error("failed to pull image {}: {source}", go::quote(image))]
    Pull {
        /// Its name.
        image: String,
        /// Why there is none.
        source: PullError,
    },
    /// Its labels do not say what it holds.
    #[error("render {}: image type could not be determined{}", go::quote(image), found(labels))]
    Kind {
        /// Its name.
        image: String,
        /// Its labels.
        labels: BTreeMap<String, String>,
    },
    /// There is no folder to unpack it into.
    #[error(transparent)]
    TempDir(#[from] TempDirError),
    /// It cannot be unpacked.
    #[error("failed to unpack image {}: {source}", go::quote(image))]
    Unpack {
        /// Its name.
        image: String,
        /// Why it cannot.
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
