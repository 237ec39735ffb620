//! Watches: start, content and end.

use crate::harness::{AS_METADATA, AS_TABLE, Api, MAPS, config_map, map};
use serde_json::{Value, json};
use std::time::Duration;

async fn set_label(api: &Api, name: &str, value: &str) -> Value {
    let mut body = api.get(&map(name)).await.ok();
    body["metadata"]["labels"] = json!({"l": value});
    api.put(&map(name), &body).await.ok()
}

#[tokio::test]
async fn a_watch_without_a_revision_begins_with_existing_objects() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    for query in ["watch=true", "watch=1&resourceVersion=0"] {
        let mut events = api.watch(&format!("{MAPS}?{query}")).await;
        assert_eq!(events.summary().await, "ADDED a", "{query}");
    }
    let mut events = api.watch(&format!("{MAPS}?watch=true")).await;
    assert_eq!(events.summary().await, "ADDED a");
    set_label(&api, "a", "x").await;
    assert_eq!(events.summary().await, "MODIFIED a");
    api.delete(&map("a"), &json!(null)).await.ok();
    let deleted = events.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["metadata"]["resourceVersion"], api.store.revision().to_string());
}

#[tokio::test]
async fn a_watch_from_a_revision_sends_all_later_events() {
    let api = Api::new().await;
    let from = api.post(MAPS, &config_map("a")).await.ok();
    let from = from["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    api.post(MAPS, &config_map("b")).await.ok();
    let mut events = api.watch(&format!("{MAPS}?watch=true&resourceVersion={from}")).await;
    assert_eq!(events.summary().await, "ADDED b");
    api.post(MAPS, &config_map("c")).await.ok();
    assert_eq!(events.summary().await, "ADDED c");
}

#[tokio::test]
async fn a_watch_from_a_future_revision_is_expired() {
    let api = Api::new().await;
    let mut events = api.watch(&format!("{MAPS}?watch=true&resourceVersion=99999")).await;
    let event = events.next().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn entering_and_leaving_a_selector_are_added_and_deleted_events() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let mut events = api.watch(&format!("{MAPS}?watch=true&labelSelector=l%3Dyes")).await;
    set_label(&api, "a", "yes").await;
    assert_eq!(events.summary().await, "ADDED a");
    let mut body = set_label(&api, "a", "yes").await;
    body["data"]["k"] = "w".into();
    api.put(&map("a"), &body).await.ok();
    assert_eq!(events.summary().await, "MODIFIED a");
    let left = set_label(&api, "a", "no").await;
    let event = events.next().await.unwrap();
    assert_eq!(event["type"], "DELETED");
    assert_eq!(event["object"]["metadata"]["labels"]["l"], "yes", "the object as it was");
    assert_eq!(
        event["object"]["metadata"]["resourceVersion"], left["metadata"]["resourceVersion"],
        "at the revision of the change"
    );
    api.delete(&map("a"), &json!(null)).await.ok();
    api.post(MAPS, &config_map("b")).await.ok();
    set_label(&api, "b", "yes").await;
    assert_eq!(events.summary().await, "ADDED b", "an object that never matched causes no event");
}

#[tokio::test]
async fn one_name_and_one_namespace_can_be_watched() {
    let api = Api::new().await;
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    api.post("/api/v1/namespaces", &ns).await.ok();
    let mut one = api.watch(&format!("{MAPS}?watch=true&fieldSelector=metadata.name%3Db")).await;
    let mut other = api.watch("/api/v1/namespaces/other/configmaps?watch=true").await;
    let mut all = api.watch("/api/v1/configmaps?watch=true").await;
    api.post(MAPS, &config_map("a")).await.ok();
    api.post("/api/v1/namespaces/other/configmaps", &config_map("c")).await.ok();
    api.post(MAPS, &config_map("b")).await.ok();
    assert_eq!(one.summary().await, "ADDED b");
    assert_eq!(other.summary().await, "ADDED c");
    for name in ["a", "c", "b"] {
        assert_eq!(all.summary().await, format!("ADDED {name}"));
    }
}

#[tokio::test]
async fn a_streaming_list_ends_its_initial_events_with_a_bookmark() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut events = api.watch(&path).await;
    assert_eq!(events.summary().await, "ADDED a");
    let mark = events.next().await.unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    let meta = &mark["object"]["metadata"];
    assert_eq!(meta["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(meta["resourceVersion"], api.store.revision().to_string());
    assert_eq!(mark["object"]["kind"], "ConfigMap");
    api.post(MAPS, &config_map("b")).await.ok();
    assert_eq!(events.summary().await, "ADDED b");

    let without = format!("{MAPS}?watch=true&sendInitialEvents=true");
    assert_eq!(api.get(&without).await.refused().0, 422);
    let invalid = format!("{MAPS}?watch=true&resourceVersionMatch=NotOlderThan");
    assert_eq!(api.get(&invalid).await.refused().0, 422);
    let none = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan";
    let mut events = api.watch(&format!("{MAPS}?watch=true&{none}")).await;
    api.post(MAPS, &config_map("c")).await.ok();
    assert_eq!(events.summary().await, "ADDED c");
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_and_just_before_the_end() {
    let api = Api::new().await;
    let clock = *api.server.clock();
    let query = "watch=true&allowWatchBookmarks=true&timeoutSeconds=150";
    let from = api.store.revision();
    let mut events = api.watch(&format!("{MAPS}?{query}&resourceVersion={from}")).await;
    let begin = clock.elapsed().as_secs();
    // A write to another resource advances the revision, which a bookmark reports.
    let ns = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
    api.post("/api/v1/namespaces", &ns).await.ok();
    let mut revisions = Vec::new();
    for _ in 0..3 {
        let event = events.next().await.unwrap();
        assert_eq!(event["type"], "BOOKMARK");
        let revision = event["object"]["metadata"]["resourceVersion"].as_str().unwrap();
        assert_eq!(revision, api.store.revision().to_string());
        revisions.push(clock.elapsed().as_secs() - begin);
    }
    assert_eq!(revisions, [60, 120, 148]);
    assert!(events.next().await.is_none());
    assert_eq!(clock.elapsed().as_secs() - begin, 150);
}

#[tokio::test]
async fn a_watch_ends_with_the_server() {
    let api = Api::new().await;
    let mut events = api.watch(&format!("{MAPS}?watch=true")).await;
    api.stop.cancel();
    let end = tokio::time::timeout(Duration::from_secs(5), events.next()).await.unwrap();
    assert!(end.is_none());
}

#[tokio::test]
async fn events_have_the_accepted_form() {
    let api = Api::new().await;
    api.post(MAPS, &config_map("a")).await.ok();
    let mut partial = api.watch_as(&format!("{MAPS}?watch=true"), AS_METADATA).await;
    let event = partial.next().await.unwrap();
    assert_eq!(event["object"]["kind"], "PartialObjectMetadata");
    assert!(event["object"].get("data").is_none());
    let mut table = api.watch_as(&format!("{MAPS}?watch=true"), AS_TABLE).await;
    let first = table.next().await.unwrap();
    assert_eq!(first["object"]["kind"], "Table");
    assert!(!first["object"]["columnDefinitions"].as_array().unwrap().is_empty());
    api.post(MAPS, &config_map("b")).await.ok();
    let second = table.next().await.unwrap();
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
    let heads = second["object"]["columnDefinitions"].as_array();
    assert!(heads.is_none_or(Vec::is_empty), "only the first event has columns");
}

#[tokio::test]
async fn a_thousand_plain_watches_share_one_frame() {
    let api = Api::new().await;
    let mut watches = Vec::new();
    for _ in 0..1000 {
        watches.push(api.watch(&format!("{MAPS}?watch=true")).await);
    }
    api.post(MAPS, &config_map("a")).await.ok();
    for events in &mut watches {
        assert_eq!(events.summary().await, "ADDED a");
    }
}
