//! The preflight of permissions, rule by rule.

use crate::read_yaml;
use mainstay_permissions::{
    BundleKinds, ExtensionApplier, GrantedRules, InstallManifest, MissingPermissions, RbacObjects,
    RbacSubject, missing_permissions, report_line,
};
use std::fmt::Write as _;

/// The manifest of upstream's tests: a Service, a Role and its RoleBinding in a namespace.
fn upstream(namespace: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: test-service, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: test-extension-role, namespace: {namespace}}}
rules:
- {{apiGroups: ['*'], resources: [serviceaccounts], verbs: [watch]}}
- {{apiGroups: ['*'], resources: [certificates], verbs: [create]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: test-extension-binding, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: test-extension-role}}
subjects: [{{kind: ServiceAccount, name: test-serviceaccount, namespace: {namespace}}}]
"
    )
}

/// A ClusterRole for the account of the extension, as rules in YAML.
fn cluster_role(rules: &str) -> String {
    format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: granted}}
rules: {rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: granted}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: granted}}
subjects: [{{kind: ServiceAccount, name: account, namespace: here}}]
"
    )
}

const ALL: &str = "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]";

fn check(manifest: &str, cluster: &str, applier: &ExtensionApplier) -> MissingPermissions {
    let objects = read_yaml(cluster);
    let existing = RbacObjects::from_objects(&objects);
    let granted = GrantedRules::new(&existing, &RbacSubject::service_account("here", "account"));
    let manifest = InstallManifest::new(&read_yaml(manifest), &BundleKinds, "here").unwrap();
    missing_permissions(&manifest, "teapot", applier, &granted, &existing).unwrap()
}

fn object_sets() -> ExtensionApplier {
    ExtensionApplier::ObjectSets { object_set: "teapot-1".to_owned() }
}

/// The missing rules in their order.
fn lines(missing: &MissingPermissions) -> String {
    let mut out = String::new();
    for scope in &missing.rules {
        for rule in &scope.rules {
            writeln!(out, "{}", report_line(&scope.namespace, rule)).unwrap();
        }
    }
    out
}

/// The missing rules of [`upstream`] in its namespace, in upstream's order.
fn upstream_lines(namespace: &str) -> String {
    [
        "APIGroups:[*] Resources:[certificates] Verbs:[create]",
        "APIGroups:[] Resources:[services] Verbs:[create]",
        "APIGroups:[rbac.authorization.k8s.io] Resources:[rolebindings] Verbs:[create]",
        "APIGroups:[rbac.authorization.k8s.io] Resources:[roles] Verbs:[create]",
        "APIGroups:[] Resources:[services] ResourceNames:[test-service] Verbs:[delete,get,patch,update]",
        "APIGroups:[rbac.authorization.k8s.io] Resources:[rolebindings] ResourceNames:[test-extension-binding] Verbs:[delete,get,patch,update]",
        "APIGroups:[rbac.authorization.k8s.io] Resources:[roles] ResourceNames:[test-extension-role] Verbs:[delete,get,patch,update]",
        "APIGroups:[*] Resources:[serviceaccounts] Verbs:[watch]",
    ]
    .map(|line| format!("Namespace:{namespace:?} {line}\n"))
    .concat()
}

const CLUSTER_LINES: &str = "\
Namespace:\"\" APIGroups:[] Resources:[services] Verbs:[list,watch]
Namespace:\"\" APIGroups:[rbac.authorization.k8s.io] Resources:[rolebindings] Verbs:[list,watch]
Namespace:\"\" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] Verbs:[list,watch]
";

#[test]
fn all_missing_rules_are_found_in_upstreams_order() {
    let helm = ExtensionApplier::Helm;
    let finalizers = "Namespace:\"\" APIGroups:[olm.operatorframework.io] \
        Resources:[clusterextensions/finalizers] ResourceNames:[teapot] Verbs:[update]\n";
    let one = check(&upstream("test-namespace"), "", &helm);
    // shows RBAC-09 OLMV1-147
    assert_eq!(
        lines(&one),
        CLUSTER_LINES.to_owned() + finalizers + &upstream_lines("test-namespace")
    );
    // shows OLMV1-146
    assert!(check(&upstream("test-namespace"), &cluster_role(ALL), &helm).is_empty());
    let two = upstream("test-namespace") + "---" + &upstream("a-test-namespace");
    // shows OLMV1-148
    assert_eq!(
        lines(&check(&two, "", &helm)),
        CLUSTER_LINES.to_owned()
            + finalizers
            + &upstream_lines("a-test-namespace")
            + &upstream_lines("test-namespace")
    );
    // shows OLMV1-150 OLMV1-151
    assert_eq!(
        lines(&check(&upstream("test-namespace"), "", &object_sets())),
        finalizers.replace("clusterextensions", "clusterobjectsets").replace("teapot", "teapot-1")
            + &upstream_lines("test-namespace")
    );
}

const ESCALATE: &str = "
- {apiGroups: ['*'], resources: [services, clusterextensions/finalizers], verbs: ['*']}
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, clusterroles, rolebindings, clusterrolebindings]
  verbs: [get, patch, watch, list, create, update, delete, escalate, bind]
";

#[test]
fn escalate_and_bind_replace_the_permissions_that_roles_grant() {
    let helm = ExtensionApplier::Helm;
    let cluster = cluster_role(ESCALATE);
    // shows OLMV1-149
    assert!(check(&upstream("here"), &cluster, &helm).is_empty());
    let without = cluster.replace(", escalate, bind]", "]");
    let missing = check(&upstream("here"), &without, &helm);
    let message = missing.condition_message().unwrap();
    // shows PRE-12 AT-42
    assert_eq!(
        message,
        "pre-authorization failed: service account requires the following permissions to manage cluster extension:
  Namespace:\"here\" APIGroups:[*] Resources:[certificates] Verbs:[create]
  Namespace:\"here\" APIGroups:[*] Resources:[serviceaccounts] Verbs:[watch]"
    );
    // A namespaced Role may grant the verbs; operator-controller does not see `escalate` there.
    let namespaced = without
        + "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: escalate, namespace: here}
rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate, bind]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: escalate, namespace: here}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: escalate}
subjects: [{kind: ServiceAccount, name: account}]
";
    let missing = check(&upstream("here"), &namespaced, &helm);
    assert!(missing.is_empty(), "{missing:?}");
    let missing = check(&upstream("there"), &namespaced, &helm);
    let there = message.replace("\"here\"", "\"there\"");
    assert_eq!(missing.condition_message(), Some(there));
}

#[test]
fn the_documented_report_has_its_two_lines() {
    let manifest = "
apiVersion: v1
kind: Service
metadata: {name: s, namespace: pipelines}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: pipelines}
";
    let cluster = cluster_role(
        "
- {apiGroups: [''], resources: [services], verbs: [create, get, update, patch, delete]}
- {apiGroups: [apps], resources: [deployments], verbs: [list, watch, get, update, patch, delete]}
- {apiGroups: [olm.operatorframework.io], resources: ['*/finalizers'], verbs: [update]}
",
    );
    // shows PRE-11 AT-41
    assert_eq!(
        check(manifest, &cluster, &ExtensionApplier::Helm).condition_message().unwrap(),
        "pre-authorization failed: service account requires the following permissions to manage cluster extension:
  Namespace:\"\" APIGroups:[] Resources:[services] Verbs:[list,watch]
  Namespace:\"pipelines\" APIGroups:[apps] Resources:[deployments] Verbs:[create]"
    );
}

#[test]
fn permissions_of_the_groups_of_a_service_account_count() {
    for group in ["system:serviceaccounts", "system:serviceaccounts:here", "system:authenticated"] {
        let subject = format!("{{kind: Group, name: '{group}'}}");
        let cluster = cluster_role(ALL)
            .replace("{kind: ServiceAccount, name: account, namespace: here}", &subject);
        assert!(cluster.contains(group), "{cluster}");
        let missing = check(&upstream("here"), &cluster, &ExtensionApplier::Helm);
        assert!(missing.is_empty(), "{group}: {missing:?}");
    }
    let other = cluster_role(ALL).replace("namespace: here", "namespace: there");
    assert!(!check(&upstream("here"), &other, &ExtensionApplier::Helm).is_empty());
}

const BINDING: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: missing-role}
subjects: [{kind: ServiceAccount, name: teapot, namespace: here}]
";

#[test]
fn a_binding_to_a_role_that_does_not_exist_is_an_evaluation_error() {
    let all_but_bind = "
- {apiGroups: ['*'], resources: ['*'], verbs: [create, get, list, watch, update, patch, delete]}
";
    let cluster = cluster_role(all_but_bind);
    let missing = check(BINDING, &cluster, &object_sets());
    // shows PRE-13 AT-43
    assert_eq!(
        missing.condition_message().unwrap(),
        "pre-authorization failed: authorization evaluation error: missing rules may be incomplete: failed to resolve \
         or evaluate permissions: Role.rbac.authorization.k8s.io \"missing-role\" not found"
    );
    // The API server lets an account bind a role by name, whether the role exists or not.
    assert!(check(BINDING, &cluster_role(ALL), &object_sets()).is_empty());
    let exists = cluster
        + "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: missing-role, namespace: here}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
";
    let missing = check(BINDING, &exists, &object_sets());
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn missing_roles_of_the_account_make_the_report_incomplete() {
    let cluster = cluster_role("[]").replace("name: granted}\nsubjects", "name: gone}\nsubjects");
    let missing = check(&upstream("here"), &cluster, &object_sets());
    let message = missing.condition_message().unwrap();
    let (_, error) = message.rsplit_once('\n').unwrap();
    assert_eq!(
        error,
        "authorization evaluation error: missing rules may be incomplete: failed to resolve or evaluate permissions: \
         [ClusterRole.rbac.authorization.k8s.io \"gone\" not found]"
    );
}

#[test]
fn an_aggregated_cluster_role_needs_all_permissions() {
    let aggregated = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: aggregated}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
";
    let missing = check(aggregated, &cluster_role(ALL), &object_sets());
    // The verb `*` includes `escalate`.
    assert!(missing.is_empty(), "{missing:?}");
    let most = ALL.replace("verbs: ['*']", "verbs: [create, get, update, patch, delete]");
    let missing = check(aggregated, &cluster_role(&most), &object_sets());
    assert_eq!(
        lines(&missing),
        "Namespace:\"\" APIGroups:[*] Resources:[*] Verbs:[*]\nNamespace:\"\" Verbs:[*] NonResourceURLs:[*]\n"
    );
}

#[test]
fn unknown_kinds_are_reported_in_upstreams_words() {
    let text = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: brew.example.com/v1, kind: Teapot, metadata: {name: brown}}
---
{apiVersion: v1, kind: Kettle}
";
    let error = InstallManifest::new(&read_yaml(text), &BundleKinds, "here").unwrap_err();
    // shows OLMV1-152
    assert_eq!(
        error.condition_message(),
        "pre-authorization failed: authorization evaluation error: could not get REST mapping for object 1 in \
         manifest with GVK brew.example.com/v1, Kind=Teapot (name: brown): no matches for kind \"Teapot\" in \
         version \"brew.example.com/v1\"\ncould not get REST mapping for object 2 in manifest with GVK /v1, \
         Kind=Kettle: no matches for kind \"Kettle\" in version \"v1\""
    );
}
