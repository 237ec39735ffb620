//! Registries in pods on nodes where nothing runs.

use crate::images::{put_bundle, put_catalog};
use crate::world::{World, catalog};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_classic::CatalogMode;
use mainstay_client::{DeleteOptions, Selection};
use mainstay_object::{Object, known};
use serde_json::{Value, json};

/// A world whose pods run nowhere.
async fn world(mode: CatalogMode) -> World {
    let mut world = World::start(&[]).await;
    world.pause().await;
    (world.pods.mode, world.pods.simulated) = (mode, true);
    world.resume().await;
    world
}

async fn apply(world: &World, manifest: Value) {
    world.cluster.apply(Object::from_value(manifest).unwrap()).await;
}

/// The content of the catalog: these versions, with their manifests.
fn content(versions: &[&str]) -> String {
    catalog(versions, |_, bundle| {
        bundle.as_object_mut().unwrap().remove("image");
    })
}

/// A Pod that serves a file of a ConfigMap, and the ConfigMap.
async fn serve(world: &World, content: &str) {
    apply(
        world,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "far-files", "namespace": "team"},
            "immutable": true,
            "data": {"catalog.json": content, ".indexignore": "**/\\.\\.*\n"},
        }),
    )
    .await;
    apply(
        world,
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

/// Takes them away.
async fn end(world: &World) {
    let options = DeleteOptions::default();
    for (resource, name) in [(known::POD, "far"), (known::CONFIG_MAP, "far-files")] {
        let cluster = world.cluster.cluster();
        cluster.ensure_deleted(&resource, Some("team"), name, &options).await.unwrap();
        world.cluster.wait_gone(&resource, Some("team"), name).await;
    }
}

/// Waits until a catalog is in a state.
async fn observed(world: &World, name: &str, state: &'static str) {
    let good = move |source: &Object| {
        source.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
    };
    world.cluster.wait_for(&CATALOG_SOURCE, Some("team"), name, good).await;
}

/// Waits until it is told that the catalog cannot be read, in these words.
async fn told(world: &World, words: &'static str) {
    let events = Selection::all(known::EVENT).namespace("team");
    let good = |event: &Object| {
        event.str(&["reason"]) == Some("CatalogUnreadable")
            && event.str(&["message"]).is_some_and(|message| message.contains(words))
    };
    world.cluster.wait_for_all(events, |all| all.iter().any(|event| good(event))).await;
}

#[tokio::test]
async fn catalog_behind_a_service_has_the_content_that_its_simulated_pod_would_serve() {
    let world = world(CatalogMode::InProcess).await;
    apply(
        &world,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team"},
            "spec": {"sourceType": "grpc", "address": "far-svc.team.svc:50051"},
        }),
    )
    .await;
    observed(&world, "far", "TRANSIENT_FAILURE").await;
    apply(
        &world,
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
    told(&world, "no Pod that is ready stands behind the Service team/far-svc").await;
    serve(&world, &content(&["1.0.0"])).await;
    observed(&world, "far", "READY").await;
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    // shows E086
    world.succeeded("anvil.v1.0.0").await;
    // Its content goes on counting while nobody serves it; who comes next serves something else.
    end(&world).await;
    observed(&world, "far", "TRANSIENT_FAILURE").await;
    serve(&world, "{").await;
    // shows E086
    told(&world, "failed to list bundles: the Pod team/far: /opt/olm/catalog.json:").await;
    end(&world).await;
    serve(&world, &content(&["1.0.0", "1.1.0"])).await;
    observed(&world, "far", "READY").await;
    // shows E086
    world.succeeded("anvil.v1.1.0").await;
}

#[tokio::test]
async fn catalog_at_a_pod_ip_has_the_content_that_the_simulated_pod_would_serve() {
    let world = world(CatalogMode::InProcess).await;
    serve(&world, &content(&["1.0.0"])).await;
    let has_ip =
        |pod: &Object| pod.str(&["status", "podIP"]).is_some_and(|pod_ip| !pod_ip.is_empty());
    let pod = world.cluster.wait_for(&known::POD, Some("team"), "far", has_ip).await;
    let ip = pod.str(&["status", "podIP"]).unwrap();
    apply(
        &world,
        json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": "far", "namespace": "team"},
            "spec": {"sourceType": "grpc", "address": format!("{ip}:50051")},
        }),
    )
    .await;
    observed(&world, "far", "READY").await;
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    world.succeeded("anvil.v1.0.0").await;
}

#[tokio::test]
async fn catalog_pods_on_simulated_nodes_are_read_in_the_process() {
    let world = world(CatalogMode::Pods).await;
    put_bundle(&world.store(), "1.0.0", None);
    put_catalog(&world.store(), "localhost/catalog:v1", &["1.0.0"]);
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
        &world,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "lists", "namespace": "team"},
            "data": {
                "packages": "[]", "clusterServiceVersions": "[]", "customResourceDefinitions": "[]",
            },
        }),
    )
    .await;
    apply(&world, source("far", image)).await;
    apply(&world, source("copied", copied)).await;
    apply(&world, source("lists", json!({"sourceType": "internal", "configMap": "lists"}))).await;
    for name in ["far", "copied", "lists"] {
        observed(&world, name, "READY").await;
        let pods = Selection::all(known::POD).namespace("team");
        let pods = pods.labels(format!("olm.catalogSource={name}"));
        // shows K15
        world.cluster.wait_for_all(pods, |all| all.len() == 1).await;
    }
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    world.succeeded("anvil.v1.0.0").await;
}
