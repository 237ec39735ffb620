//! Initial objects of a cluster: CustomResourceDefinitions, standard namespaces, OperatorGroups, and the
//! Lease of the controllers.
//!
//! Every object is applied server-side, not created: a restart brings the cluster to the same state, and
//! fields that an administrator added stay.

use mainstay_api::names;
use mainstay_api::resources::{CATALOG_SOURCE, CLUSTER_CATALOG, OLM_CONFIG, OPERATOR_GROUP};
use mainstay_cause::Cause;
use mainstay_client::{Cluster, DeleteOptions, ObjectList, Selection, WatchEvent};
use mainstay_command::profile::Profile;
use mainstay_object::builtin::{self, API_SERVICE, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SERVICE};
use mainstay_object::{Object, Resource};
use serde_json::{Value, json};

/// The field manager of the objects that this program applies outside its controllers.
pub(crate) const MANAGER: &str = "mainstay";

/// The Lease of the process whose controllers work on a cluster.
pub(crate) const LEASE: &str = "mainstay";
/// The holder of the Lease where the controllers run in the API server's process.
const EMBEDDED: &str = "mainstay-up";

/// Applies the Lease of controllers that run in the API server's process, so that `mainstay run` does not
/// work beside them. The Lease needs no renewal: the controllers run as long as the API server does.
pub(crate) async fn apply_embedded_lease(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let lease = manifest(json!({
        "apiVersion": builtin::LEASE.api_version(),
        "kind": builtin::LEASE.kind,
        "metadata": {"name": LEASE, "namespace": profile.manager_namespace()},
        "spec": {"holderIdentity": EMBEDDED, "leaseDurationSeconds": i32::MAX},
    }));
    apply(cluster, &builtin::LEASE, &lease).await.map(drop)
}

/// The Leases, in any namespace, of controllers that run in the API server's process.
///
/// # Errors
/// The Leases cannot be listed.
pub(crate) async fn embedded_leases(cluster: &Cluster) -> mainstay_client::Result<Vec<Object>> {
    let params = ObjectList::fields(format!("metadata.name={LEASE}"));
    let mut leases = cluster.list(&builtin::LEASE, None, &params).await?.items;
    leases.retain(|lease| lease.str(&["spec", "holderIdentity"]) == Some(EMBEDDED));
    Ok(leases)
}

/// Deletes the Leases of embedded controllers: beside a bare API server none run, and `mainstay run` may.
pub(crate) async fn delete_embedded_leases(cluster: &Cluster) -> Result<(), Cause> {
    let refused = |error: &mainstay_client::Error| {
        Cause::new(format!("Lease {LEASE} cannot be released"))
            .because(Cause::new(error.to_string()))
    };
    for lease in embedded_leases(cluster).await.map_err(|error| refused(&error))? {
        let options = DeleteOptions::uid(lease.uid());
        let namespace = Some(lease.namespace());
        let deleted =
            cluster.ensure_deleted(&builtin::LEASE, namespace, lease.name(), &options).await;
        deleted.map_err(|error| refused(&error))?;
    }
    Ok(())
}

/// Whether this program is a field manager of an object.
pub(crate) fn is_ours(object: &Object) -> bool {
    let managers = object.array(&["metadata", "managedFields"]).iter();
    managers.filter_map(|entry| entry["manager"].as_str()).any(|manager| manager == MANAGER)
}

/// Applies CustomResourceDefinitions and waits until they are Established.
pub(crate) async fn establish_crds(cluster: &Cluster, crds: &[Object]) -> Result<(), Cause> {
    let applied = crds
        .iter()
        .map(|crd| async move { apply(cluster, &CUSTOM_RESOURCE_DEFINITION, crd).await });
    let applied = futures::future::try_join_all(applied).await?;
    let judgements = applied.into_iter().map(|crd| wait_until_judged(cluster, crd));
    for crd in futures::future::try_join_all(judgements).await? {
        if crd.condition("Established") != Some("True") {
            return Err(Cause::new(format!(
                "CustomResourceDefinition {} is not established",
                crd.name()
            ))
            .because_all(failed_conditions(&crd)));
        }
    }
    Ok(())
}

/// Waits until the API server has accepted or refused a CRD's names, which it does after its response.
async fn wait_until_judged(cluster: &Cluster, crd: Object) -> Result<Object, Cause> {
    let is_judged = |crd: &Object| {
        crd.condition("Established") == Some("True")
            || crd.condition("NamesAccepted") == Some("False")
    };
    wait_until(cluster, &CUSTOM_RESOURCE_DEFINITION, crd, is_judged).await
}

/// Waits until a cluster-scoped object has a state.
async fn wait_until(
    cluster: &Cluster,
    resource: &Resource,
    mut object: Object,
    has_state: impl Fn(&Object) -> bool,
) -> Result<Object, Cause> {
    let mut selection = Selection::all(resource.clone());
    selection.fields = format!("metadata.name={}", object.name());
    // Most objects have the state by now: one GET, before a watch delivers every change.
    if !has_state(&object) {
        let found = cluster.get(resource, None, object.name()).await;
        object = found.map_err(|error| apply_error(&object, &error))?;
    }
    while !has_state(&object) {
        let watch = cluster.watch(&selection, object.resource_version()).await;
        let mut watch = watch.map_err(|error| apply_error(&object, &error))?;
        while !has_state(&object)
            && let Some(Ok(event)) = watch.next().await
        {
            if let WatchEvent::Added(changed) | WatchEvent::Modified(changed) = event {
                object = changed;
            }
        }
        if !has_state(&object) {
            let found = cluster.get(resource, None, object.name()).await;
            object = found.map_err(|error| apply_error(&object, &error))?;
        }
    }
    Ok(object)
}

/// Registers the API of PackageManifests with an APIService, and waits until it is Available.
pub(crate) async fn register_packages(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let registration = mainstay_packages::registration(profile.manager_namespace());
    let registration_on_server = apply(cluster, &API_SERVICE, &registration).await?;
    // The backend is in this process, so the APIService becomes Available.
    let is_available = |registration: &Object| registration.condition("Available") == Some("True");
    wait_until(cluster, &API_SERVICE, registration_on_server, is_available).await?;
    Ok(())
}

/// Deletes the APIService of packages if this program applied it and its Service is gone: an APIService
/// without a backend breaks discovery.
pub(crate) async fn unregister_packages(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let registration = mainstay_packages::registration(profile.manager_namespace());
    let refused = |error: &mainstay_client::Error| {
        Cause::new(format!("APIService {} cannot be deleted", registration.name()))
            .because(Cause::new(error.to_string()))
    };
    let found = cluster.find(&API_SERVICE, None, registration.name()).await;
    let Some(found) = found.map_err(|error| refused(&error))?.filter(is_ours) else {
        return Ok(());
    };
    let text = |path: &[&str]| found.str(path).unwrap_or_default();
    let (namespace, name) =
        (text(&["spec", "service", "namespace"]), text(&["spec", "service", "name"]));
    let service = cluster.find(&SERVICE, Some(namespace), name).await;
    if service.map_err(|error| refused(&error))?.is_some() {
        return Ok(());
    }
    let options = DeleteOptions::uid(found.uid());
    let deleted = cluster.ensure_deleted(&API_SERVICE, None, found.name(), &options).await;
    deleted.map_err(|error| refused(&error))
}

fn failed_conditions(crd: &Object) -> Vec<Cause> {
    let conditions = crd.array(&["status", "conditions"]).iter();
    let text = |condition: &Value, key| {
        condition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    conditions
        .filter(|condition| text(condition, "status") != "True")
        .map(|condition| {
            Cause::new(format!("{}: {}", text(condition, "type"), text(condition, "message")))
        })
        .collect()
}

/// Applies the standard namespaces, their OperatorGroups and the OLMConfig.
pub(crate) async fn apply_standard_objects(
    cluster: &Cluster,
    profile: Profile,
) -> Result<(), Cause> {
    let mut namespaces = vec![
        profile.catalog_namespace(),
        profile.operator_namespace(),
        profile.manager_namespace(),
    ];
    namespaces.sort_unstable();
    namespaces.dedup();
    let applied = namespaces.iter().map(|name| apply_namespace(cluster, name));
    futures::future::try_join_all(applied).await?;
    let group = manifest(json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "global-operators", "namespace": profile.operator_namespace()},
    }));
    let own_group = manifest(json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "olm-operators", "namespace": profile.manager_namespace()},
        "spec": {"targetNamespaces": [profile.manager_namespace()]},
    }));
    let config = manifest(json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OLMConfig",
        "metadata": {"name": "cluster"},
    }));
    apply(cluster, &OPERATOR_GROUP, &group).await?;
    apply(cluster, &OPERATOR_GROUP, &own_group).await?;
    apply(cluster, &OLM_CONFIG, &config).await?;
    Ok(())
}

/// Applies a namespace.
pub(crate) async fn apply_namespace(cluster: &Cluster, name: &str) -> Result<(), Cause> {
    let namespace =
        manifest(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    apply(cluster, &NAMESPACE, &namespace).await.map(drop)
}

/// Applies the CatalogSource of a catalog folder. The catalog controller serves its content.
pub(crate) async fn apply_catalog_source(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
) -> Result<(), Cause> {
    let source = manifest(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"sourceType": "grpc", "address": mainstay_classic::FOLDER_ADDRESS, "displayName": name, "publisher": "Mainstay"},
    }));
    // The display name and the priority of an existing CatalogSource may be an administrator's: they stay.
    let found = cluster.find(&CATALOG_SOURCE, Some(namespace), name).await;
    if let Some(found) = found.map_err(|error| apply_error(&source, &error))? {
        if found.annotation(names::MANAGED_BY) != Some(names::MARKETPLACE) {
            return Ok(());
        }
        // The folder replaces a default CatalogSource of the same name.
        let options = DeleteOptions::uid(found.uid());
        let deleted =
            cluster.ensure_deleted(&CATALOG_SOURCE, Some(namespace), name, &options).await;
        deleted.map_err(|error| apply_error(&source, &error))?;
    }
    apply(cluster, &CATALOG_SOURCE, &source).await?;
    Ok(())
}

/// Creates the ClusterCatalog of a catalog folder, unless there is one with its name.
pub(crate) async fn create_cluster_catalog(cluster: &Cluster, name: &str) -> Result<(), Cause> {
    let catalog = manifest(json!({
        "apiVersion": "olm.operatorframework.io/v1",
        "kind": "ClusterCatalog",
        "metadata": {"name": name},
        "spec": {"source": {
            "type": "Image",
            "image": {"ref": mainstay_extensions::folder_reference(name)},
        }},
    }));
    match cluster.create(&CLUSTER_CATALOG, &catalog).await {
        Err(error) if !error.is_already_exists() => Err(apply_error(&catalog, &error)),
        _ => Ok(()),
    }
}

fn manifest(value: Value) -> Object {
    Object::from_value(value).unwrap_or_default()
}

/// Applies an object.
pub(crate) async fn apply(
    cluster: &Cluster,
    resource: &Resource,
    object: &Object,
) -> Result<Object, Cause> {
    cluster.apply(resource, object, MANAGER).await.map_err(|error| apply_error(object, &error))
}

fn apply_error(object: &Object, error: &mainstay_client::Error) -> Cause {
    Cause::new(format!("{} {} cannot be created", object.kind(), object.key()))
        .because(Cause::new(error.to_string()))
}
