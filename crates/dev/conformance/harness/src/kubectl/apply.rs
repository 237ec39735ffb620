//! `kubectl apply` (client-side) and `kubectl create`.

use super::message::Failure;
use super::{CommandLine, LAST_APPLIED, kind_and_name, request};
use anyhow::Context;
use mainstay_client::{Cluster, Error, Patch};
use mainstay_object::{Object, Resource};
use serde_json::{Map, Value, json};

/// kubectl's field manager of `apply`.
const APPLY_MANAGER: &str = "kubectl-client-side-apply";
/// kubectl's field manager of `create`.
const CREATE_MANAGER: &str = "kubectl-create";

const CREATING: &str = "error when creating \"STDIN\": ";
const PATCHING: &str = "error when patching \"STDIN\": ";

/// Creates or applies the documents of the input. The result is the standard output, and the
/// documents that failed.
pub(super) async fn documents(
    cluster: &Cluster,
    line: &CommandLine,
    input: &str,
) -> anyhow::Result<(String, Vec<Failure>)> {
    let (mut output, mut failures) = (String::new(), Vec::new());
    let options = mainstay_yaml::Options::default();
    for document in mainstay_yaml::documents(input.as_bytes(), &options) {
        let value = document.context("read the input")?.value;
        if value.is_null() {
            continue;
        }
        // kubectl asks the server to reject unknown fields.
        let validation = if line.has("--validate=false") { "Ignore" } else { "Strict" };
        let outcome = match line.verb.as_str() {
            "create" => create(cluster, value, line, validation).await,
            _ => apply(cluster, value, line, validation).await,
        };
        match outcome {
            Ok(text) => output += &text,
            Err(failure) => failures.push(failure),
        }
    }
    Ok((output, failures))
}

fn failed(prefix: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure { prefix, error }
}

fn invalid(why: impl std::fmt::Display) -> Error {
    Error::Status(mainstay_object::Status::bad_request(why.to_string()))
}

/// The object of a document, with its namespace, and its resource.
async fn object(
    cluster: &Cluster,
    value: Value,
    line: &CommandLine,
) -> Result<(Object, Resource), Error> {
    let mut object = Object::from_value(value).map_err(invalid)?;
    let gvk = object.gvk();
    let Some(resource) = cluster.resource_of(&gvk).await? else {
        return Err(invalid(format!("no matches for kind \"{}\"", gvk.kind)));
    };
    if resource.is_namespaced() && object.namespace().is_empty() {
        let namespace = line.namespace.as_deref().unwrap_or("default");
        object.set(&["metadata", "namespace"], namespace.into());
    }
    Ok((object, resource))
}

async fn post(
    cluster: &Cluster,
    resource: &Resource,
    object: &Object,
    validation: &str,
    manager: &str,
) -> Result<(), Error> {
    let namespace = resource.is_namespaced().then(|| object.namespace());
    let path = resource.collection_path(namespace);
    let path = format!("{path}?fieldValidation={validation}&fieldManager={manager}");
    let body = serde_json::to_vec(&object.to_value()).map_err(invalid)?;
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(body).map_err(invalid)?;
    request::send(cluster, request).await?;
    Ok(())
}

async fn create(
    cluster: &Cluster,
    value: Value,
    line: &CommandLine,
    validation: &str,
) -> Result<String, Failure> {
    let (object, resource) = object(cluster, value, line).await.map_err(failed(""))?;
    post(cluster, &resource, &object, validation, CREATE_MANAGER)
        .await
        .map_err(failed(CREATING))?;
    Ok(format!("{} created\n", kind_and_name(&resource, object.name())))
}

/// Client-side apply: creates the object, or merges the last applied configuration, the new one and
/// the live object.
async fn apply(
    cluster: &Cluster,
    value: Value,
    line: &CommandLine,
    validation: &str,
) -> Result<String, Failure> {
    let (mut object, resource) = object(cluster, value, line).await.map_err(failed(""))?;
    let name = kind_and_name(&resource, object.name());
    let mut configuration = object.clone();
    if configuration.get(&["metadata", "annotations"]).is_none() {
        configuration.set(&["metadata", "annotations"], json!({}));
    }
    object.set_annotation(LAST_APPLIED, format!("{}\n", configuration.to_value()));
    let namespace = resource.is_namespaced().then(|| object.namespace().to_owned());
    let live = cluster.find(&resource, namespace.as_deref(), object.name()).await;
    let Some(live) = live.map_err(failed(""))? else {
        post(cluster, &resource, &object, validation, APPLY_MANAGER)
            .await
            .map_err(failed(CREATING))?;
        return Ok(format!("{name} created\n"));
    };
    let before =
        live.annotation(LAST_APPLIED).and_then(|annotation| serde_json::from_str(annotation).ok());
    let before: Value = before.unwrap_or_else(|| json!({}));
    let mut patch = merge_patch(&live.to_value(), &object.to_value());
    add_removals(&before, &object.to_value(), &mut patch);
    if patch.as_object().is_some_and(Map::is_empty) {
        return Ok(format!("{name} unchanged\n"));
    }
    cluster
        .patch(&resource, namespace.as_deref(), object.name(), &Patch::Merge(patch))
        .await
        .map_err(failed(PATCHING))?;
    Ok(format!("{name} configured\n"))
}

/// The merge patch that adds and changes fields.
fn merge_patch(live: &Value, applied: &Value) -> Value {
    let (Value::Object(live), Value::Object(applied)) = (live, applied) else {
        return applied.clone();
    };
    let mut patch = Map::new();
    for (key, value) in applied {
        match live.get(key) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                let inner = merge_patch(before, value);
                if inner.as_object().is_some_and(|fields| !fields.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

/// Adds nulls to the patch for fields that were applied before and are not applied now.
fn add_removals(before: &Value, applied: &Value, patch: &mut Value) {
    let (Value::Object(before), Value::Object(applied), Value::Object(patch)) =
        (before, applied, patch)
    else {
        return;
    };
    for (key, value) in before {
        match applied.get(key) {
            None => {
                patch.insert(key.clone(), Value::Null);
            }
            Some(now) if value.is_object() && now.is_object() => {
                let mut inner = patch.get(key).cloned().unwrap_or_else(|| json!({}));
                add_removals(value, now, &mut inner);
                if inner.as_object().is_some_and(|fields| !fields.is_empty()) {
                    patch.insert(key.clone(), inner);
                }
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apply_removes_fields_that_are_no_longer_applied() {
        let before = json!({"spec": {"a": 1, "b": {"c": 1}}});
        let live = json!({"spec": {"a": 1, "b": {"c": 1, "set": 1}}, "status": {}});
        let applied = json!({"spec": {"a": 2, "b": {}}});
        let mut patch = merge_patch(&live, &applied);
        add_removals(&before, &applied, &mut patch);
        assert_eq!(patch, json!({"spec": {"a": 2, "b": {"c": null}}}));
    }
}
