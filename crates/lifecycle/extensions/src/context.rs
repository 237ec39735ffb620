//! What the controllers of the subsystem share.

use crate::cluster_catalog::{Contents, LoadCounters};
use crate::cluster_extension::{
    ApprovedAccounts, DeploymentState, EstablishedCrds, ManagedObjects, ReleaseHead, Turns,
};
use crate::features::Features;
use crate::object_set::ObjectWatches;
use crate::resources::Resources;
use mainstay_api::{ClusterCatalog, ClusterExtension, ClusterObjectSet};
use mainstay_client::{Cache, Cluster, Recorder};
use mainstay_clock::Clock;
use mainstay_images::{Puller, Requester};
use mainstay_registry::ServedCatalog;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Clients, caches and content.
pub(crate) struct Context {
    /// The client of the cluster.
    pub(crate) cluster: Cluster,
    /// The clock for timestamps on objects.
    pub(crate) clock: Clock,
    /// Publishes Events.
    pub(crate) recorder: Recorder,
    /// Pulls images.
    pub(crate) puller: Puller,
    /// The account whose pull secrets apply.
    pub(crate) requester: Requester,
    /// The host, with its port unless that is 443, of the HTTP API.
    pub(crate) external_address: String,
    /// The content of catalogs.
    pub(crate) contents: Contents,
    /// Catalog folders, by name.
    pub(crate) folders: BTreeMap<String, Arc<ServedCatalog>>,
    /// Counters of attempts to load catalogs.
    pub(crate) load_counters: LoadCounters,
    /// Every ClusterCatalog.
    pub(crate) catalogs: Cache<ClusterCatalog>,
    /// Changes with each change of a ClusterCatalog.
    pub(crate) catalog_changes: watch::Sender<u64>,
    /// Changes with each catalog that this process serves from now on, or with other content.
    pub(crate) served_changes: watch::Sender<u64>,
    /// When the subsystem started, by the clock's elapsed time.
    pub(crate) started: Duration,
    /// The features that the administrator chose.
    pub(crate) features: Features,
    /// The namespace with releases and with the Secrets of ClusterObjectSets.
    pub(crate) release_namespace: String,
    /// Every ClusterExtension.
    pub(crate) extensions: Cache<ClusterExtension>,
    /// What the releases of extensions say about themselves without being read, indexed by extension.
    pub(crate) releases: Cache<ReleaseHead>,
    /// The Deployments of extensions, indexed by extension.
    pub(crate) deployments: Cache<DeploymentState>,
    /// Every ClusterObjectSet, indexed by extension; none if there are no ClusterObjectSets.
    pub(crate) object_sets: Option<Cache<ClusterObjectSet>>,
    /// What is approved for extensions, and their accounts; none in other trust modes than `approved`.
    pub(crate) approved_accounts: Option<ApprovedAccounts>,
    /// The watches of the objects of ClusterObjectSets.
    pub(crate) object_watches: ObjectWatches,
    /// The resources of kinds.
    pub(crate) resources: Resources,
    /// The objects of extensions.
    pub(crate) managed: ManagedObjects,
    /// The CustomResourceDefinitions that meet dependencies.
    pub(crate) established_crds: EstablishedCrds,
    /// Extensions of one package take turns.
    pub(crate) turns: Turns,
    /// Held while an extension writes its objects.
    pub(crate) installing: tokio::sync::Mutex<()>,
}
