//! Approvals: what they cover, and what is left of roles that they cover in part.

use mainstay_permissions::{
    BundleKinds, ExtensionApplier, GrantedRules, InstallManifest, InstallerNames, RbacRole,
    RbacRule, approval_object, approval_roles, exact_installer, split_by_approval,
    unapproved_message, unapproved_rules,
};
use serde_json::{Value, json};

fn role(namespace: &str, rules: Vec<RbacRule>) -> RbacRole {
    RbacRole { namespace: namespace.to_owned(), name: "r".to_owned(), rules, is_aggregated: false }
}

fn objects() -> Vec<Value> {
    vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "leaves"}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "tea"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
        }),
    ]
}

#[test]
fn approval_suffices_for_the_exact_roles_of_both_appliers() {
    let manifest = InstallManifest::new(&objects(), &BundleKinds, "kitchen").unwrap();
    let names = InstallerNames::new("tea", "kitchen");
    let approval = approval_roles(&manifest, &names);
    let approved = GrantedRules::of_roles(&approval);
    for applier in [ExtensionApplier::Helm, ExtensionApplier::WatchedObjectSets] {
        let roles = exact_installer(&manifest, &names, &applier).roles;
        assert_eq!(unapproved_rules(&approved, &roles).unwrap(), [], "{applier:?}");
        let split = split_by_approval(&approved, roles.clone()).unwrap();
        assert_eq!(split, (roles, vec![]), "{applier:?}");
    }
    let labels = json!({
        "mainstay.dev/approves-extension": "tea", "mainstay.dev/approves-namespace": "kitchen",
    });
    let found: Vec<Value> = approval.iter().map(|role| approval_object(role, &names)).collect();
    let places = |object: &Value| {
        assert_eq!(object["metadata"]["labels"], labels);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&object["kind"]), text(&object["metadata"]["namespace"]))
    };
    let places: Vec<(String, String)> = found.iter().map(places).collect();
    assert_eq!(
        places,
        [("ClusterRole".to_owned(), String::new()), ("Role".to_owned(), "kitchen".to_owned())]
    );
}

#[test]
fn exact_roles_for_watched_object_sets_differ_from_those_for_helm_in_the_owner_only() {
    let manifest = InstallManifest::new(&objects(), &BundleKinds, "kitchen").unwrap();
    let names = InstallerNames::new("tea", "kitchen");
    let mut helm = exact_installer(&manifest, &names, &ExtensionApplier::Helm);
    let sets = exact_installer(&manifest, &names, &ExtensionApplier::WatchedObjectSets);
    assert_eq!(helm.roles[0].rules[0].resources, ["clusterextensions/finalizers"]);
    helm.roles[0].rules[0] = RbacRule::of_resource(
        "olm.operatorframework.io",
        "clusterobjectsets/finalizers",
        &["update"],
    );
    assert_eq!(helm, sets);
}

#[test]
fn rules_of_a_role_count_in_its_namespace_only() {
    let pods = RbacRule::of_resource("", "pods", &["get", "list"]);
    let approved = GrantedRules::of_roles(&[role("one", vec![pods.clone()])]);
    for (namespace, is_approved) in [("one", true), ("two", false), ("", false)] {
        let missing = unapproved_rules(&approved, &[role(namespace, vec![pods.clone()])]).unwrap();
        assert_eq!(missing.is_empty(), is_approved, "{namespace}");
    }
    let everywhere = GrantedRules::of_roles(&[role("", vec![pods.clone()])]);
    assert_eq!(unapproved_rules(&everywhere, &[role("two", vec![pods])]).unwrap(), []);
}

#[test]
fn role_that_is_approved_in_part_keeps_that_part_and_the_message_lists_the_rest() {
    let configs = RbacRule::of_resource("", "configmaps", &["get", "delete"]);
    let wanted = vec![
        configs.clone().with_names(["a", "b"]),
        RbacRule::of_resource("", "pods", &["get"]),
        RbacRule::of_resource("apps", "deployments", &["get"]),
    ];
    let approved = GrantedRules::of_roles(&[role(
        "",
        vec![
            configs.clone().with_names(["a"]),
            RbacRule::of_resource("", "configmaps", &["get"]),
            RbacRule::of_resource("", "pods", &["*"]),
        ],
    )]);
    let roles = vec![role("", wanted.clone()), role("x", vec![wanted[2].clone()])];
    let (kept, missing) = split_by_approval(&approved, roles.clone()).unwrap();
    // The role of the namespace has nothing left.
    assert_eq!(kept.len(), 1);
    let expected = [
        configs.with_names(["a"]),
        RbacRule::of_resource("", "configmaps", &["get"]).with_names(["b"]),
        RbacRule::of_resource("", "pods", &["get"]),
    ];
    let mut found = kept[0].rules.clone();
    for rule in &mut found {
        rule.verbs.sort_unstable_by(|one, two| two.cmp(one));
    }
    assert_eq!(found, expected);
    assert_eq!(unapproved_rules(&approved, &kept).unwrap(), []);
    assert_eq!(unapproved_rules(&approved, &roles).unwrap(), missing);
    assert_eq!(
        unapproved_message("tea", &missing),
        "pre-authorization failed: the bundle needs permissions that are not approved (to approve them: mainstay extension approve tea):
  Namespace:\"\" APIGroups:[] Resources:[configmaps] ResourceNames:[b] Verbs:[delete]
  Namespace:\"\" APIGroups:[apps] Resources:[deployments] Verbs:[get]
  Namespace:\"x\" APIGroups:[apps] Resources:[deployments] Verbs:[get]"
    );
}
