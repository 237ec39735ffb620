//! Bundle folders that use every feature of a ClusterServiceVersion.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn write(folder: &Path, name: &str, value: &Value) {
    fs::write(folder.join(name), format!("{value:#}")).unwrap();
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.forge.example.com")},
        "spec": {
            "group": "forge.example.com", "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}],
        },
    })
}

fn rules(resources: &[&str]) -> Value {
    json!([{"apiGroups": [""], "resources": resources, "verbs": ["get", "list"]}])
}

fn webhook(kind: &str, name: &str) -> Value {
    json!({
        "type": kind, "generateName": name, "deploymentName": "anvil", "containerPort": 443,
        "targetPort": 9443, "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "failurePolicy": "Ignore", "webhookPath": "/hook",
        "rules": [{
            "apiGroups": ["forge.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["anvils"],
        }],
    })
}

/// A ClusterServiceVersion with one owned kind, and one Deployment with Role and ClusterRole
/// permissions.
fn version(package: &str, version: &str, plural: &str, kind: &str, mode: &str) -> Value {
    let example = json!([{
        "apiVersion": "forge.example.com/v1", "kind": kind,
        "metadata": {"name": "example", "finalizers": []}, "spec": {},
    }]);
    let modes = ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"];
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": format!("{package}.v{version}"), "namespace": "placeholder",
            "annotations": {"alm-examples": example.to_string()},
        },
        "spec": {
            "version": version, "displayName": package,
            "installModes": modes.map(|mode_name| json!({"type": mode_name, "supported": mode_name == mode})),
            "customresourcedefinitions": {"owned": [{
                "name": format!("{plural}.forge.example.com"), "version": "v1", "kind": kind,
            }]},
            "install": {"strategy": "deployment", "spec": {
                "permissions": [{"serviceAccountName": package, "rules": rules(&["pods"])}],
                "clusterPermissions": [{"serviceAccountName": package, "rules": rules(&["nodes"])}],
                "deployments": [{"name": package, "spec": {
                    "replicas": 1, "selector": {"matchLabels": {"app": package}},
                    "template": {
                        "metadata": {"labels": {"app": package}},
                        "spec": {
                            "serviceAccountName": package,
                            "containers": [{"name": "main", "image": format!("example.com/{package}:{version}")}],
                        },
                    },
                }}],
            }},
        },
    })
}

fn bundle(folder: &Path, csv: &Value, others: &[Value], dependencies: &Value) {
    let name = csv["metadata"]["name"].as_str().unwrap();
    let (package, version) = name.split_once(".v").unwrap();
    let folder = folder.join(package).join(version);
    let (manifests, metadata) = (folder.join("manifests"), folder.join("metadata"));
    fs::create_dir_all(&manifests).unwrap();
    fs::create_dir_all(&metadata).unwrap();
    write(&manifests, "version.yaml", csv);
    for (at, object) in others.iter().enumerate() {
        write(&manifests, &format!("{at}.yaml"), object);
    }
    let annotations = json!({"annotations": {
        "operators.operatorframework.io.bundle.mediatype.v1": "registry+v1",
        "operators.operatorframework.io.bundle.manifests.v1": "manifests/",
        "operators.operatorframework.io.bundle.metadata.v1": "metadata/",
        "operators.operatorframework.io.bundle.package.v1": package,
        "operators.operatorframework.io.bundle.channels.v1": "stable",
        "operators.operatorframework.io.bundle.channel.default.v1": "stable",
    }});
    write(&metadata, "annotations.yaml", &annotations);
    write(&metadata, "dependencies.yaml", dependencies);
}

/// Bundle objects of every further kind; `suffix` makes their names differ between versions.
fn extras(suffix: &str) -> Vec<Value> {
    let named = |kind: &str, api: &str| {
        let name = format!("anvil-{}-{suffix}", kind.to_lowercase());
        json!({"apiVersion": api, "kind": kind, "metadata": {"name": name}})
    };
    let with = |kind: &str, api: &str, fields: Value| {
        let mut object = named(kind, api);
        object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        object
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let to = |kind: &str| {
        json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": format!("anvil-{}-{suffix}", kind.to_lowercase())},
            "subjects": [{"kind": "ServiceAccount", "name": format!("anvil-serviceaccount-{suffix}"), "namespace": "walk"}],
        })
    };
    vec![
        with("ConfigMap", "v1", json!({"data": {"a": "b"}})),
        with("Secret", "v1", json!({"stringData": {"a": "b"}})),
        with(
            "Service",
            "v1",
            json!({"spec": {"selector": {"app": "anvil"}, "ports": [{"port": 80}]}}),
        ),
        named("ServiceAccount", "v1"),
        with("Role", rbac, json!({"rules": rules(&["pods"])})),
        with("RoleBinding", rbac, to("Role")),
        with("ClusterRole", rbac, json!({"rules": rules(&["nodes"])})),
        with("ClusterRoleBinding", rbac, to("ClusterRole")),
        with("PriorityClass", "scheduling.k8s.io/v1", json!({"value": 7})),
        with(
            "PodDisruptionBudget",
            "policy/v1",
            json!({"spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "anvil"}}}}),
        ),
        with(
            "NetworkPolicy",
            "networking.k8s.io/v1",
            json!({"spec": {"podSelector": {"matchLabels": {"app": "anvil"}}}}),
        ),
        with(
            "ServiceMonitor",
            "monitoring.coreos.com/v1",
            json!({"spec": {"endpoints": [{"port": "web"}], "selector": {}}}),
        ),
    ]
}

/// Writes three packages. `anvil` has an extension API server, all three types of webhooks and
/// every further kind, under other names in each version. It requires `ore` and `coal`; `ore`
/// requires `coal`.
pub(crate) fn everything(folder: &Path) {
    let needs = |packages: &[&str]| {
        let one = |dependency: &&str| json!({"type": "olm.package", "value": {"packageName": dependency, "version": ">=1.0.0"}});
        json!({"dependencies": packages.iter().map(one).collect::<Vec<_>>()})
    };
    for number in ["1.0.0", "1.1.0"] {
        let mut csv = version("anvil", number, "anvils", "Anvil", "AllNamespaces");
        csv["spec"]["apiservicedefinitions"] = json!({"owned": [{
            "group": "api.example.com", "version": "v1", "kind": "Hearth", "name": "hearths",
            "deploymentName": "anvil", "containerPort": 5443,
        }]});
        let mut conversion = webhook("ConversionWebhook", "cvt.anvils.forge.example.com");
        conversion["conversionCRDs"] = json!(["anvils.forge.example.com"]);
        csv["spec"]["webhookdefinitions"] = json!([
            webhook("ValidatingAdmissionWebhook", "val.anvils.forge.example.com"),
            webhook("MutatingAdmissionWebhook", "mut.anvils.forge.example.com"),
            conversion,
        ]);
        let mut others = extras(&number.replace('.', "-"));
        let mut anvils = definition("anvils", "Anvil");
        anvils["spec"]["preserveUnknownFields"] = json!(false);
        others.push(anvils);
        bundle(folder, &csv, &others, &needs(&["ore", "coal"]));
    }
    let ore = version("ore", "1.0.0", "ores", "Ore", "AllNamespaces");
    bundle(folder, &ore, &[definition("ores", "Ore")], &needs(&["coal"]));
    let coal = version("coal", "1.0.0", "coals", "Coal", "AllNamespaces");
    bundle(folder, &coal, &[definition("coals", "Coal")], &needs(&[]));
}

/// Writes a package for OLM v1. `forge` has every further kind, under other names in each version;
/// 1.2.0 may break custom resources, and 1.3.0 has webhooks.
pub(crate) fn for_extensions(folder: &Path) {
    for number in ["1.0.0", "1.1.0", "1.2.0", "1.3.0"] {
        let mut csv = version("forge", number, "forges", "Forge", "AllNamespaces");
        if number == "1.3.0" {
            let mut webhook = webhook("ValidatingAdmissionWebhook", "val.forges.forge.example.com");
            webhook["deploymentName"] = json!("forge");
            let mut conversion = webhook.clone();
            conversion["type"] = json!("ConversionWebhook");
            conversion["generateName"] = json!("cvt.forges.forge.example.com");
            conversion["conversionCRDs"] = json!(["forges.forge.example.com"]);
            csv["spec"]["webhookdefinitions"] = json!([webhook, conversion]);
        }
        let mut others = extras(&number.replace('.', "-"));
        let mut forges = definition("forges", "Forge");
        forges["spec"]["preserveUnknownFields"] = json!(false);
        if ["1.2.0", "1.3.0"].contains(&number) {
            let schema = &mut forges["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["required"] = json!(["spec"]);
        }
        others.push(forges);
        bundle(folder, &csv, &others, &json!({"dependencies": []}));
    }
}
