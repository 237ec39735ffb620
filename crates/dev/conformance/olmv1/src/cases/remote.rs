//! Cases on an existing cluster, with the controllers in this process. The controllers have the
//! permissions of their subsystem only.
//!
//! All cases share the cluster, one after the other. Before a case, everything of OLM v1 is deleted but
//! the CRDs of the case's channel, which are applied:
//!
//! ```text
//! delete objects, other CRDs, Secrets, … of the system namespace ─► apply permissions, CRDs ─► wait until served
//! ```
//!
//! CRDs stay because a garbage collector learns of new ones half a minute later only. Until then, the
//! objects of a deleted ClusterExtension outlive it.
//!
//! So the cluster must serve this purpose only. A label on the system namespace says so; a cluster with
//! the CRDs of OLM v1 and without the label is refused.

use super::case::Case;
use super::controllers::{CaseControllers, features};
use super::network::CaseNetwork;
use super::system::{CaseSystem, SYSTEM_NAMESPACE, cert_manager, crds};
use super::unready_pods::keep_unready;
use anyhow::{Context, bail};
use futures::future::{BoxFuture, try_join_all};
use mainstay_api::resources;
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Patch};
use mainstay_clock::Clock;
use mainstay_extensions::{Features, subsystem};
use mainstay_object::builtin::{
    CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, DEPLOYMENT, EVENT,
    NAMESPACE, ROLE, ROLE_BINDING, SECRET, SERVICE, SERVICE_ACCOUNT,
};
use mainstay_object::{Object, Resource};
use serde_json::json;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::Duration;

/// The field manager of the CRDs and of the system namespace.
const FIELD_MANAGER: &str = "mainstay-conformance";
/// The label of the system namespace on a cluster that serves this purpose only.
const LABEL: &str = "mainstay.dev/olmv1-cases";
/// The ServiceAccount whose permissions the controllers have. It needs not exist for that.
const ACCOUNT: &str = "catalogd-controller-manager";
/// The name of its ClusterRole and ClusterRoleBinding.
const PERMISSIONS: &str = "mainstay-conformance-olmv1";
/// The kinds of OLM v1.
static KINDS: [Resource; 3] =
    [resources::CLUSTER_CATALOG, resources::CLUSTER_EXTENSION, resources::CLUSTER_OBJECT_SET];
/// The kinds of namespaces that cases and controllers write.
static NAMESPACED_KINDS: [Resource; 7] =
    [SECRET, SERVICE_ACCOUNT, CONFIG_MAP, SERVICE, DEPLOYMENT, ROLE, ROLE_BINDING];
/// The kinds of the cluster that bundles and cases write.
static CLUSTER_KINDS: [Resource; 3] =
    [CUSTOM_RESOURCE_DEFINITION, CLUSTER_ROLE, CLUSTER_ROLE_BINDING];
/// The label of what every API server creates.
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
/// What the control plane creates in every namespace.
const IN_EVERY_NAMESPACE: [(&str, &str); 2] =
    [("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")];
/// The interval between two polls while the cluster is prepared.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The greatest number of polls for one preparation: about a minute.
const MAX_POLLS: usize = 600;

/// The cluster of a kubeconfig's current context, if it may be used.
pub(super) async fn connect(kubeconfig: &Path) -> anyhow::Result<Cluster> {
    // Another caller may have installed the same provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("read {}", kubeconfig.display()))?;
    let options = kube::config::KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(file, &options).await?;
    let cluster = Cluster::new(kube::Client::try_from(config)?);
    refuse_other_purpose(&cluster).await?;
    Ok(cluster)
}

/// Refuses a cluster with OLM v1 that somebody else uses.
async fn refuse_other_purpose(cluster: &Cluster) -> anyhow::Result<()> {
    let namespace = cluster.find(&NAMESPACE, None, SYSTEM_NAMESPACE).await?;
    if namespace.is_some_and(|namespace| namespace.label(LABEL).is_some()) {
        return Ok(());
    }
    for kind in &KINDS {
        let name = kind.group_resource();
        if cluster.find(&CUSTOM_RESOURCE_DEFINITION, None, &name).await?.is_some() {
            bail!(
                "the cluster has the CRD {name}, which cases would delete, and the namespace {SYSTEM_NAMESPACE} has no label {LABEL}"
            );
        }
    }
    Ok(())
}

/// A cluster that cases share.
#[derive(Clone)]
pub struct SharedCluster {
    /// A client with an administrator's permissions.
    pub(super) cluster: Cluster,
    /// The time until its garbage collector knows new CRDs.
    pub(super) collector_delay: Duration,
}

/// An existing cluster, and controllers in this process.
pub(super) struct RemoteSystem {
    cluster: Cluster,
    /// The namespaces whose objects count: that of the lifecycle system, and those of the case.
    namespaces: Vec<String>,
    controllers: CaseControllers,
}

impl RemoteSystem {
    /// Prepares the cluster for a case, without controllers.
    pub(super) async fn of(
        case: &Case,
        network: &CaseNetwork,
        existing: SharedCluster,
    ) -> anyhow::Result<Self> {
        let SharedCluster { cluster, collector_delay } = existing;
        let mut crds = crds(case);
        crds.extend(cert_manager());
        clear(&cluster, &case.namespaces, &crds).await?;
        let restricted = cluster.clone().impersonating(SYSTEM_NAMESPACE, ACCOUNT)?;
        if prepare(&cluster, &restricted, &crds, features(case)).await? {
            tokio::time::sleep(collector_delay).await;
        }
        let controllers = CaseControllers::of(case, network, &restricted, Clock::system())?;
        let mut namespaces = case.namespaces.clone();
        namespaces.push(SYSTEM_NAMESPACE.to_owned());
        Ok(Self { cluster, namespaces, controllers })
    }
}

/// Deletes these namespaces and everything of OLM v1 but these CRDs, and returns once it is gone.
async fn clear(
    cluster: &Cluster,
    namespaces: &[String],
    kept_crds: &[Object],
) -> anyhow::Result<()> {
    let mut remaining = Vec::new();
    for _ in 0..MAX_POLLS {
        remaining = delete_remaining(cluster, namespaces, kept_crds).await?;
        if remaining.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    bail!("the cluster keeps {}", remaining.join(", "))
}

/// Deletes what is there, and returns the names of what may still be there.
async fn delete_remaining(
    cluster: &Cluster,
    namespaces: &[String],
    kept_crds: &[Object],
) -> anyhow::Result<Vec<String>> {
    let mut remaining = Vec::new();
    for kind in &KINDS {
        let name = kind.group_resource();
        let crds = &CUSTOM_RESOURCE_DEFINITION;
        if cluster.find(crds, None, &name).await?.is_none() {
            continue;
        }
        let objects = delete_all(cluster, kind, None).await?;
        if !kept_crds.iter().any(|crd| crd.name() == name) {
            // A CRD that is deleted before its objects waits for them in steps of five seconds.
            if objects.is_empty() {
                cluster.ensure_deleted(crds, None, &name, &DeleteOptions::default()).await?;
            }
            remaining.push(name);
        }
        remaining.extend(objects);
    }
    for kind in &NAMESPACED_KINDS {
        remaining.extend(delete_all(cluster, kind, Some(SYSTEM_NAMESPACE)).await?);
    }
    if remaining.is_empty() {
        remaining.extend(delete_of_bundles(cluster, kept_crds).await?);
    }
    for kind in &KINDS {
        let about = ObjectList::fields(format!("involvedObject.kind={}", kind.kind));
        let options = DeleteOptions::default();
        cluster.delete_collection(&EVENT, Some("default"), &about, &options).await?;
    }
    for namespace in namespaces {
        if cluster.find(&NAMESPACE, None, namespace).await?.is_some() {
            let options = DeleteOptions::default();
            cluster.ensure_deleted(&NAMESPACE, None, namespace, &options).await?;
            remaining.push(namespace.clone());
        }
    }
    Ok(remaining)
}

/// Deletes the objects of the cluster that bundles or cases wrote, and returns their names. What belongs
/// to an extension goes with it, a moment later. What was there before the system namespace stays.
async fn delete_of_bundles(cluster: &Cluster, kept_crds: &[Object]) -> anyhow::Result<Vec<String>> {
    let mut deleted = Vec::new();
    let Some(system) = cluster.find(&NAMESPACE, None, SYSTEM_NAMESPACE).await? else {
        return Ok(deleted);
    };
    let first = system.creation_timestamp();
    for kind in &CLUSTER_KINDS {
        for object in list(cluster, kind, None).await? {
            let name = object.name();
            if object.label(BOOTSTRAPPING).is_some()
                || name == PERMISSIONS
                || kept_crds.iter().any(|crd| crd.name() == name)
                || object.creation_timestamp() < first
            {
                continue;
            }
            cluster.ensure_deleted(kind, None, name, &DeleteOptions::default()).await?;
            deleted.push(format!("{} {name}", kind.kind));
        }
    }
    Ok(deleted)
}

/// Deletes all objects of a kind with their finalizers, and returns their names.
async fn delete_all(
    cluster: &Cluster,
    kind: &Resource,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<String>> {
    let mut deleted = Vec::new();
    for object in list(cluster, kind, namespace).await? {
        let name = object.name();
        if IN_EVERY_NAMESPACE.contains(&(&*kind.kind, name)) {
            continue;
        }
        if object.finalizers().next().is_some() {
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            match cluster.patch(kind, namespace, name, &patch).await {
                Err(error) if !error.is_not_found() => return Err(error.into()),
                _ => {}
            }
        }
        cluster.ensure_deleted(kind, namespace, name, &DeleteOptions::default()).await?;
        deleted.push(format!("{} {name}", kind.kind));
    }
    Ok(deleted)
}

/// The objects of a kind, without their content; none if the kind is not served.
async fn list(
    cluster: &Cluster,
    kind: &Resource,
    namespace: Option<&str>,
) -> anyhow::Result<Vec<Object>> {
    let params = ObjectList { metadata_only: true, ..ObjectList::default() };
    match cluster.list(kind, namespace, &params).await {
        Ok(list) => Ok(list.items),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Creates the system namespace, the policy about unready pods, the permissions of the controllers and
/// the CRDs, and returns once the latter take effect: whether a CRD is new.
async fn prepare(
    cluster: &Cluster,
    restricted: &Cluster,
    crds: &[Object],
    features: Features,
) -> anyhow::Result<bool> {
    let namespace = Object::from_value(json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": SYSTEM_NAMESPACE, "labels": {LABEL: "true"}},
    }))?;
    cluster.apply(&NAMESPACE, &namespace, FIELD_MANAGER).await?;
    keep_unready(cluster, FIELD_MANAGER).await?;
    let [role, binding] = permissions(features)?;
    cluster.apply(&CLUSTER_ROLE, &role, FIELD_MANAGER).await?;
    cluster.apply(&CLUSTER_ROLE_BINDING, &binding, FIELD_MANAGER).await?;
    let mut is_new = false;
    for crd in crds {
        is_new |= cluster.find(&CUSTOM_RESOURCE_DEFINITION, None, crd.name()).await?.is_none();
        let applied = cluster.apply(&CUSTOM_RESOURCE_DEFINITION, crd, FIELD_MANAGER).await;
        applied.with_context(|| format!("apply the CRD {}", crd.name()))?;
    }
    let mut missing = Vec::new();
    for _ in 0..MAX_POLLS {
        missing = ineffective(cluster, restricted, crds).await?;
        if missing.is_empty() {
            return Ok(is_new);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    bail!("the cluster does not serve {}", missing.join(", "))
}

/// The ClusterRole with the permissions of the controllers, and its binding.
fn permissions(features: Features) -> anyhow::Result<[Object; 2]> {
    let rbac = "rbac.authorization.k8s.io";
    let api_version = format!("{rbac}/v1");
    let role = json!({
        "apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": PERMISSIONS},
        "rules": (subsystem(features).permissions)(),
    });
    let binding = json!({
        "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": PERMISSIONS},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": PERMISSIONS},
        "subjects": [
            {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM_NAMESPACE},
        ],
    });
    Ok([Object::from_value(role)?, Object::from_value(binding)?])
}

/// The names of the CRDs that are not established, or whose kind discovery does not list yet; and the
/// ClusterRole, if it does not permit yet.
async fn ineffective(
    cluster: &Cluster,
    restricted: &Cluster,
    crds: &[Object],
) -> anyhow::Result<Vec<String>> {
    let served = cluster.resources().await?.resources;
    let mut missing = Vec::new();
    for crd in crds {
        let current = cluster.get(&CUSTOM_RESOURCE_DEFINITION, None, crd.name()).await?;
        let listed = served.iter().any(|api| api.resource.group_resource() == crd.name());
        if current.condition("Established") != Some("True") || !listed {
            missing.push(crd.name().to_owned());
        }
    }
    let catalogs = resources::CLUSTER_CATALOG;
    match restricted.list(&catalogs, None, &ObjectList::default()).await {
        Err(error) if error.is_forbidden() => missing.push(PERMISSIONS.to_owned()),
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    Ok(missing)
}

/// A hash of the uids and versions of objects.
fn hash_versions(objects: &[Object]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for object in objects {
        (object.uid(), object.resource_version()).hash(&mut hasher);
    }
    hasher.finish()
}

impl CaseSystem for RemoteSystem {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The revision of the server moves with the leases of the control plane. So this is a hash over
    /// the objects that cases are about.
    fn revision(&self) -> BoxFuture<'_, anyhow::Result<u64>> {
        Box::pin(async {
            let of_cluster = KINDS.iter().chain(&CLUSTER_KINDS);
            let mut lists: Vec<_> =
                of_cluster.map(|kind| list(&self.cluster, kind, None)).collect();
            for kind in &NAMESPACED_KINDS {
                let namespaces = self.namespaces.iter();
                lists.extend(
                    namespaces.map(|namespace| list(&self.cluster, kind, Some(namespace.as_str()))),
                );
            }
            Ok(hash_versions(&try_join_all(lists).await?.concat()))
        })
    }

    fn controllers(&mut self) -> &mut CaseControllers {
        &mut self.controllers
    }

    fn shutdown(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move { self.controllers.stop().await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::builtin::LEASE;
    use mainstay_testkit::TestCluster;

    fn object(value: serde_json::Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn existing(cluster: &Cluster) -> SharedCluster {
        SharedCluster { cluster: cluster.clone(), collector_delay: Duration::ZERO }
    }

    fn catalog() -> Object {
        object(json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
            "metadata": {"name": "a", "finalizers": ["example.com/hold"]},
            "spec": {"source": {"type": "Image", "image": {"ref": "registry.example/a:v1"}}},
        }))
    }

    fn namespaced(api_version: &str, kind: &str) -> Object {
        object(json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": {"name": "a", "namespace": SYSTEM_NAMESPACE},
        }))
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cluster_is_cleared_and_prepared_for_each_case() {
        let server = TestCluster::start().await;
        let cluster = server.cluster();
        let network = CaseNetwork::start().await.unwrap();
        let case = Case::default();
        RemoteSystem::of(&case, &network, existing(cluster)).await.unwrap();
        let uid_of_crd = async || {
            let name = resources::CLUSTER_CATALOG.group_resource();
            let crd = cluster.get(&CUSTOM_RESOURCE_DEFINITION, None, &name).await.unwrap();
            crd.uid().to_owned()
        };
        let uid = uid_of_crd().await;
        cluster.create(&resources::CLUSTER_CATALOG, &catalog()).await.unwrap();
        let (secret, config) = (namespaced("v1", "Secret"), namespaced("v1", "ConfigMap"));
        let restricted = cluster.clone().impersonating(SYSTEM_NAMESPACE, ACCOUNT).unwrap();
        assert!(restricted.create(&CONFIG_MAP, &config).await.unwrap_err().is_forbidden());
        cluster.create(&SECRET, &secret).await.unwrap();
        refuse_other_purpose(cluster).await.unwrap();
        RemoteSystem::of(&case, &network, existing(cluster)).await.unwrap();
        let catalogs = list(cluster, &resources::CLUSTER_CATALOG, None).await.unwrap();
        let secrets = list(cluster, &SECRET, Some(SYSTEM_NAMESPACE)).await.unwrap();
        assert_eq!((catalogs.len(), secrets.len()), (0, 0));
        // The garbage collector knows the CRDs already.
        assert_eq!(uid_of_crd().await, uid);
        clear(cluster, &[SYSTEM_NAMESPACE.to_owned()], &[]).await.unwrap();
        assert!(list(cluster, &resources::CLUSTER_CATALOG, None).await.unwrap().is_empty());
        server.shutdown().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_cluster_that_has_olm_v1_for_another_purpose_is_refused() {
        let server = TestCluster::start().await;
        let cluster = server.cluster();
        refuse_other_purpose(cluster).await.unwrap();
        for crd in mainstay_api::olm_v1_crds(mainstay_api::CrdChannel::Standard) {
            server.apply(crd).await;
        }
        let error = refuse_other_purpose(cluster).await.unwrap_err().to_string();
        assert!(error.contains("the CRD clustercatalogs.olm.operatorframework.io"), "{error}");
        server.shutdown().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_revision_changes_with_the_objects_of_a_case_only() {
        let server = TestCluster::start().await;
        let cluster = server.cluster();
        let network = CaseNetwork::start().await.unwrap();
        let system = RemoteSystem::of(&Case::default(), &network, existing(cluster)).await.unwrap();
        let empty = system.revision().await.unwrap();
        cluster.create(&LEASE, &namespaced("coordination.k8s.io/v1", "Lease")).await.unwrap();
        assert_eq!(system.revision().await.unwrap(), empty);
        let mut revisions = vec![empty];
        cluster.create(&resources::CLUSTER_CATALOG, &catalog()).await.unwrap();
        revisions.push(system.revision().await.unwrap());
        cluster.create(&SECRET, &namespaced("v1", "Secret")).await.unwrap();
        revisions.push(system.revision().await.unwrap());
        let patch = Patch::Merge(json!({"status": {"urls": {"base": "https://a.example"}}}));
        cluster.patch_status(&resources::CLUSTER_CATALOG, None, "a", &patch).await.unwrap();
        revisions.push(system.revision().await.unwrap());
        revisions.sort_unstable();
        revisions.dedup();
        assert_eq!(revisions.len(), 4);
        server.shutdown().await;
    }
}
