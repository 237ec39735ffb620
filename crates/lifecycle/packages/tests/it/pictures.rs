//! Pictures of packages.

use crate::world::{ROOT, World, bundle, catalog, channel, csv, package, simple, source, whole};
use http::{Request, Response};
use mainstay_packages::Content;
use serde_json::json;

async fn icon(world: &World, name: &str, known: &str) -> Response<Content> {
    let path = format!("{ROOT}/namespaces/team/packagemanifests/{name}/icon");
    world.ask(Request::get(path).header("if-none-match", known).body(()).unwrap()).await
}

#[tokio::test]
async fn the_picture_of_a_package_is_that_of_the_head_of_its_default_channel() {
    let mut head = csv("kiwi", "1.0.0");
    // Broken over lines, and without padding, as people have them.
    head["spec"]["icon"] = json!([{"base64data": "aGVs\nbG8", "mediatype": "image/png"}]);
    let content = [
        simple("plum", "1.0.0"),
        vec![package("kiwi", "stable"), channel("kiwi", "stable", &["1.0.0"])],
        vec![bundle("kiwi", "1.0.0", &[head])],
    ];
    let world = World::new(vec![source("olm", "cat", Some(catalog(&content.concat())))]);
    let found = icon(&world, "kiwi", "\"other\"").await;
    let etag = "\"kiwi.stable.kiwi.v1.0.0\"";
    assert_eq!((found.status().as_u16(), &found.headers()["etag"]), (200, &etag.parse().unwrap()));
    // shows E091
    assert_eq!(found.headers()["content-type"], "image/png");
    assert_eq!(whole(found).await, b"hello");
    let known = icon(&world, "kiwi", etag).await;
    assert_eq!((known.status().as_u16(), whole(known).await.len()), (304, 0));
    // The objects themselves come without.
    let object = world.get("/namespaces/team/packagemanifests/kiwi").await;
    assert_eq!(object["status"]["channels"][0]["currentCSVDesc"].get("icon"), None);
    let usual = icon(&world, "plum", "").await;
    assert_eq!(usual.headers()["content-type"], "image/svg+xml");
    assert_eq!(usual.headers().get("etag"), None);
    assert!(whole(usual).await.trim_ascii().starts_with(b"<svg"));
    assert_eq!(icon(&world, "pear", "").await.status(), 404);
}
