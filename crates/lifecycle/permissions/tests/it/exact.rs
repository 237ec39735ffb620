//! Exact installer roles: they suffice, and each of their rules is needed.

use crate::{install, read_manifest, recorded_bundles};
use mainstay_bundle::BundleFolder;
use mainstay_permissions::{
    BundleKinds, ExtensionApplier, GrantedRules, InstallManifest, InstallerNames, InstallerObjects,
    MissingPermissions, RbacObjects, RbacSubject, exact_installer, missing_permissions, to_yaml,
};
use mainstay_testdata::sorted_entries;
use serde_json::{Value, json};
use std::path::Path;

/// The appliers that a manifest is checked with.
fn appliers() -> [ExtensionApplier; 2] {
    [ExtensionApplier::Helm, ExtensionApplier::ObjectSets { object_set: "teapot-1".to_owned() }]
}

/// What the account of an installer lacks.
fn missing_for(
    manifest: &InstallManifest,
    installer: &InstallerObjects,
    applier: &ExtensionApplier,
    existing: &RbacObjects,
) -> MissingPermissions {
    let subject = RbacSubject::service_account("here", "teapot-installer");
    let granted = GrantedRules::new(&installer.rbac_objects(), &subject);
    missing_permissions(manifest, "teapot", applier, &granted, existing).unwrap()
}

/// Whether the roles allow to grant anything that their holder lacks, because the bundle grants that itself.
fn may_escalate(installer: &InstallerObjects) -> bool {
    installer.roles.iter().flat_map(|role| &role.rules).any(|rule| {
        let names =
            |list: &[String], word: &str| list.iter().any(|name| name == "*" || name == word);
        rule.resource_names.is_empty()
            && names(&rule.api_groups, "rbac.authorization.k8s.io")
            && ["roles", "clusterroles"].iter().any(|resource| names(&rule.resources, resource))
            && ["escalate", "bind"].iter().any(|verb| names(&rule.verbs, verb))
    })
}

/// Checks that the exact roles for some objects suffice. With `minimal`, checks that none of their rules
/// can go, and returns their number. Roles with which their holder may escalate are not minimal.
fn check(name: &str, objects: &[Value], minimal: bool) -> usize {
    let manifest = InstallManifest::new(objects, &BundleKinds, "here").unwrap();
    let names = InstallerNames::new("teapot", "here");
    let existing = RbacObjects::default();
    let mut rules = 0;
    for applier in appliers() {
        let installer = exact_installer(&manifest, &names, &applier);
        let missing = missing_for(&manifest, &installer, &applier, &existing);
        assert!(missing.is_empty(), "{name}: {missing:#?}");
        let minimal = minimal && !may_escalate(&installer);
        for at in 0..installer.roles.len() {
            for rule in 0..installer.roles[at].rules.len() {
                if !minimal {
                    continue;
                }
                rules += 1;
                let mut less = installer.clone();
                let removed = less.roles[at].rules.remove(rule);
                let missing = missing_for(&manifest, &less, &applier, &existing);
                assert!(!missing.is_empty(), "{name}: not needed: {removed:?}");
            }
        }
    }
    rules
}

#[test]
fn exact_roles_of_recorded_bundles_suffice_and_are_minimal() {
    let Some(data) = mainstay_testdata::unpack("answers/olm-v1", "recorded bundles") else {
        return;
    };
    let (mut bundles, mut rules) = (0, 0);
    for case in sorted_entries(&data.path().join("olm-v1/cases")) {
        for step in sorted_entries(&case).iter().filter(|step| step.is_dir()) {
            for (reference, tree) in recorded_bundles(step) {
                let rendered = install(&tree, "here");
                bundles += usize::from(!rendered.is_empty());
                for objects in &rendered {
                    rules += check(&reference, objects, objects.len() < 100);
                }
            }
        }
    }
    assert!(bundles > 150, "{bundles}");
    assert!(rules >= 6865, "{rules}");
    mainstay_testdata::ran(&format!(
        "exact installer roles of {bundles} recorded bundles suffice, each of {rules} rules is needed"
    ));
}

/// The folders of published bundles.
fn published(root: &Path) -> Vec<std::path::PathBuf> {
    let below = |folders: Vec<std::path::PathBuf>| {
        let folders = folders.into_iter().filter(|folder| folder.is_dir());
        folders.flat_map(|folder| sorted_entries(&folder)).collect::<Vec<_>>()
    };
    below(below(sorted_entries(root))).into_iter().filter(|folder| folder.is_dir()).collect()
}

#[test]
fn exact_roles_of_published_bundles_suffice_and_are_minimal() {
    let Some(data) = mainstay_testdata::unpack("bundles-249", "published bundles") else {
        return;
    };
    let (mut bundles, mut rules) = (0, 0);
    for (at, folder) in published(data.path()).iter().enumerate() {
        let rendered = install(&BundleFolder::new(folder), "here");
        bundles += usize::from(!rendered.is_empty());
        for objects in &rendered {
            rules += check(&folder.display().to_string(), objects, at % 4 == 0);
        }
    }
    // shows RBAC-10 RBAC-11 RBAC-12 RBAC-14 RBAC-15 RBAC-16 RBAC-17 RBAC-18
    assert!(bundles > 200, "{bundles}");
    assert!(rules >= 6274, "{rules}");
    mainstay_testdata::ran(&format!(
        "exact installer roles of {bundles} published bundles suffice, each of {rules} rules is needed"
    ));
}

const MANIFEST: &str = "
apiVersion: v1
kind: ServiceAccount
metadata: {name: teapot-controller, namespace: here}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: teapot.v1-abc, namespace: watched}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch, create, update, patch, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: teapot.v1-abc, namespace: watched}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: teapot.v1-abc}
subjects: [{kind: ServiceAccount, name: teapot-controller, namespace: here}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: teapot-auth}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: 'system:auth-delegator'}
subjects: [{kind: ServiceAccount, name: teapot-controller, namespace: here}]
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: teapots.brew.example.com}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: teapot-controller, namespace: here}
";

#[test]
fn exact_roles_name_each_object_and_keep_to_namespaces() {
    let manifest = read_manifest(MANIFEST, "here");
    let names = InstallerNames::new("teapot", "here");
    let applier = ExtensionApplier::ObjectSets { object_set: "teapot-1".to_owned() };
    let installer = exact_installer(&manifest, &names, &applier);
    // shows RBAC-02 RBAC-03 RBAC-07 RBAC-13 RBAC-22 RBAC-23
    assert_eq!(
        to_yaml(&installer.to_values()),
        "apiVersion: v1
kind: ServiceAccount
metadata:
  name: teapot-installer
  namespace: here
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: teapot-installer-clusterrole
rules:
- apiGroups:
  - olm.operatorframework.io
  resources:
  - clusterobjectsets/finalizers
  verbs:
  - update
- apiGroups:
  - rbac.authorization.k8s.io
  resources:
  - clusterrolebindings
  verbs:
  - create
- apiGroups:
  - rbac.authorization.k8s.io
  resourceNames:
  - teapot-auth
  resources:
  - clusterrolebindings
  verbs:
  - get
  - update
  - patch
  - delete
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  verbs:
  - create
- apiGroups:
  - apiextensions.k8s.io
  resourceNames:
  - teapots.brew.example.com
  resources:
  - customresourcedefinitions
  verbs:
  - get
  - update
  - patch
  - delete
- apiGroups:
  - rbac.authorization.k8s.io
  resourceNames:
  - system:auth-delegator
  resources:
  - clusterroles
  verbs:
  - bind
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: teapot-installer-binding
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: teapot-installer-clusterrole
subjects:
- kind: ServiceAccount
  name: teapot-installer
  namespace: here
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: teapot-installer-role
  namespace: here
rules:
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - create
- apiGroups:
  - apps
  resourceNames:
  - teapot-controller
  resources:
  - deployments
  verbs:
  - get
  - update
  - patch
  - delete
- apiGroups:
  - \"\"
  resources:
  - serviceaccounts
  verbs:
  - create
- apiGroups:
  - \"\"
  resourceNames:
  - teapot-controller
  resources:
  - serviceaccounts
  verbs:
  - get
  - update
  - patch
  - delete
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: teapot-installer-binding
  namespace: here
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: teapot-installer-role
subjects:
- kind: ServiceAccount
  name: teapot-installer
  namespace: here
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: teapot-installer-role
  namespace: watched
rules:
- apiGroups:
  - \"\"
  resources:
  - configmaps
  verbs:
  - get
  - list
  - watch
  - create
  - update
  - patch
  - delete
- apiGroups:
  - rbac.authorization.k8s.io
  resources:
  - roles
  verbs:
  - create
- apiGroups:
  - rbac.authorization.k8s.io
  resourceNames:
  - teapot.v1-abc
  resources:
  - roles
  verbs:
  - get
  - update
  - patch
  - delete
- apiGroups:
  - rbac.authorization.k8s.io
  resources:
  - rolebindings
  verbs:
  - create
- apiGroups:
  - rbac.authorization.k8s.io
  resourceNames:
  - teapot.v1-abc
  resources:
  - rolebindings
  verbs:
  - get
  - update
  - patch
  - delete
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: teapot-installer-binding
  namespace: watched
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: teapot-installer-role
subjects:
- kind: ServiceAccount
  name: teapot-installer
  namespace: here
"
    );
    assert_eq!(check("written", &crate::read_yaml(MANIFEST), true), 34);
}

#[test]
fn a_new_version_lacks_what_the_old_one_did_not_need() {
    let names = InstallerNames::new("teapot", "here");
    let old = read_manifest(MANIFEST, "here");
    let new = read_manifest(&MANIFEST.replace("[configmaps]", "[configmaps, secrets]"), "here");
    for applier in appliers() {
        let installer = exact_installer(&old, &names, &applier);
        let missing = missing_for(&new, &installer, &applier, &RbacObjects::default());
        let [scope] = &missing.rules[..] else { panic!("{missing:?}") };
        assert_eq!((&*scope.namespace, scope.rules.len()), ("watched", 1), "{missing:?}");
        assert_eq!(scope.rules[0].resources, ["secrets"], "{missing:?}");
        let installer = exact_installer(&new, &names, &applier);
        let missing = missing_for(&new, &installer, &applier, &RbacObjects::default());
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn an_aggregated_cluster_role_needs_the_verb_escalate() {
    let text = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: aggregated}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
";
    let manifest = read_manifest(text, "here");
    let names = InstallerNames::new("teapot", "here");
    let installer = exact_installer(&manifest, &names, &ExtensionApplier::Helm);
    let yaml = to_yaml(&[installer.roles[0].to_value()]);
    assert!(yaml.contains("- escalate"), "{yaml}");
    let missing =
        missing_for(&manifest, &installer, &ExtensionApplier::Helm, &RbacObjects::default());
    assert!(missing.is_empty(), "{missing:?}");
}

/// The roles of two versions often have the same name, and the account needs the rules of both.
#[test]
fn account_for_two_versions_has_the_rules_of_both() {
    let role = |resource: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "teapot"},
            "rules": [{"apiGroups": [""], "resources": [resource], "verbs": ["get"]}],
        })
    };
    let versions = [role("nodes"), role("pods")];
    let names = InstallerNames::new("teapot", "here");
    for applier in appliers() {
        let both = InstallManifest::new(&versions, &BundleKinds, "here").unwrap();
        let installer = exact_installer(&both, &names, &applier);
        for version in &versions {
            let manifest = InstallManifest::new([version], &BundleKinds, "here").unwrap();
            let missing = missing_for(&manifest, &installer, &applier, &RbacObjects::default());
            assert!(missing.is_empty(), "{missing:#?}");
        }
    }
}
