//! Differences between versions, and roles for users.

use crate::{read_manifest, read_yaml, user};
use mainstay_permissions::{
    AccessRequest, ExtensionApplier, GrantedRules, RbacObjects, RbacSubject, RequiredPermissions,
    difference, to_yaml, user_access_roles,
};
use serde_json::json;

const OLD: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: teapot}
rules:
- {apiGroups: [''], resources: [pods, services], verbs: [get, list]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: here}
";

const NEW: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: teapot}
rules:
- {apiGroups: ['', apps], resources: [pods, deployments], verbs: [get]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: here}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: here}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c, namespace: here}
";

fn required(text: &str) -> RequiredPermissions {
    RequiredPermissions::new(&read_manifest(text, "here"), "teapot", &ExtensionApplier::Helm)
}

#[test]
fn a_new_version_needs_more_and_less() {
    let found = difference(&required(OLD), &required(NEW)).unwrap();
    assert_eq!(
        found.to_string(),
        "needs in addition:
in the whole cluster:
  get deployments
  get deployments.apps
  get pods.apps
in namespace here:
  delete, get, patch, update configmaps: b, c
no longer needs:
in the whole cluster:
  get, list services
  get /metrics
  list pods
"
    );
    let same = difference(&required(OLD), &required(OLD)).unwrap();
    assert!(same.is_empty());
    assert_eq!(same.to_string(), "needs the same permissions\n");
}

const CRDS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teapots.brew.example.com}
spec: {group: brew.example.com, names: {plural: teapots}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cups.brew.example.com}
spec: {group: brew.example.com, names: {plural: cups}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
";

#[test]
fn users_view_edit_or_administer_the_custom_resources() {
    let crds = read_yaml(CRDS);
    let roles = user_access_roles("teapot", &crds, false);
    let rule = |verbs: &[&str]| json!([{"apiGroups": ["brew.example.com"], "resources": ["cups", "teapots"], "verbs": verbs}]);
    let expected = [
        ("teapot-view", rule(&["get", "list", "watch"])),
        ("teapot-edit", rule(&["get", "list", "watch", "create", "update", "patch", "delete"])),
        ("teapot-admin", rule(&["*"])),
    ];
    for (role, (name, rules)) in roles.iter().zip(expected) {
        // shows UAC-02 UAC-04
        assert_eq!((&role["metadata"], &role["rules"]), (&json!({"name": name}), &rules));
    }
    assert_eq!(roles.len(), 3);
    assert!(user_access_roles("teapot", &[], true).is_empty());
    let aggregated = user_access_roles("teapot", &crds, true);
    // shows UAC-07 UAC-08
    assert_eq!(
        to_yaml(&aggregated[..1]),
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  labels:
    rbac.authorization.k8s.io/aggregate-to-view: \"true\"
  name: teapot-view
rules:
- apiGroups:
  - brew.example.com
  resources:
  - cups
  - teapots
  verbs:
  - get
  - list
  - watch
"
    );
}

#[test]
fn users_get_access_in_a_namespace_or_in_the_whole_cluster() {
    let bindings = read_yaml(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: teapot-view-binding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: teapot-view}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: baristas}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: teapot-edit-binding, namespace: kitchen}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: teapot-edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: earl}]
",
    );
    let roles = user_access_roles("teapot", &read_yaml(CRDS), false);
    let objects = RbacObjects::from_objects(roles.iter().chain(&bindings));
    let may = |user: &RbacSubject, verb: &str, namespace: &str| {
        let (group, resource) = ("brew.example.com", "teapots");
        let request = AccessRequest { verb, group, resource, namespace, name: "" };
        GrantedRules::new(&objects, user).allow(&request)
    };
    let barista = user("grace", &["baristas"]);
    // shows UAC-05 UAC-06
    assert!(may(&barista, "list", "") && may(&barista, "list", "kitchen"));
    assert!(!may(&barista, "create", "kitchen"));
    let earl = user("earl", &[]);
    assert!(may(&earl, "create", "kitchen"));
    assert!(!may(&earl, "create", "hall") && !may(&earl, "list", ""));
}
