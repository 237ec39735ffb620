//! Long lists in every built-in kind: equal elements, and different ones. An algorithm that
//! compares all pairs of elements would run for hours.

use crate::harness::{Api, MAPS, config_map, map as map_path};
use http::Method;
use mainstay_object::Scope;
use mainstay_schema::builtin::{self, FieldType, TypeDefinition, definition_of};
use mainstay_testdata::sample;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// Number of different elements: some hundred kilobytes with the texts of [`element`].
const DIFFERENT: usize = 8_000;
/// Number of equal elements.
const EQUAL: usize = 2_000;
/// Maximum depth of visited fields.
const DEPTH: usize = 7;
/// Maximum bytes of a response.
const MAX_RESPONSE_SIZE: usize = 8 << 20;

/// The path to a list: its fields, and whether it passes through elements of lists and maps.
type Way<'a> = &'a dyn Fn(Value) -> Value;

/// Visits every list below a definition once.
fn visit(
    definition: &'static TypeDefinition,
    depth: usize,
    known: &mut BTreeSet<(String, String)>,
    way: Way<'_>,
    found: &mut dyn FnMut(&FieldType, Way<'_>),
) {
    for field in definition.fields() {
        let name = field.name.to_string();
        if !known.insert((definition.name().to_owned(), name.clone())) {
            continue;
        }
        let here = |value: Value| way(json!({ name.clone(): value }));
        let (inner, listed) = match &field.ty {
            FieldType::List(element) => {
                found(element, &here);
                (element.definition(), "list")
            }
            FieldType::Map(element) => (element.definition(), "map"),
            ty => (ty.definition(), ""),
        };
        let (Some(inner), true) = (inner, depth > 0) else { continue };
        let below = |value: Value| match listed {
            "list" => here(json!([value])),
            "map" => here(json!({"k": value})),
            _ => here(value),
        };
        visit(inner, depth - 1, known, &below, found);
    }
}

/// An element; `at` makes all of its distinguishing fields unique.
fn element(ty: &FieldType, at: usize) -> Value {
    match ty {
        FieldType::String => format!("a{at}").into(),
        FieldType::Int32 | FieldType::Int64 => at.into(),
        FieldType::Object(_) => {
            let mut fields = Map::new();
            for field in ty.definition().map_or(&[][..], TypeDefinition::fields).iter().take(8) {
                match &field.ty {
                    FieldType::String => {
                        fields.insert(field.name.to_string(), format!("a{at}").into())
                    }
                    FieldType::Int32 | FieldType::Int64 => {
                        fields.insert(field.name.to_string(), at.into())
                    }
                    _ => None,
                };
            }
            Value::Object(fields)
        }
        _ => Value::Null,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_of_every_list_is_linear() {
    let api = Api::new().await;
    let mut known = BTreeSet::new();
    let mut bodies: Vec<(String, String)> = Vec::new();
    for kind in builtin::kinds() {
        let Some(definition) = definition_of(&kind.gvk()) else { continue };
        if !kind.has_verb("create") || !kind.has_verb("list") {
            continue;
        }
        let group =
            if kind.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", kind.group) };
        let place = match kind.scope {
            Scope::Namespaced => "/namespaces/default",
            Scope::Cluster => "",
        };
        let path = format!("{group}/{}{place}/{}?dryRun=All", kind.version, kind.plural);
        visit(definition, DEPTH, &mut known, &|value| value, &mut |ty, way| {
            for (count, step) in [(DIFFERENT, 1), (EQUAL, 0)] {
                let list: Vec<Value> = (0..count).map(|at| element(ty, 1 + at * step)).collect();
                let mut body = way(Value::Array(list));
                if body["metadata"]["name"].is_null() {
                    body["metadata"]["name"] = "a".into();
                }
                bodies.push((path.clone(), body.to_string()));
            }
        });
    }
    assert!(bodies.len() > 400, "{}", bodies.len());
    let bodies = sample("long lists", bodies, 3);
    let api = Arc::new(api);
    let bodies = Arc::new(Mutex::new(bodies));
    let takers = std::iter::repeat_with(|| {
        let (api, bodies) = (api.clone(), bodies.clone());
        tokio::spawn(async move {
            loop {
                let next = bodies.lock().unwrap().pop();
                let Some((path, body)) = next else { return };
                let response = api.call(Method::POST, &path, &[], body).await;
                let refused = matches!(response.code, 400 | 403 | 404 | 405 | 413 | 422);
                assert!(refused || response.code == 201, "{path} {}", response.code);
                let bytes = response.bytes.len();
                assert!(bytes < MAX_RESPONSE_SIZE, "{path}: {bytes} bytes");
            }
        })
    });
    for taker in takers.take(4).collect::<Vec<_>>() {
        taker.await.unwrap();
    }
}

/// Long lists of owners, finalizers and managers in one request.
#[tokio::test(flavor = "multi_thread")]
async fn validation_of_long_metadata_lists_is_linear() {
    const COUNT: usize = 11_000;
    let api = Api::new().await;
    let owner = |at: usize| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("o{at}"), "uid": format!("u{at}")});
    let owners: Vec<Value> = (0..COUNT).map(owner).collect();
    let mut map = config_map("a");
    map["metadata"]["ownerReferences"] = owners.clone().into();
    api.post(&format!("{MAPS}?dryRun=All"), &map).await.ok();
    // Each owner is there twice. The duplicates are dropped, and named in their order.
    let half = &owners[..COUNT / 2];
    map["metadata"]["ownerReferences"] = [half, half].concat().into();
    let created = api.post(MAPS, &map).await;
    assert_eq!(created.ok()["metadata"]["ownerReferences"], json!(half));
    let patch = json!({"metadata": {"ownerReferences": owners}});
    for kind in ["merge", "strategic-merge"] {
        let patched = api.patch(&map_path("a"), kind, &patch).await;
        assert_eq!(patched.ok()["metadata"]["ownerReferences"].as_array().unwrap().len(), COUNT);
    }
    // The error about several controllers appears once.
    let mut all = owners.clone();
    for owner in &mut all {
        owner["controller"] = true.into();
    }
    let refused =
        api.patch(&map_path("a"), "merge", &json!({"metadata": {"ownerReferences": all}})).await;
    assert_eq!(refused, 422);
    assert!(refused.bytes.len() < MAX_RESPONSE_SIZE, "{} bytes", refused.bytes.len());
    // New finalizers of an object that is being deleted.
    let finalizers = |name: &str| -> Vec<Value> {
        (0..COUNT).map(|at| format!("example.com/{name}{at}").into()).collect()
    };
    let mut map = config_map("b");
    map["metadata"]["finalizers"] = finalizers("f").into();
    api.post(MAPS, &map).await.ok();
    api.delete(&map_path("b"), &Value::Null).await.ok();
    let patch = json!({"metadata": {"finalizers": finalizers("g")}});
    let refused = api.patch(&map_path("b"), "merge", &patch).await;
    assert_eq!(refused, 422);
    // Managers, each with its own field.
    let entry = |at: usize| {
        json!({"manager": format!("m{at}"), "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {format!("f:k{at}"): {}}}})
    };
    let mut map = config_map("c");
    map["metadata"]["managedFields"] = (0..COUNT / 2).map(entry).collect::<Vec<_>>().into();
    api.post(&format!("{MAPS}?dryRun=All"), &map).await.ok();
}
