//! Catalogs in folders.

use crate::world::{CATALOGS, World};
use mainstay_api::resources::CATALOG_SOURCE;
use serde_json::json;

fn ready(source: &mainstay_object::Object) -> bool {
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
    let broken = move |source: &mainstay_object::Object| {
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
        move |it: &mainstay_object::Object| {
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

#[tokio::test]
async fn a_kind_of_catalog_that_is_not_served_says_so() {
    let world = World::start(&["1.0.0"]).await;
    world
        .cluster
        .apply_yaml(
            "
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata: {name: far, namespace: team}
spec: {sourceType: grpc, address: 'example.com:50051'}
",
        )
        .await;
    world
        .cluster
        .wait_for(&CATALOG_SOURCE, Some("team"), "far", |it| {
            it.str(&["status", "message"]).is_some_and(|it| it.contains("not served"))
        })
        .await;
}
