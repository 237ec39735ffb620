//! Validation rules of CRDs (`x-kubernetes-validations`), from the CRD to the refused write.

use crate::harness::Api;
use http::Method;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use serde_json::{Value, json};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boxes.example.com";
const BOXES: &str = "/apis/example.com/v1/namespaces/default/boxes";
const BOX: &str = "/apis/example.com/v1/namespaces/default/boxes/a";

fn definition(spec: &Value, status: &Value) -> Value {
    let schema = json!({"openAPIV3Schema": {
        "type": "object", "properties": {"spec": spec, "status": status},
    }});
    let subresources = json!({"status": {}, "scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
    }});
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": schema,
            "subresources": subresources,
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}

fn spec(rules: &Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "replicas": {"type": "integer"},
            "name": {"type": "string", "maxLength": 20},
            "color": {"type": "string", "maxLength": 20},
        },
        "x-kubernetes-validations": rules,
    })
}

fn status() -> Value {
    json!({
        "type": "object",
        "properties": {"replicas": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.replicas < 10"}],
    })
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": spec})
}

/// Defines a kind whose name is immutable, and that has at most five replicas.
async fn boxes(api: &Api) {
    let rules = json!([
        {"rule": "self.replicas <= 5", "messageExpression": "'too many of ' + self.name", "fieldPath": ".replicas"},
        {"rule": "!has(oldSelf.name) || self.name == oldSelf.name", "message": "name stays", "reason": "FieldValueForbidden"},
        {"rule": "!has(self.color) || self.color != 'red'"},
    ]);
    api.define(&definition(&spec(&rules), &status())).await;
}

#[tokio::test]
async fn a_crd_with_invalid_or_expensive_rules_is_refused() {
    let api = Api::new().await;
    let rules = json!([{"rule": "self.nothing > 1"}]);
    let (code, message) = api.post(CRDS, &definition(&spec(&rules), &status())).await.refused();
    assert_eq!(code, 422);
    assert!(message.contains("compilation failed: ERROR: <input>:1:5: undefined field 'nothing'"));
    let mut costly = spec(&json!([{"rule": "self.name.contains(self.color)"}]));
    for name in ["name", "color"] {
        costly["properties"][name] = json!({"type": "string"});
    }
    let (code, message) = api.post(CRDS, &definition(&costly, &status())).await.refused();
    assert_eq!(code, 422);
    assert!(message.contains("estimated rule cost exceeds budget by factor of more than 100x"));
}

#[tokio::test]
async fn validation_rules_apply_to_every_kind_of_write() {
    let api = Api::new().await;
    boxes(&api).await;
    let created = api.post(BOXES, &object(&json!({"replicas": 6, "name": "x"}))).await.refused();
    let refusal = |why: &str| (422, format!("Box.example.com \"a\" is invalid: {why}"));
    assert_eq!(created, refusal("spec.replicas: Invalid value: too many of x"));
    let mut stored = api.post(BOXES, &object(&json!({"replicas": 1, "name": "x"}))).await.ok();
    stored["spec"]["name"] = "y".into();
    let changed = api.put(BOX, &stored).await.refused();
    assert_eq!(changed, refusal("spec: Forbidden: name stays"));
    let patched = api.patch(BOX, "merge", &json!({"spec": {"replicas": 9}})).await.refused();
    assert_eq!(patched, refusal("spec.replicas: Invalid value: too many of x"));
    let scaled =
        api.patch(&format!("{BOX}/scale"), "merge", &json!({"spec": {"replicas": 7}})).await;
    assert_eq!(scaled.refused(), refusal("spec.replicas: Invalid value: too many of x"));
    let reported =
        api.patch(&format!("{BOX}/status"), "merge", &json!({"status": {"replicas": 10}})).await;
    assert_eq!(
        reported.refused(),
        refusal("status: Invalid value: failed rule: self.replicas < 10")
    );
    let config = object(&json!({"replicas": 8, "name": "x"}));
    let path = format!("{BOX}?fieldManager=me&force=true");
    let headers = [("content-type", "application/apply-patch+yaml")];
    let applied = api.call(Method::PATCH, &path, &headers, config.to_string()).await;
    assert_eq!(applied.refused(), refusal("spec.replicas: Invalid value: too many of x"));
    let other = "/apis/example.com/v1beta1/namespaces/default/boxes/a";
    let patched = api.patch(other, "merge", &json!({"spec": {"name": "z"}})).await.refused();
    assert_eq!(patched, refusal("spec: Forbidden: name stays"));
    api.patch(BOX, "merge", &json!({"spec": {"replicas": 5}})).await.ok();
}

#[tokio::test]
async fn validation_rules_are_skipped_for_invalid_objects() {
    let api = Api::new().await;
    boxes(&api).await;
    let (code, message) =
        api.post(BOXES, &object(&json!({"replicas": "9", "name": "x"}))).await.refused();
    assert_eq!(code, 422);
    assert!(message.contains("spec.replicas in body must be of type integer: \"string\""));
    assert!(message.contains("<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"));
    assert!(!message.contains("too many"));
}

#[tokio::test]
async fn an_unchanged_violation_of_a_new_rule_is_allowed() {
    let api = Api::new().await;
    api.define(&definition(&spec(&json!([])), &status())).await;
    api.post(BOXES, &object(&json!({"replicas": 1, "color": "red"}))).await.ok();
    let mut changed = api.get(CRD).await.ok();
    for version in changed["spec"]["versions"].as_array_mut().unwrap() {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec["x-kubernetes-validations"] = json!([{"rule": "self.color != 'red'"}]);
    }
    api.put(CRD, &changed).await.ok();
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = api.patch(BOX, "merge", &labels).await;
    assert_eq!(patched, 200);
    let warning = "299 - \"spec: Invalid value: failed rule: self.color != 'red'\"";
    assert_eq!(patched.warnings(), [warning]);
    let (code, _) = api.patch(BOX, "merge", &json!({"spec": {"replicas": 2}})).await.refused();
    assert_eq!(code, 422);
}

#[tokio::test]
async fn validation_rules_apply_after_a_restart() {
    let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let store = Store::in_memory(Options::new(clock));
    let first = Api::on(store.clone(), clock).await;
    boxes(&first).await;
    first.post(BOXES, &object(&json!({"replicas": 1, "name": "x"}))).await.ok();
    let second = Api::on(store, clock).await;
    let patched = second.patch(BOX, "merge", &json!({"spec": {"name": "y"}})).await.refused();
    assert_eq!(patched.0, 422, "{}", patched.1);
}
