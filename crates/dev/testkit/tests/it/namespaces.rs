//! What namespaces have, and how they go.

use crate::helpers::deployment;
use mainstay_client::{DeleteOptions, Patch};
use mainstay_object::known;
use mainstay_testkit::TestCluster;
use serde_json::json;

const NAMESPACE: &str = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";

#[tokio::test]
async fn every_namespace_has_an_account_and_the_certificates() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(NAMESPACE).await;
    for namespace in ["default", "kube-system", "team"] {
        let there = |_: &mainstay_object::Object| true;
        cluster.wait_for(&known::SERVICE_ACCOUNT, Some(namespace), "default", there).await;
        cluster
            .wait_for(&known::CONFIG_MAP, Some(namespace), "kube-root-ca.crt", |map| {
                map.str(&["data", "ca.crt"]) == Some("test certificates")
            })
            .await;
    }
    // Both come back when somebody deletes or changes them.
    let api = cluster.cluster();
    let account = api.get(&known::SERVICE_ACCOUNT, Some("team"), "default").await.unwrap();
    let options = DeleteOptions::default();
    api.delete(&known::SERVICE_ACCOUNT, Some("team"), "default", &options).await.unwrap();
    cluster
        .wait_for(&known::SERVICE_ACCOUNT, Some("team"), "default", |it| it.uid() != account.uid())
        .await;
    let spoil = Patch::Merge(json!({"data": {"ca.crt": "spoiled"}}));
    api.patch(&known::CONFIG_MAP, Some("team"), "kube-root-ca.crt", &spoil).await.unwrap();
    cluster
        .wait_for(&known::CONFIG_MAP, Some("team"), "kube-root-ca.crt", |map| {
            map.str(&["data", "ca.crt"]) == Some("test certificates")
        })
        .await;
}

#[tokio::test]
async fn a_deleted_namespace_is_emptied_and_says_what_holds_it() {
    let cluster = TestCluster::start().await;
    cluster.apply_yaml(NAMESPACE).await;
    let text = deployment("web", 2, "a")
        .replace("metadata: {name: web}", "metadata: {name: web, namespace: team}");
    cluster.apply_yaml(&text).await;
    cluster.wait_for_condition(&known::DEPLOYMENT, Some("team"), "web", "Available").await;
    cluster
        .apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: team, finalizers: [test.io/hold]}}")
        .await;
    let api = cluster.cluster();
    api.delete(&known::NAMESPACE, None, "team", &DeleteOptions::default()).await.unwrap();
    let held = cluster
        .wait_for_condition(&known::NAMESPACE, None, "team", "NamespaceFinalizersRemaining")
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
    cluster.wait_gone(&known::DEPLOYMENT, Some("team"), "web").await;
    let refused = api
        .create(
            &known::CONFIG_MAP,
            &mainstay_object::Object::from_value(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "late", "namespace": "team"},
            }))
            .unwrap(),
        )
        .await
        .unwrap_err();
    assert!(refused.is_namespace_terminating(), "{refused}");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(&known::CONFIG_MAP, Some("team"), "held", &release).await.unwrap();
    cluster.wait_gone(&known::NAMESPACE, None, "team").await;
}
