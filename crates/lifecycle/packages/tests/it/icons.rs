//! Icons of packages.

use crate::test_api::{
    ROOT, TestApi, bundle, catalog, channel, csv, package, simple, source, whole,
};
use http::{Request, Response};
use mainstay_packages::ResponseBody;
use serde_json::json;

async fn icon(api: &TestApi, name: &str, etag: &str) -> Response<ResponseBody> {
    let path = format!("{ROOT}/namespaces/team/packagemanifests/{name}/icon");
    api.send(Request::get(path).header("if-none-match", etag).body(()).unwrap()).await
}

#[tokio::test]
async fn icon_comes_from_the_default_channel_head() {
    let mut head = csv("kiwi", "1.0.0");
    // With a line break and without padding, as in real catalogs.
    head["spec"]["icon"] = json!([{"base64data": "aGVs\nbG8", "mediatype": "image/png"}]);
    let content = [
        simple("plum", "1.0.0"),
        vec![package("kiwi", "stable"), channel("kiwi", "stable", &["1.0.0"])],
        vec![bundle("kiwi", "1.0.0", &[head])],
    ];
    let api = TestApi::new(vec![source("olm", "cat", Some(catalog(&content.concat())))]);
    let found = icon(&api, "kiwi", "\"other\"").await;
    let etag = "\"kiwi.stable.kiwi.v1.0.0\"";
    assert_eq!((found.status().as_u16(), &found.headers()["etag"]), (200, &etag.parse().unwrap()));
    // shows E091
    assert_eq!(found.headers()["content-type"], "image/png");
    assert_eq!(whole(found).await, b"hello");
    let cached = icon(&api, "kiwi", etag).await;
    assert_eq!((cached.status().as_u16(), whole(cached).await.len()), (304, 0));
    // PackageManifests have no icons.
    let object = api.get("/namespaces/team/packagemanifests/kiwi").await;
    assert_eq!(object["status"]["channels"][0]["currentCSVDesc"].get("icon"), None);
    let default_icon = icon(&api, "plum", "").await;
    assert_eq!(default_icon.headers()["content-type"], "image/svg+xml");
    assert_eq!(default_icon.headers().get("etag"), None);
    assert!(whole(default_icon).await.trim_ascii().starts_with(b"<svg"));
    assert_eq!(icon(&api, "pear", "").await.status(), 404);
}
