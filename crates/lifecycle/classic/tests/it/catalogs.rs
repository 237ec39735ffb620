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
    let broken = |source: &mainstay_object::Object| {
        let place = "catalog.json:";
        source.str(&["status", "message"]).is_some_and(|it| it.contains(place))
    };
    world.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOGS), "cat", broken).await;
    world.pause().await;
    world.resume().await;
    world.group("og").await;
    world.subscribe(json!({})).await;
    world.succeeded("anvil.v1.0.0").await;
    world.publish(&["1.0.0", "1.1.0"]);
    world.cluster.wait_for(&CATALOG_SOURCE, Some(CATALOGS), "cat", ready).await;
    world.succeeded("anvil.v1.1.0").await;
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
spec: {sourceType: grpc, image: example.com/catalog:v1}
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
