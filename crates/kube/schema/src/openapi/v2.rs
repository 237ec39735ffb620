//! Version 2: one document for everything.
//!
//! Parameters that many operations have are written once, under a name that is made of theirs and a
//! hash of their text, as the original does (`kube-openapi`, `builder/parameters.go`).

use super::operations::{Content, Operation, Paths};
use super::parameters::{Parameter, Place};
use super::v3::kind;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;
use serde_json::{Map, Value, json};

/// A parameter as an operation has it: its name, its place and what is written.
#[derive(Clone, PartialEq)]
struct Written {
    name: &'static str,
    place: &'static str,
    value: Value,
}

/// The paths of the document, and the parameters that they share.
pub(super) fn paths(paths: &Paths) -> (Map<String, Value>, Map<String, Value>) {
    let mut shared = Map::new();
    let items = paths
        .0
        .iter()
        .map(|(path, operations)| (path.clone(), item(operations, &mut shared)))
        .collect();
    (items, shared)
}

fn item(operations: &[Operation], shared: &mut Map<String, Value>) -> Value {
    let all: Vec<Vec<Written>> = operations.iter().map(parameters).collect();
    let everywhere: Vec<Written> = all
        .first()
        .into_iter()
        .flatten()
        .filter(|one| one.place != "body" && all.iter().all(|other| other.contains(one)))
        .cloned()
        .collect();
    let mut item = Map::new();
    for (operation, own) in operations.iter().zip(all) {
        let own = own.into_iter().filter(|one| !everywhere.contains(one)).collect();
        item.insert(operation.method.to_owned(), of_operation(operation, own, shared));
    }
    if !everywhere.is_empty() {
        item.insert("parameters".to_owned(), written(everywhere, shared));
    }
    item.into()
}

fn of_operation(
    operation: &Operation,
    parameters: Vec<Written>,
    shared: &mut Map<String, Value>,
) -> Value {
    let mut responses: Map<String, Value> = operation
        .answers
        .iter()
        .map(|(code, words)| {
            let answer = json!({"description": words, "schema": schema(&operation.answer)});
            ((*code).to_owned(), answer)
        })
        .collect();
    responses.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    let mut out = json!({
        "description": operation.description,
        "produces": operation.produces,
        "schemes": ["https"],
        "tags": [operation.tag],
        "operationId": operation.id,
        "responses": responses,
    });
    if !operation.consumes.is_empty() {
        out["consumes"] = json!(operation.consumes);
    }
    if !parameters.is_empty() {
        out["parameters"] = written(parameters, shared);
    }
    if let Some(action) = operation.action {
        out["x-kubernetes-action"] = action.into();
    }
    if let Some(gvk) = &operation.gvk {
        out["x-kubernetes-group-version-kind"] = kind(gvk);
    }
    out
}

fn schema(content: &Content) -> Value {
    match content {
        Content::Of(name) => json!({"$ref": format!("#/definitions/{name}")}),
        Content::Text => json!({"type": "string"}),
    }
}

/// The parameters of an operation; a body is one of them.
fn parameters(operation: &Operation) -> Vec<Written> {
    let body = operation.body.as_ref().map(|body| {
        let mut value = json!({"name": "body", "in": "body", "schema": schema(&body.content)});
        if body.required {
            value["required"] = true.into();
        }
        Written { name: "body", place: "body", value }
    });
    let others = operation.parameters.iter().map(|one| Written {
        name: one.name,
        place: one.place.as_str(),
        value: parameter(one),
    });
    body.into_iter().chain(others).collect()
}

fn parameter(one: &Parameter) -> Value {
    let mut out = json!({
        "uniqueItems": true,
        "type": one.kind,
        "description": one.description,
        "name": one.name,
        "in": one.place.as_str(),
    });
    if one.place == Place::Path {
        out["required"] = true.into();
    }
    out
}

/// In the order of documents; what is shared by its name.
fn written(mut parameters: Vec<Written>, shared: &mut Map<String, Value>) -> Value {
    parameters.sort_by_key(|one| (one.name, one.place));
    let entries = parameters.into_iter().map(|one| {
        if !is_shared(&one) {
            return one.value;
        }
        let name = format!("{}-{}", one.name, hash(&text(&one.value)));
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        shared.entry(name).or_insert(one.value);
        reference
    });
    entries.collect::<Vec<Value>>().into()
}

/// Everything but what names the kind, and two that kubectl looks for in the operation itself.
fn is_shared(one: &Written) -> bool {
    match (one.place, one.name) {
        (_, "name") | ("query", "fieldValidation" | "dryRun") => false,
        ("body", _) => one.value["schema"]["$ref"]
            .as_str()
            .is_some_and(|name| name.starts_with("#/definitions/io.k8s.apimachinery")),
        _ => true,
    }
}

/// The text of a parameter in the original's order of fields.
fn text(value: &Value) -> String {
    const ORDER: [&str; 7] =
        ["uniqueItems", "type", "description", "name", "in", "required", "schema"];
    let fields: Vec<String> =
        ORDER.iter().filter_map(|key| Some(format!("\"{key}\":{}", value.get(key)?))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Six bytes of FNV-1 with 64 bits, as eight letters.
fn hash(text: &str) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let sum = text.bytes().fold(BASIS, |sum, byte| sum.wrapping_mul(PRIME) ^ u64::from(byte));
    BASE64_URL_SAFE.encode(&sum.to_be_bytes()[..6])
}
