//! Protobuf, which clients written in Go prefer to JSON.

use crate::harness::{Api, MAPS, config_map, map};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use mainstay_http::Body;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, TypeDefinition};
use mainstay_schema::{protobuf, strict};
use serde_json::{Value, json};

/// The `Accept` header of client-go for built-in kinds.
const GO: &str = "application/vnd.kubernetes.protobuf,application/json";
/// The `Accept` header of metadata informers.
const GO_METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const MESSAGE: &str = "application/vnd.kubernetes.protobuf";

fn definition(api_version: &str, kind: &str) -> &'static TypeDefinition {
    let meta = || builtin::definition(&format!("apimachinery.pkg.apis.meta.v1.{kind}"));
    builtin::definition_of(&Gvk::from_api_version(api_version, kind)).or_else(meta).unwrap()
}

/// Decodes an object from its envelope, in its JSON form.
fn read(body: &[u8]) -> Value {
    let envelope = protobuf::unwrap(body).unwrap();
    let definition = definition(&envelope.api_version, &envelope.kind);
    let mut value = protobuf::decode(definition, envelope.raw).unwrap();
    value["apiVersion"] = (*envelope.api_version).into();
    value["kind"] = (*envelope.kind).into();
    assert_eq!(strict::decode(definition, &mut value), Ok(Vec::new()));
    value
}

/// A watch as client-go reads it: the length before each event.
struct GoWatch {
    body: Body,
    rest: Vec<u8>,
}

impl GoWatch {
    async fn open(api: &Api, path: &str, accept: &str) -> Self {
        let request = Request::get(path).header("accept", accept);
        let response = api.send(request.body(Full::new(Bytes::new())).unwrap()).await;
        assert_eq!(response.headers()["content-type"], format!("{MESSAGE};stream=watch"));
        Self { body: response.into_body(), rest: Vec::new() }
    }

    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((length, rest)) = self.rest.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() >= length {
                    let event = rest[..length].to_vec();
                    self.rest.drain(..4 + length);
                    return event_of(&event);
                }
            }
            let frame = self.body.frame().await.unwrap().unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    async fn summary(&mut self) -> String {
        let (kind, object) = self.next().await;
        format!("{kind} {}", object["metadata"]["name"].as_str().unwrap_or("-"))
    }
}

/// Decodes an event: `type` has the first tag, an extension with the object the second.
fn event_of(event: &[u8]) -> (String, Value) {
    let kind = usize::from(event[1]);
    let body = event.windows(4).position(|four| four == protobuf::MAGIC).unwrap();
    (String::from_utf8_lossy(&event[2..2 + kind]).into_owned(), read(&event[body..]))
}

#[tokio::test]
async fn protobuf_and_json_responses_have_the_same_content() {
    let api = Api::new().await;
    for at in 0..300 {
        api.post(MAPS, &config_map(&format!("m{at:03}"))).await.ok();
    }
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "targetPort": "http"}]}});
    api.post("/api/v1/namespaces/default/services", &service).await.ok();
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "R", "count": 2});
    api.post("/api/v1/namespaces/default/events", &event).await.ok();
    for path in [
        MAPS,
        &map("m001"),
        "/api/v1/namespaces",
        "/api/v1/services",
        "/apis/events.k8s.io/v1/events",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "/api/v1/namespaces/default/configmaps?limit=7",
    ] {
        let mut json = api.get(path).await.ok();
        let kind = json["kind"].as_str().unwrap().to_owned();
        let definition = definition(json["apiVersion"].as_str().unwrap(), &kind);
        assert_eq!(strict::decode(definition, &mut json), Ok(Vec::new()));
        // The second response comes from the cache.
        for _ in 0..2 {
            let response = api.get_as(path, GO).await;
            assert_eq!(response.headers["content-type"], MESSAGE, "{path}");
            assert_eq!(read(&response.bytes), json, "{path}");
        }
    }
    let refusal = api.get_as(&map("nobody"), GO).await;
    assert_eq!((refusal.code, &read(&refusal.bytes)["reason"]), (404, &json!("NotFound")));
    let first = api.get_as(MAPS, "application/json,application/vnd.kubernetes.protobuf").await;
    assert_eq!(first.headers["content-type"], "application/json");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let created =
        api.call(Method::POST, path, &[("accept", GO)], definition_of_things().to_string());
    assert_eq!(read(&created.await.bytes)["spec"]["group"], "example.com");
}

fn definition_of_things() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test]
async fn a_protobuf_watch_sends_all_events() {
    let api = Api::new().await;
    let created = api.post(MAPS, &config_map("a")).await.ok();
    let path = format!(
        "{MAPS}?watch=true&labelSelector=l!%3Dno&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    );
    let mut events = GoWatch::open(&api, &path, GO).await;
    let (kind, object) = events.next().await;
    assert_eq!((&*kind, &object["metadata"]), ("ADDED", &created["metadata"]));
    let (kind, bookmark) = events.next().await;
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let mut body = created.clone();
    body["data"]["k"] = "w".into();
    api.put(&map("a"), &body).await.ok();
    let (kind, object) = events.next().await;
    assert_eq!((&*kind, &object["data"]["k"]), ("MODIFIED", &json!("w")));
    body = object;
    body["metadata"]["labels"] = json!({"l": "no"});
    let left = api.put(&map("a"), &body).await.ok();
    let (kind, object) = events.next().await;
    assert_eq!((&*kind, &object["metadata"]["labels"]), ("DELETED", &Value::Null));
    assert_eq!(object["metadata"]["resourceVersion"], left["metadata"]["resourceVersion"]);
    api.post(MAPS, &config_map("b")).await.ok();
    assert_eq!(events.summary().await, "ADDED b");
    api.delete(&map("b"), &json!(null)).await.ok();
    let (kind, object) = events.next().await;
    assert_eq!(kind, "DELETED");
    assert_eq!(object["metadata"]["resourceVersion"], api.store.revision().to_string());

    let path = format!("{MAPS}?watch=true&resourceVersion=99999");
    let (kind, refusal) = GoWatch::open(&api, &path, GO).await.next().await;
    assert_eq!((&*kind, &refusal["code"]), ("ERROR", &json!(410)));
}

#[tokio::test]
async fn custom_kinds_are_json_and_their_metadata_is_protobuf() {
    let api = Api::new().await;
    api.define(&definition_of_things()).await;
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}});
    let created = api.post(things, &thing).await.ok();
    for path in [things.to_owned(), format!("{things}/t")] {
        let response = api.get_as(&path, GO).await;
        assert_eq!(response.headers["content-type"], "application/json", "{path}");
        response.ok();
    }
    let response = api.get_as(things, GO_METADATA).await;
    assert_eq!(response.headers["content-type"], MESSAGE);
    let list = read(&response.bytes);
    assert_eq!(
        (&list["kind"], &list["apiVersion"]),
        (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1"))
    );
    assert_eq!(list["items"][0]["metadata"], created["metadata"]);
    let path = format!("{things}?watch=true");
    let (kind, object) = GoWatch::open(&api, &path, GO_METADATA).await.next().await;
    assert_eq!(
        (&*kind, &object["metadata"], object.get("spec")),
        ("ADDED", &created["metadata"], None)
    );
}
