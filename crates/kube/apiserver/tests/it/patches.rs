//! Patches.

use crate::harness::{Api, MAPS, config_map, map};
use serde_json::json;

#[tokio::test]
async fn each_patch_type_changes_its_fields() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let merged = api.patch(&map("a"), "merge", &json!({"data": {"k": null, "l": "1"}})).await.ok();
    assert_eq!(merged["data"], json!({"l": "1"}));
    let ops = json!([{"op": "replace", "path": "/data/l", "value": "2"}]);
    assert_eq!(api.patch(&map("a"), "json", &ops).await.ok()["data"]["l"], "2");
    let body = json!({"metadata": {"labels": {"x": "y"}}});
    let patched = api.patch(&map("a"), "strategic-merge", &body).await.ok();
    assert_eq!(patched["metadata"]["labels"]["x"], "y");
    assert_eq!(patched["data"]["l"], "2");
}

#[tokio::test]
async fn a_patch_without_changes_is_not_stored() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    let same = api.patch(&map("a"), "merge", &json!({"data": {"k": "v"}})).await.ok();
    assert_eq!(same, created);
}

#[tokio::test]
async fn a_patch_with_a_revision_requires_that_revision() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"k": "w"}});
    assert_eq!(api.patch(&map("a"), "merge", &stale).await.refused().0, 409);
    let rename = json!({"metadata": {"name": "b"}});
    assert_eq!(api.patch(&map("a"), "merge", &rename).await.refused().0, 400);
    assert_eq!(api.patch(&map("zz"), "merge", &json!({})).await.refused().0, 404);
    assert_eq!(api.patch(&map("a"), "merge", &json!("text")).await.refused().0, 400);
}

#[tokio::test]
async fn a_patch_that_fails_to_apply_is_refused() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let test = json!([{"op": "test", "path": "/data/k", "value": "other"}]);
    assert_eq!(api.patch(&map("a"), "json", &test).await.refused().0, 422);
    let unknown = json!({"dat": {"k": "w"}});
    let path = format!("{}?fieldValidation=Strict", map("a"));
    let (code, message) = api.patch(&path, "merge", &unknown).await.refused();
    assert_eq!(code, 422);
    assert!(message.ends_with("strict decoding error: unknown field \"dat\""), "{message}");
    let warned = api.patch(&map("a"), "merge", &unknown).await;
    assert_eq!(warned.warnings(), ["299 - \"unknown field \\\"dat\\\"\""]);
}

#[tokio::test]
async fn a_strategic_merge_patch_cannot_change_the_kind() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    for patch in [json!({"kind": "Secret"}), json!({"apiVersion": "v2"})] {
        assert_eq!(api.patch(&map("a"), "strategic-merge", &patch).await.ok(), created);
        assert_eq!(api.patch(&map("a"), "merge", &patch).await.refused().0, 422);
    }
    let patch = json!({"kind": 5});
    let (code, message) = api.patch(&map("a"), "strategic-merge", &patch).await.refused();
    let why = "\"map[kind:5]\": cannot convert int64 to string";
    assert_eq!((code, message), (422, format!(" \"\" is invalid: patch: Invalid value: {why}")));
}
