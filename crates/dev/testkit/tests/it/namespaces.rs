//! Tests of namespaces: their default objects and their deletion.

use crate::helpers::deployment;
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::{Object, builtin};
use mainstay_testkit::TestCluster;
use serde_json::json;

const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";

#[tokio::test]
async fn every_namespace_has_a_service_account_and_the_root_ca() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(NAMESPACE).await;
    for namespace in ["default", "kube-system", "team"] {
        let exists = |_: &Object| true;
        cluster.wait_for(&builtin::SERVICE_ACCOUNT, Some(namespace), "default", exists).await;
        cluster
            .wait_for(&builtin::CONFIG_MAP, Some(namespace), "kube-root-ca.crt", |map| {
                map.str(&["data", "ca.crt"]) == Some("test certificates")
            })
            .await;
    }
    // Both are restored after a deletion or change.
    let api = cluster.cluster();
    let account = api.get(&builtin::SERVICE_ACCOUNT, Some("team"), "default").await.unwrap();
    let options = DeleteOptions::default();
    api.delete(&builtin::SERVICE_ACCOUNT, Some("team"), "default", &options).await.unwrap();
    cluster
        .wait_for(&builtin::SERVICE_ACCOUNT, Some("team"), "default", |service_account| {
            service_account.uid() != account.uid()
        })
        .await;
    let spoil = Patch::Merge(json!({"data": {"ca.crt": "spoiled"}}));
    api.patch(&builtin::CONFIG_MAP, Some("team"), "kube-root-ca.crt", &spoil).await.unwrap();
    cluster
        .wait_for(&builtin::CONFIG_MAP, Some("team"), "kube-root-ca.crt", |map| {
            map.str(&["data", "ca.crt"]) == Some("test certificates")
        })
        .await;
}

#[tokio::test]
async fn deleted_namespace_is_emptied_and_reports_remaining_finalizers() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(NAMESPACE).await;
    let text = deployment("web", 2, "a")
        .replace("metadata: {name: web}", "metadata: {name: web, namespace: team}");
    cluster.apply_yaml(&text).await;
    cluster.wait_for_condition(&builtin::DEPLOYMENT, Some("team"), "web", "Available").await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: team, finalizers: [test.io/hold]}}")
        .await;
    let api = cluster.cluster();
    api.delete(&builtin::NAMESPACE, None, "team", &DeleteOptions::default()).await.unwrap();
    let held = cluster
        .wait_for_condition(&builtin::NAMESPACE, None, "team", "NamespaceFinalizersRemaining")
        .await;
    let conditions = held.array(&["status", "conditions"]);
    let message = |kind| {
        mainstay_client::conditions::find(conditions, kind).unwrap()["message"].as_str().unwrap()
    };
    assert!(message("NamespaceContentRemaining").starts_with("Some resources are remaining: "));
    assert_eq!(
        message("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: test.io/hold in 1 resource instances"
    );
    cluster.wait_gone(&builtin::DEPLOYMENT, Some("team"), "web").await;
    let refused = api
        .create(
            &builtin::CONFIG_MAP,
            &Object::from_value(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "late", "namespace": "team"},
            }))
            .unwrap(),
        )
        .await
        .unwrap_err();
    assert!(refused.is_namespace_terminating(), "{refused}");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(&builtin::CONFIG_MAP, Some("team"), "held", &release).await.unwrap();
    cluster.wait_gone(&builtin::NAMESPACE, None, "team").await;
}

#[tokio::test]
async fn pods_are_deleted_before_other_content_of_a_namespace() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml("{apiVersion: v1, kind: Namespace, metadata: {name: room}}").await;
    let held = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: room, finalizers: [test.io/hold]}, spec: {automountServiceAccountToken: false, containers: [{name: c, image: i}]}}";
    cluster.wait_for(&builtin::SERVICE_ACCOUNT, Some("room"), "default", |_| true).await;
    cluster.apply_yaml(held).await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: needed, namespace: room}}")
        .await;
    let api = cluster.cluster();
    api.delete(&builtin::NAMESPACE, None, "room", &DeleteOptions::default()).await.unwrap();
    let has_looked =
        |namespace: &Object| namespace.condition("NamespaceDeletionContentFailure").is_some();
    cluster.wait_for(&builtin::NAMESPACE, None, "room", has_looked).await;
    cluster.wait_for(&builtin::POD, Some("room"), "p", Object::is_terminating).await;
    let needed = api.get(&builtin::CONFIG_MAP, Some("room"), "needed").await.unwrap();
    assert!(!needed.is_terminating());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(&builtin::POD, Some("room"), "p", &release).await.unwrap();
    cluster.wait_gone(&builtin::NAMESPACE, None, "room").await;
}

#[tokio::test]
async fn persistent_volume_claim_stays_while_a_pod_mounts_it() {
    let cluster = TestCluster::start().await;
    let claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: user}, spec: {schedulerName: nobody, automountServiceAccountToken: false, containers: [{name: c, image: i}], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}";
    cluster.apply_yaml(claim).await;
    cluster.apply_yaml(pod).await;
    let (api, options) = (cluster.cluster(), DeleteOptions::default());
    api.delete(&builtin::PERSISTENT_VOLUME_CLAIM, Some("default"), "data", &options).await.unwrap();
    let claim = builtin::PERSISTENT_VOLUME_CLAIM;
    cluster.wait_for(&claim, Some("default"), "data", Object::is_terminating).await;
    api.delete(&builtin::POD, Some("default"), "user", &options).await.unwrap();
    cluster.wait_gone(&claim, Some("default"), "data").await;
}
