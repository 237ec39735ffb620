//! User CSVs: ClusterServiceVersions that users create with their requirements, without catalog and
//! InstallPlan.

use crate::olm_cluster::{OlmCluster, create_namespace};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION as CSV;
use mainstay_client::{Cluster, DeleteOptions, Patch};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};

const REVIEW: Resource = Resource::namespaced(
    "authorization.k8s.io",
    "v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
);

pub(crate) fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

/// A Deployment for the install strategy of a CSV; its pods use the default ServiceAccount.
pub(crate) fn deployment(name: &str) -> Value {
    json!({"name": name, "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "example.com/x:1"}]},
        },
    }})
}

/// A CSV with these Deployments that supports all install modes.
pub(crate) fn csv_in(namespace: &str, name: &str, deployments: &[Value]) -> Value {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": true}));
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "displayName": name, "version": "1.0.0", "minKubeVersion": "0.0.0",
            "installModes": modes,
            "install": {"strategy": "deployment", "spec": {"deployments": deployments}},
        },
    })
}

/// A CRD with these versions; the first one is the storage version.
pub(crate) fn crd_for(plural: &str, versions: &[&str]) -> Object {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, name)| {
            json!({"name": name, "served": true, "storage": at == 0, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }})
        })
        .collect();
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.cluster.com")},
        "spec": {
            "group": "cluster.com", "scope": "Namespaced", "versions": versions,
            "names": {
                "kind": plural, "listKind": format!("{plural}list"), "plural": plural,
                "singular": plural,
            },
        },
    }))
}

/// A CRD description in the spec of a CSV.
pub(crate) fn crd_description(plural: &str, version: &str) -> Value {
    json!({
        "name": format!("{plural}.cluster.com"), "version": version, "kind": plural,
        "displayName": plural, "description": plural,
    })
}

/// Adds an owned CRD to a CSV.
pub(crate) fn with_owned_crd(mut csv: Value, plural: &str) -> Value {
    csv["spec"]["customresourcedefinitions"]["owned"] = json!([crd_description(plural, "v1")]);
    csv
}

/// Adds permissions for a ServiceAccount to a CSV; `field` is `permissions` or
/// `clusterPermissions`.
pub(crate) fn with_permissions(mut csv: Value, field: &str, account: &str, rules: &Value) -> Value {
    csv["spec"]["install"]["spec"][field] =
        json!([{"serviceAccountName": account, "rules": rules}]);
    csv
}

/// Creates a CSV.
pub(crate) async fn create_csv(olm: &OlmCluster, csv: Value) -> Object {
    olm.cluster.cluster().create(&CSV, &object(csv)).await.unwrap()
}

/// Waits until a CSV has a phase.
#[track_caller]
pub(crate) fn wait_for_phase(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    phase: &'static str,
) -> impl Future<Output = Object> + Send + use<> {
    let at = move |csv: &Object| csv.str(&["status", "phase"]) == Some(phase);
    olm.cluster.wait_for(&CSV, Some(namespace), name, at)
}

/// Waits until a CSV has a phase and reason.
#[track_caller]
pub(crate) fn wait_for_reason(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    phase: &'static str,
    reason: &'static str,
) -> impl Future<Output = Object> + Send + use<> {
    let at = move |csv: &Object| {
        csv.str(&["status", "phase"]) == Some(phase)
            && csv.str(&["status", "reason"]) == Some(reason)
    };
    olm.cluster.wait_for(&CSV, Some(namespace), name, at)
}

/// Patches a CSV.
pub(crate) async fn patch_csv(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    body: Value,
) -> Object {
    let patch = Patch::Merge(body);
    olm.cluster.cluster().patch(&CSV, Some(namespace), name, &patch).await.unwrap()
}

/// Deletes an object.
pub(crate) async fn delete_object(
    olm: &OlmCluster,
    resource: &Resource,
    namespace: Option<&str>,
    name: &str,
) {
    let options = DeleteOptions::default();
    olm.cluster.cluster().delete(resource, namespace, name, &options).await.unwrap();
}

/// Applies an OperatorGroup that targets these namespaces; none means all.
pub(crate) async fn apply_group(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    targets: &[&str],
) -> Object {
    let mut group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": namespace}, "spec": {},
    });
    if !targets.is_empty() {
        group["spec"]["targetNamespaces"] = targets.into();
    }
    olm.cluster.apply(object(group)).await
}

/// A cluster with these namespaces; an OperatorGroup in `team` targets `team`.
pub(crate) async fn olm_with_namespaces(namespaces: &[&str]) -> OlmCluster {
    let olm = OlmCluster::start(&[]).await;
    olm.apply_group("og").await;
    for namespace in namespaces {
        create_namespace(&olm.cluster, namespace, "").await;
    }
    olm
}

/// Applies a ServiceAccount with a Role and its RoleBinding.
pub(crate) async fn create_account(olm: &OlmCluster, namespace: &str, name: &str, rules: &Value) {
    let metadata = json!({"name": name, "namespace": namespace});
    for manifest in [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": metadata, "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }),
    ] {
        olm.cluster.apply(object(manifest)).await;
    }
}

/// Whether RBAC allows a ServiceAccount a verb on a resource.
pub(crate) async fn is_allowed(
    account: &Cluster,
    (group, resource): (&str, &str),
    verb: &str,
    namespace: &str,
) -> bool {
    let review = object(json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": group, "resource": resource, "verb": verb, "namespace": namespace,
        }},
    }));
    let answer = account.create(&REVIEW, &review).await.unwrap();
    answer.get(&["status", "allowed"]) == Some(&true.into())
}

/// Waits for a Deployment.
#[track_caller]
pub(crate) fn wait_for_deployment(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
) -> impl Future<Output = Object> + Send + use<> {
    olm.cluster.wait_for(&builtin::DEPLOYMENT, Some(namespace), name, |_| true)
}
