//! Operations in version 3 documents.

use super::operations::{Content, Operation, Paths};
use super::parameters::{Location, Parameter};
use mainstay_object::Gvk;
use serde_json::{Map, Value, json};

/// A reference to a type of the document.
pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// The paths of a document.
pub(super) fn paths(paths: &Paths) -> Map<String, Value> {
    paths.0.iter().map(|(path, operations)| (path.clone(), item(operations))).collect()
}

fn item(operations: &[Operation]) -> Value {
    let shared = shared(operations);
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method.to_owned(), of_operation(operation, &shared));
    }
    if !shared.is_empty() {
        item.insert("parameters".to_owned(), shared.into_iter().map(parameter).collect());
    }
    item.into()
}

/// The parameters that all operations of a path have, which documents list with the path.
pub(super) fn shared(operations: &[Operation]) -> Vec<&Parameter> {
    let Some((first, others)) = operations.split_first() else { return Vec::new() };
    let is_shared = |parameter: &&Parameter| {
        others.iter().all(|operation| operation.parameters.contains(parameter))
    };
    sort(first.parameters.iter().filter(is_shared).collect())
}

/// Sorts parameters as in documents: by name, then by location.
pub(super) fn sort(mut parameters: Vec<&Parameter>) -> Vec<&Parameter> {
    parameters.sort_by_key(|parameter| (parameter.name, parameter.location.as_str()));
    parameters
}

fn of_operation(operation: &Operation, shared: &[&Parameter]) -> Value {
    let mut out = json!({
        "tags": [operation.tag],
        "description": operation.description,
        "operationId": operation.id,
        "responses": responses(operation),
    });
    let own = operation.parameters.iter().filter(|parameter| !shared.contains(parameter)).collect();
    let own: Vec<Value> = sort(own).into_iter().map(parameter).collect();
    if !own.is_empty() {
        out["parameters"] = own.into();
    }
    if let Some(body) = &operation.body {
        let mut request = json!({"content": content(operation.consumes, &body.content)});
        if body.required {
            request["required"] = true.into();
        }
        out["requestBody"] = request;
    }
    if let Some(action) = operation.action {
        out["x-kubernetes-action"] = action.into();
    }
    if let Some(gvk) = &operation.gvk {
        out["x-kubernetes-group-version-kind"] = kind(gvk);
    }
    out
}

/// A kind as the value of `x-kubernetes-group-version-kind`.
pub(super) fn kind(gvk: &Gvk) -> Value {
    json!({"group": gvk.group, "version": gvk.version, "kind": gvk.kind})
}

fn parameter(parameter: &Parameter) -> Value {
    let mut out = json!({
        "name": parameter.name,
        "in": parameter.location.as_str(),
        "description": parameter.description,
        "schema": {"type": parameter.kind, "uniqueItems": true},
    });
    if parameter.location == Location::Path {
        out["required"] = true.into();
    }
    out
}

fn responses(operation: &Operation) -> Value {
    let content = content(operation.produces, &operation.response);
    let mut out: Map<String, Value> = operation
        .responses
        .iter()
        .map(|(code, description)| {
            ((*code).to_owned(), json!({"description": description, "content": content}))
        })
        .collect();
    out.insert("401".to_owned(), json!({"description": "Unauthorized"}));
    out.into()
}

fn content(media: &[&str], content: &Content) -> Value {
    let schema = match content {
        Content::Object(name) => reference(name),
        Content::Text => json!({"type": "string"}),
    };
    media.iter().map(|media_type| ((*media_type).to_owned(), json!({"schema": schema}))).collect()
}
