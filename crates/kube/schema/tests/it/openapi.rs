//! OpenAPI documents: the parts that kubectl reads.

use mainstay_object::Object;
use mainstay_schema::crd::{self, CustomResourceDefinition};
use mainstay_schema::{builtin, openapi};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn things() -> CustomResourceDefinition {
    let crd: Value = serde_json::from_str(include_str!("recorded/thing.json")).unwrap();
    let mut object = Object::from_value(crd).unwrap();
    crd::default(&mut object);
    CustomResourceDefinition::parse(&object).unwrap()
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(target)) = fields.get("$ref") {
                found.insert(target.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn each_group_version_has_a_document_with_valid_references() {
    let versions: BTreeSet<(&str, &str)> =
        builtin::kinds().iter().map(|row| (row.group, row.version)).collect();
    for (group, version) in versions {
        let document = openapi::document(&openapi::page(group, version), &[]).unwrap();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for target in found {
            let name = target.strip_prefix("#/components/schemas/").unwrap();
            assert!(
                document["components"]["schemas"].get(name).is_some(),
                "{group}/{version}: {name}"
            );
        }
        let mut ids = BTreeSet::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (verb, operation) in item.as_object().unwrap() {
                if verb != "parameters" {
                    let id = operation["operationId"].as_str().unwrap();
                    assert!(ids.insert(id), "{path} {verb}: {id}");
                }
            }
        }
    }
    assert_eq!(openapi::document("apis/nobody.io/v1", &[]), None);
}

/// `kubectl apply` reads this before it leaves the validation of fields to the server.
#[test]
fn patch_operations_name_their_kind_and_field_validation() {
    let document = openapi::document("apis/apps/v1", &[]).unwrap();
    let patch =
        &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["operationId"], "patchAppsV1NamespacedDeployment");
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let names: Vec<&str> = patch["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
}

/// `kubectl explain` and strategic merge patches read this.
#[test]
fn types_have_descriptions_and_merge_keys() {
    let document = openapi::document("api/v1", &[]).unwrap();
    let schemas = &document["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.Pod"];
    assert_eq!(
        pod["x-kubernetes-group-version-kind"],
        json!([{"group": "", "kind": "Pod", "version": "v1"}])
    );
    assert!(pod["description"].as_str().unwrap().starts_with("Pod is a collection"));
    let containers = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let volumes = &schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["volumes"];
    assert_eq!(volumes["x-kubernetes-patch-strategy"], "merge,retainKeys");
}

#[test]
fn documents_of_custom_kinds_have_their_schema() {
    let things = things();
    let document = openapi::document("apis/t.io/v1", &[&things]).unwrap();
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/apis/t.io/v1/namespaces/{namespace}/things",
            "/apis/t.io/v1/namespaces/{namespace}/things/{name}",
            "/apis/t.io/v1/namespaces/{namespace}/things/{name}/status",
            "/apis/t.io/v1/things",
        ]
    );
    let thing = &document["components"]["schemas"]["io.t.v1.Thing"];
    assert_eq!(
        thing["x-kubernetes-group-version-kind"],
        json!([{"group": "t.io", "kind": "Thing", "version": "v1"}])
    );
    assert_eq!(thing["properties"]["spec"]["properties"]["size"]["type"], "integer");
    assert!(thing["properties"]["apiVersion"]["description"].is_string());
    let patch = &document["paths"]["/apis/t.io/v1/namespaces/{namespace}/things/{name}"]["patch"];
    let strategic = patch["requestBody"]["content"].get("application/strategic-merge-patch+json");
    assert_eq!(strategic, None);
}

#[test]
fn the_hash_changes_only_with_the_schema() {
    let crd = things();
    let hash = openapi::hash("apis/t.io/v1", &[&crd]);
    assert_eq!(hash.len(), 128);
    assert_eq!(hash, openapi::hash("apis/t.io/v1", &[&things()]));
    let mut crd: Value = serde_json::from_str(include_str!("recorded/thing.json")).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "new".into();
    let mut object = Object::from_value(crd).unwrap();
    crd::default(&mut object);
    let other = CustomResourceDefinition::parse(&object).unwrap();
    assert_ne!(hash, openapi::hash("apis/t.io/v1", &[&other]));
    assert_ne!(openapi::hash("apis/apps/v1", &[]), openapi::hash("apis/batch/v1", &[]));
}

/// The names contain a hash of the whole parameter; these are from a real server of 1.35.
#[test]
fn version_2_names_shared_parameters_as_a_real_server() {
    let document = openapi::swagger(&[&things()]);
    let shared = document["parameters"].as_object().unwrap();
    for name in [
        "allowWatchBookmarks-HC2hJt-J",
        "body-2Y1dVQaQ",
        "body-78PwaGsr",
        "fieldManager-7c6nTn1T",
        "fieldManager-Qy4HdaTW",
        "namespace-vgWSWtn3",
        "sendInitialEvents-rLXlEK_k",
        "tailLines-9xQLWHMV",
    ] {
        assert!(shared.contains_key(name), "{name} in {:?}", shared.keys());
    }
    assert_eq!(shared.len(), 46);
    let patch = &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
    assert_eq!(patch["parameters"][0], json!({"$ref": "#/parameters/body-78PwaGsr"}));
    assert_eq!(patch["parameters"][1]["name"], "dryRun");
}

#[test]
fn version_2_omits_keywords_that_its_clients_do_not_support() {
    let document = openapi::swagger(&[&things()]);
    let port = &document["definitions"]["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert_eq!(port["protocol"].get("default"), None);
    assert_eq!(port["protocol"]["enum"], json!(["SCTP", "TCP", "UDP"]));
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for target in found {
        let target = target.strip_prefix('#').unwrap();
        assert!(document.pointer(target).is_some(), "{target}");
    }
    let bytes = openapi::swagger_protobuf(&document);
    assert!(bytes.starts_with(b"\x0a\x032.0\x12\x12\x0a\x0aKubernetes\x12\x041.35\x42"));
}
