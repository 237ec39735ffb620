//! Upstream's scenarios of ClusterObjectSets that users write: probes, Secrets, and fields of users.

use crate::approved_accounts::{
    CLUSTER_ROLE, approve, change_and_wait_until_repaired, rules, with_package,
};
use crate::bundles::{TestBundle, crd};
use crate::cluster_extensions::grant;
use crate::extensions::NAMESPACE;
use crate::object_sets::{apply_set, config, config_map, experimental, wait_for_set};
use crate::olm_cluster::{OlmCluster, condition, message};
use crate::scenarios::serve;
use mainstay_api::names::olm_v1::{
    SERVICE_ACCOUNT_NAME_ANNOTATION, SERVICE_ACCOUNT_NAMESPACE_ANNOTATION,
};
use mainstay_api::resources::CLUSTER_OBJECT_SET;
use mainstay_client::{DeleteOptions, ObjectList, Patch};
use mainstay_extensions::{Features, TrustMode};
use mainstay_object::{Object, Resource, builtin};
use serde_json::{Value, json};
use std::time::Duration;

const CLAIM: &Resource = &builtin::PERSISTENT_VOLUME_CLAIM;
const SUCCEEDED: (&str, &str) = ("True", "Succeeded");

/// A cluster with running controllers.
async fn started() -> OlmCluster {
    let mut olm = experimental().await;
    olm.start_controllers().await;
    olm
}

/// A ConfigMap with these labels and data.
fn labelled(name: &str, labels: Value, data: Value) -> Value {
    let mut object = config_map(name);
    object["metadata"]["labels"] = labels;
    object["data"] = data;
    object
}

fn field_value(path: &str, value: &str) -> Value {
    json!({"type": "FieldValue", "fieldValue": {"fieldPath": path, "value": value}})
}

fn of_kind(group: &str, kind: &str, assertions: &Value) -> Value {
    json!({
        "selector": {"type": "GroupKind", "groupKind": {"group": group, "kind": kind}},
        "assertions": assertions,
    })
}

fn of_label(selector: &Value, assertions: &Value) -> Value {
    json!({"selector": {"type": "Label", "label": selector}, "assertions": assertions})
}

#[tokio::test]
async fn next_phase_waits_until_a_claim_is_bound() {
    let olm = started().await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "test-pvc", "namespace": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    let probes = json!([of_kind(
        "",
        "PersistentVolumeClaim",
        &json!([field_value("status.phase", "Bound")])
    )]);
    apply_set(&olm, "set", &[&[claim], &[config_map("second")]], &probes).await;
    let pending = wait_for_set(&olm, "set", "Available", ("False", "ProbeFailure")).await;
    // shows OLMV1-36
    assert_eq!(
        message(&pending, "Available"),
        "Object PersistentVolumeClaim.v1 work/test-pvc: value at key \"status.phase\" != \"Bound\"; expected: \"Bound\" got: \"Pending\""
    );
    // shows OLMV1-36
    assert!(config(&olm, "second").await.is_none());
    let bound = Patch::Merge(json!({"status": {"phase": "Bound"}}));
    let cluster = olm.cluster.cluster();
    cluster.patch_status(CLAIM, Some(NAMESPACE), "test-pvc", &bound).await.unwrap();
    // shows OLMV1-37
    wait_for_set(&olm, "set", "Available", ("True", "ProbesSucceeded")).await;
    // shows OLMV1-37
    wait_for_set(&olm, "set", "Succeeded", SUCCEEDED).await;
    // shows OLMV1-37
    assert!(config(&olm, "second").await.is_some());
}

#[tokio::test]
async fn probe_that_selects_by_label_holds_the_next_phase_up() {
    let olm = started().await;
    let first = labelled("first", json!({"probed": "yes"}), json!({"a": "1"}));
    let probes = json!([of_label(
        &json!({"matchLabels": {"probed": "yes"}}),
        &json!([field_value("data.a", "9")])
    )]);
    apply_set(&olm, "set", &[&[first], &[config_map("second")]], &probes).await;
    let failed = wait_for_set(&olm, "set", "Available", ("False", "ProbeFailure")).await;
    // shows OLMV1-38
    assert_eq!(
        message(&failed, "Available"),
        "Object ConfigMap.v1 work/first: value at key \"data.a\" != \"9\"; expected: \"9\" got: \"1\""
    );
    // shows OLMV1-38
    assert!(config(&olm, "second").await.is_none());
}

#[tokio::test]
async fn phases_follow_each_other_as_all_kinds_of_probes_succeed() {
    let olm = started().await;
    let value = labelled("value", json!({"probe": "value"}), json!({"a": "1"}));
    let equal = labelled("equal", json!({"probe": "equal"}), json!({"a": "1", "b": "1"}));
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "made"}});
    let mut crd = crd("Anvil", &json!({"size": {"type": "integer"}}));
    crd["metadata"]["labels"] = json!({"probe": "condition"});
    let fields =
        json!({"type": "FieldsEqual", "fieldsEqual": {"fieldA": "data.a", "fieldB": "data.b"}});
    let established = json!({
        "type": "ConditionEqual", "conditionEqual": {"type": "Established", "status": "True"},
    });
    let among = json!({"matchExpressions": [
        {"key": "probe", "operator": "In", "values": ["condition"]},
    ]});
    let probes = json!([
        of_label(&json!({"matchLabels": {"probe": "value"}}), &json!([field_value("data.a", "1")])),
        of_label(&json!({"matchLabels": {"probe": "equal"}}), &json!([fields])),
        of_label(&among, &json!([established])),
        of_kind("", "Namespace", &json!([field_value("status.phase", "Active")])),
    ]);
    apply_set(&olm, "set", &[&[value], &[equal], &[crd], &[namespace]], &probes).await;
    // shows OLMV1-39
    wait_for_set(&olm, "set", "Succeeded", SUCCEEDED).await;
    let cluster = olm.cluster.cluster();
    // shows OLMV1-39
    assert!(cluster.find(&builtin::NAMESPACE, None, "made").await.unwrap().is_some());
}

/// A Secret with a ConfigMap under the key `object`.
fn secret(is_immutable: bool, data: &str) -> Object {
    let mut object = config_map("x");
    object["data"]["a"] = data.into();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "objects", "namespace": NAMESPACE},
        "immutable": is_immutable, "stringData": {"object": object.to_string()},
    });
    Object::from_value(secret).unwrap()
}

/// A set whose object is in the Secret.
async fn apply_set_of_secret(olm: &OlmCluster) {
    let set = json!({
        "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
        "metadata": {"name": "set"},
        "spec": {
            "lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
            "phases": [{"name": "resources", "objects": [
                {"ref": {"name": "objects", "namespace": NAMESPACE, "key": "object"}},
            ]}],
        },
    });
    olm.cluster.apply(Object::from_value(set).unwrap()).await;
}

/// Replaces the Secret, and makes the controller look at the set.
async fn replace_secret(olm: &OlmCluster, with: Object) {
    let cluster = olm.cluster.cluster();
    let options = DeleteOptions::default();
    cluster.delete(&builtin::SECRET, Some(NAMESPACE), "objects", &options).await.unwrap();
    let created = cluster.create(&builtin::SECRET, &with).await.unwrap();
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": created.uid()}}}));
    cluster.patch(&CLUSTER_OBJECT_SET, None, "set", &touch).await.unwrap();
}

#[tokio::test]
async fn objects_come_from_secrets_that_do_not_change() {
    let olm = started().await;
    let cluster = olm.cluster.cluster();
    cluster.create(&builtin::SECRET, &secret(true, "1")).await.unwrap();
    apply_set_of_secret(&olm).await;
    // shows OLMV1-40
    let set = wait_for_set(&olm, "set", "Succeeded", SUCCEEDED).await;
    let observed = set.array(&["status", "observedPhases"]);
    // shows OLMV1-40
    assert!(
        matches!(observed, [phase] if phase["name"] == "resources"
            && phase["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:"))),
        "{observed:?}"
    );
    replace_secret(&olm, secret(true, "2")).await;
    let blocked = wait_for_set(&olm, "set", "Progressing", ("False", "Blocked")).await;
    // shows OLMV1-42
    assert!(
        message(&blocked, "Progressing")
            .starts_with("resolved content of 1 phase(s) has changed: phase \"resources\""),
        "{blocked:?}"
    );
    replace_secret(&olm, secret(true, "1")).await;
    // shows OLMV1-42
    wait_for_set(&olm, "set", "Progressing", SUCCEEDED).await;
}

#[tokio::test]
async fn secret_that_may_change_is_refused() {
    let olm = started().await;
    olm.cluster.cluster().create(&builtin::SECRET, &secret(false, "1")).await.unwrap();
    apply_set_of_secret(&olm).await;
    let blocked = wait_for_set(&olm, "set", "Progressing", ("False", "Blocked")).await;
    // shows OLMV1-41
    assert_eq!(
        message(&blocked, "Progressing"),
        "the following secrets are not immutable (referenced secrets must have immutable set to true): work/objects"
    );
}

#[tokio::test]
async fn labels_annotations_and_restarts_of_users_stay() {
    let mut olm = experimental().await;
    TestBundle::new("a", "1.0.0").with_configs(&["kept"]).store(&olm);
    olm.start_controllers().await;
    serve(&olm, &["1.0.0"]).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    let cluster = olm.cluster.cluster();
    let restarted = "kubectl.kubernetes.io/restartedAt";
    let patch = Patch::Merge(json!({
        "metadata": {"labels": {"mine": "yes"}, "annotations": {"mine": "yes"}},
        "spec": {"template": {"metadata": {"annotations": {restarted: "2026-01-01T00:00:00Z"}}}},
    }));
    cluster.patch(&builtin::DEPLOYMENT, Some(NAMESPACE), "a", &patch).await.unwrap();
    // The controller of Deployments rolls the template out.
    let rolled_out = olm
        .cluster
        .wait_for(&builtin::DEPLOYMENT, Some(NAMESPACE), "a", |deployment| {
            let count = |field: &str| deployment.i64(&["status", field]);
            deployment.i64(&["status", "observedGeneration"]) == Some(deployment.generation())
                && count("replicas") == Some(1)
                && count("updatedReplicas") == Some(1)
                && count("availableReplicas") == Some(1)
        })
        .await;
    let sets = ObjectList::labels("app=a");
    let sets = cluster.list(&builtin::REPLICA_SET, Some(NAMESPACE), &sets).await.unwrap().items;
    // shows OLMV1-46
    assert_eq!(sets.len(), 2);
    let template = ["spec", "template", "metadata", "annotations"];
    // shows OLMV1-46
    assert!(rolled_out.get(&template).unwrap().get(restarted).is_some());
    // The controller of ClusterObjectSets writes the Deployment again.
    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    cluster.patch(&builtin::DEPLOYMENT, Some(NAMESPACE), "a", &patch).await.unwrap();
    let repaired = olm
        .cluster
        .wait_for(&builtin::DEPLOYMENT, Some(NAMESPACE), "a", |deployment| {
            deployment.i64(&["spec", "replicas"]) == Some(1)
        })
        .await;
    // shows OLMV1-45
    assert_eq!((repaired.label("mine"), repaired.annotation("mine")), (Some("yes"), Some("yes")));
    // shows OLMV1-46
    assert!(repaired.get(&template).unwrap().get(restarted).is_some());
    let set = cluster.get(&CLUSTER_OBJECT_SET, None, "ext-1").await.unwrap();
    assert_eq!(condition(&set, "Succeeded").0, "True");
}

/// After a failure the next attempt may be far away. An approval does not wait for it.
#[tokio::test]
async fn approval_reaches_a_revision_that_waits_for_its_next_attempt() {
    let (mut olm, controllers) = with_package(Features::object_sets(TrustMode::Approved)).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.apply_extension("ext", "a", "").await;
    olm.wait_until_installed("ext", "1.0.0").await;
    controllers.shutdown().await;
    olm.retry = (Duration::from_hours(1), Duration::from_hours(1));
    let account = olm.cluster.cluster_as_account("olmv1-system", "mainstay");
    let controllers = olm.controllers_on(&account);
    controllers.synced().await;
    // The kinds are watched from now on.
    change_and_wait_until_repaired(&olm, "1.0.0").await;
    let (cluster, now) = (olm.cluster.cluster(), DeleteOptions::default());
    cluster.delete(&builtin::CLUSTER_ROLE, None, "approval", &now).await.unwrap();
    olm.cluster.wait_gone(&builtin::CLUSTER_ROLE, None, CLUSTER_ROLE).await;
    cluster.delete(&builtin::CONFIG_MAP, Some(NAMESPACE), "kept", &now).await.unwrap();
    wait_for_set(&olm, "ext-1", "Progressing", ("True", "Retrying")).await;
    approve(&olm, rules(&["kept", "dropped"])).await;
    olm.cluster.wait_for(&builtin::CONFIG_MAP, Some(NAMESPACE), "kept", |_| true).await;
    controllers.shutdown().await;
}

/// An account that may write objects but not watch them: the message says so, and what is incomplete.
#[tokio::test]
async fn rollout_with_an_account_that_may_not_watch_says_so() {
    for (listed, refused) in [(None, "cannot list"), (Some("list"), "cannot watch")] {
        let mut olm = experimental().await;
        olm.features = Features::object_sets(TrustMode::ServiceAccount);
        olm.start_controllers().await;
        let verbs: Vec<&str> =
            ["get", "create", "patch", "delete"].into_iter().chain(listed).collect();
        let rules = |verbs: &[&str]| json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]);
        grant(&olm, rules(&verbs)).await;
        let probes = json!([of_kind("", "ConfigMap", &json!([field_value("data.ready", "yes")]))]);
        let set = json!({
            "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterObjectSet",
            "metadata": {"name": "set", "annotations": {
                SERVICE_ACCOUNT_NAME_ANNOTATION: "installer",
                SERVICE_ACCOUNT_NAMESPACE_ANNOTATION: NAMESPACE,
            }},
            "spec": {
                "lifecycleState": "Active", "revision": 1, "collisionProtection": "Prevent",
                "phases": [{"name": "all", "objects": [{"object": config_map("one")}]}],
                "progressionProbes": probes,
            },
        });
        olm.cluster.apply(Object::from_value(set).unwrap()).await;
        let is_told = |set: &Object| {
            let text = message(set, "Progressing");
            text.starts_with("establish watch: configmaps is forbidden") && text.contains(refused)
        };
        let told = olm.cluster.wait_for(&CLUSTER_OBJECT_SET, None, "set", is_told).await;
        assert_eq!(condition(&told, "Available").1, "ProbeFailure");
        let (cluster, patch) =
            (olm.cluster.cluster(), Patch::Merge(json!({"data": {"ready": "yes"}})));
        cluster.patch(&builtin::CONFIG_MAP, Some(NAMESPACE), "one", &patch).await.unwrap();
        grant(&olm, rules(&["*"])).await;
        wait_for_set(&olm, "set", "Progressing", SUCCEEDED).await;
        // Now changes are repaired.
        let options = DeleteOptions::default();
        cluster.delete(&builtin::CONFIG_MAP, Some(NAMESPACE), "one", &options).await.unwrap();
        olm.cluster.wait_for(&builtin::CONFIG_MAP, Some(NAMESPACE), "one", |_| true).await;
    }
}
