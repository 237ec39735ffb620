//! Operator groups by the forms of their targets, and the roles that people get of what is provided.

use crate::by_hand::{
    definition, deployment, group, in_phase, make, object, owning, version, world,
};
use crate::world::{World, namespace};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, OPERATOR_GROUP};
use mainstay_object::{Object, known};
use serde_json::{Value, json};

/// Waits until the status of the group of a namespace names exactly these namespaces.
async fn targets(world: &World, place: &str, name: &str, wanted: &[&str]) -> Object {
    let wanted: Vec<Value> = wanted.iter().map(|namespace| (*namespace).into()).collect();
    let good = move |group: &Object| *group.array(&["status", "namespaces"]) == wanted;
    world.cluster.wait_for(&OPERATOR_GROUP, Some(place), name, good).await
}

/// What the annotations of a version say of its group.
fn membership(csv: &Object) -> [Option<&str>; 3] {
    ["olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces"]
        .map(|key| csv.annotation(key))
}

#[tokio::test]
async fn csv_annotations_name_its_operator_group_and_targets() {
    let world = World::start(&["1.0.0"]).await;
    world.group("my-group").await;
    // shows AT-OG-01 OG-10
    targets(&world, "team", "my-group", &["team"]).await;
    world.subscribe(json!({})).await;
    let csv = world.succeeded("anvil.v1.0.0").await;
    // shows AT-OG-01 OG-02 OG-20
    assert_eq!(membership(&csv), [Some("my-group"), Some("team"), Some("team")]);
}

#[tokio::test]
async fn operator_group_with_target_namespaces_ignores_its_selector() {
    let world = World::start(&[]).await;
    for place in ["home", "listed"] {
        namespace(&world.cluster, place, "").await;
    }
    namespace(&world.cluster, "labelled", "team: x").await;
    let both = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "og", "namespace": "home"},
        "spec": {
            "targetNamespaces": ["listed"], "selector": {"matchLabels": {"team": "x"}},
        },
    });
    world.cluster.apply(object(both)).await;
    // shows AT-OG-03 OG-12
    targets(&world, "home", "og", &["listed"]).await;
    world.left_alone().await;
    // shows AT-OG-03 OG-12
    targets(&world, "home", "og", &["listed"]).await;
}

#[tokio::test]
async fn operator_group_without_targets_requires_the_all_namespaces_install_mode() {
    let world = World::start(&[]).await;
    namespace(&world.cluster, "home", "").await;
    group(&world, "home", "og", &[]).await;
    // shows AT-OG-02 OG-13 OG-14
    targets(&world, "home", "og", &[""]).await;
    make(&world, version("home", "all", &[deployment("all")])).await;
    let all = in_phase(&world, "home", "all", "Succeeded").await;
    // shows AT-OG-02
    assert_eq!(membership(&all), [Some("og"), Some("home"), Some("")]);
    let mut own = version("home", "own", &[deployment("own")]);
    own["spec"]["installModes"] = json!([{"type": "OwnNamespace", "supported": true}]);
    make(&world, own).await;
    let refused = |csv: &Object| csv.str(&["status", "reason"]) == Some("UnsupportedOperatorGroup");
    // shows AT-OG-02 CSV-20 CSV-21
    world.cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some("home"), "own", refused).await;
}

#[tokio::test]
async fn admin_edit_and_view_roles_include_the_apis_of_an_operator() {
    let world = world(&[]).await;
    world.cluster.apply(definition("hats", &["v1"])).await;
    make(&world, owning(version("team", "v", &[deployment("d")]), "hats")).await;
    in_phase(&world, "team", "v", "Succeeded").await;
    for (suffix, verbs) in [
        ("admin", json!(["*"])),
        ("edit", json!(["create", "update", "patch", "delete"])),
        ("view", json!(["get", "list", "watch"])),
        ("crdview", json!(["get"])),
    ] {
        let name = format!("hats.cluster.com-v1-{suffix}");
        // shows AT-OG-10 OG-31 OG-32
        let role = world.cluster.wait_for(&known::CLUSTER_ROLE, None, &name, |_| true).await;
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
