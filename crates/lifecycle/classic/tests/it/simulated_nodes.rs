//! Simulated nodes: catalog pods that run no process.

use crate::images::{put_bundle, put_catalog};
use crate::olm_cluster::{OlmCluster, catalog};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_classic::CatalogMode;
use mainstay_client::{DeleteOptions, Selection};
use mainstay_object::{Object, builtin};
use serde_json::{Value, json};

/// A cluster whose nodes are simulated.
async fn olm_with_simulated_nodes(mode: CatalogMode) -> OlmCluster {
    let mut olm = OlmCluster::start(&[]).await;
    olm.stop_controllers().await;
    (olm.pods.mode, olm.pods.simulated) = (mode, true);
    olm.start_controllers().await;
    olm
}

async fn apply(olm: &OlmCluster, manifest: Value) {
    olm.cluster.apply(Object::from_value(manifest).unwrap()).await;
}

/// A catalog with these versions and their manifests.
fn catalog_with_manifests(versions: &[&str]) -> String {
    catalog(versions, |_, bundle| {
        bundle.as_object_mut().unwrap().remove("image");
    })
}

/// Creates a Pod that serves the file of a ConfigMap, and the ConfigMap.
async fn create_catalog_pod(olm: &OlmCluster, content: &str) {
    apply(
        olm,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "far-files", "namespace": "team"},
            "immutable": true,
            "data": {"catalog.json": content, ".indexignore": "**/\\.\\.*\n"},
        }),
    )
    .await;
    apply(
        olm,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "far", "namespace": "team", "labels": {"serves": "far"}},
            "spec": {
                "containers": [{
                    "name": "catalog", "image": "registry.invalid/opm",
                    "command": ["opm", "serve", "/opt/olm"],
                    "ports": [{"name": "grpc", "containerPort": 50051}],
                    "volumeMounts": [{"name": "files", "mountPath": "/opt/olm", "readOnly": true}],
                }],
                "volumes": [{"name": "files", "configMap": {"name": "far-files"}}],
            },
        }),
    )
    .await;
}

/// Deletes the Pod and its ConfigMap.
async fn delete_catalog_pod(olm: &OlmCluster) {
    let options = DeleteOptions::default();
    for (resource, name) in [(builtin::POD, "far"), (builtin::CONFIG_MAP, "far-files")] {
        let cluster = olm.cluster.cluster();
        cluster.ensure_deleted(&resource, Some("team"), name, &options).await.unwrap();
        olm.cluster.wait_gone(&resource, Some("team"), name).await;
    }
}

/// Waits until the connection of a catalog has a state.
async fn wait_for_connection_state(olm: &OlmCluster, name: &str, state: &'static str) {
    let predicate = move |source: &Object| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
    };
    olm.cluster.wait_for(&CATALOG_SOURCE, Some("team"), name, predicate).await;
}

/// Waits for an Event `CatalogUnreadable` whose message contains these words.
async fn wait_for_unreadable_event(olm: &OlmCluster, words: &'static str) {
    let events = Selection::all(builtin::EVENT).namespace("team");
    let predicate = |event: &Object| {
        event.str(&["reason"]) == Some("CatalogUnreadable")
            && event.str(&["message"]).is_some_and(|message| message.contains(words))
    };
    olm.cluster.wait_for_all(events, |all| all.iter().any(|event| predicate(event))).await;
}

#[tokio::test]
async fn catalog_behind_a_service_has_the_content_that_its_simulated_pod_would_serve() {
    let olm = olm_with_simulated_nodes(CatalogMode::InProcess).await;
    apply(
        &olm,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team"},
            "spec": {"sourceType": "grpc", "address": "far-svc.team.svc:50051"},
        }),
    )
    .await;
    wait_for_connection_state(&olm, "far", "TRANSIENT_FAILURE").await;
    apply(
        &olm,
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "far-svc", "namespace": "team"},
            "spec": {
                "selector": {"serves": "far"},
                "ports": [{"name": "grpc", "port": 50051, "targetPort": "grpc"}],
            },
        }),
    )
    .await;
    wait_for_unreadable_event(&olm, "no Pod that is ready stands behind the Service team/far-svc")
        .await;
    create_catalog_pod(&olm, &catalog_with_manifests(&["1.0.0"])).await;
    wait_for_connection_state(&olm, "far", "READY").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // shows E086
    olm.wait_until_succeeded("anvil.v1.0.0").await;
    // The content stays in use without a pod; the next pod serves other content.
    delete_catalog_pod(&olm).await;
    wait_for_connection_state(&olm, "far", "TRANSIENT_FAILURE").await;
    create_catalog_pod(&olm, "{").await;
    // shows E086
    wait_for_unreadable_event(
        &olm,
        "failed to list bundles: the Pod team/far: /opt/olm/catalog.json:",
    )
    .await;
    delete_catalog_pod(&olm).await;
    create_catalog_pod(&olm, &catalog_with_manifests(&["1.0.0", "1.1.0"])).await;
    wait_for_connection_state(&olm, "far", "READY").await;
    // shows E086
    olm.wait_until_succeeded("anvil.v1.1.0").await;
}

#[tokio::test]
async fn catalog_at_a_pod_ip_has_the_content_that_the_simulated_pod_would_serve() {
    let olm = olm_with_simulated_nodes(CatalogMode::InProcess).await;
    create_catalog_pod(&olm, &catalog_with_manifests(&["1.0.0"])).await;
    let has_ip =
        |pod: &Object| pod.str(&["status", "podIP"]).is_some_and(|pod_ip| !pod_ip.is_empty());
    let pod = olm.cluster.wait_for(&builtin::POD, Some("team"), "far", has_ip).await;
    let ip = pod.str(&["status", "podIP"]).unwrap();
    apply(
        &olm,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team"},
            "spec": {"sourceType": "grpc", "address": format!("{ip}:50051")},
        }),
    )
    .await;
    wait_for_connection_state(&olm, "far", "READY").await;
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn catalog_pods_on_simulated_nodes_are_read_in_the_process() {
    let olm = olm_with_simulated_nodes(CatalogMode::Pods).await;
    put_bundle(&olm.store(), "1.0.0", None);
    put_catalog(&olm.store(), "localhost/catalog:v1", &["1.0.0"]);
    let source = |name: &str, spec: Value| {
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": name, "namespace": "team"}, "spec": spec,
        })
    };
    let image = json!({"sourceType": "grpc", "image": "localhost/catalog:v1"});
    let mut copied = image.clone();
    copied["grpcPodConfig"] = json!({"extractContent": {"cacheDir": "", "catalogDir": "/configs"}});
    apply(
        &olm,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "lists", "namespace": "team"},
            "data": {
                "packages": "[]", "clusterServiceVersions": "[]", "customResourceDefinitions": "[]",
            },
        }),
    )
    .await;
    apply(&olm, source("far", image)).await;
    apply(&olm, source("copied", copied)).await;
    apply(&olm, source("lists", json!({"sourceType": "internal", "configMap": "lists"}))).await;
    for name in ["far", "copied", "lists"] {
        wait_for_connection_state(&olm, name, "READY").await;
        let pods = Selection::all(builtin::POD).namespace("team");
        let pods = pods.labels(format!("olm.catalogSource={name}"));
        // shows K15
        olm.cluster.wait_for_all(pods, |all| all.len() == 1).await;
    }
    olm.apply_group("og").await;
    olm.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    olm.wait_until_succeeded("anvil.v1.0.0").await;
}
