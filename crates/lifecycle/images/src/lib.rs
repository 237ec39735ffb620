//! Images for controllers: pulled on behalf of a namespace, and the catalogs and bundles in them.
//!
//! ```text
//! reference ─► the cluster's own images ─► registries, by the mirrors of the cluster   (pull)
//!                └────────── image ─► unpacked folder ─► catalog, or objects of a bundle (content)
//! ```
//!
//! Nothing of an image runs: its content is read by this process. The images that were put into the
//! cluster come first, so that a cluster without a network has what it was given. Registries get the
//! pull secrets of the requester's namespace, as kubelets do, and no credentials of the machine's owner:
//! whoever may create a CatalogSource must not get at images that only the owner may see. The policy of
//! the machine (`policy.json`) holds for all of them.
//!
//! What this crate does not do: decide when an image is pulled again, or keep what was read.

mod content;
mod error;
mod place;
mod pull;

pub use content::{check_identity, within};
pub use error::{ContentError, MissingIdentity, OpenError, PullError};
pub use place::CatalogPlace;
pub use pull::PulledImage;

use mainstay_client::Cluster;
use mainstay_image::policy::Policy;
use mainstay_image::reference::Reference;
use mainstay_image::registry;
use mainstay_image::store::Store;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The name under which the cluster has an image, if it has it; none where only the cluster itself
/// could have it.
pub type Named = Arc<dyn Fn(&Reference) -> LocalName + Send + Sync>;

/// The policy of the machine cannot be read; the text is that of its reader.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnreadablePolicy(pub String);

/// Reads the policy of the machine: which images may be taken from registries. A policy that cannot be
/// read is the reason why none is taken. May block.
pub type ReadPolicy = Arc<dyn Fn() -> Result<Policy, UnreadablePolicy> + Send + Sync>;

/// What a reference means to the cluster's own registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalName {
    /// The name in the store.
    pub reference: Reference,
    /// Whether nobody else can have it: it is a name in the registry of the cluster.
    pub only_here: bool,
}

/// Where images come from.
#[derive(Clone)]
pub struct Images {
    /// What was put into the cluster.
    pub local: Store,
    /// How that is named.
    pub named: Named,
    /// What is pulled from registries, which nobody else is shown.
    pub pulled: Store,
    /// How registries are asked. Its keyring is not used.
    pub registries: registry::Settings,
    /// Reads which images may be taken from registries.
    pub policy: ReadPolicy,
    /// A folder of this process alone, for what is unpacked for a moment.
    pub work: PathBuf,
}

impl fmt::Debug for Images {
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
    images: Arc<Images>,
    cluster: Cluster,
}

/// On whose behalf an image is pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requester {
    /// The namespace of the CatalogSource.
    pub namespace: String,
    /// Its name, which its service account would have.
    pub name: String,
    /// Its uid, if it is known.
    pub uid: String,
    /// The pull secrets that it names.
    pub secrets: Vec<String>,
}

impl Puller {
    /// A puller that reads pull secrets and mirrors of a cluster.
    pub fn new(images: Images, cluster: Cluster) -> Self {
        Self { images: Arc::new(images), cluster }
    }
}

/// Runs work that blocks or burns CPU off the async threads.
///
/// # Errors
/// Those of the work, and that it ended unexpectedly.
pub async fn blocking<T: Send + 'static, E: Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
    ended: impl FnOnce(String) -> E,
) -> Result<T, E> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(ended(format!("reading ended unexpectedly: {error}"))))
}
