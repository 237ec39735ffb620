//! The size limit of objects: for every kind of write, and for existing objects.

use crate::harness::{Api, MAPS, TestResponse, config_map, map};
use http::Method;
use mainstay_clock::Clock;
use mainstay_store::{Change, CommitError, Key, Options, Precondition, Store};
use serde_json::{Value, json};

const LIMIT: usize = 64 << 10;
const BOXES: &str = "/apis/example.com/v1/namespaces/default/boxes";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn clock() -> Clock {
    Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap())
}

fn options(max_object_bytes: usize) -> Options {
    Options { max_object_bytes, ..Options::new(clock()) }
}

async fn api_with_limit() -> Api {
    Api::on(Store::in_memory(options(LIMIT)), clock()).await
}

/// A ConfigMap with so many bytes of data.
fn filled(name: &str, bytes: usize) -> Value {
    let mut map = config_map(name);
    map["data"]["k"] = "x".repeat(bytes).into();
    map
}

#[track_caller]
fn assert_too_large(response: &TestResponse) {
    let (code, message) = response.refused();
    assert_eq!((code, response.json()["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
    assert!(message.contains("in the store, where the limit is"), "{message}");
    assert!(message.ends_with("raise the limit with mainstay up --max-object-bytes"), "{message}");
}

#[tokio::test]
async fn no_write_exceeds_the_size_limit() {
    let api = api_with_limit().await;
    let before = api.post(MAPS, &filled("a", LIMIT / 2)).await.ok();
    let more = json!({"data": {"l": "x".repeat(LIMIT / 2)}});
    for dry in ["", "?dryRun=All"] {
        assert_too_large(&api.post(&format!("{MAPS}{dry}"), &filled("b", LIMIT)).await);
        let path = format!("{}{dry}", map("a"));
        assert_too_large(&api.put(&path, &filled("a", LIMIT)).await);
        assert_too_large(&api.patch(&path, "merge", &more).await);
        assert_too_large(&api.patch(&path, "strategic-merge", &more).await);
        let copy = json!([{"op": "copy", "from": "/data/k", "path": "/data/l"}]);
        assert_too_large(&api.patch(&path, "json", &copy).await);
        let separator = if dry.is_empty() { "?" } else { "&" };
        let path = format!("{path}{separator}fieldManager=m");
        let mut config = filled("a", LIMIT / 2);
        config["data"]["l"] = more["data"]["l"].clone();
        config["data"]["k"] = before["data"]["k"].clone();
        let headers = [("content-type", "application/apply-patch+yaml")];
        assert_too_large(&api.call(Method::PATCH, &path, &headers, config.to_string()).await);
        let path = format!("{}{dry}{separator}fieldManager=m", map("c"));
        config["metadata"]["name"] = "c".into();
        assert_too_large(&api.call(Method::PATCH, &path, &headers, config.to_string()).await);
    }
    assert_eq!(api.get(&map("a")).await.ok(), before);
    assert_eq!(api.get(&map("b")).await, 404);
}

#[tokio::test]
async fn a_size_refusal_names_the_object_its_size_and_the_limit() {
    let api = api_with_limit().await;
    let (_, message) = api.post(MAPS, &filled("a", LIMIT)).await.refused();
    let expected = "Request entity too large: ConfigMap \"a\" would have ";
    assert!(message.starts_with(expected), "{message}");
    assert!(message.contains("where the limit is 65536 bytes; make it smaller"), "{message}");
}

#[tokio::test]
async fn subresources_have_the_limit_of_their_object() {
    let api = api_with_limit().await;
    let labels = json!({"app": "a"});
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]},
        }},
    });
    api.post(DEPLOYMENTS, &deployment).await.ok();
    let condition = json!({"type": "A", "status": "True", "message": "x".repeat(LIMIT)});
    let status = json!({"status": {"conditions": [condition]}});
    let path = format!("{DEPLOYMENTS}/a/status");
    assert_too_large(&api.patch(&path, "merge", &status).await);
    let three = json!({"spec": {"replicas": 3}});
    let scaled = api.patch(&format!("{DEPLOYMENTS}/a/scale"), "merge", &three).await;
    assert_eq!(scaled.ok()["spec"]["replicas"], 3);
}

/// A CRD whose elements get a long default each.
fn definition() -> Value {
    let default = "x".repeat(22_000);
    let element = json!({"type": "object", "properties": {
        "text": {"type": "string", "default": default},
    }});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"list": {"type": "array", "items": element}}},
    }}});
    json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

#[tokio::test]
async fn multiplying_defaults_stop_at_the_size_limit() {
    let api = Api::new().await;
    api.define(&definition()).await;
    let sent = |count: usize| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"},
            "spec": {"list": vec![json!({}); count]},
        })
    };
    for path in [BOXES.to_owned(), format!("{BOXES}?dryRun=All")] {
        assert_too_large(&api.post(&path, &sent(1000)).await);
        // A hundred thousand elements would exceed two gigabytes.
        assert_too_large(&api.post(&path, &sent(100_000)).await);
    }
    let created = api.post(BOXES, &sent(10)).await.ok();
    assert_eq!(created["spec"]["list"][9]["text"].as_str().map(str::len), Some(22_000));
    let patch = json!({"spec": {"list": vec![json!({}); 1000]}});
    assert_too_large(&api.patch(&format!("{BOXES}/a"), "merge", &patch).await);
}

#[tokio::test]
async fn lists_of_empty_elements_are_refused_before_they_get_defaults() {
    let api = Api::new().await;
    let containers = vec![json!({"name": "a"}); 53_000];
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers}});
    let response = api.post("/api/v1/namespaces/default/pods?dryRun=All", &pod).await;
    assert_too_large(&response);
    assert!(response.refused().1.contains("has 53000 elements in its lists"));
}

#[tokio::test]
async fn an_oversized_stored_object_can_be_read_shrunk_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (store, _) = Store::open(folder.path(), options(1 << 20)).unwrap();
        let api = Api::on(store.clone(), clock()).await;
        for name in ["a", "b"] {
            let mut map = filled(name, 4 * LIMIT);
            map["metadata"]["finalizers"] = json!(["example.com/hold"]);
            api.post(MAPS, &map).await.ok();
        }
        api.stop.cancel();
        store.close().await.unwrap();
    }
    let (store, _) = Store::open(folder.path(), options(LIMIT)).unwrap();
    let api = Api::on(store, clock()).await;
    let read = api.get(&map("a")).await.ok();
    assert_eq!(read["data"]["k"].as_str().map(str::len), Some(4 * LIMIT));
    // It may keep its size or shrink, even if it stays too large; it may not grow.
    let mut changed = read.clone();
    changed["data"]["k"] = "y".repeat(3 * LIMIT).into();
    api.put(&map("a"), &changed).await.ok();
    let longer = json!({"data": {"l": "y".repeat(1000)}});
    assert_too_large(&api.patch(&map("a"), "merge", &longer).await);
    let api_with_limit = json!({"data": {"k": "y"}});
    api.patch(&map("a"), "merge", &api_with_limit).await.ok();
    api.patch(&map("a"), "merge", &longer).await.ok();
    // The deletion marks make it longer.
    api.delete(&map("b"), &Value::Null).await.ok();
    let free = json!({"metadata": {"finalizers": null}});
    api.patch(&map("b"), "merge", &free).await.ok();
    assert_eq!(api.get(&map("b")).await, 404);
}

#[tokio::test]
async fn in_process_writers_have_the_size_limit_too() {
    let store = Store::in_memory(options(LIMIT));
    let object = mainstay_object::Object::from_value(filled("a", LIMIT)).unwrap();
    let key = Key::new("configmaps", "default", "a");
    let change = Change::Put { key, object: &object, expect: Precondition::Absent, guard: None };
    let refused = store.commit(change).await.unwrap_err();
    assert!(matches!(refused, CommitError::TooLarge { limit: LIMIT, .. }), "{refused}");
}
