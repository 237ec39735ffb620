//! What a new cluster has before anybody uses it: our CRDs and the standard namespaces.
//!
//! Everything is applied, not created: a cluster that is started again is brought to the same
//! shape, and what an administrator added stays.

use mainstay_api::names;
use mainstay_api::resources::{CATALOG_SOURCE, OLM_CONFIG, OPERATOR_GROUP};
use mainstay_cause::Cause;
use mainstay_cli::args::Profile;
use mainstay_client::{Cluster, DeleteOptions, ListParams, Selection, WatchEvent};
use mainstay_object::known::{self, API_SERVICE, CUSTOM_RESOURCE_DEFINITION, NAMESPACE, SERVICE};
use mainstay_object::{Object, Resource};
use serde_json::{Value, json};

/// Who writes what this program sees to, beside its controllers.
pub(crate) const MANAGER: &str = "mainstay";

/// The Lease that says whose controllers work on a cluster.
pub(crate) const LEASE: &str = "mainstay";
/// Who holds it where the controllers run in the process of the API itself.
const EMBEDDED: &str = "mainstay-up";

/// Says that the controllers of this cluster run in the process of its API, so that `mainstay run` does
/// not work beside them. The Lease needs no renewal: where the API is, they are.
pub(crate) async fn hold_lease(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let lease = manifest(json!({
        "apiVersion": known::LEASE.api_version(),
        "kind": known::LEASE.kind,
        "metadata": {"name": LEASE, "namespace": profile.manager_namespace()},
        "spec": {"holderIdentity": EMBEDDED, "leaseDurationSeconds": i32::MAX},
    }));
    apply(cluster, &known::LEASE, &lease).await.map(drop)
}

/// The Leases, in any namespace, by which the API's own process holds the work on a cluster.
///
/// # Errors
/// Why they cannot be listed.
pub(crate) async fn embedded_leases(cluster: &Cluster) -> mainstay_client::Result<Vec<Object>> {
    let params = ListParams::fields(format!("metadata.name={LEASE}"));
    let mut leases = cluster.list(&known::LEASE, None, &params).await?.items;
    leases.retain(|lease| lease.str(&["spec", "holderIdentity"]) == Some(EMBEDDED));
    Ok(leases)
}

/// Gives the work to others: on a bare API no controllers run any more.
pub(crate) async fn give_lease_back(cluster: &Cluster) -> Result<(), Cause> {
    let refused = |error: &mainstay_client::Error| {
        Cause::new(format!("the Lease `{LEASE}` cannot be given back"))
            .because(Cause::new(error.to_string()))
    };
    for lease in embedded_leases(cluster).await.map_err(|error| refused(&error))? {
        let options = DeleteOptions::uid(lease.uid());
        let place = Some(lease.namespace());
        let gone = cluster.ensure_deleted(&known::LEASE, place, lease.name(), &options).await;
        gone.map_err(|error| refused(&error))?;
    }
    Ok(())
}

/// Whether an object was applied by a process like this.
pub(crate) fn is_ours(object: &Object) -> bool {
    let managers = object.array(&["metadata", "managedFields"]).iter();
    managers.filter_map(|entry| entry["manager"].as_str()).any(|manager| manager == MANAGER)
}

/// Makes sure that these CRDs are there and Established.
pub(crate) async fn establish(cluster: &Cluster, crds: &[Object]) -> Result<(), Cause> {
    let applied = crds
        .iter()
        .map(|crd| async move { apply(cluster, &CUSTOM_RESOURCE_DEFINITION, crd).await });
    let applied = futures::future::try_join_all(applied).await?;
    let judged = applied.into_iter().map(|crd| judged(cluster, crd));
    for crd in futures::future::try_join_all(judged).await? {
        if crd.condition("Established") != Some("True") {
            return Err(Cause::new(format!("the CRD `{}` is not established", crd.name()))
                .because_all(refusals(&crd)));
        }
    }
    Ok(())
}

/// The CRD once the server has judged its names, which it does after it has answered.
async fn judged(cluster: &Cluster, crd: Object) -> Result<Object, Cause> {
    let is_judged = |crd: &Object| {
        crd.condition("Established") == Some("True")
            || crd.condition("NamesAccepted") == Some("False")
    };
    until(cluster, &CUSTOM_RESOURCE_DEFINITION, crd, is_judged).await
}

/// A cluster-scoped object once something holds of it.
async fn until(
    cluster: &Cluster,
    resource: &Resource,
    mut object: Object,
    holds: impl Fn(&Object) -> bool,
) -> Result<Object, Cause> {
    let mut selection = Selection::all(resource.clone());
    selection.fields = format!("metadata.name={}", object.name());
    // Of most it holds by the time that all are applied: one look, before every step is followed.
    if !holds(&object) {
        let found = cluster.get(resource, None, object.name()).await;
        object = found.map_err(|error| refused(&object, &error))?;
    }
    while !holds(&object) {
        let watch = cluster.watch(&selection, object.resource_version()).await;
        let mut watch = watch.map_err(|error| refused(&object, &error))?;
        while !holds(&object)
            && let Some(Ok(event)) = watch.next().await
        {
            if let WatchEvent::Added(changed) | WatchEvent::Modified(changed) = event {
                object = changed;
            }
        }
        if !holds(&object) {
            let found = cluster.get(resource, None, object.name()).await;
            object = found.map_err(|error| refused(&object, &error))?;
        }
    }
    Ok(object)
}

/// Makes sure that the API of packages is among those that are served.
pub(crate) async fn packages(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let registration = mainstay_packages::registration(profile.manager_namespace());
    let applied = apply(cluster, &API_SERVICE, &registration).await?;
    // It answers in this process: nothing can keep that from coming but the end of it.
    let is_there = |registration: &Object| registration.condition("Available") == Some("True");
    until(cluster, &API_SERVICE, applied, is_there).await?;
    Ok(())
}

/// Takes the registration of packages away if this program made it and nobody is behind it any more:
/// it would break discovery.
pub(crate) async fn no_packages(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let registration = mainstay_packages::registration(profile.manager_namespace());
    let refused = |error: &mainstay_client::Error| {
        Cause::new(format!("the APIService `{}` cannot be taken away", registration.name()))
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
    let gone = cluster.ensure_deleted(&API_SERVICE, None, found.name(), &options).await;
    gone.map_err(|error| refused(&error))
}

fn refusals(crd: &Object) -> Vec<Cause> {
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

/// Makes sure that the standard namespaces, operator groups and the configuration are there.
pub(crate) async fn standard(cluster: &Cluster, profile: Profile) -> Result<(), Cause> {
    let mut namespaces = vec![
        profile.catalog_namespace(),
        profile.operator_namespace(),
        profile.manager_namespace(),
    ];
    namespaces.sort_unstable();
    namespaces.dedup();
    let made = namespaces.iter().map(|name| namespace(cluster, name));
    futures::future::try_join_all(made).await?;
    let group = manifest(json!({
        "apiVersion": "operators.coreos.com/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "global-operators", "namespace": profile.operator_namespace()},
    }));
    let own = manifest(json!({
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
    apply(cluster, &OPERATOR_GROUP, &own).await?;
    apply(cluster, &OLM_CONFIG, &config).await?;
    Ok(())
}

/// Makes sure that a namespace is there.
pub(crate) async fn namespace(cluster: &Cluster, name: &str) -> Result<(), Cause> {
    let namespace =
        manifest(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    apply(cluster, &NAMESPACE, &namespace).await.map(drop)
}

/// Makes sure that a CatalogSource of this name is there; its content is the business of the
/// catalog store.
pub(crate) async fn catalog_source(
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
    // An administrator may have given it a nicer name or a priority since: those stay.
    let found = cluster.find(&CATALOG_SOURCE, Some(namespace), name).await;
    if let Some(found) = found.map_err(|error| refused(&source, &error))? {
        if found.annotation(names::MANAGED_BY) != Some(names::MARKETPLACE) {
            return Ok(());
        }
        // A default of that name was there before: the folder takes its place.
        let options = DeleteOptions::uid(found.uid());
        let gone = cluster.ensure_deleted(&CATALOG_SOURCE, Some(namespace), name, &options).await;
        gone.map_err(|error| refused(&source, &error))?;
    }
    apply(cluster, &CATALOG_SOURCE, &source).await?;
    Ok(())
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
    cluster.apply(resource, object, MANAGER).await.map_err(|error| refused(object, &error))
}

fn refused(object: &Object, error: &mainstay_client::Error) -> Cause {
    Cause::new(format!("{} `{}` cannot be made", object.kind(), object.key()))
        .because(Cause::new(error.to_string()))
}
