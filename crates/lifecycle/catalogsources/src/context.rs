//! Context of the CatalogSource controller: clients, caches and the store.

use crate::mode::CatalogMode;
use crate::pods::{CatalogPod, OwnedSpec};
use crate::store::CatalogStore;
use mainstay_api::{CatalogSource, names, resources};
use mainstay_client::{Cache, CacheSet, Cluster, Recorder, Selection};
use mainstay_clock::Clock;
use mainstay_object::{OwnerReference, builtin};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Gives the labels of a namespace; no labels for a namespace that does not exist.
pub type NamespaceLabels = Arc<dyn Fn(&str) -> BTreeMap<String, String> + Send + Sync>;

/// The clients, caches and store of the CatalogSource controller. Cheap to clone.
#[derive(Clone)]
pub struct CatalogContext {
    /// The client of the cluster, which acts as the catalog operator.
    pub cluster: Cluster,
    /// The clock for timestamps in objects.
    pub clock: Clock,
    /// Publishes Events.
    pub recorder: Recorder,
    /// The content of the catalogs.
    pub store: CatalogStore,
    /// The CatalogSources, and the objects of catalogs that run as pods.
    pub caches: CatalogCaches,
    /// Reads the labels of namespaces, for the Pod Security level of catalog pods.
    pub namespace_labels: NamespaceLabels,
}

/// Caches of the kinds that only the CatalogSource controller uses. Clones share the caches.
#[derive(Clone)]
pub struct CatalogCaches {
    /// Every CatalogSource.
    pub sources: Cache<CatalogSource>,
    /// Pods of catalogs; none if no catalog runs as a pod. The same holds for the next two.
    pub(crate) pods: Option<Cache<CatalogPod>>,
    pub(crate) services: Option<Cache<OwnedSpec>>,
    pub(crate) policies: Option<Cache<OwnedSpec>>,
}

impl CatalogCaches {
    /// Starts to list and watch CatalogSources, and the Pods, Services and NetworkPolicies of
    /// catalogs unless the mode is [`CatalogMode::InProcess`]. Must be called inside a tokio
    /// runtime.
    pub fn start(set: &mut CacheSet, mode: CatalogMode) -> Self {
        let all = Selection::all;
        let runs = mode != CatalogMode::InProcess;
        Self {
            sources: set.start(Cache::builder(all(resources::CATALOG_SOURCE), |object| {
                CatalogSource::from_object(object).ok()
            })),
            pods: runs.then(|| {
                let selection = all(builtin::POD).labels(names::CATALOG_SOURCE);
                set.start(Cache::builder(selection, |pod| Some(CatalogPod::of(pod))))
            }),
            services: runs.then(|| {
                let selection = all(builtin::SERVICE).labels(names::SERVICE_SPEC_HASH);
                set.start(Cache::builder(selection, |service| Some(OwnedSpec::of(service))))
            }),
            policies: runs.then(|| {
                let selection = all(builtin::NETWORK_POLICY).labels(names::CATALOG_SOURCE);
                set.start(Cache::builder(selection, |policy| Some(OwnedSpec::of(policy))))
            }),
        }
    }
}

/// A cached object with its owner references.
pub trait OwnedObject: PartialEq + Send + Sync + 'static {
    /// The owner references of the object.
    fn owners(&self) -> &[OwnerReference];
}

/// Caches of other controllers with objects that catalog pods need. A change of an object that a
/// CatalogSource owns reconciles the CatalogSource.
pub struct SharedCaches<'c, Account, Role, Binding> {
    /// The ServiceAccounts.
    pub accounts: &'c Cache<Account>,
    /// The Roles.
    pub roles: &'c Cache<Role>,
    /// The RoleBindings.
    pub bindings: &'c Cache<Binding>,
}
