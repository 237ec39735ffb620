//! The documented installer role: the complete example of the documentation.

use crate::read_yaml;
use mainstay_permissions::{
    DocumentedBundle, InstallerNames, InstallerObjects, RbacRule, documented_installer_role,
    to_yaml,
};
use serde_json::{Value, json};

/// The rules of the example, one in a line: API groups | resources | verbs | names. `-` is the core group.
const RULES: &str = include_str!("documented_rules.txt");

const NAMES: [&str; 10] = [
    "tektonconfigs",
    "manualapprovalgates",
    "openshiftpipelinesascodes",
    "tektonaddons",
    "tektonchains",
    "tektonhubs",
    "tektoninstallersets",
    "tektonpipelines",
    "tektonresults",
    "tektontriggers",
];

/// The rules of the example.
fn rules() -> Vec<Value> {
    let rules = RULES.lines().map(|line| {
        let mut columns = line.split('|').map(|column| {
            let words = column.split_whitespace();
            words.map(|word| if word == "-" { String::new() } else { word.to_owned() }).collect()
        });
        let mut next = || columns.next().unwrap_or_default();
        let (api_groups, resources, verbs, resource_names) = (next(), next(), next(), next());
        RbacRule { api_groups, resources, verbs, resource_names, ..RbacRule::default() }.to_value()
    });
    rules.collect()
}

/// The CSV of the example: the rules 8 to 35 are its permissions.
fn csv() -> Value {
    let deployment = |name: &str| {
        json!({"name": name, "spec": {"template": {"spec": {
            "serviceAccountName": "openshift-pipelines-operator",
        }}}})
    };
    json!({
        "kind": "ClusterServiceVersion",
        "spec": {"install": {"spec": {
            "clusterPermissions": [
                {"serviceAccountName": "openshift-pipelines-operator", "rules": rules()[7..35]},
            ],
            "deployments": [
                deployment("openshift-pipelines-operator"),
                deployment("tekton-operator-webhook"),
            ],
        }}},
    })
}

/// The other manifests of the example, by the names of their files.
fn manifests() -> Vec<Value> {
    let mut manifests: Vec<Value> = NAMES
        .iter()
        .map(|plural| {
            json!({
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.operator.tekton.dev")},
                "spec": {"group": "operator.tekton.dev"},
            })
        })
        .collect();
    for (kind, name) in [
        ("ConfigMap", "config-logging"),
        ("ServiceMonitor", "openshift-pipelines-operator-monitor"),
        ("RoleBinding", "openshift-pipelines-operator-prometheus-k8s-read-binding"),
        ("Role", "openshift-pipelines-operator-read"),
        ("ConfigMap", "tekton-config-defaults"),
        ("ConfigMap", "tekton-config-observability"),
        ("ClusterRoleBinding", "tekton-config-read-rolebinding"),
        ("ClusterRole", "tekton-config-read-role"),
        ("ConfigMap", "tekton-operator-controller-config-leader-election"),
        ("RoleBinding", "tekton-operator-info"),
        ("Role", "tekton-operator-info"),
        ("ConfigMap", "tekton-operator-info"),
        ("Service", "tekton-operator"),
        ("Secret", "tekton-operator-webhook-certs"),
        ("ConfigMap", "tekton-operator-webhook-config-leader-election"),
        ("Service", "tekton-operator-webhook"),
        ("ClusterRoleBinding", "tekton-result-read-rolebinding"),
        ("ClusterRole", "tekton-result-read-role"),
        // The example has a rule for it, but no file.
        ("Service", "openshift-pipelines-operator-monitor"),
    ] {
        manifests.push(json!({"kind": kind, "metadata": {"name": name}}));
    }
    manifests
}

fn pipelines() -> InstallerNames {
    InstallerNames {
        extension: "pipes".to_owned(),
        prefix: "pipelines".to_owned(),
        namespace: "pipelines".to_owned(),
    }
}

#[test]
fn documented_role_is_that_of_the_complete_example() {
    let (csv, manifests) = (csv(), manifests());
    let bundle = DocumentedBundle { csv: &csv, manifests: &manifests };
    let role = documented_installer_role(bundle, &pipelines());
    // shows RBAC-19
    assert_eq!(role.name, "pipelines-installer-clusterrole");
    let found: Vec<Value> = role.rules.iter().map(RbacRule::to_value).collect();
    // shows RBAC-09 RBAC-20 RBAC-21 RBAC-24..RBAC-30 RBAC-36 AT-39
    assert_eq!(found, rules());
    assert_eq!(found.len(), 44);
}

#[test]
fn service_account_and_binding_have_the_documented_names() {
    let (csv, manifests) = (csv(), manifests());
    let role = documented_installer_role(
        DocumentedBundle { csv: &csv, manifests: &manifests },
        &pipelines(),
    );
    let values = InstallerObjects::new(&pipelines(), vec![role]).to_values();
    let expected = read_yaml(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {name: pipelines-installer, namespace: pipelines}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: pipelines-installer-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pipelines-installer-clusterrole}
subjects: [{kind: ServiceAccount, name: pipelines-installer, namespace: pipelines}]
",
    );
    // shows RBAC-05 RBAC-33 AT-40
    assert_eq!([&values[0], &values[2]], [&expected[0], &expected[1]], "{}", to_yaml(&values));
    assert_eq!(values[1]["kind"], "ClusterRole");
}

#[test]
fn a_bundle_without_objects_of_a_kind_has_no_rule_without_names() {
    let csv = json!({});
    let role =
        documented_installer_role(DocumentedBundle { csv: &csv, manifests: &[] }, &pipelines());
    assert_eq!(role.rules.len(), 5, "{:?}", role.rules);
}
