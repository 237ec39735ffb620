//! CustomResourceDefinitions and their objects.

use crate::harness::{AS_TABLE, Api};
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";

fn schema() -> Value {
    json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "color": {"type": "string", "default": "red", "enum": ["red", "blue"]},
            "replicas": {"type": "integer", "minimum": 0},
        }},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"},
        }},
    }}})
}

fn definition(plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "shortNames": ["th"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "schema": schema(),
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                ],
            }, {"name": "v1beta1", "served": true, "storage": false, "schema": schema()}],
        },
    })
}

fn thing(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

fn condition(object: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|one| one["type"] == kind)?;
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    Some((text("status"), text("reason")))
}

async fn with_things() -> Api {
    let api = Api::new().await;
    api.define(&definition("things", "Thing")).await;
    api
}

#[tokio::test]
async fn a_crd_is_complete_even_if_its_client_disconnects() {
    for polls in 0..12 {
        let api = Api::new().await;
        let body = definition("things", "Thing");
        let mut writing = Box::pin(api.post(CRDS, &body));
        for _ in 0..polls {
            if futures::poll!(&mut writing).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(writing);
        // Either the cancelled or the repeated request created the CRD.
        let again = api.post(CRDS, &definition("things", "Thing")).await;
        assert!(matches!(again.code, 201 | 409), "{polls}: {}", again.code);
        api.until_condition(&format!("{CRDS}/things.example.com"), "Established", "True").await;
        api.get(THINGS).await.ok();
    }
}

#[tokio::test]
async fn a_crd_is_served_with_the_response_to_its_creation() {
    let api = Api::new().await;
    assert_eq!(api.get(THINGS).await, 404);
    let before = api.get("/openapi/v3").await;
    let created = api.post(CRDS, &definition("things", "Thing")).await.ok();
    assert_eq!(
        created["status"],
        json!({
            "acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": ["v1"],
        })
    );
    assert_eq!(created["spec"]["names"]["singular"], "thing");
    assert_eq!(created["spec"]["conversion"]["strategy"], "None");
    assert_eq!(api.get(THINGS).await.ok()["kind"], "ThingList");
    let path = format!("{CRDS}/things.example.com");
    api.until_condition(&path, "Established", "True").await;
    let created = api.get(&path).await.ok();
    assert_eq!(condition(&created, "NamesAccepted").unwrap().1, "NoConflicts");
    assert_eq!(created["status"]["acceptedNames"]["listKind"], "ThingList");

    let group = api.get("/apis/example.com").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let resources = api.get("/apis/example.com/v1").await.ok();
    let names: Vec<&str> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["things", "things/status", "things/scale"]);
    let after = api.get("/openapi/v3").await;
    assert_ne!(before.bytes, after.bytes);
    let url = after.ok()["paths"]["apis/example.com/v1"]["serverRelativeURL"].clone();
    let document = api.get(url.as_str().unwrap()).await.ok();
    assert!(document.to_string().contains("\"color\""));
}

#[tokio::test]
async fn objects_are_pruned_defaulted_and_validated_by_the_schema() {
    let api = with_things().await;
    let created = api.post(THINGS, &thing("a", &json!({"replicas": 1, "odd": true}))).await;
    assert_eq!(created.warnings(), ["299 - \"unknown field \\\"spec.odd\\\"\""]);
    let created = created.ok();
    assert_eq!(created["spec"], json!({"color": "red", "replicas": 1}));
    assert_eq!(created["metadata"]["generation"], 1);
    let strict = format!("{THINGS}?fieldValidation=Strict");
    let (code, message) = api.post(&strict, &thing("b", &json!({"odd": 1}))).await.refused();
    assert_eq!(code, 400);
    assert!(message.ends_with("strict decoding error: unknown field \"spec.odd\""), "{message}");
    let (code, message) = api.post(THINGS, &thing("b", &json!({"color": "green"}))).await.refused();
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "Thing.example.com \"b\" is invalid: spec.color: Unsupported value: \"green\": supported values: \"red\", \"blue\""
    );
    let mut nameless = thing("c", &json!({}));
    nameless["kind"] = json!(null);
    assert_eq!(api.post(THINGS, &nameless).await.refused().0, 400);
}

#[tokio::test]
async fn an_update_of_a_custom_object_needs_a_revision() {
    let api = with_things().await;
    let created = api.post(THINGS, &thing("a", &json!({}))).await.ok();
    let path = format!("{THINGS}/a");
    let mut body = created.clone();
    body["metadata"]["resourceVersion"] = json!(null);
    let (code, message) = api.put(&path, &body).await.refused();
    assert_eq!(code, 422);
    assert!(
        message.ends_with(
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        ),
        "{message}"
    );
    let patched = api.patch(&path, "merge", &json!({"spec": {"color": "blue"}})).await.ok();
    assert_eq!(patched["metadata"]["generation"], 2);
    let refused = api.patch(&path, "strategic-merge", &json!({})).await.refused();
    assert_eq!(refused.0, 415);
}

#[tokio::test]
async fn status_and_scale_are_subresources_of_a_custom_object() {
    let api = with_things().await;
    let path = format!("{THINGS}/a");
    let mut body = thing("a", &json!({"replicas": 1}));
    body["status"] = json!({"replicas": 7});
    let created = api.post(THINGS, &body).await.ok();
    assert!(created.get("status").is_none());
    let mut body = created.clone();
    body["status"] = json!({"replicas": 7, "selector": "a=b"});
    body["spec"]["replicas"] = 3.into();
    body["metadata"]["labels"] = json!({"not": "taken"});
    let status = api.put(&format!("{path}/status"), &body).await.ok();
    assert_eq!(status["spec"]["replicas"], 1);
    assert_eq!(status["status"]["replicas"], 7);
    assert!(status["metadata"].get("labels").is_none());
    assert_eq!(status["metadata"]["generation"], 1);
    let scale = api.get(&format!("{path}/scale")).await.ok();
    assert_eq!(scale["status"], json!({"replicas": 7, "selector": "a=b"}));
    let patch = json!({"spec": {"replicas": 5}});
    api.patch(&format!("{path}/scale"), "merge", &patch).await.ok();
    assert_eq!(api.get(&path).await.ok()["spec"]["replicas"], 5);
}

#[tokio::test]
async fn an_invalid_scale_of_a_custom_object_is_refused() {
    let api = with_things().await;
    api.post(THINGS, &thing("a", &json!({"replicas": 1}))).await.ok();
    let scale = |metadata: Value| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata,
            "spec": {"replicas": 2},
        })
    };
    for (body, why) in [
        (
            scale(json!({"name": "b"})),
            "the name of the object (b) does not match the name on the URL (NAME)",
        ),
        (
            scale(json!({"name": "a", "namespace": "other"})),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            scale(json!({})),
            "the name of the object (NAME based on URL) was undeterminable: name must be provided",
        ),
        (
            thing("a", &json!({})),
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
        ),
    ] {
        // Also for objects that do not exist.
        for name in ["a", "missing"] {
            let response = api.put(&format!("{THINGS}/{name}/scale"), &body).await.refused();
            assert_eq!(response, (400, why.replace("NAME", name)));
        }
    }
    let path = format!("{THINGS}/a/scale");
    let patch = api.patch(&path, "strategic-merge", &json!({})).await;
    assert_eq!(patch.refused().0, 415, "custom kinds have no merge keys");
    let (code, message) = api.patch(&path, "merge", &json!({"kind": "Secret"})).await.refused();
    assert_eq!(code, 422);
    let why = "no kind \"Secret\" is registered for version \"autoscaling/v1\" in scheme \"pkg/runtime/scheme.go:111\"";
    assert!(message.ends_with(why), "{message}");
    let of_another = scale(json!({"name": "a", "uid": "other"}));
    assert_eq!(api.put(&path, &of_another).await.ok()["spec"]["replicas"], 2);
}

#[tokio::test]
async fn all_versions_serve_the_same_objects() {
    let api = with_things().await;
    api.post(THINGS, &thing("a", &json!({}))).await.ok();
    let beta = "/apis/example.com/v1beta1/namespaces/default/things";
    let read = api.get(&format!("{beta}/a")).await.ok();
    assert_eq!(read["apiVersion"], "example.com/v1beta1");
    let mut body = thing("b", &json!({"color": "blue"}));
    body["apiVersion"] = "example.com/v1beta1".into();
    assert_eq!(api.post(beta, &body).await.ok()["apiVersion"], "example.com/v1beta1");
    let list = api.get(THINGS).await.ok();
    for item in list["items"].as_array().unwrap() {
        assert_eq!(item["apiVersion"], "example.com/v1");
    }
    let mut watch = api.watch(&format!("{beta}?watch=true")).await;
    assert_eq!(watch.next().await.unwrap()["object"]["apiVersion"], "example.com/v1beta1");
    assert_eq!(api.get(&format!("{beta}/a/status")).await, 404, "v1beta1 has no status");
}

#[tokio::test]
async fn tables_have_the_columns_of_the_crd() {
    let api = with_things().await;
    api.post(THINGS, &thing("a", &json!({"color": "blue"}))).await.ok();
    let table = api.get_as(THINGS, AS_TABLE).await.ok();
    let heads: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(heads, ["Name", "Color"]);
    assert_eq!(table["rows"][0]["cells"], json!(["a", "blue"]));
}

#[tokio::test]
async fn a_crd_with_conflicting_names_waits_until_they_are_free() {
    let api = with_things().await;
    api.post(CRDS, &definition("others", "Thing")).await.ok();
    let path = format!("{CRDS}/others.example.com");
    api.until_condition(&path, "NamesAccepted", "False").await;
    let other = api.get(&path).await.ok();
    assert_eq!(
        condition(&other, "NamesAccepted").unwrap(),
        ("False".to_owned(), "ListKindConflict".to_owned())
    );
    assert_eq!(condition(&other, "Established").unwrap().0, "False");
    let others = "/apis/example.com/v1/namespaces/default/others";
    assert_eq!(api.get(others).await, 404);
    api.delete(&format!("{CRDS}/things.example.com"), &json!(null)).await.ok();
    // The kind is served before the condition `Established`, which comes last.
    api.until_condition(&format!("{CRDS}/others.example.com"), "Established", "True").await;
    assert_eq!(api.get(others).await, 200);
}

#[tokio::test]
async fn a_deleted_crd_deletes_its_objects() {
    let api = with_things().await;
    let mut held = thing("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(THINGS, &held).await.ok();
    api.post(THINGS, &thing("free", &json!({}))).await.ok();
    let path = format!("{CRDS}/things.example.com");
    let marked = api.delete(&path, &json!(null)).await.ok();
    assert_eq!(condition(&marked, "Terminating").unwrap().0, "True");
    api.until(&format!("{THINGS}/free"), 404).await;
    let (code, message) = api.post(THINGS, &thing("new", &json!({}))).await.refused();
    assert_eq!(code, 403);
    assert_eq!(
        message,
        "things.example.com \"new\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    let (code, message) = api.post(CRDS, &definition("things", "Thing")).await.refused();
    assert_eq!(code, 409);
    assert!(message.starts_with("object is being deleted: "), "{message}");
    let let_go = json!({"metadata": {"finalizers": null}});
    api.patch(&format!("{THINGS}/held"), "merge", &let_go).await.ok();
    api.until(&path, 404).await;
    api.until(THINGS, 404).await;
    assert_eq!(api.get("/apis/example.com").await, 404);
}

#[tokio::test]
async fn a_restarted_server_serves_stored_crds() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let first = Api::on(store.clone(), clock).await;
    first.define(&definition("things", "Thing")).await;
    first.post(THINGS, &thing("a", &json!({}))).await.ok();
    drop(first);
    let second = Api::on(store, clock).await;
    assert_eq!(second.get(&format!("{THINGS}/a")).await, 200);
}

#[tokio::test]
async fn an_invalid_crd_is_refused_and_serves_nothing() {
    let api = Api::new().await;
    let mut wrong = definition("things", "Thing");
    wrong["metadata"]["name"] = "other.example.com".into();
    let (code, message) = api.post(CRDS, &wrong).await.refused();
    assert_eq!(code, 422);
    assert!(message.contains("metadata.name"), "{message}");
    let dry = api.post(&format!("{CRDS}?dryRun=All"), &definition("things", "Thing")).await;
    assert_eq!(dry, 201);
    assert_eq!(api.get(THINGS).await, 404);
}

#[tokio::test]
async fn a_crd_can_be_updated() {
    let api = with_things().await;
    api.post(THINGS, &thing("a", &json!({}))).await.ok();
    let path = format!("{CRDS}/things.example.com");
    let ops = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    let changed = api.patch(&path, "json", &ops).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    assert_eq!(api.get("/apis/example.com/v1beta1").await, 404);
    let ops = json!([
        {"op": "replace", "path": "/spec/versions/1/served", "value": true},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
    ]);
    let changed = api.patch(&path, "json", &ops).await.ok();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    assert_eq!(api.get(&format!("{THINGS}/a")).await.ok()["apiVersion"], "example.com/v1");
}
