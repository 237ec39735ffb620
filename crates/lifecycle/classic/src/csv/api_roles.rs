//! API roles: ClusterRoles for the users of the APIs that a CSV provides.
//!
//! For each CustomResourceDefinition that a CSV owns there are the ClusterRoles `…-admin`,
//! `…-edit`, `…-view` and `…-crdview`. They aggregate into the default ClusterRoles of Kubernetes
//! and into those of the OperatorGroup.

use super::serving::required;
use crate::context::Context;
use crate::error::Error;
use crate::fields::{self, Api, Role, Rule};
use crate::install_plan::crd;
use crate::membership::roles;
use mainstay_api::{ClusterServiceVersion, names, resources};
use mainstay_client::Patch;
use mainstay_controller::WithOperation as _;
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Ensures the ClusterRoles for the APIs that a running CSV provides; writes only those that are
/// missing or differ.
pub(crate) async fn ensure_api_roles(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<(), Error> {
    for crd in &csv.spec.custom_resource_definitions.owned {
        let Some((plural, group)) = crd.name.split_once('.') else { continue };
        let Some(cached_crd) = context.caches.crds.get(&NamespacedName::cluster(crd.name.as_str()))
        else {
            continue;
        };
        let api =
            Api { group: group.to_owned(), version: crd.version.clone(), kind: crd.kind.clone() };
        let owner = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "customresourcedefinition",
            "name": crd.name,
            "uid": cached_crd.uid,
            "controller": false,
            "blockOwnerDeletion": false,
        });
        remove_stale_alongside_annotations(
            context,
            csv,
            &crd.name,
            &cached_crd.installed_alongside,
        )
        .await?;
        let prefix = format!("{}-{}-", crd.name, crd.version);
        let mut desired_roles: Vec<(String, &str, Value)> = roles::VERBS
            .iter()
            .map(|(suffix, verbs)| {
                let rule = json!({"apiGroups": [group], "resources": [plural], "verbs": verbs});
                (format!("{prefix}{suffix}"), *suffix, rule)
            })
            .collect();
        desired_roles.push((
            format!("{prefix}crdview"),
            "view",
            json!({
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "resourceNames": [crd.name],
                "verbs": ["get"],
            }),
        ));
        for (name, suffix, rule) in desired_roles {
            ensure_role(context, &name, suffix, &api, &rule, &owner).await?;
        }
    }
    let mut services_by_role: BTreeMap<String, String> = BTreeMap::new();
    for description in &csv.spec.api_service_definitions.owned {
        let service = required::api_service(&description.group, &description.version);
        let Some(cached_api_service) =
            context.caches.api_services.get(&NamespacedName::cluster(&*service))
        else {
            continue;
        };
        let api = Api {
            group: description.group.clone(),
            version: description.version.clone(),
            kind: description.kind.clone(),
        };
        let owner = json!({
            "apiVersion": builtin::API_SERVICE.api_version(),
            "kind": builtin::API_SERVICE.kind,
            "name": service,
            "uid": cached_api_service.uid,
            "controller": false,
            "blockOwnerDeletion": false,
        });
        for (suffix, verbs) in roles::VERBS {
            let rule =
                json!({"apiGroups": [api.group], "resources": [description.name], "verbs": verbs});
            // As upstream, the name does not contain the API group. A ClusterRole for another group
            // can have the same name.
            let mut name = format!("{}-{}-{suffix}", description.name, api.version);
            let taken = context.caches.cluster_roles.get(&NamespacedName::cluster(&*name));
            let of_others =
                taken.is_some_and(|role| role.owners.iter().any(|owner| owner.name != service));
            if of_others || services_by_role.get(&name).is_some_and(|other| *other != service) {
                name = format!("{}.{}-{}-{suffix}", description.name, api.group, api.version);
            }
            services_by_role.insert(name.clone(), service.clone());
            ensure_role(context, &name, suffix, &api, &rule, &owner).await?;
        }
    }
    Ok(())
}

/// Ensures one ClusterRole for the users of an API.
async fn ensure_role(
    context: &Context,
    name: &str,
    suffix: &str,
    api: &Api,
    rule: &Value,
    owner: &Value,
) -> Result<(), Error> {
    let labels = [
        (format!("rbac.authorization.k8s.io/aggregate-to-{suffix}"), "true"),
        (roles::aggregation_label(api, suffix), "true"),
        (names::MANAGED.to_owned(), names::MANAGED_VALUE),
    ];
    let present = context.caches.cluster_roles.get(&NamespacedName::cluster(name));
    let uid = owner["uid"].as_str().unwrap_or_default();
    if present.is_some_and(|role| is_up_to_date(&role, &labels, rule, uid)) {
        return Ok(());
    }
    let mut role = Object::new(&builtin::CLUSTER_ROLE.gvk(), name);
    for (key, value) in &labels {
        role.set_label(key, *value);
    }
    role.set(&["metadata", "ownerReferences"], json!([owner]));
    role.set(&["rules"], json!([rule]));
    context
        .cluster
        .ensure(&builtin::CLUSTER_ROLE, &role)
        .await
        .during("creating a ClusterRole for a provided API")?;
    Ok(())
}

/// Removes the annotations of a CustomResourceDefinition that name deleted CSVs of this namespace
/// as installed alongside it.
///
/// A CSV exists before the annotation names it. So an annotation that names a CSV which the API
/// does not have is stale. The caches may show the annotation before the CSV.
async fn remove_stale_alongside_annotations(
    context: &Context,
    csv: &ClusterServiceVersion,
    crd: &str,
    alongside_csvs: &[NamespacedName],
) -> Result<(), Error> {
    let is_missing_from_cache = |key: &&NamespacedName| {
        *key.namespace == *csv.metadata.namespace
            && *key.name != *csv.metadata.name
            && context.caches.csvs.get(key).is_none()
    };
    if !alongside_csvs.iter().any(|key| is_missing_from_cache(&key)) {
        return Ok(());
    }
    let live = context.cluster.find(&builtin::CUSTOM_RESOURCE_DEFINITION, None, crd).await;
    let Some(live) = live.during("reading a CustomResourceDefinition")? else { return Ok(()) };
    let mut stale = Map::new();
    for entry in fields::installed_alongside(&live).iter().filter(is_missing_from_cache) {
        let resource = &resources::CLUSTER_SERVICE_VERSION;
        let found = context.cluster.find(resource, entry.namespace(), &entry.name).await;
        if found.during("looking for a ClusterServiceVersion")?.is_none() {
            stale.insert(crd::alongside_key(entry), Value::Null);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({"metadata": {
        "resourceVersion": live.resource_version(), "annotations": stale,
    }}));
    match context.cluster.patch(&builtin::CUSTOM_RESOURCE_DEFINITION, None, crd, &patch).await {
        Err(error) if !error.is_not_found() => Err(error)
            .during("removing stale annotations of a CustomResourceDefinition")
            .map_err(Error::from),
        _ => Ok(()),
    }
}

fn is_up_to_date(role: &Role, labels: &[(String, &str)], rule: &Value, owner_uid: &str) -> bool {
    let rule: Rule = serde_json::from_value(rule.clone()).unwrap_or_default();
    role.rules == [rule]
        && role.owners.iter().any(|reference| reference.uid == owner_uid)
        && labels
            .iter()
            .all(|(key, value)| role.labels.get(key).map(String::as_str) == Some(*value))
}
