//! Specification rows about OperatorGroups and OperatorConditions that no other test shows.

use crate::dependencies::wait_until_latest;
use crate::olm_cluster::{OlmCluster, create_namespace, csv, true_condition};
use mainstay_api::resources::{
    CLUSTER_SERVICE_VERSION, OPERATOR_CONDITION, OPERATOR_GROUP, SUBSCRIPTION,
};
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

const NAME: &str = "anvil.v1.0.0";
const PROVIDED: &str = "Anvil.v1.forge.example.com";

fn object(value: Value) -> Object {
    Object::from_value(value).unwrap()
}

async fn patch_group(olm: &OlmCluster, change: Value) {
    let cluster = olm.cluster.cluster();
    cluster.patch(&OPERATOR_GROUP, Some("team"), "og", &Patch::Merge(change)).await.unwrap();
}

#[tokio::test]
async fn legacy_empty_operator_group_fields_are_ignored_and_its_service_account_is_used() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    let cluster = olm.cluster.cluster();
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
        let group = olm.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", served).await;
        // shows OG-16
        assert_eq!(group.get(&["status", "serviceAccountRef"]), None);
        if targets.is_empty() {
            cluster
                .delete(&OPERATOR_GROUP, Some("team"), "og", &DeleteOptions::default())
                .await
                .unwrap();
        }
    }
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    wait_until_latest(&olm, "anvil", NAME).await;
    let account = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: less, namespace: team}}";
    olm.cluster.apply_yaml(account).await;
    patch_group(&olm, json!({"spec": {"serviceAccountName": "less"}})).await;
    let known =
        |group: &Object| group.str(&["status", "serviceAccountRef", "name"]) == Some("less");
    olm.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", known).await;
    olm.publish(&["1.0.0", "1.1.0"]);
    let refused = |all: &[&Object]| {
        let message = |plan: &&Object| plan.str(&["status", "message"]).map(str::to_owned);
        all.iter()
            .filter_map(message)
            .any(|message| message.contains("system:serviceaccount:team:less"))
    };
    // shows OG-16
    olm.wait_for_plans(refused).await;
}

#[tokio::test]
async fn operator_group_lists_the_api_service_of_its_only_member() {
    let olm = OlmCluster::start(&[]).await;
    create_namespace(&olm.cluster, "local", "").await;
    let group = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "olm-operators", "namespace": "local"},
        "spec": {"targetNamespaces": ["local"]},
    });
    olm.cluster.apply(object(group)).await;
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
    olm.cluster.apply(object(server)).await;
    let runs = |csv: &Object| csv.str(&["status", "phase"]) == Some("Succeeded");
    let csvs = &CLUSTER_SERVICE_VERSION;
    let csv = olm.cluster.wait_for(csvs, Some("local"), "packageserver.v1.0.0", runs).await;
    let cluster = olm.cluster.cluster();
    let group = cluster.get(&OPERATOR_GROUP, Some("local"), "olm-operators").await.unwrap();
    // shows OG-25 OG-26 AT-OG-04
    assert_eq!(
        group.annotation("olm.providedAPIs"),
        Some("PackageManifest.v1alpha1.packages.apps.redhat.com")
    );
    assert_eq!(*group.array(&["status", "namespaces"]), ["local"].map(Value::from));
    assert_eq!(csv.annotation("olm.operatorGroup"), Some("olm-operators"));
}

/// Creates an OperatorGroup in another namespace that targets `team` and has the API of `anvil` in
/// its annotation.
async fn create_rival_group(olm: &OlmCluster) {
    let rival = json!({
        "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {
            "name": "rival", "namespace": "other", "annotations": {"olm.providedAPIs": PROVIDED},
        },
        "spec": {"targetNamespaces": ["team"], "staticProvidedAPIs": true},
    });
    olm.cluster.apply(object(rival)).await;
}

async fn delete_rival_group(olm: &OlmCluster) {
    let params = DeleteOptions::default();
    let cluster = olm.cluster.cluster();
    cluster.delete(&OPERATOR_GROUP, Some("other"), "rival", &params).await.unwrap();
}

/// Sets whether the OperatorGroup of `anvil` provides its API, and whether its provided APIs are
/// static.
async fn set_provided_apis(olm: &OlmCluster, provides: bool, fixed: bool) {
    let text = provides.then_some(PROVIDED);
    let change = json!({
        "metadata": {"annotations": {"olm.providedAPIs": text}}, "spec": {"staticProvidedAPIs": fixed},
    });
    patch_group(olm, change).await;
}

async fn wait_for_provided_apis(olm: &OlmCluster, text: &'static str) {
    let provides = move |group: &Object| group.annotation("olm.providedAPIs") == Some(text);
    olm.cluster.wait_for(&OPERATOR_GROUP, Some("team"), "og", provides).await;
}

#[tokio::test]
async fn csv_phase_follows_from_its_operator_group_and_intersecting_ones() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    create_namespace(&olm.cluster, "other", "").await;
    // No other OperatorGroup provides the API: it is added to the annotation and stays there.
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    let uid = olm.wait_until_succeeded(NAME).await.uid().to_owned();
    // shows OG-41 AT-OG-05
    wait_for_provided_apis(&olm, PROVIDED).await;
    let fails = async |reason: &'static str| {
        // shows OG-41 AT-OG-05 CSV-12
        olm.wait_for_csv(NAME, "Failed", reason).await;
        // shows OG-41 AT-OG-05
        olm.cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "anvil").await;
    };
    let runs = async || {
        // shows OG-42 AT-OG-05 CSV-12
        assert_eq!(olm.wait_until_succeeded(NAME).await.uid(), uid, "the version is the same one");
        wait_for_provided_apis(&olm, PROVIDED).await;
    };
    let fixed = "CannotModifyStaticOperatorGroupProvidedAPIs";
    // The OperatorGroup does not provide the API, and its provided APIs are static.
    set_provided_apis(&olm, false, true).await;
    // shows OG-41 AT-OG-05 OG-38
    fails(fixed).await;
    set_provided_apis(&olm, true, true).await;
    // shows OG-41 AT-OG-05
    runs().await;
    // Both OperatorGroups provide the API: it cannot be removed from a static one.
    create_rival_group(&olm).await;
    // shows OG-41 AT-OG-05
    fails(fixed).await;
    delete_rival_group(&olm).await;
    runs().await;
    // The API is removed from an OperatorGroup that is not static. Then only the other one provides
    // it.
    set_provided_apis(&olm, true, false).await;
    runs().await;
    create_rival_group(&olm).await;
    // shows OG-41 AT-OG-05
    wait_for_provided_apis(&olm, "").await;
    // shows OG-41 AT-OG-05 OG-40
    fails("InterOperatorGroupOwnerConflict").await;
    delete_rival_group(&olm).await;
    runs().await;
}

/// Waits until the OperatorCondition of the CSV matches.
async fn wait_for_operator_condition(
    olm: &OlmCluster,
    predicate: impl FnMut(&Object) -> bool + Send + 'static,
) -> Object {
    olm.cluster.wait_for(&OPERATOR_CONDITION, Some("team"), NAME, predicate).await
}

#[tokio::test]
async fn operator_without_an_upgradeable_condition_is_upgraded() {
    for other in [false, true] {
        let mut olm = OlmCluster::start(&["1.0.0"]).await;
        olm.apply_group("og").await;
        olm.subscribe(json!({})).await;
        olm.wait_until_succeeded(NAME).await;
        wait_until_latest(&olm, "anvil", NAME).await;
        // shows OC-03
        assert_eq!(
            wait_for_operator_condition(&olm, |_| true).await.get(&["spec", "conditions"]),
            None
        );
        let cluster = olm.cluster.cluster().clone();
        let conditions = &OPERATOR_CONDITION;
        if other {
            // The OperatorCondition has a condition of another type.
            let operator = olm.cluster.cluster_as_account("team", "anvil");
            let ill = json!({"spec": {"conditions": [{
                "type": "Degraded", "status": "False", "reason": "Fine", "message": "well",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }]}});
            operator.patch(conditions, Some("team"), NAME, &Patch::Merge(ill)).await.unwrap();
            wait_for_operator_condition(&olm, |operator_condition| {
                !operator_condition.array(&["status", "conditions"]).is_empty()
            })
            .await;
        } else {
            // The OperatorCondition itself is deleted.
            olm.stop_controllers().await;
            let params = DeleteOptions::default();
            cluster.delete(conditions, Some("team"), NAME, &params).await.unwrap();
        }
        olm.publish(&["1.0.0", "1.1.0"]);
        if !other {
            olm.start_controllers().await;
        }
        olm.wait_until_succeeded("anvil.v1.1.0").await;
        // shows OC-12
        olm.cluster.wait_gone(&CLUSTER_SERVICE_VERSION, Some("team"), NAME).await;
    }
}

#[tokio::test]
async fn upgrade_continues_after_an_administrator_edits_the_operator_condition() {
    let olm = OlmCluster::start(&["1.0.0"]).await;
    olm.apply_group("og").await;
    olm.subscribe(json!({})).await;
    olm.wait_until_succeeded(NAME).await;
    wait_until_latest(&olm, "anvil", NAME).await;
    let busy = json!({"spec": {"conditions": [{
        "type": "Upgradeable", "status": "False", "reason": "Migrating", "message": "not now",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    wait_for_operator_condition(&olm, |_| true).await;
    let operator = olm.cluster.cluster_as_account("team", "anvil");
    let conditions = &OPERATOR_CONDITION;
    let written = operator.patch(conditions, Some("team"), NAME, &Patch::Merge(busy)).await;
    // shows OC-02
    assert!(written.is_ok(), "the account of the operator may: {written:?}");
    // shows OC-01
    wait_for_operator_condition(&olm, |operator_condition| {
        !operator_condition.array(&["status", "conditions"]).is_empty()
    })
    .await;
    olm.publish(&["1.0.0", "1.1.0"]);
    // shows OC-10 CSV-33
    let pending =
        olm.wait_for_csv("anvil.v1.1.0", "Pending", "OperatorConditionNotUpgradeable").await;
    assert!(pending.str(&["status", "message"]).is_some_and(|message| message.contains("not now")));
    // As `kubectl edit` does it: read, change, write.
    let read = olm.cluster.cluster().get(conditions, Some("team"), NAME).await.unwrap();
    let mut edited = read.clone();
    edited.set(
        &["spec", "overrides"],
        json!([{"type": "Upgradeable", "status": "True", "reason": "Admin", "message": "go on"}]),
    );
    olm.cluster.cluster().update(conditions, &edited).await.unwrap();
    // shows OC-14
    olm.wait_until_succeeded("anvil.v1.1.0").await;
    let healthy =
        |subscription: &Object| true_condition(subscription, "CatalogSourcesUnhealthy").is_none();
    olm.cluster.wait_for(&SUBSCRIPTION, Some("team"), "anvil", healthy).await;
    // A writer with the earlier resource version gets a conflict.
    let late = olm.cluster.cluster().update(conditions, &read).await;
    assert!(late.is_err());
}
