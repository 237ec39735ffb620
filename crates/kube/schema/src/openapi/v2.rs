//! Operations in the version 2 document.
//!
//! Shared parameters exist once in the document. Their key is the name and a hash of the text, as in
//! upstream (`kube-openapi`, `builder/parameters.go`).

use super::operations::{Content, Operation, Paths};
use super::parameters::{Location, Parameter};
use super::v3::kind;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;
use serde_json::{Map, Value, json};

/// A parameter of an operation with its JSON.
#[derive(Clone, PartialEq)]
struct ParameterEntry {
    name: &'static str,
    location: &'static str,
    value: Value,
}

/// The paths of the document, and their shared parameters.
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
    let all: Vec<Vec<ParameterEntry>> = operations.iter().map(parameters).collect();
    let common: Vec<ParameterEntry> = all
        .first()
        .into_iter()
        .flatten()
        .filter(|parameter| {
            parameter.location != "body" && all.iter().all(|other| other.contains(parameter))
        })
        .cloned()
        .collect();
    let mut item = Map::new();
    for (operation, own) in operations.iter().zip(all) {
        let own = own.into_iter().filter(|parameter| !common.contains(parameter)).collect();
        item.insert(operation.method.to_owned(), of_operation(operation, own, shared));
    }
    if !common.is_empty() {
        item.insert("parameters".to_owned(), parameter_list(common, shared));
    }
    item.into()
}

fn of_operation(
    operation: &Operation,
    parameters: Vec<ParameterEntry>,
    shared: &mut Map<String, Value>,
) -> Value {
    let mut responses: Map<String, Value> = operation
        .responses
        .iter()
        .map(|(code, description)| {
            let response =
                json!({"description": description, "schema": schema(&operation.response)});
            ((*code).to_owned(), response)
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
        out["parameters"] = parameter_list(parameters, shared);
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
        Content::Object(name) => json!({"$ref": format!("#/definitions/{name}")}),
        Content::Text => json!({"type": "string"}),
    }
}

/// The parameters of an operation, the body included.
fn parameters(operation: &Operation) -> Vec<ParameterEntry> {
    let body = operation.body.as_ref().map(|body| {
        let mut value = json!({"name": "body", "in": "body", "schema": schema(&body.content)});
        if body.required {
            value["required"] = true.into();
        }
        ParameterEntry { name: "body", location: "body", value }
    });
    let others = operation.parameters.iter().map(|parameter| ParameterEntry {
        name: parameter.name,
        location: parameter.location.as_str(),
        value: parameter_value(parameter),
    });
    body.into_iter().chain(others).collect()
}

fn parameter_value(parameter: &Parameter) -> Value {
    let mut out = json!({
        "uniqueItems": true,
        "type": parameter.kind,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.location.as_str(),
    });
    if parameter.location == Location::Path {
        out["required"] = true.into();
    }
    out
}

/// The sorted list of parameters; shared ones are references.
fn parameter_list(mut parameters: Vec<ParameterEntry>, shared: &mut Map<String, Value>) -> Value {
    parameters.sort_by_key(|parameter| (parameter.name, parameter.location));
    let entries = parameters.into_iter().map(|parameter| {
        if !is_shared(&parameter) {
            return parameter.value;
        }
        let name = format!("{}-{}", parameter.name, hash(&text(&parameter.value)));
        let reference = json!({"$ref": format!("#/parameters/{name}")});
        shared.entry(name).or_insert(parameter.value);
        reference
    });
    entries.collect::<Vec<Value>>().into()
}

/// Whether a parameter is shared: all but those that name the kind, and two that kubectl reads from the
/// operation itself.
fn is_shared(parameter: &ParameterEntry) -> bool {
    match (parameter.location, parameter.name) {
        (_, "name") | ("query", "fieldValidation" | "dryRun") => false,
        ("body", _) => parameter.value["schema"]["$ref"]
            .as_str()
            .is_some_and(|name| name.starts_with("#/definitions/io.k8s.apimachinery")),
        _ => true,
    }
}

/// The text of a parameter in upstream's order of fields.
fn text(value: &Value) -> String {
    const ORDER: [&str; 7] =
        ["uniqueItems", "type", "description", "name", "in", "required", "schema"];
    let fields: Vec<String> =
        ORDER.iter().filter_map(|key| Some(format!("\"{key}\":{}", value.get(key)?))).collect();
    format!("{{{}}}", fields.join(","))
}

/// The first six bytes of the 64-bit FNV-1 hash, as eight letters.
fn hash(text: &str) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let sum = text.bytes().fold(BASIS, |sum, byte| sum.wrapping_mul(PRIME) ^ u64::from(byte));
    BASE64_URL_SAFE.encode(&sum.to_be_bytes()[..6])
}
