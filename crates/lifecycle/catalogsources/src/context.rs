//! What the controller of CatalogSources uses of the subsystem that it runs in.

use crate::mode::CatalogMode;
use crate::pods::{CatalogPod, OwnedSpec};
use crate::store::CatalogStore;
use mainstay_api::{CatalogSource, names, resources};
use mainstay_client::{Cache, CacheSet, Cluster, Recorder, Selection};
use mainstay_clock::Clock;
use mainstay_object::{OwnerReference, known};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Gives the labels of a namespace; no labels for a namespace that does not exist.
pub type NamespaceLabels = Arc<dyn Fn(&str) -> BTreeMap<String, String> + Send + Sync>;

/// What the controller of CatalogSources uses. Cheap to clone.
#[derive(Clone)]
pub struct CatalogContext {
    /// The cluster, with requests in the name of the catalog operator.
    pub cluster: Cluster,
    /// The time that is written onto objects.
    pub clock: Clock,
    /// Publishes Events.
    pub recorder: Recorder,
    /// The content of the catalogs.
    pub store: CatalogStore,
    /// The CatalogSources, and the objects of catalogs that run as pods.
    pub caches: CatalogCaches,
    /// Reads the labels of namespaces, which say what the pods of a catalog may do.
    pub namespace_labels: NamespaceLabels,
}

/// One cache for each kind that only CatalogSources need. Clones are the same caches.
#[derive(Clone)]
pub struct CatalogCaches {
    /// Every CatalogSource.
    pub sources: Cache<CatalogSource>,
    /// Pods and Services of catalogs; none if no catalog runs as a pod.
    pub(crate) pods: Option<Cache<CatalogPod>>,
    pub(crate) services: Option<Cache<OwnedSpec>>,
    pub(crate) policies: Option<Cache<OwnedSpec>>,
}

impl CatalogCaches {
    /// Starts to list and watch: the CatalogSources, and with a `mode` in which catalogs may run as pods
    /// the objects of these. Must be called inside a tokio runtime.
    pub fn start(set: &mut CacheSet, mode: CatalogMode) -> Self {
        let all = Selection::all;
        let runs = mode != CatalogMode::InProcess;
        Self {
            sources: set.start(Cache::builder(all(resources::CATALOG_SOURCE), |object| {
                CatalogSource::from_object(object).ok()
            })),
            pods: runs.then(|| {
                let selection = all(known::POD).labels(names::CATALOG_SOURCE);
                set.start(Cache::builder(selection, |pod| Some(CatalogPod::of(pod))))
            }),
            services: runs.then(|| {
                let selection = all(known::SERVICE).labels(names::SERVICE_SPEC_HASH);
                set.start(Cache::builder(selection, |service| Some(OwnedSpec::of(service))))
            }),
            policies: runs.then(|| {
                let selection = all(known::NETWORK_POLICY).labels(names::CATALOG_SOURCE);
                set.start(Cache::builder(selection, |policy| Some(OwnedSpec::of(policy))))
            }),
        }
    }
}

/// An object in a cache of which the owners are known.
pub trait OwnedObject: PartialEq + Send + Sync + 'static {
    /// The owner references of the object.
    fn owners(&self) -> &[OwnerReference];
}

/// Caches of other controllers of the subsystem, whose objects the pods of a catalog need. A change of
/// an object that a CatalogSource owns reconciles the CatalogSource.
pub struct SharedCaches<'c, Account, Role, Binding> {
    /// The ServiceAccounts.
    pub accounts: &'c Cache<Account>,
    /// The Roles.
    pub roles: &'c Cache<Role>,
    /// The RoleBindings.
    pub bindings: &'c Cache<Binding>,
}
