//! OperatorGroup tests of upstream's end-to-end suite: forms of targets, and aggregated
//! ClusterRoles of provided APIs.

use crate::olm_cluster::{OlmCluster, create_namespace};
use crate::user_csvs::{
    apply_group, crd_for, create_csv, csv_in, deployment, object, olm_with_namespaces,
    wait_for_phase, with_owned_crd,
};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, OPERATOR_GROUP};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// Waits until the status of an OperatorGroup lists exactly these namespaces.
async fn wait_for_targets(
    olm: &OlmCluster,
    namespace: &str,
    name: &str,
    wanted: &[&str],
) -> Object {
    let wanted: Vec<Value> = wanted.iter().map(|namespace| (*namespace).into()).collect();
    let predicate = move |group: &Object| *group.array(&["status", "namespaces"]) == wanted;
    olm.cluster.wait_for(&OPERATOR_GROUP, Some(namespace), name, predicate).await
}

/// The OperatorGroup annotations of a CSV.
fn group_annotations(csv: &Object) -> [Option<&str>; 3] {
    ["olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"]
        .map(|key| csv.annotation(key))
}

#[tokio::test]
async fn csv_annotations_name_its_operator_group_and_targets() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("my-group").await;
    // shows AT-OG-01 OG-10
    wait_for_targets(&olm, "team", "my-group", &["team"]).await;
    olm.subscribe(json!({})).await;
    let csv = olm.wait_until_succeeded("anvil.v1.0.0").await;
    // shows AT-OG-01 OG-02 OG-20
    assert_eq!(group_annotations(&csv), [Some("my-group"), Some("team"), Some("team")]);
}

#[tokio::test]
async fn operator_group_with_target_namespaces_ignores_its_selector() {
    let olm = OlmCluster::start(&[]).await;
    for namespace in ["home", "listed"] {
        create_namespace(&olm.cluster, namespace, "").await;
    }
    create_namespace(&olm.cluster, "labelled", "team: x").await;
    let both = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "home"},
        "spec": {
            "targetNamespaces": ["listed"], "selector": {"matchLabels": {"team": "x"}},
        },
    });
    olm.cluster.apply(object(both)).await;
    // shows AT-OG-03 OG-12
    wait_for_targets(&olm, "home", "og", &["listed"]).await;
    olm.wait_until_idle().await;
    // shows AT-OG-03 OG-12
    wait_for_targets(&olm, "home", "og", &["listed"]).await;
}

#[tokio::test]
async fn operator_group_without_targets_requires_the_all_namespaces_install_mode() {
    let olm = OlmCluster::start(&[]).await;
    create_namespace(&olm.cluster, "home", "").await;
    apply_group(&olm, "home", "og", &[]).await;
    // shows AT-OG-02 OG-13 OG-14
    wait_for_targets(&olm, "home", "og", &[""]).await;
    create_csv(&olm, csv_in("home", "all", &[deployment("all")])).await;
    let all = wait_for_phase(&olm, "home", "all", "Succeeded").await;
    // shows AT-OG-02
    assert_eq!(group_annotations(&all), [Some("og"), Some("home"), Some("")]);
    let mut own = csv_in("home", "own", &[deployment("own")]);
    own["spec"]["installModes"] = json!([{"type": "OwnNamespace", "supported": true}]);
    create_csv(&olm, own).await;
    let refused = |csv: &Object| csv.str(&["status", "reason"]) == Some("UnsupportedOperatorGroup");
    // shows AT-OG-02 CSV-20 CSV-21
    olm.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("home"), "own", refused).await;
}

#[tokio::test]
async fn admin_edit_and_view_roles_include_the_apis_of_an_operator() {
    let olm = olm_with_namespaces(&[]).await;
    olm.cluster.apply(crd_for("hats", &["v1"])).await;
    create_csv(&olm, with_owned_crd(csv_in("team", "v", &[deployment("d")]), "hats")).await;
    wait_for_phase(&olm, "team", "v", "Succeeded").await;
    for (suffix, verbs) in [
        ("admin", json!(["*"])),
        ("edit", json!(["create", "update", "patch", "delete"])),
        ("view", json!(["get", "list", "watch"])),
        ("crdview", json!(["get"])),
    ] {
        let name = format!("hats.cluster.com-v1-{suffix}");
        // shows AT-OG-10 OG-31 OG-32
        let role = olm.cluster.wait_for(&builtin::CLUSTER_ROLE, None, &name, |_| true).await;
        let rule = match suffix {
            "crdview" => json!({
                "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                "resourceNames": ["hats.cluster.com"], "verbs": verbs,
            }),
            _ => json!({"apiGroups": ["cluster.com"], "resources": ["hats"], "verbs": verbs}),
        };
        // shows AT-OG-10 OG-32
        assert_eq!(role.get(&["rules"]), Some(&json!([rule])), "{name}");
        let people = if suffix == "crdview" { "view" } else { suffix };
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{people}");
        // shows AT-OG-10 OG-32
        assert_eq!(role.label(&label), Some("true"), "{name}");
        let of_group = role.labels().any(|(key, value)| {
            key.starts_with("olm.opgroup.permissions/aggregate-to-")
                && key.ends_with(&format!("-{people}"))
                && value == "true"
        });
        // shows AT-OG-10 OG-30 OG-32
        assert!(of_group, "{name}: {:?}", role.labels().collect::<Vec<_>>());
    }
}
