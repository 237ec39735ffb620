//! Catalogs and bundles that come as images.
//!
//! ```text
//! reference ─► the cluster's own images ─► registries, by the cluster's mirrors   (find)
//!                └──────── image ─► folder aside ─► catalog, or objects of a bundle (content, bundles)
//! ```
//!
//! Nothing of an image runs: a catalog is served by this process, and a bundle is read by it. What
//! somebody put into the cluster is asked first, so that a cluster without a network has what it was
//! given. Registries are asked with the pull secrets of the catalog's namespace, as kubelets do, and
//! with nothing that the machine's owner has besides: whoever may make a CatalogSource must not get
//! at images that only the owner may see. The machine's policy (`policy.json`) holds for all of them.

pub(crate) mod bundles;
pub(crate) mod content;
mod find;
pub(crate) mod index;
pub(crate) mod job;

pub(crate) use find::Found;

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

/// Reads the policy of the machine: which images may be taken from registries. A policy that cannot be
/// read is the reason why none is taken. May block.
pub type ReadPolicy = Arc<dyn Fn() -> Result<Policy, String> + Send + Sync>;

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

/// Gets images. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Puller {
    images: Arc<Images>,
    cluster: Cluster,
}

/// On whose behalf an image is got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asking {
    /// The namespace of the catalog.
    pub(crate) namespace: String,
    /// Its name, which its service account would have.
    pub(crate) name: String,
    /// Its uid, if it is known.
    pub(crate) uid: String,
    /// The pull secrets that it names.
    pub(crate) secrets: Vec<String>,
}

impl Puller {
    pub(crate) fn new(images: Images, cluster: Cluster) -> Self {
        Self { images: Arc::new(images), cluster }
    }
}

/// Does what blocks, or burns CPU, beside what must go on.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| format!("reading ended unexpectedly: {error}"))?
}

/// An error and what is below it, in one line.
fn line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(source) = below {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        below = source.source();
    }
    text
}
