//! Custom objects: pruning, defaulting and validation on writes and reads.

use crate::harness::Api;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.example.com";
const BOXES: &str = "/apis/example.com/v1/namespaces/default/boxes";
const BOX: &str = "/apis/example.com/v1/namespaces/default/boxes/a";

fn definition(spec: &Value) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": {"ready": {"type": "integer", "minimum": 0}}},
    }}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema,
                 "subresources": {"status": {}}},
                {"name": "v1beta1", "served": true, "storage": false, "schema": schema,
                 "subresources": {"status": {}}},
            ],
        },
    })
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": spec})
}

fn fields() -> Value {
    json!({
        "size": {"type": "number"},
        "note": {"type": "string"},
        "maybe": {"type": "string", "nullable": true},
        "color": {"type": "string", "default": "red"},
        "inner": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}

/// Adds a default to the CRD, as a new version of an operator would.
async fn add_default(api: &Api) {
    let mut changed = api.get(CRD).await.ok();
    for version in changed["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["later"] =
            json!({"type": "string", "default": "new"});
    }
    api.put(CRD, &changed).await.ok();
}

#[tokio::test]
async fn custom_objects_are_pruned_and_defaulted_by_their_schema() {
    let api = Api::new().await;
    api.define(&definition(&fields())).await;
    let mut sent = object(&json!({
        "size": 2.0, "note": null, "maybe": null, "color": null, "odd": 1,
        "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 1}, "any": 1},
    }));
    sent["metadata"]["odd"] = json!(1);
    let created = api.post(BOXES, &sent).await;
    let warnings = created.warnings();
    for unknown in ["metadata.odd", "spec.inner.metadata.odd", "spec.odd"] {
        let warning = format!("299 - \"unknown field \\\"{unknown}\\\"\"");
        assert!(warnings.contains(&warning.as_str()), "{unknown} in {warnings:?}");
    }
    let created = created.ok();
    assert_eq!(
        created["spec"].to_string(),
        r#"{"color":"red","inner":{"any":1,"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}},"maybe":null,"size":2}"#
    );
    assert_eq!(created["metadata"].get("odd"), None);
    assert_eq!(api.get(BOX).await.ok(), created);
}

#[tokio::test]
async fn a_patch_with_an_invalid_result_is_refused_with_422() {
    let api = Api::new().await;
    api.define(&definition(&fields())).await;
    api.post(BOXES, &object(&json!({}))).await.ok();
    for patch in [
        json!({"metadata": {"labels": {"a": 1}}}),
        json!({"spec": {"inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 1}}}}),
    ] {
        let refused = api.patch(BOX, "merge", &patch).await;
        assert_eq!(refused, 422, "{patch}");
        let causes = refused.json()["details"]["causes"].clone();
        assert_eq!(causes[0]["field"], "patch", "{causes}");
    }
}

#[tokio::test]
async fn a_status_write_validates_only_the_status() {
    let api = Api::new().await;
    api.define(&definition(&json!({"size": {"type": "integer"}}))).await;
    api.post(BOXES, &object(&json!({"size": 5}))).await.ok();
    // The schema becomes stricter than the stored object.
    let mut changed = api.get(CRD).await.ok();
    for version in changed["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["required"] = json!(["color"]);
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] =
            json!({"type": "string"});
    }
    api.put(CRD, &changed).await.ok();
    let status = format!("{BOX}/status");
    let done = api.patch(&status, "merge", &json!({"status": {"ready": 1}})).await.ok();
    assert_eq!(done["status"]["ready"], 1);
    let (code, message) =
        api.patch(&status, "merge", &json!({"status": {"ready": -1}})).await.refused();
    assert_eq!(code, 422);
    assert_eq!(
        message,
        "Box.example.com \"a\" is invalid: status.ready: Invalid value: -1: ready in body should be greater than or equal to 0"
    );
}

#[tokio::test]
async fn new_patterns_and_defaults_of_a_crd_are_validated() {
    let api = Api::new().await;
    for (fields, problem) in [
        (json!({"a": {"type": "string", "pattern": "("}}), "must be a valid regular expression"),
        (json!({"a": {"type": "string", "default": 1}}), "must be of type string"),
    ] {
        let (code, message) = api.post(CRDS, &definition(&fields)).await.refused();
        assert_eq!(code, 422);
        assert!(message.contains(problem), "{message}");
        assert!(message.contains("spec.validation.openAPIV3Schema.properties[spec]"), "{message}");
    }
    api.define(&definition(&fields())).await;
    let mut changed = api.get(CRD).await.ok();
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        ["note"]["pattern"] = json!("(");
    assert_eq!(api.put(CRD, &changed).await.refused().0, 422);
}

#[tokio::test]
async fn a_new_default_applies_to_reads_of_stored_objects() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let first = Api::on(store.clone(), clock).await;
    first.define(&definition(&fields())).await;
    let created = first.post(BOXES, &object(&json!({}))).await.ok();
    let before = created["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    add_default(&first).await;
    let renewed = json!({"color": "red", "later": "new"});

    // A restarted server, which knows only the store, behaves in the same way.
    for api in [&first, &Api::on(store, clock).await] {
        for path in [BOX.to_owned(), BOX.replace("/v1/", "/v1beta1/")] {
            let read = api.get(&path).await.ok();
            assert_eq!(read["spec"], renewed);
            assert_eq!(read["metadata"]["resourceVersion"], before.as_str());
        }
        assert_eq!(api.get(BOXES).await.ok()["items"][0]["spec"], renewed);
        let mut events = api.watch(&format!("{BOXES}?watch=true")).await;
        assert_eq!(events.next().await.unwrap()["object"]["spec"], renewed);
    }
    // Defaulting on reads does not count as a change of the desired state.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = first.patch(BOX, "merge", &label).await.ok();
    assert_eq!((&labelled["spec"], &labelled["metadata"]["generation"]), (&renewed, &json!(1)));
    let mut events = first.watch(&format!("{BOXES}?watch=true&resourceVersion={before}")).await;
    assert_eq!(events.next().await.unwrap()["object"], labelled);
}

#[tokio::test]
async fn delete_events_contain_new_defaults() {
    let api = Api::new().await;
    api.define(&definition(&fields())).await;
    api.post(BOXES, &object(&json!({}))).await.ok();
    add_default(&api).await;
    let mut events = api.watch(&format!("{BOXES}?watch=true")).await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    api.delete(BOX, &json!(null)).await.ok();
    let deleted = events.next().await.unwrap();
    assert_eq!(deleted["type"], "DELETED");
    assert_eq!(deleted["object"]["spec"]["later"], "new");
}

#[tokio::test]
async fn objects_are_served_after_a_change_of_the_storage_version() {
    let api = Api::new().await;
    api.define(&definition(&fields())).await;
    api.post(BOXES, &object(&json!({}))).await.ok();
    let mut changed = api.get(CRD).await.ok();
    changed["spec"]["versions"][0]["storage"] = json!(false);
    changed["spec"]["versions"][1]["storage"] = json!(true);
    api.put(CRD, &changed).await.ok();
    for version in ["v1", "v1beta1"] {
        let path = BOX.replace("/v1/", &format!("/{version}/"));
        assert_eq!(api.get(&path).await.ok()["apiVersion"], format!("example.com/{version}"));
        let label = json!({"metadata": {"labels": {"by": version}}});
        let patched = api.patch(&path, "merge", &label).await.ok();
        assert_eq!(patched["apiVersion"], format!("example.com/{version}"));
    }
}

#[tokio::test]
async fn a_type_error_outside_the_written_subresource_drops_managed_fields() {
    let api = Api::new().await;
    api.define(&definition(&fields())).await;
    let created = api.post(BOXES, &object(&json!({"note": "a"}))).await.ok();
    assert!(created["metadata"]["managedFields"].is_array());
    let status = format!("{BOX}/status");
    let right = json!({"spec": {"note": "b"}, "status": {"ready": 1}});
    let kept = api.patch(&status, "merge", &right).await.ok();
    assert_eq!(kept["metadata"]["managedFields"].as_array().unwrap().len(), 2);
    let wrong = json!({"spec": {"note": 5}, "status": {"ready": 2}});
    let lost = api.patch(&status, "merge", &wrong).await.ok();
    assert_eq!((&lost["spec"], &lost["status"]["ready"]), (&created["spec"], &json!(2)));
    assert_eq!(lost["metadata"].get("managedFields"), None);
}
