//! Permissions: the RBAC objects and ServiceAccounts that the permissions of a CSV need.
//!
//! Data flow: `spec.install.spec.{permissions,clusterPermissions}` ─► [`generated`] ─► manifests,
//! with the names and hash labels of [`mainstay_controller::hash`] ─► steps of an InstallPlan.

use mainstay_api::{names, resources};
use mainstay_controller::{
    gojson::{self, GoType},
    hash,
};
use mainstay_object::Object;
use serde_json::{Map, Value, json};

/// The ServiceAccount that every namespace has, so it is never created.
const DEFAULT_ACCOUNT: &str = "default";
const RBAC: &str = "rbac.authorization.k8s.io";

/// An object to create for a CSV.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generated {
    /// Group of the object.
    pub(crate) group: &'static str,
    /// Kind of the object; all are of version `v1`.
    pub(crate) kind: &'static str,
    /// Name of the object.
    pub(crate) name: String,
    /// The object in the format of upstream's serializer, with a line feed at the end.
    pub(crate) manifest: String,
}

/// The `olm.owner*` labels that name the owner of an object.
pub(crate) fn owner_labels(kind: &str, namespace: &str, name: &str) -> Map<String, Value> {
    [(names::OWNER, name), (names::OWNER_KIND, kind), (names::OWNER_NAMESPACE, namespace)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect()
}

/// An owner reference to a CSV, neither controlling nor blocking. The uid is empty until the CSV
/// exists.
pub(crate) fn csv_owner(name: &str, uid: &str) -> Value {
    json!({
        "apiVersion": resources::CLUSTER_SERVICE_VERSION.api_version(),
        "kind": resources::CLUSTER_SERVICE_VERSION.kind,
        "name": name,
        "uid": uid,
        "controller": false,
        "blockOwnerDeletion": false,
    })
}

/// All objects that the permissions of a CSV need, by ServiceAccount in order of first appearance:
/// the ServiceAccount, Roles, RoleBindings, ClusterRoles, ClusterRoleBindings.
pub(crate) fn generated(csv: &Object) -> Vec<Generated> {
    let permissions = csv.array(&["spec", "install", "spec", "permissions"]);
    let cluster = csv.array(&["spec", "install", "spec", "clusterPermissions"]);
    let mut accounts: Vec<(&str, bool)> = Vec::new();
    for (entry, namespaced) in permissions
        .iter()
        .map(|entry| (entry, true))
        .chain(cluster.iter().map(|permission| (permission, false)))
    {
        let account = account_of(entry);
        if !accounts.iter().any(|(known, _)| *known == account) {
            accounts.push((account, namespaced));
        }
    }
    let mut out = Vec::new();
    for (account, namespaced) in accounts {
        if account != DEFAULT_ACCOUNT {
            out.push(service_account(csv, account, namespaced));
        }
        let own = |entry: &&Value| account_of(entry) == account;
        let (roles, bindings): (Vec<_>, Vec<_>) =
            permissions.iter().filter(own).map(|entry| role(csv, account, entry)).unzip();
        out.extend(roles.into_iter().chain(bindings));
        let (roles, bindings): (Vec<_>, Vec<_>) =
            cluster.iter().filter(own).map(|entry| cluster_role(csv, account, entry)).unzip();
        out.extend(roles.into_iter().chain(bindings));
    }
    out
}

/// A namespaced permission of a CSV, with the contents of its RBAC objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NamespacedPermission {
    /// The name of its Role and RoleBinding.
    pub(crate) name: String,
    /// The ServiceAccount that has it.
    pub(crate) account: String,
    /// Its rules.
    pub(crate) rules: Value,
    /// The subjects of its RoleBinding.
    pub(crate) subjects: Value,
    /// The labels of its Role.
    pub(crate) role_labels: Map<String, Value>,
    /// The labels of its RoleBinding.
    pub(crate) binding_labels: Map<String, Value>,
}

/// The namespaced permissions of a CSV, each name once.
///
/// They are computed from the CSV alone, as any admin of its namespace can edit Roles and
/// RoleBindings there.
pub(crate) fn namespaced(csv: &Object) -> Vec<NamespacedPermission> {
    let mut all: Vec<NamespacedPermission> = Vec::new();
    for permission in csv.array(&["spec", "install", "spec", "permissions"]) {
        let account = account_of(permission);
        let name = hash::role_name(csv.name(), account, permission);
        if all.iter().any(|object| object.name == name) {
            continue;
        }
        let rules = permission.get("rules").cloned().unwrap_or_default();
        let subjects = subjects(csv, account);
        let role_ref = json!({"apiGroup": RBAC, "kind": "Role", "name": name});
        let managed = |hash: String| {
            let mut labels = labels(csv, hash);
            labels.insert(names::MANAGED.to_owned(), names::MANAGED_VALUE.into());
            labels
        };
        all.push(NamespacedPermission {
            role_labels: managed(hash::rules(&rules)),
            binding_labels: managed(hash::binding(&role_ref, &subjects)),
            account: account.to_owned(),
            name,
            rules,
            subjects,
        });
    }
    all
}

/// The names of the ClusterRoles for the cluster permissions of a CSV.
pub(crate) fn cluster_role_names(csv: &Object) -> impl Iterator<Item = String> {
    let permissions = csv.array(&["spec", "install", "spec", "clusterPermissions"]);
    permissions
        .iter()
        .map(|permission| hash::cluster_role_name(csv.name(), csv.namespace(), permission))
}

fn account_of(permission: &Value) -> &str {
    permission.get("serviceAccountName").and_then(Value::as_str).unwrap_or_default()
}

fn service_account(csv: &Object, account: &str, namespaced: bool) -> Generated {
    let mut metadata = json!({"name": account, "ownerReferences": [csv_owner(csv.name(), "")]});
    if namespaced {
        metadata["namespace"] = csv.namespace().into();
    }
    manifest("", "ServiceAccount", account, GoType::ServiceAccount, &json!({"metadata": metadata}))
}

fn subjects(csv: &Object, account: &str) -> Value {
    json!([{"kind": "ServiceAccount", "name": account, "namespace": csv.namespace()}])
}

fn labels(csv: &Object, hash: String) -> Map<String, Value> {
    let mut labels = owner_labels(csv.kind(), csv.namespace(), csv.name());
    labels.insert(names::PERMISSIONS_HASH.to_owned(), hash.into());
    labels
}

fn role(csv: &Object, account: &str, permission: &Value) -> (Generated, Generated) {
    let rules = permission.get("rules").cloned().unwrap_or_default();
    let name = hash::role_name(csv.name(), account, permission);
    let metadata = |hash: String| {
        json!({
            "name": name,
            "namespace": csv.namespace(),
            "labels": labels(csv, hash),
            "ownerReferences": [csv_owner(csv.name(), "")],
        })
    };
    let role_ref = json!({"apiGroup": RBAC, "kind": "Role", "name": name});
    let subjects = subjects(csv, account);
    let role = json!({"metadata": metadata(hash::rules(&rules)), "rules": rules});
    let binding = json!({
        "metadata": metadata(hash::binding(&role_ref, &subjects)),
        "roleRef": role_ref,
        "subjects": subjects,
    });
    (
        manifest(RBAC, "Role", &name, GoType::Role, &role),
        manifest(RBAC, "RoleBinding", &name, GoType::RoleBinding, &binding),
    )
}

fn cluster_role(csv: &Object, account: &str, permission: &Value) -> (Generated, Generated) {
    let rules = permission.get("rules").cloned().unwrap_or_default();
    let name = hash::cluster_role_name(csv.name(), csv.namespace(), permission);
    let role_ref = json!({"apiGroup": RBAC, "kind": "ClusterRole", "name": name});
    let subjects = subjects(csv, account);
    let role = json!({
        "metadata": {"name": name, "labels": labels(csv, hash::rules(&rules))},
        "rules": rules,
    });
    // A ClusterRoleBinding has no namespace, yet upstream's manifests have the field.
    let binding = json!({
        "metadata": {
            "name": name,
            "namespace": csv.namespace(),
            "labels": labels(csv, hash::binding(&role_ref, &subjects)),
        },
        "roleRef": role_ref,
        "subjects": subjects,
    });
    (
        manifest(RBAC, "ClusterRole", &name, GoType::Role, &role),
        manifest(RBAC, "ClusterRoleBinding", &name, GoType::RoleBinding, &binding),
    )
}

fn manifest(
    group: &'static str,
    kind: &'static str,
    name: &str,
    ty: GoType,
    object: &Value,
) -> Generated {
    let mut manifest = gojson::encode(ty, object);
    manifest.push('\n');
    Generated { group, kind, name: name.to_owned(), manifest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csv(permissions: &Value, cluster: &Value) -> Object {
        Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": "a.v1", "namespace": "ns"},
            "spec": {"install": {"strategy": "deployment", "spec": {
                "permissions": permissions, "clusterPermissions": cluster,
            }}},
        }))
        .unwrap()
    }

    #[test]
    fn objects_are_ordered_by_service_account_and_the_default_one_is_not_created() {
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        let generated_objects = generated(&csv(
            &json!([
                {"serviceAccountName": "one", "rules": rules},
                {"serviceAccountName": "default", "rules": rules},
            ]),
            &json!([{"serviceAccountName": "one", "rules": rules}]),
        ));
        let kinds: Vec<&str> = generated_objects.iter().map(|object| object.kind).collect();
        // shows R038 R039
        assert_eq!(
            kinds,
            [
                "ServiceAccount",
                "Role",
                "RoleBinding",
                "ClusterRole",
                "ClusterRoleBinding",
                "Role",
                "RoleBinding"
            ]
        );
    }

    #[test]
    fn the_manifest_of_a_role_matches_the_recorded_one() {
        let rules = json!([{
            "apiGroups": [""], "resources": ["configmaps"],
            "verbs": ["get", "list", "watch", "create", "update"],
        }]);
        let mut csv =
            csv(&json!([{"serviceAccountName": "anvil-c019-sa", "rules": rules}]), &json!([]));
        csv.set(&["metadata", "name"], "anvil-c019.v1.0.0".into());
        csv.set(&["metadata", "namespace"], "c019".into());
        let generated_objects = generated(&csv);
        assert_eq!(
            generated_objects[0].manifest,
            "{\"metadata\":{\"name\":\"anvil-c019-sa\",\"namespace\":\"c019\",\"ownerReferences\":[{\"apiVersion\":\"operators.coreos.com/v1alpha1\",\"kind\":\"ClusterServiceVersion\",\"name\":\"anvil-c019.v1.0.0\",\"uid\":\"\",\"controller\":false,\"blockOwnerDeletion\":false}]}}\n"
        );
        // shows IP-09
        assert_eq!(
            generated_objects[1].manifest,
            "{\"metadata\":{\"name\":\"anvil-c019.v1.0.0-anvil--aspd4XDVx9VKObpruiegGekQHprtKITMNaCRLy\",\"namespace\":\"c019\",\"labels\":{\"olm.owner\":\"anvil-c019.v1.0.0\",\"olm.owner.kind\":\"ClusterServiceVersion\",\"olm.owner.namespace\":\"c019\",\"olm.permissions.hash\":\"7nshezlauGzI6D1amhN0FlAc8bYAjLo6mD4teS\"},\"ownerReferences\":[{\"apiVersion\":\"operators.coreos.com/v1alpha1\",\"kind\":\"ClusterServiceVersion\",\"name\":\"anvil-c019.v1.0.0\",\"uid\":\"\",\"controller\":false,\"blockOwnerDeletion\":false}]},\"rules\":[{\"verbs\":[\"get\",\"list\",\"watch\",\"create\",\"update\"],\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"]}]}\n"
        );
    }
}
