//! Catalogs in folders and behind addresses.

use crate::registry::Registry;
use crate::world::{CATALOGS, World};
use mainstay_api::resources::CATALOG_SOURCE;
use mainstay_object::Object;
use serde_json::{Value, json};

fn ready(source: &Object) -> bool {
    source.str(&["status", "connectionState", "lastObservedState"]) == Some("READY")
        && source.str(&["status", "message"]).is_none()
}

#[tokio::test]
async fn a_broken_catalog_says_where_and_serves_what_it_had_even_after_a_restart() {
    let mut world = World::start(&["1.0.0"]).await;
    world.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOGS), "cat", ready).await;
    std::fs::write(world.folder.path().join("catalog.json"), "{\n\"schema\": [\n").unwrap();
    let place = format!("{}:", world.folder.path().join("catalog.json").display());
    let at = place.clone();
    let broken = move |source: &Object| {
        source.str(&["status", "message"]).is_some_and(|it| it.starts_with(&at))
    };
    world.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOGS), "cat", broken).await;
    let (kind, message) = world.event("CatalogSource", "cat", "CatalogUnreadable").await;
    assert!(kind == "Warning" && message.starts_with(&place), "{message}");
    world.pause().await;
    world.resume().await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    let health = |words: &'static str| {
        move |it: &Object| {
            it.array(&["status", "conditions"]).iter().any(|it| {
                it["type"] == "CatalogSourcesUnhealthy"
                    && it["status"] == "False"
                    && it["message"].as_str().is_some_and(|it| it.ends_with(words))
            })
        }
    };
    world.subscription(health("are healthy; olm/cat serves its last good content")).await;
    world.publish(&["1.0.0", "1.1.0"]);
    world.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOGS), "cat", ready).await;
    assert_eq!(world.event("CatalogSource", "cat", "CatalogReadable").await.0, "Normal");
    world.succeeded("anvil.v1.1.0").await;
    world.subscription(health("are healthy")).await;
}

/// A CatalogSource `far` in the namespace `team` with that address.
async fn far(world: &World, address: impl std::fmt::Display) {
    world
        .cluster
        .apply_yaml(&format!(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {{name: far, namespace: team}}
spec: {{sourceType: grpc, address: '{address}'}}
"
        ))
        .await;
}

/// Waits until the connection of `far` is in that state, and gives its status.
async fn observed(world: &World, state: &'static str) -> Value {
    let source = world.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", move |it| {
        it.str(&["status", "connectionState", "lastObservedState"]) == Some(state)
    });
    source.await.to_value()["status"].clone()
}

fn healthy(it: &Object) -> bool {
    it.array(&["status", "conditions"]).iter().any(|it| {
        it["type"] == "CatalogSourcesUnhealthy"
            && it["status"] == "False"
            && it["message"] == "all available catalogsources are healthy"
    })
}

#[tokio::test]
async fn a_registry_that_goes_away_is_told_and_missed_by_nobody_until_it_is_back() {
    let mut world = World::start(&["1.0.0"]).await;
    let mut registry = Registry::start(&["1.0.0"]).await;
    far(&world, registry.address).await;
    let status = observed(&world, "READY").await;
    assert_eq!(status["connectionState"]["address"], registry.address.to_string());
    assert!(status["connectionState"]["lastConnect"].is_string(), "{status}");
    assert_eq!(status["registryService"]["protocol"], "grpc");
    assert_eq!(status["registryService"].as_object().unwrap().len(), 2, "{status}");
    registry.stop().await;
    let status = observed(&world, "TRANSIENT_FAILURE").await;
    assert_eq!((&status["reason"], &status["message"]), (&Value::Null, &Value::Null));
    let (kind, why) = world.event("CatalogSource", "far", "CatalogUnreadable").await;
    assert_eq!(
        (kind.as_str(), why),
        (
            "Warning",
            format!(
                "failed to list bundles: rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp {}: connect: connection refused\"",
                registry.address
            )
        )
    );
    // What it last had is there after a restart, too.
    world.pause().await;
    world.resume().await;
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    world.succeeded("anvil.v1.0.0").await;
    world.subscription(healthy).await;
    registry.publish(&["1.0.0", "1.1.0"]);
    registry.resume().await;
    world.succeeded("anvil.v1.1.0").await;
    observed(&world, "READY").await;
    assert_eq!(world.event("CatalogSource", "far", "CatalogReadable").await.0, "Normal");
    // A restart with a server that is there writes nothing.
    let before = world.written().await;
    world.pause().await;
    world.resume().await;
    registry.publish(&["1.0.0", "1.1.0", "1.2.0"]);
    world.succeeded("anvil.v1.2.0").await;
    let of_sources = |all: Vec<String>| -> Vec<String> {
        all.into_iter().filter(|it| it.starts_with("CatalogSource ")).collect()
    };
    assert_eq!(of_sources(before), of_sources(world.written().await));
}

#[tokio::test]
async fn new_content_and_another_address_are_upgrades_without_anything_else_happening() {
    let world = World::start(&["1.0.0"]).await;
    let registry = Registry::start(&["1.0.0"]).await;
    far(&world, registry.address).await;
    world.group("og").await;
    world.subscribe(json!({"source": "far", "sourceNamespace": "team"})).await;
    world.succeeded("anvil.v1.0.0").await;
    registry.publish(&["1.0.0", "1.1.0"]);
    world.succeeded("anvil.v1.1.0").await;
    let other = Registry::start(&["1.0.0", "1.1.0", "1.2.0"]).await;
    far(&world, other.address).await;
    world.succeeded("anvil.v1.2.0").await;
    let status = observed(&world, "READY").await;
    assert_eq!(status["connectionState"]["address"], other.address.to_string());
    // What is no address is told as the original's client does.
    far(&world, "nowhere").await;
    observed(&world, "TRANSIENT_FAILURE").await;
    let (_, why) = world.event("CatalogSource", "far", "CatalogUnreadable").await;
    assert!(why.contains("address nowhere: missing port in address"), "{why}");
}

#[tokio::test]
async fn a_folder_that_nobody_knows_says_so() {
    let world = World::start(&["1.0.0"]).await;
    far(&world, mainstay_classic::FOLDER_ADDRESS).await;
    let unknown = |it: &Object| {
        it.str(&["status", "message"]).is_some_and(|it| it.contains("no folder is known"))
    };
    world.cluster.wait_for(&CATALOG_SOURCE, Some("team"), "far", unknown).await;
}
