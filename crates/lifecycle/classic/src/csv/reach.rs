//! What a version needs outside of its own namespace, and what others need to use it.
//!
//! * Roles and bindings of the version are copied into the target namespaces of its group, or
//!   lifted to cluster roles when the group targets all.
//! * For each definition that it owns there are cluster roles `…-admin`, `…-edit`, `…-view` and
//!   `…-crdview` that aggregate into Kubernetes' own and into those of its group.
//!
//! What was lifted goes when the group no longer targets all. Copies cannot be owned across
//! namespaces, so they carry `olm.copiedFrom` and belong to the copy of the version in their
//! namespace. They are removed by the finalizer of the version, or as soon as their namespace is no
//! target any more.

use super::observe::is_owner;
use super::serving::{self, asked};
use crate::context::{Caches, Context};
use crate::copies;
use crate::error::{Doing, Error};
use crate::facts::{self, Api, Role, Rule};
use crate::install_plan::definition;
use crate::operator_group::roles;
use mainstay_api::{ClusterServiceVersion, OperatorGroup, names, resources};
use mainstay_client::{DeleteOptions, ListParams, Patch};
use mainstay_object::{Gvk, NamespacedName, Object, OwnerReference, Resource, known};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Cluster-scoped kinds of OpenShift's console that bundles may carry.
const CONSOLE: [&str; 5] = [
    "ConsoleLink",
    "ConsoleCLIDownload",
    "ConsolePlugin",
    "ConsoleQuickStart",
    "ConsoleYAMLSample",
];
const VIEW: [&str; 3] = ["get", "list", "watch"];

/// Sees that the version may do its work in its target namespaces; writes only what is not there.
pub(crate) async fn ensure(
    context: &Context,
    live: &Object,
    csv: &ClusterServiceVersion,
    group: &OperatorGroup,
) -> Result<(), Error> {
    let namespaces = &group.status.namespaces;
    if namespaces.iter().any(String::is_empty) {
        lift(context, csv).await?;
    } else {
        for namespace in namespaces.iter().filter(|it| **it != csv.metadata.namespace) {
            copy(context, live, csv, namespace).await?;
        }
        for (resource, key) in lifted(&context.caches, csv) {
            remove(context, &resource, &key).await?;
        }
    }
    for (resource, key) in copies(&context.caches, &csv.metadata.namespace, &csv.metadata.name) {
        if !namespaces.iter().any(|it| **it == *key.namespace) {
            remove(context, &resource, &key).await?;
        }
    }
    Ok(())
}

/// The copies and cluster-scoped roles and bindings that labels give to a version.
fn left(caches: &Caches, namespace: &str, name: &str) -> Vec<(Resource, NamespacedName)> {
    let mut left = copies(caches, namespace, name);
    for (key, it) in caches.cluster_bindings.list(None) {
        if is_owner(&it.labels, namespace, name) {
            left.push((known::CLUSTER_ROLE_BINDING, key));
        }
    }
    for (key, it) in caches.cluster_roles.list(None) {
        if is_owner(&it.labels, namespace, name) {
            left.push((known::CLUSTER_ROLE, key));
        }
    }
    left
}

/// Removes what labels give to a version that does not exist, such as one whose finalizer somebody
/// took away.
pub(crate) async fn collect(context: &Context, key: &NamespacedName) -> Result<(), Error> {
    let mut orphans = left(&context.caches, &key.namespace, &key.name);
    orphans.extend(serving::remove::left(&context.caches, &key.namespace, &key.name));
    if orphans.is_empty() {
        return Ok(());
    }
    // The cache of versions may lag behind those of what belongs to them.
    let version = &resources::CLUSTER_SERVICE_VERSION;
    let found = context.cluster.find(version, key.namespace(), &key.name).await;
    if found.doing("looking for a version")?.is_some() {
        return Ok(());
    }
    for (resource, key) in &orphans {
        remove(context, resource, key).await?;
    }
    Ok(())
}

/// Removes every copy and everything cluster-scoped that belongs to a version. Returns whether
/// nothing of it is left in the caches, so that the version may go.
pub(crate) async fn clean_up(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<bool, Error> {
    let (namespace, name) = (&csv.metadata.namespace, &csv.metadata.name);
    let left = left(&context.caches, namespace, name);
    for (resource, key) in &left {
        remove(context, resource, key).await?;
    }
    let served = !serving::remove::clean_up(context, csv).await?;
    if left.is_empty() && !served {
        remove_bundled(context, namespace, name).await?;
    }
    Ok(left.is_empty() && !served)
}

/// Removes the cluster-scoped objects of other kinds that came with a version. They have no cache, as
/// they are rare, and the labels say which of them are the version's still.
async fn remove_bundled(context: &Context, namespace: &str, name: &str) -> Result<(), Error> {
    let cluster = &context.cluster;
    let labels = format!(
        "{}={name},{}={namespace},{}={}",
        names::OWNER,
        names::OWNER_NAMESPACE,
        names::OWNER_KIND,
        resources::CLUSTER_SERVICE_VERSION.kind
    );
    // A label that cannot be a value was never written.
    if [name, namespace].iter().any(|it| it.len() > 63) {
        return Ok(());
    }
    let mut kinds = vec![known::PRIORITY_CLASS];
    let console = |kind: &str| Gvk::new("console.openshift.io", "v1", kind);
    for kind in CONSOLE {
        match cluster.resource_of(&console(kind)).await.doing("looking up kinds of the console")? {
            Some(resource) => kinds.push(resource),
            // Clusters have all of them or none.
            None => break,
        }
    }
    for resource in &kinds {
        let found = cluster.list(resource, None, &ListParams::labels(labels.as_str())).await;
        for it in found.doing("listing what came with a version")?.items {
            remove(context, resource, &it.key()).await?;
        }
    }
    Ok(())
}

async fn remove(context: &Context, resource: &Resource, key: &NamespacedName) -> Result<(), Error> {
    context
        .cluster
        .ensure_deleted(resource, key.namespace(), &key.name, &DeleteOptions::default())
        .await
        .doing("removing what belongs to a version")
}

/// Roles and bindings in other namespaces that were copied for a version.
fn copies(caches: &Caches, from: &str, name: &str) -> Vec<(Resource, NamespacedName)> {
    let is_copy = |key: &NamespacedName, labels: &BTreeMap<String, String>| {
        labels.get(names::COPIED_FROM).map(String::as_str) == Some(from)
            && is_owner(labels, &key.namespace, name)
    };
    let mut out = Vec::new();
    for (key, it) in caches.bindings.list(None) {
        if is_copy(&key, &it.labels) {
            out.push((known::ROLE_BINDING, key));
        }
    }
    for (key, it) in caches.roles.list(None) {
        if is_copy(&key, &it.labels) {
            out.push((known::ROLE, key));
        }
    }
    out
}

/// The roles of a version in its own namespace.
fn own_roles(caches: &Caches, csv: &ClusterServiceVersion) -> Vec<NamespacedName> {
    let metadata = &csv.metadata;
    caches
        .roles
        .list(Some(&metadata.namespace))
        .into_iter()
        .filter(|(_, it)| is_owner(&it.labels, &metadata.namespace, &metadata.name))
        .map(|(key, _)| key)
        .collect()
}

fn own_bindings(caches: &Caches, csv: &ClusterServiceVersion) -> Vec<NamespacedName> {
    let metadata = &csv.metadata;
    caches
        .bindings
        .list(Some(&metadata.namespace))
        .into_iter()
        .filter(|(_, it)| is_owner(&it.labels, &metadata.namespace, &metadata.name))
        .map(|(key, _)| key)
        .collect()
}

/// The labels of a role without those of the component that it is part of.
fn labels_of(object: &Object) -> Map<String, Value> {
    object
        .labels()
        .filter(|(key, _)| !key.starts_with(names::COMPONENT_LABEL_PREFIX))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

async fn lift(context: &Context, csv: &ClusterServiceVersion) -> Result<(), Error> {
    let caches = &context.caches;
    for key in own_roles(caches, csv) {
        let name = NamespacedName::cluster(&*key.name);
        if caches.cluster_roles.get(&name).is_some() {
            continue;
        }
        let Some(role) = read(context, &known::ROLE, &key).await? else { continue };
        let mut rules = role.array(&["rules"]).to_vec();
        rules.push(see_namespaces());
        let mut lifted = Object::new(&known::CLUSTER_ROLE.gvk(), &key.name);
        lifted.set(&["metadata", "labels"], Value::Object(labels_of(&role)));
        lifted.set(&["rules"], Value::Array(rules));
        create(context, &known::CLUSTER_ROLE, &lifted).await?;
    }
    for key in own_bindings(caches, csv) {
        let name = NamespacedName::cluster(&*key.name);
        if caches.cluster_bindings.get(&name).is_some() {
            continue;
        }
        let Some(binding) = read(context, &known::ROLE_BINDING, &key).await? else { continue };
        let mut lifted = Object::new(&known::CLUSTER_ROLE_BINDING.gvk(), &key.name);
        lifted.set(&["metadata", "labels"], Value::Object(labels_of(&binding)));
        for field in ["roleRef", "subjects"] {
            lifted.set(&[field], binding.get(&[field]).cloned().unwrap_or_default());
        }
        lifted.set(&["roleRef", "kind"], "ClusterRole".into());
        create(context, &known::CLUSTER_ROLE_BINDING, &lifted).await?;
    }
    Ok(())
}

/// What a lifted role may besides.
fn see_namespaces() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": VIEW})
}

/// What was lifted for a version, bindings before their roles: by the role it is told whose they are.
fn lifted(caches: &Caches, csv: &ClusterServiceVersion) -> Vec<(Resource, NamespacedName)> {
    let (namespace, name) = (&csv.metadata.namespace, &csv.metadata.name);
    let mut out = Vec::new();
    for key in own_roles(caches, csv) {
        let twin = NamespacedName::cluster(&*key.name);
        let both = caches.roles.get(&key).zip(caches.cluster_roles.get(&twin));
        let is_twin = |(role, twin): &(Arc<Role>, Arc<Role>)| {
            is_owner(&twin.labels, namespace, name) && is_lifted(role, twin)
        };
        if !both.as_ref().is_some_and(is_twin) {
            continue;
        }
        for (binding, it) in caches.cluster_bindings.list(None) {
            if is_owner(&it.labels, namespace, name) && *it.role.1 == *twin.name {
                out.push((known::CLUSTER_ROLE_BINDING, binding));
            }
        }
        out.push((known::CLUSTER_ROLE, twin));
    }
    out
}

/// Whether a cluster role is what was lifted of a role; bundles may have both by one name.
fn is_lifted(role: &Role, twin: &Role) -> bool {
    let besides: Rule = serde_json::from_value(see_namespaces()).unwrap_or_default();
    twin.rules.split_last().is_some_and(|(last, rest)| *last == besides && rest == role.rules)
}

async fn copy(
    context: &Context,
    live: &Object,
    csv: &ClusterServiceVersion,
    namespace: &str,
) -> Result<(), Error> {
    let caches = &context.caches;
    // A target may be listed before it exists; its creation brings us back.
    let Some(target) = caches.namespaces.get(&NamespacedName::cluster(namespace)) else {
        return Ok(());
    };
    if target.deleting {
        return Ok(());
    }
    // What a version has in a namespace belongs to its copy there.
    let Some(owner) = copies::controller::ensure(context, live, namespace).await? else {
        return Ok(());
    };
    let owned = |owners: &[OwnerReference]| owners.iter().any(|it| it.uid == owner);
    for key in own_roles(caches, csv) {
        let there = NamespacedName::new(namespace, &*key.name);
        let (here, copied) = (caches.roles.get(&key), caches.roles.get(&there));
        let same = |copied: &Arc<Role>| here.as_ref().is_some_and(|it| it.rules == copied.rules);
        if copied.is_some_and(|it| owned(&it.owners) && same(&it)) {
            continue;
        }
        let Some(role) = read(context, &known::ROLE, &key).await? else { continue };
        place(context, &known::ROLE, &role, live, (namespace, &owner), &["rules"]).await?;
    }
    for key in own_bindings(caches, csv) {
        let there = NamespacedName::new(namespace, &*key.name);
        if caches.bindings.get(&there).is_some_and(|it| owned(&it.owners)) {
            continue;
        }
        let Some(binding) = read(context, &known::ROLE_BINDING, &key).await? else { continue };
        let fields = ["roleRef", "subjects"];
        place(context, &known::ROLE_BINDING, &binding, live, (namespace, &owner), &fields).await?;
    }
    Ok(())
}

async fn place(
    context: &Context,
    resource: &Resource,
    original: &Object,
    version: &Object,
    (namespace, owner): (&str, &str),
    fields: &[&str],
) -> Result<(), Error> {
    let mut copy = Object::new(&resource.gvk(), original.name());
    copy.set(&["metadata", "namespace"], namespace.into());
    copy.set(&["metadata", "labels"], Value::Object(labels_of(original)));
    copy.set_label(names::OWNER_NAMESPACE, namespace);
    copy.set_label(names::COPIED_FROM, version.namespace());
    let owner = json!({
        "apiVersion": version.api_version(), "kind": version.kind(), "name": version.name(),
        "uid": owner, "controller": false, "blockOwnerDeletion": false,
    });
    copy.set(&["metadata", "ownerReferences"], json!([owner]));
    for field in fields {
        copy.set(&[field], original.get(&[field]).cloned().unwrap_or_default());
    }
    context
        .cluster
        .ensure(resource, &copy)
        .await
        .doing("copying a role into a target namespace")?;
    Ok(())
}

async fn read(
    context: &Context,
    resource: &Resource,
    key: &NamespacedName,
) -> Result<Option<Object>, Error> {
    context
        .cluster
        .find(resource, key.namespace(), &key.name)
        .await
        .doing("reading a role of a version")
}

/// Creates what is not in the cache; that it exists already means that the cache lags.
async fn create(context: &Context, resource: &Resource, object: &Object) -> Result<(), Error> {
    match context.cluster.create(resource, object).await {
        Err(error) if !error.is_already_exists() => Err(error).doing("creating a cluster role"),
        _ => Ok(()),
    }
}

/// Sees that there are roles for those who use what a running version provides; writes only what is
/// not there.
pub(crate) async fn ensure_usable(
    context: &Context,
    csv: &ClusterServiceVersion,
) -> Result<(), Error> {
    for crd in &csv.spec.custom_resource_definitions.owned {
        let Some((plural, group)) = crd.name.split_once('.') else { continue };
        let Some(facts) = context.caches.crds.get(&NamespacedName::cluster(crd.name.as_str()))
        else {
            continue;
        };
        let api =
            Api { group: group.to_owned(), version: crd.version.clone(), kind: crd.kind.clone() };
        let owner = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "customresourcedefinition",
            "name": crd.name,
            "uid": facts.uid,
            "controller": false,
            "blockOwnerDeletion": false,
        });
        forget_predecessors(context, csv, &crd.name, &facts.alongside).await?;
        let prefix = format!("{}-{}-", crd.name, crd.version);
        let mut wanted: Vec<(String, &str, Value)> = roles::VERBS
            .iter()
            .map(|(suffix, verbs)| {
                let rule = json!({"apiGroups": [group], "resources": [plural], "verbs": verbs});
                (format!("{prefix}{suffix}"), *suffix, rule)
            })
            .collect();
        wanted.push((
            format!("{prefix}crdview"),
            "view",
            json!({
                "apiGroups": ["apiextensions.k8s.io"],
                "resources": ["customresourcedefinitions"],
                "resourceNames": [crd.name],
                "verbs": ["get"],
            }),
        ));
        for (name, suffix, rule) in wanted {
            ensure_role(context, &name, suffix, &api, &rule, &owner).await?;
        }
    }
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for it in &csv.spec.api_service_definitions.owned {
        let service = asked::api_service(&it.group, &it.version);
        let Some(facts) = context.caches.api_services.get(&NamespacedName::cluster(&*service))
        else {
            continue;
        };
        let api =
            Api { group: it.group.clone(), version: it.version.clone(), kind: it.kind.clone() };
        let owner = json!({
            "apiVersion": known::API_SERVICE.api_version(),
            "kind": known::API_SERVICE.kind,
            "name": service,
            "uid": facts.uid,
            "controller": false,
            "blockOwnerDeletion": false,
        });
        for (suffix, verbs) in roles::VERBS {
            let rule = json!({"apiGroups": [it.group], "resources": [it.name], "verbs": verbs});
            // The original's names leave out the group: another one may have the name already.
            let mut name = format!("{}-{}-{suffix}", it.name, it.version);
            let taken = context.caches.cluster_roles.get(&NamespacedName::cluster(&*name));
            let of_others = taken.is_some_and(|it| it.owners.iter().any(|it| it.name != service));
            if of_others || given.get(&name).is_some_and(|it| *it != service) {
                name = format!("{}.{}-{}-{suffix}", it.name, it.group, it.version);
            }
            given.insert(name.clone(), service.clone());
            ensure_role(context, &name, suffix, &api, &rule, &owner).await?;
        }
    }
    Ok(())
}

/// Sees that there is a role for those who use an API.
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
    if present.is_some_and(|it| is_as_wanted(&it, &labels, rule, uid)) {
        return Ok(());
    }
    let mut role = Object::new(&known::CLUSTER_ROLE.gvk(), name);
    for (key, value) in &labels {
        role.set_label(key, *value);
    }
    role.set(&["metadata", "ownerReferences"], json!([owner]));
    role.set(&["rules"], json!([rule]));
    context
        .cluster
        .ensure(&known::CLUSTER_ROLE, &role)
        .await
        .doing("creating a role for a provided API")
        .map(drop)
}

/// A definition names the versions that it was installed with; those of this namespace that are
/// gone are taken off it.
///
/// A version exists before a definition names it. So what the definition names now and the API does
/// not know afterwards is gone; caches may know of the one and not yet of the other.
async fn forget_predecessors(
    context: &Context,
    csv: &ClusterServiceVersion,
    crd: &str,
    alongside: &[NamespacedName],
) -> Result<(), Error> {
    let gone = |it: &&NamespacedName| {
        *it.namespace == *csv.metadata.namespace
            && *it.name != *csv.metadata.name
            && context.caches.csvs.get(it).is_none()
    };
    if !alongside.iter().any(|it| gone(&it)) {
        return Ok(());
    }
    let live = context.cluster.find(&known::CUSTOM_RESOURCE_DEFINITION, None, crd).await;
    let Some(live) = live.doing("reading a definition")? else { return Ok(()) };
    let mut stale = Map::new();
    for it in facts::alongside(&live).iter().filter(gone) {
        let resource = &resources::CLUSTER_SERVICE_VERSION;
        let found = context.cluster.find(resource, it.namespace(), &it.name).await;
        if found.doing("looking for a version")?.is_none() {
            stale.insert(definition::alongside_key(it), Value::Null);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({"metadata": {
        "resourceVersion": live.resource_version(), "annotations": stale,
    }}));
    match context.cluster.patch(&known::CUSTOM_RESOURCE_DEFINITION, None, crd, &patch).await {
        Err(error) if !error.is_not_found() => Err(error).doing("cleaning a definition"),
        _ => Ok(()),
    }
}

fn is_as_wanted(role: &Role, labels: &[(String, &str)], rule: &Value, owner: &str) -> bool {
    let rule: Rule = serde_json::from_value(rule.clone()).unwrap_or_default();
    role.rules == [rule]
        && role.owners.iter().any(|it| it.uid == owner)
        && labels
            .iter()
            .all(|(key, value)| role.labels.get(key).map(String::as_str) == Some(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_role_of_the_same_name_is_lifted_only_if_it_is_the_role_and_the_namespaces() {
        let role = |rules: Value| Role {
            rules: serde_json::from_value(rules).unwrap(),
            ..Role::default()
        };
        let rule = |thing: &str| json!({"apiGroups": [""], "resources": [thing], "verbs": ["get"]});
        let own = role(json!([rule("pods"), rule("secrets")]));
        let table = [
            (json!([rule("pods"), rule("secrets"), see_namespaces()]), true),
            (json!([rule("pods"), rule("secrets")]), false),
            (json!([rule("pods"), see_namespaces()]), false),
            (json!([see_namespaces(), rule("pods"), rule("secrets")]), false),
            (json!([]), false),
        ];
        for (rules, wanted) in table {
            assert_eq!(is_lifted(&own, &role(rules.clone())), wanted, "{rules}");
        }
    }
}
