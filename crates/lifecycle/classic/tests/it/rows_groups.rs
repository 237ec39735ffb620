//! Rows of the specification about groups and conditions of operators that no other scenario shows.

use crate::dependencies::latest;
use crate::world::{World, condition, csv, namespace};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, OPERATOR_CONDITION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::{Object, known};
use serde_json::{Value, json};

const NAME: &str = "anvil.v1.0.0";
const PROVIDED: &str = "Anvil.v1.forge.example.com";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

async fn change_group(world: &World, change: Value) {
    let cluster = world.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(change)).await.unwrap();
}

#[tokio::test]
async fn legacy_empty_operator_group_fields_are_ignored_and_its_service_account_is_used() {
    let world = World::start(&["1.0.0"]).await;
    let cluster = world.cluster.cluster();
    let stored = |targets: &[&str]| {
        let mut group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "og", "namespace": "team"},
            "spec": {"selector": {}, "serviceAccount": {"metadata": {"creationTimestamp": null}}},
        });
        if !targets.is_empty() {
            group["spec"]["targetNamespaces"] = targets.into();
        }
        object(group)
    };
    for (targets, wanted) in [(&[] as &[&str], [""]), (&["team"], ["team"])] {
        cluster.create(&OPERATOR_GROUP, &stored(targets)).await.unwrap();
        let served = move |group: &Object| {
            *group.array(&["status", "namespaces"]) == wanted.map(Value::from)
        };
        let group = world.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", served).await;
        // shows OG-16
        assert_eq!(group.get(&["status", "serviceAccountRef"]), None);
        if targets.is_empty() {
            cluster
                .delete(&OPERATOR_GROUP, Some("team"), "og", &DeleteOptions::default())
                .await
                .unwrap();
        }
    }
    world.subscribe(json!({})).await;
    world.succeeded(NAME).await;
    latest(&world, "anvil", NAME).await;
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: less, namespace: team}}";
    world.cluster.apply_yaml(account).await;
    change_group(&world, json!({"spec": {"serviceAccountName": "less"}})).await;
    let known =
        |group: &Object| group.str(&["status", "serviceAccountRef", "name"]) == Some("less");
    world.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", known).await;
    world.publish(&["1.0.0", "1.1.0"]);
    let refused = |all: &[&Object]| {
        let told = |plan: &&Object| plan.str(&["status", "message"]).map(str::to_owned);
        all.iter()
            .filter_map(told)
            .any(|message| message.contains("system:serviceaccount:team:less"))
    };
    // shows OG-16
    world.plans(refused).await;
}

#[tokio::test]
async fn operator_group_lists_the_api_service_of_its_only_member() {
    let world = World::start(&[]).await;
    namespace(&world.cluster, "local", "").await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "olm-operators", "namespace": "local"},
        "spec": {"targetNamespaces": ["local"]},
    });
    world.cluster.apply(object(group)).await;
    let mut server = csv("1.0.0", None);
    server["metadata"] = json!({"name": "packageserver.v1.0.0", "namespace": "local"});
    server["spec"]["customresourcedefinitions"] = json!({});
    server["spec"]["apiservicedefinitions"] = json!({"owned": [{
        "group": "packages.apps.redhat.com", "version": "v1alpha1", "kind": "PackageManifest",
        "name": "packagemanifests", "deploymentName": "anvil", "containerPort": 5443,
    }]});
    let install = &mut server["spec"]["install"]["spec"];
    install["permissions"] = json!([]);
    install["deployments"][0]["spec"]["template"]["spec"]["serviceAccountName"] = "default".into();
    world.cluster.apply(object(server)).await;
    let runs = |csv: &Object| csv.str(&["status", "phase"]) == Some("Succeeded");
    let csvs = &CLUSTER_SERVICE_VERSION;
    let csv = world.cluster.wait_for(csvs, Some("local"), "packageserver.v1.0.0", runs).await;
    let cluster = world.cluster.cluster();
    let group = cluster.get(&OPERATOR_GROUP, Some("local"), "olm-operators").await.unwrap();
    // shows OG-25 OG-26 AT-OG-04
    assert_eq!(
        group.annotation("olm.providedAPIs"),
        Some("PackageManifest.v1alpha1.packages.apps.redhat.com")
    );
    assert_eq!(*group.array(&["status", "namespaces"]), ["local"].map(Value::from));
    assert_eq!(csv.annotation("olm.operatorGroup"), Some("olm-operators"));
}

/// A group of another namespace that has the API of `anvil` in the namespace `team`, whoever serves
/// it.
async fn reserve(world: &World) {
    let rival = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {
            "name": "rival", "namespace": "other", "annotations": {"olm.providedAPIs": PROVIDED},
        },
        "spec": {"targetNamespaces": ["team"], "staticProvidedAPIs": true},
    });
    world.cluster.apply(object(rival)).await;
}

async fn release(world: &World) {
    let params = DeleteOptions::default();
    let cluster = world.cluster.cluster();
    cluster.delete(&OPERATOR_GROUP, Some("other"), "rival", &params).await.unwrap();
}

/// The group of `anvil` provides its API, or does not, and its APIs are fixed, or are not.
async fn own(world: &World, provides: bool, fixed: bool) {
    let text = provides.then_some(PROVIDED);
    let change = json!({
        "metadata": {"annotations": {"olm.providedAPIs": text}}, "spec": {"staticProvidedAPIs": fixed},
    });
    change_group(world, change).await;
}

async fn provided(world: &World, text: &'static str) {
    let says = move |group: &Object| group.annotation("olm.providedAPIs") == Some(text);
    world.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", says).await;
}

#[tokio::test]
async fn csv_phase_follows_from_its_operator_group_and_intersecting_ones() {
    let world = World::start(&["1.0.0"]).await;
    namespace(&world.cluster, "other", "").await;
    // Nobody else has the API. The group does not yet: it is added. From then on it has it.
    world.group("og").await;
    world.subscribe(json!({})).await;
    let uid = world.succeeded(NAME).await.uid().to_owned();
    // shows OG-41 AT-OG-05
    provided(&world, PROVIDED).await;
    let fails = async |reason: &'static str| {
        // shows OG-41 AT-OG-05 CSV-12
        world.version(NAME, "Failed", reason).await;
        // shows OG-41 AT-OG-05
        world.cluster.wait_gone(&known::DEPLOYMENT, Some("team"), "anvil").await;
    };
    let runs = async || {
        // shows OG-42 AT-OG-05 CSV-12
        assert_eq!(world.succeeded(NAME).await.uid(), uid, "the version is the same one");
        provided(&world, PROVIDED).await;
    };
    let fixed = "CannotModifyStaticOperatorGroupProvidedAPIs";
    // The group does not have it, and its APIs are fixed.
    own(&world, false, true).await;
    // shows OG-41 AT-OG-05 OG-38
    fails(fixed).await;
    own(&world, true, true).await;
    // shows OG-41 AT-OG-05
    runs().await;
    // Another one has it, and the group, too: it cannot be taken away from a fixed one.
    reserve(&world).await;
    // shows OG-41 AT-OG-05
    fails(fixed).await;
    release(&world).await;
    runs().await;
    // It is taken away from one that is not fixed. Then the other one alone has it.
    own(&world, true, false).await;
    runs().await;
    reserve(&world).await;
    // shows OG-41 AT-OG-05
    provided(&world, "").await;
    // shows OG-41 AT-OG-05 OG-40
    fails("InterOperatorGroupOwnerConflict").await;
    release(&world).await;
    runs().await;
}

/// The condition of a version, once it is there.
async fn says(world: &World, good: impl FnMut(&Object) -> bool + Send + 'static) -> Object {
    world.cluster.wait_for(&OPERATOR_CONDITION, Some("team"), NAME, good).await
}

#[tokio::test]
async fn operator_without_an_upgradeable_condition_is_upgraded() {
    for other in [false, true] {
        let mut world = World::start(&["1.0.0"]).await;
        world.group("og").await;
        world.subscribe(json!({})).await;
        world.succeeded(NAME).await;
        latest(&world, "anvil", NAME).await;
        // shows OC-03
        assert_eq!(says(&world, |_| true).await.get(&["spec", "conditions"]), None);
        let cluster = world.cluster.cluster().clone();
        let conditions = &OPERATOR_CONDITION;
        if other {
            // It speaks, but of something else.
            let operator = world.cluster.cluster_as_account("team", "anvil");
            let ill = json!({"spec": {"conditions": [{
                "type": "Degraded", "status": "False", "reason": "Fine", "message": "well",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]}});
            operator.patch(conditions, Some("team"), NAME, &Patch::Merge(ill)).await.unwrap();
            says(&world, |operator_condition| {
                !operator_condition.array(&["status", "conditions"]).is_empty()
            })
            .await;
        } else {
            // There is not even where it could speak.
            world.pause().await;
            let params = DeleteOptions::default();
            cluster.delete(conditions, Some("team"), NAME, &params).await.unwrap();
        }
        world.publish(&["1.0.0", "1.1.0"]);
        if !other {
            world.resume().await;
        }
        world.succeeded("anvil.v1.1.0").await;
        // shows OC-12
        world.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), NAME).await;
    }
}

#[tokio::test]
async fn upgrade_continues_after_an_administrator_edits_the_operator_condition() {
    let world = World::start(&["1.0.0"]).await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded(NAME).await;
    latest(&world, "anvil", NAME).await;
    let busy = json!({"spec": {"conditions": [{
        "type": "Upgradeable", "status": "False", "reason": "Migrating", "message": "not now",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    says(&world, |_| true).await;
    let operator = world.cluster.cluster_as_account("team", "anvil");
    let conditions = &OPERATOR_CONDITION;
    let written = operator.patch(conditions, Some("team"), NAME, &Patch::Merge(busy)).await;
    // shows OC-02
    assert!(written.is_ok(), "the account of the operator may: {written:?}");
    // shows OC-01
    says(&world, |operator_condition| {
        !operator_condition.array(&["status", "conditions"]).is_empty()
    })
    .await;
    world.publish(&["1.0.0", "1.1.0"]);
    // shows OC-10 CSV-33
    let held = world.version("anvil.v1.1.0", "Pending", "OperatorConditionNotUpgradeable").await;
    assert!(held.str(&["status", "message"]).is_some_and(|message| message.contains("not now")));
    // As an editor does it: read, change, write what was changed.
    let read = world.cluster.cluster().get(conditions, Some("team"), NAME).await.unwrap();
    let mut edited = read.clone();
    edited.set(
        &["spec", "overrides"],
        json!([{"type": "Upgradeable", "status": "True", "reason": "Admin", "message": "go on"}]),
    );
    world.cluster.cluster().update(conditions, &edited).await.unwrap();
    // shows OC-14
    world.succeeded("anvil.v1.1.0").await;
    let healthy =
        |subscription: &Object| condition(subscription, "CatalogSourcesUnhealthy").is_none();
    world.cluster.wait_for(&SUBSCRIPTION, Some("team"), "anvil", healthy).await;
    // Who read before that does not undo it.
    let late = world.cluster.cluster().update(conditions, &read).await;
    assert!(late.is_err());
}
