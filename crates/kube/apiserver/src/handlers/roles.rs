//! The default roles and bindings.
//!
//! They are data from Kubernetes 1.35.4, and a scenario compares them. At the start, missing
//! objects are created, and missing labels, rules and subjects are added to existing ones. Nothing
//! is removed, and an object with the annotation `rbac.authorization.kubernetes.io/autoupdate:
//! "false"` stays as it is. All writes run concurrently, so that the store commits them together.

use super::bootstrap::{self, DesiredChange};
use crate::server::ApiServer;
use crate::start::StartError;
use futures::future::try_join_all;
use mainstay_auth::authz::{self, cover, rules::PolicyRule};
use mainstay_object::{Object, Status};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One object in each line, without the fields that all have.
const DATA: &str = include_str!("data/cluster_roles.jsonl");
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Creates and completes the default roles and bindings.
pub(crate) async fn ensure_roles(server: &Arc<ApiServer>) -> Result<(), StartError> {
    try_join_all(DATA.lines().map(|line| ensure_role(server, line))).await?;
    Ok(())
}

async fn ensure_role(server: &Arc<ApiServer>, line: &str) -> Result<(), StartError> {
    let expected = object(line).map_err(|status| role_error(&Object::default(), status))?;
    let plural = format!("{}s", expected.kind().to_lowercase());
    let outcome =
        bootstrap::ensure_with(server, authz::GROUP, &plural, &expected, desired_change).await;
    outcome.map_err(|status| role_error(&expected, status))
}

fn role_error(object: &Object, status: Status) -> StartError {
    StartError::CreateRole {
        kind: object.kind().to_owned(),
        name: object.name().to_owned(),
        status,
    }
}

/// The object of a line.
fn object(line: &str) -> Result<Object, Status> {
    let mut fields: Map<String, Value> = serde_json::from_str(line).map_err(Status::internal)?;
    let mut metadata = json!({"annotations": {AUTO_UPDATE: "true"}});
    let mut labels = fields.remove("labels").unwrap_or_else(|| json!({}));
    labels["kubernetes.io/bootstrapping"] = "rbac-defaults".into();
    metadata["labels"] = labels;
    for field in ["name", "namespace"] {
        if let Some(value) = fields.remove(field) {
            metadata[field] = value;
        }
    }
    fields.insert("metadata".to_owned(), metadata);
    fields.insert("apiVersion".to_owned(), format!("{}/v1", authz::GROUP).into());
    Object::from_value(Value::Object(fields)).map_err(Status::internal)
}

/// The change of an existing object.
fn desired_change(old: &Object, expected: &Object) -> DesiredChange {
    if old.str(&["metadata", "annotations", AUTO_UPDATE]) == Some("false") {
        return DesiredChange::Unchanged;
    }
    if old.get(&["roleRef"]) != expected.get(&["roleRef"]) {
        return DesiredChange::Recreate;
    }
    let mut object = old.clone();
    for field in ["annotations", "labels"] {
        for (key, value) in
            expected.get(&["metadata", field]).and_then(Value::as_object).into_iter().flatten()
        {
            if object.get(&["metadata", field, key]).is_none() {
                object.set(&["metadata", field, key], value.clone());
            }
        }
    }
    let missing = missing_rules(old, expected);
    if !missing.is_empty() {
        let mut rules = old.array(&["rules"]).to_vec();
        rules.extend(missing);
        object.set(&["rules"], rules.into());
    }
    append(&mut object, expected, &["subjects"]);
    let selectors = ["aggregationRule", "clusterRoleSelectors"];
    if expected.get(&["aggregationRule"]).is_some() {
        append(&mut object, expected, &selectors);
    } else {
        object.remove(&["aggregationRule"]);
    }
    if object == *old { DesiredChange::Unchanged } else { DesiredChange::Update(object) }
}

/// Appends the missing elements of a list.
fn append(object: &mut Object, expected: &Object, path: &[&str]) {
    let mut list = object.array(path).to_vec();
    let previous_length = list.len();
    for element in expected.array(path) {
        if !list.contains(element) {
            list.push(element.clone());
        }
    }
    if list.len() > previous_length {
        object.set(path, list.into());
    }
}

fn missing_rules(old: &Object, expected: &Object) -> Vec<Value> {
    let read = |object: &Object| -> Vec<PolicyRule> {
        let rules = object.array(&["rules"]).iter();
        rules.filter_map(|rule| PolicyRule::deserialize(rule).ok()).collect()
    };
    let existing_rules = read(old);
    let existing_rules: Vec<&PolicyRule> = existing_rules.iter().collect();
    // The rules of the data are few.
    let missing = cover::missing_rules(&existing_rules, &read(expected)).unwrap_or_default();
    missing.iter().filter_map(|rule| serde_json::to_value(rule).ok()).collect()
}
