//! Permissions: ServiceAccounts of an operator have exactly the permissions of its CSV in the
//! targets of its OperatorGroup.
//!
//! The tests send `SelfSubjectAccessReviews` as the ServiceAccount for many resources, verbs and
//! namespaces. The results must match a plain evaluation of the CSV's rules. Permissions of
//! ServiceAccounts without bindings are not tested.

use crate::olm_cluster::{OlmCluster, create_namespace};
use mainstay_api::resources::CLUSTER_SERVICE_VERSION;
use mainstay_client::{Cluster, ObjectList, Selection};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};

const REVIEW: Resource = Resource::namespaced(
    "authorization.k8s.io",
    "v1",
    "SelfSubjectAccessReview",
    "selfsubjectaccessreviews",
);
const ANVIL: Resource = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");

/// Group, resource, subresource.
const RESOURCES: [(&str, &str, &str); 13] = [
    ("", "configmaps", ""),
    ("", "secrets", ""),
    ("", "pods", ""),
    ("", "pods", "log"),
    ("", "events", ""),
    ("", "nodes", ""),
    ("", "namespaces", ""),
    ("", "serviceaccounts", "token"),
    ("apps", "deployments", ""),
    ("apps", "deployments", "scale"),
    ("forge.example.com", "anvils", ""),
    ("forge.example.com", "anvils", "status"),
    ("rbac.authorization.k8s.io", "roles", ""),
];
const VERBS: [&str; 5] = ["get", "list", "create", "update", "escalate"];
/// The empty namespace means all namespaces.
const NAMESPACES: [&str; 4] = ["team", "a", "b", ""];

fn permissions() -> Value {
    json!([
        {"serviceAccountName": "anvil", "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["anvil-key"],
             "verbs": ["get"]},
            {"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]},
        ]},
        {"serviceAccountName": "anvil-hooks", "rules": [
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        ]},
    ])
}

fn cluster_permissions() -> Value {
    json!([{"serviceAccountName": "anvil", "rules": [
        {"apiGroups": ["forge.example.com"], "resources": ["anvils", "anvils/status"],
         "verbs": ["get", "list", "watch", "update"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
    ]}])
}

/// The permissions of version 1.1.0.
fn reduced_permissions() -> Value {
    json!([{"serviceAccountName": "anvil", "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]}])
}

/// Publishes versions with all permissions, and 1.1.0 with [`reduced_permissions`].
fn publish_with_permissions(olm: &OlmCluster, versions: &[&str]) {
    use base64::Engine as _;
    let base64 = &base64::engine::general_purpose::STANDARD;
    olm.publish_edited(versions, |version, bundle| {
        let data = &mut bundle["properties"][2]["value"]["data"];
        let csv = base64.decode(data.as_str().unwrap()).unwrap();
        let mut csv: Value = serde_json::from_slice(&csv).unwrap();
        let install = &mut csv["spec"]["install"]["spec"];
        if version == "1.1.0" {
            install["permissions"] = reduced_permissions();
        } else {
            install["permissions"] = permissions();
            install["clusterPermissions"] = cluster_permissions();
        }
        *data = base64.encode(csv.to_string()).into();
    });
}

/// The additional rules of ServiceAccounts of a CSV for all namespaces.
fn namespace_reader_rules() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]})
}

/// The permissions of one ServiceAccount: rules and their namespaces; none means all.
type Grants = Vec<(Value, Option<Vec<&'static str>>)>;

fn rules_of(permissions: &Value, account: &str) -> Vec<Value> {
    let account_permissions = permissions
        .as_array()
        .unwrap()
        .iter()
        .filter(|permission| permission["serviceAccountName"] == account);
    account_permissions
        .flat_map(|permission| permission["rules"].as_array().unwrap().clone())
        .collect()
}

fn rule_allows(rule: &Value, resource: (&str, &str, &str), verb: &str, name: &str) -> bool {
    let has = |field: &str, wanted: &str| {
        let list = rule[field].as_array();
        list.is_some_and(|list| list.iter().any(|value| value == wanted || value == "*"))
    };
    let (group, resource, sub) = resource;
    let full = if sub.is_empty() { resource.to_owned() } else { format!("{resource}/{sub}") };
    let named = rule["resourceNames"].as_array();
    has("apiGroups", group)
        && has("resources", &full)
        && has("verbs", verb)
        && named.is_none_or(|names| names.iter().any(|value| value == name))
}

fn is_granted(
    grants: &Grants,
    resource: (&str, &str, &str),
    verb: &str,
    namespace: &str,
    name: &str,
) -> bool {
    grants.iter().any(|(rule, namespaces)| {
        namespaces.as_ref().is_none_or(|namespaces| namespaces.contains(&namespace))
            && rule_allows(rule, resource, verb, name)
    })
}

async fn is_allowed(
    account: &Cluster,
    (group, resource, sub): (&str, &str, &str),
    verb: &str,
    namespace: &str,
    name: &str,
) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "group": group, "resource": resource, "subresource": sub, "verb": verb,
            "namespace": namespace, "name": name,
        }},
    });
    let answer = account.create(&REVIEW, &Object::from_value(review).unwrap()).await.unwrap();
    answer.get(&["status", "allowed"]) == Some(&true.into())
}

/// Asserts the permissions of a ServiceAccount; returns the number of allowed requests.
async fn assert_permissions(olm: &OlmCluster, account: &str, grants: &Grants) -> usize {
    let cluster = olm.cluster.cluster_as_account("team", account);
    let mut allowed = 0;
    for resource in RESOURCES {
        for verb in VERBS {
            for namespace in NAMESPACES {
                // For secrets, also the name in `resourceNames`.
                let names: &[&str] =
                    if resource.1 == "secrets" { &["", "anvil-key"] } else { &[""] };
                for name in names {
                    let wanted = is_granted(grants, resource, verb, namespace, name);
                    let answer = is_allowed(&cluster, resource, verb, namespace, name).await;
                    assert_eq!(
                        answer, wanted,
                        "{account}: {verb} {resource:?} {name:?} in {namespace:?}"
                    );
                    allowed += usize::from(wanted);
                }
            }
        }
    }
    allowed
}

fn grants_in(rules: Vec<Value>, namespaces: &[&'static str]) -> Grants {
    rules.into_iter().map(|rule| (rule, Some(namespaces.to_vec()))).collect()
}

fn cluster_wide_grants(rules: Vec<Value>) -> Grants {
    rules.into_iter().map(|rule| (rule, None)).collect()
}

async fn install_operator(targets: &[&str]) -> OlmCluster {
    let olm = OlmCluster::start(&["0.9.0"]).await;
    for name in ["a", "b"] {
        create_namespace(&olm.cluster, name, "").await;
    }
    publish_with_permissions(&olm, &["1.0.0"]);
    olm.apply_group_for("og", targets).await;
    // Wait until the catalog has the new content.
    olm.subscribe(json!({"startingCSV": "anvil.v1.0.0"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    olm
}

#[tokio::test]
async fn service_accounts_have_the_csvs_permissions_in_the_target_namespaces() {
    let cluster_wide = || cluster_wide_grants(rules_of(&cluster_permissions(), "anvil"));
    for (targets, namespaces) in [(["team"], vec!["team"]), (["a"], vec!["team", "a"])] {
        let olm = install_operator(&targets).await;
        let mut grants = grants_in(rules_of(&permissions(), "anvil"), &namespaces);
        grants.extend(cluster_wide());
        // shows SCO-01 OG-35
        assert!(assert_permissions(&olm, "anvil", &grants).await > 20);
        let hooks = grants_in(rules_of(&permissions(), "anvil-hooks"), &namespaces);
        // shows SCO-01
        assert_eq!(assert_permissions(&olm, "anvil-hooks", &hooks).await, namespaces.len());
        assert_eq!(assert_permissions(&olm, "default", &Grants::new()).await, 0);
    }
}

#[tokio::test]
async fn global_operator_group_lifts_permissions_and_grants_reading_namespaces() {
    let olm = install_operator(&[]).await;
    let mut grants = cluster_wide_grants(rules_of(&permissions(), "anvil"));
    grants.extend(cluster_wide_grants(rules_of(&cluster_permissions(), "anvil")));
    grants.push((namespace_reader_rules(), None));
    // shows E080
    assert_permissions(&olm, "anvil", &grants).await;
    let mut hooks = cluster_wide_grants(rules_of(&permissions(), "anvil-hooks"));
    hooks.push((namespace_reader_rules(), None));
    assert_permissions(&olm, "anvil-hooks", &hooks).await;
}

#[tokio::test]
async fn upgrade_revokes_permissions_that_the_new_csv_does_not_have() {
    for targets in [&["a"] as &[&str], &[]] {
        let olm = install_operator(targets).await;
        publish_with_permissions(&olm, &["1.0.0", "1.1.0"]);
        olm.wait_until_succeeded("anvil.v1.1.0").await;
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.0.0").await;
        for resource in [
            builtin::ROLE,
            builtin::ROLE_BINDING,
            builtin::CLUSTER_ROLE,
            builtin::CLUSTER_ROLE_BINDING,
        ] {
            let mut old = Selection::all(resource);
            old.labels = "olm.owner=anvil.v1.0.0".to_owned();
            // shows E077
            olm.cluster.wait_for_all(old, |left| left.is_empty()).await;
        }
        let rules = rules_of(&reduced_permissions(), "anvil");
        let grants = if targets.is_empty() {
            let mut grants = cluster_wide_grants(rules);
            grants.push((namespace_reader_rules(), None));
            grants
        } else {
            grants_in(rules, &["team", "a"])
        };
        // shows E077
        assert_permissions(&olm, "anvil", &grants).await;
        // The version after it has all permissions again.
        publish_with_permissions(&olm, &["1.0.0", "1.1.0", "1.2.0"]);
        olm.wait_until_succeeded("anvil.v1.2.0").await;
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), "anvil.v1.1.0").await;
        let rules = rules_of(&permissions(), "anvil");
        let mut grants = if targets.is_empty() {
            let mut grants = cluster_wide_grants(rules);
            grants.push((namespace_reader_rules(), None));
            grants
        } else {
            grants_in(rules, &["team", "a"])
        };
        grants.extend(cluster_wide_grants(rules_of(&cluster_permissions(), "anvil")));
        // shows E077
        assert_permissions(&olm, "anvil", &grants).await;
    }
}

#[tokio::test]
async fn requests_obey_permissions_and_aggregated_roles_reach_users() {
    let olm = install_operator(&["team"]).await;
    let anvil = olm.cluster.cluster_as_account("team", "anvil");
    let all = ObjectList::default();
    anvil.get(&builtin::CONFIG_MAP, Some("team"), "anvil-settings").await.unwrap();
    anvil.list(&builtin::CONFIG_MAP, Some("team"), &all).await.unwrap();
    anvil.list(&ANVIL, None, &all).await.unwrap();
    let refused = [
        anvil.list(&builtin::CONFIG_MAP, Some("a"), &all).await.err(),
        anvil.list(&builtin::CONFIG_MAP, None, &all).await.err(),
        anvil.list(&builtin::SECRET, Some("team"), &all).await.err(),
        anvil.get(&builtin::SECRET, Some("team"), "other").await.err(),
        anvil.create(&ANVIL, &anvil_object("by-operator")).await.err(),
    ];
    for error in refused {
        let error = error.unwrap();
        assert!(error.is_forbidden(), "{error}");
        assert!(error.to_string().contains("system:serviceaccount:team:anvil"), "{error}");
    }
    // The ServiceAccount `default` is bound to the user roles, one after the other.
    let default = olm.cluster.cluster_as_account("team", "default");
    for (role, reads, writes) in [("view", true, false), ("edit", true, true)] {
        olm.cluster
            .apply_yaml(&format!(
                "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: {role}, namespace: team}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}
subjects: [{{kind: ServiceAccount, name: default, namespace: team}}]
"
            ))
            .await;
        // The rules are aggregated shortly after the ClusterRoles of the APIs exist.
        olm.cluster
            .wait_for(&builtin::CLUSTER_ROLE, None, role, |role| {
                let rules = role.array(&["rules"]);
                rules.iter().any(|rule| rule["apiGroups"] == json!(["forge.example.com"]))
            })
            .await;
        assert_eq!(default.list(&ANVIL, Some("team"), &all).await.is_ok(), reads, "{role}");
        let written = default.create(&ANVIL, &anvil_object(role)).await;
        assert_eq!(written.is_ok(), writes, "{role}: {written:?}");
        assert!(default.list(&ANVIL, Some("a"), &all).await.is_err(), "{role}");
    }
}

fn anvil_object(name: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "forge.example.com/v1", "kind": "Anvil",
        "metadata": {"name": name, "namespace": "team"},
    }))
    .unwrap()
}
