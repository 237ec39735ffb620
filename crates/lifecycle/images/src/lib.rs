//! Catalog and bundle images for controllers: pulling on behalf of a namespace, and reading the content.
//!
//! ```text
//! reference ─► store of the cluster ─► registries, through the mirrors of the cluster   (pull)
//!                └────────── image ─► unpacked folder ─► catalog, or objects of a bundle (content)
//! ```
//!
//! No program of an image runs: this process reads the content. Images in the store of the cluster come
//! first, so that a cluster without a network can use them. Registries get the pull secrets of the
//! namespace of the requester, as from kubelets. They never get the credentials of the user of the
//! machine, so that creators of CatalogSources cannot read images that only this user may see. The image
//! policy of the machine (`policy.json`) applies to all pulls.
//!
//! What this crate does not do: decide when an image is pulled again, or cache catalogs.

mod content;
mod documents;
mod error;
mod place;
mod pull;
mod steps;

pub use content::{RegistryV1Error, check_identity, within};
pub use documents::DocumentsError;
pub use error::{ImageContentError, LocalImageError, MissingIdentity, PullError};
pub use place::CatalogPlace;
pub use pull::PulledImage;
pub use steps::{StepError, StepwisePull};

use mainstay_client::Cluster;
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry;
use mainstay_image::store::ImageStore;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Maps an image reference to its name in the store of the cluster.
pub type LocalNames = Arc<dyn Fn(&ImageReference) -> LocalName + Send + Sync>;

/// The error of an image policy that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadablePolicy(pub String);

/// Reads the image policy of the machine: which images may be pulled from registries. No image is pulled
/// if the policy cannot be read. May block.
pub type ReadPolicy = Arc<dyn Fn() -> Result<SignaturePolicy, UnreadablePolicy> + Send + Sync>;

/// The name of an image in the store of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalName {
    /// The reference in the store.
    pub reference: ImageReference,
    /// Whether the reference names the registry of the cluster, so that no other registry has the image.
    pub only_here: bool,
}

/// The sources of images, and the settings of pulls.
#[derive(Clone)]
pub struct ImageSources {
    /// The store of the cluster, into which users put images.
    pub local: ImageStore,
    /// Maps references to names in `local`.
    pub named: LocalNames,
    /// The store of pulled images, which is not shared with users.
    pub pulled: ImageStore,
    /// Settings of registry clients. Their keyring is not used.
    pub registries: registry::ClientSettings,
    /// Reads the image policy.
    pub policy: ReadPolicy,
    /// A folder for unpacked images, used by this process only.
    pub work: PathBuf,
}

impl fmt::Debug for ImageSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { local, pulled, work, .. } = self;
        f.debug_struct("Images")
            .field("local", local)
            .field("pulled", pulled)
            .field("work", work)
            .finish_non_exhaustive()
    }
}

/// Pulls images. Cheap to clone.
#[derive(Clone)]
pub struct Puller {
    images: Arc<ImageSources>,
    cluster: Cluster,
}

/// The CatalogSource on whose behalf an image is pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// Its namespace.
    pub namespace: String,
    /// Its name, which is also the name of its ServiceAccount.
    pub name: String,
    /// Its uid; may be empty.
    pub uid: String,
    /// The names of its pull secrets.
    pub secrets: Vec<String>,
}

impl Puller {
    /// A puller that reads pull secrets and mirrors of a cluster.
    pub fn new(images: ImageSources, cluster: Cluster) -> Self {
        Self { images: Arc::new(images), cluster }
    }
}

/// Runs blocking or CPU-bound work on a thread for blocking work.
///
/// # Errors
/// The error of the work, or `ended` if the work panicked.
pub async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ended: impl FnOnce(String) -> E,
) -> Result<T, E> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(ended(format!("reading ended unexpectedly: {error}"))))
}
