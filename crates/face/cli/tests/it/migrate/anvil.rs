//! The operator that the tests move: its bundle, its catalog and its Subscription.

use super::super::live_cluster::{CATALOG_NAMESPACE, line};
use base64::Engine as _;
use serde_json::{Value, json};

/// The name of its ClusterServiceVersion.
pub(super) const CSV: &str = "anvil.v1.0.0";
/// The image of its bundle.
pub(super) const IMAGE: &str = "r.example/anvil:v1.0.0";

/// Its ClusterServiceVersion.
pub(super) fn csv() -> Value {
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"]
        .map(|mode| json!({"type": mode, "supported": mode != "MultiNamespace"}));
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]);
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {"name": CSV, "annotations": {"categories": "Tools"}},
        "spec": {
            "displayName": "Anvil", "version": "1.0.0", "installModes": modes,
            "customresourcedefinitions": {"owned": [
                {"name": "anvils.forge.example.com", "kind": "Anvil", "version": "v1"},
            ]},
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": "anvil", "rules": rules}],
                "clusterPermissions": [{"serviceAccountName": "anvil", "rules": rules}],
                "deployments": [{"name": "anvil", "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "anvil"}},
                    "template": {
                        "metadata": {"labels": {"app": "anvil"}, "annotations": {"own": "1"}},
                        "spec": {"serviceAccountName": "anvil", "containers": [{
                            "name": "main", "image": "example.com/anvil:v1",
                            "env": [{"name": "MODE", "value": "fast"}],
                            "resources": {"requests": {"cpu": "10m"}},
                        }]},
                    },
                }}],
            }},
        },
    })
}

/// The manifests of its bundle, by path.
pub(super) fn manifests() -> [(&'static str, Value); 4] {
    [
        ("manifests/csv.yaml", csv()),
        (
            "manifests/crd.yaml",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "anvils.forge.example.com"},
                "spec": {
                    "group": "forge.example.com", "scope": "Namespaced",
                    "names": {
                        "kind": "Anvil", "listKind": "AnvilList",
                        "plural": "anvils", "singular": "anvil",
                    },
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                        "openAPIV3Schema": {
                            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        },
                    }}],
                },
            }),
        ),
        (
            "manifests/settings.yaml",
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "anvil-settings"},
                "data": {"mode": "fast"},
            }),
        ),
        (
            "manifests/readers.yaml",
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": "anvil-readers"},
                "rules": [{
                    "apiGroups": ["forge.example.com"], "resources": ["anvils"], "verbs": ["get"],
                }],
            }),
        ),
    ]
}

/// A catalog with a bundle of these manifests.
pub(super) fn documents(manifests: &[(&str, Value)]) -> String {
    let object = |(_, manifest): &(&str, Value)| {
        let data = base64::engine::general_purpose::STANDARD.encode(manifest.to_string());
        json!({"type": "olm.bundle.object", "value": {"data": data}})
    };
    let mut properties =
        vec![json!({"type": "olm.package", "value": {"packageName": "anvil", "version": "1.0.0"}})];
    properties.extend(manifests.iter().map(object));
    [
        json!({"schema": "olm.package", "name": "anvil", "defaultChannel": "stable"}),
        json!({
            "schema": "olm.channel", "name": "stable", "package": "anvil",
            "entries": [{"name": CSV}],
        }),
        json!({
            "schema": "olm.bundle", "name": CSV, "package": "anvil", "image": IMAGE,
            "properties": properties,
        }),
    ]
    .iter()
    .map(line)
    .collect()
}

/// A Subscription of the package `anvil`.
pub(super) fn subscription(name: &str) -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {
            "name": "anvil", "channel": "stable",
            "source": "cat", "sourceNamespace": CATALOG_NAMESPACE,
        },
    })
}
