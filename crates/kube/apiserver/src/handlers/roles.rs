//! The roles and bindings of every cluster.
//!
//! They are data, taken from a Kubernetes 1.35.4; a scenario holds them to it. At start those that are
//! missing are made, and what is missing in one that is there is added: labels, rules, subjects. One
//! with the annotation `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone, and
//! nothing is ever taken away. All are written at the same time, so that a store commits them
//! together.

use super::bootstrap::{self, Wanted};
use crate::server::ApiServer;
use crate::start::StartError;
use futures::future::try_join_all;
use mainstay_auth::authz::{self, cover, rules::PolicyRule};
use mainstay_object::{Object, Status};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One object in each line, without what they all have.
const DATA: &str = include_str!("data/cluster_roles.jsonl");
const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Makes the roles and bindings of every cluster, where something of them is missing.
pub(crate) async fn settle(server: &Arc<ApiServer>) -> Result<(), StartError> {
    try_join_all(DATA.lines().map(|line| settle_one(server, line))).await?;
    Ok(())
}

async fn settle_one(server: &Arc<ApiServer>, line: &str) -> Result<(), StartError> {
    let wanted = object(line).map_err(|status| failed(&Object::default(), status))?;
    let plural = format!("{}s", wanted.kind().to_lowercase());
    let settled = bootstrap::settle_with(server, authz::GROUP, &plural, &wanted, mended).await;
    settled.map_err(|status| failed(&wanted, status))
}

fn failed(object: &Object, status: Status) -> StartError {
    StartError::CreateRole {
        kind: object.kind().to_owned(),
        name: object.name().to_owned(),
        status,
    }
}

/// A line as the object that it stands for.
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

/// What becomes of an object that is there.
fn mended(old: &Object, wanted: &Object) -> Wanted {
    if old.str(&["metadata", "annotations", AUTO_UPDATE]) == Some("false") {
        return Wanted::Same;
    }
    if old.get(&["roleRef"]) != wanted.get(&["roleRef"]) {
        return Wanted::Anew;
    }
    let mut object = old.clone();
    for field in ["annotations", "labels"] {
        for (key, value) in
            wanted.get(&["metadata", field]).and_then(Value::as_object).into_iter().flatten()
        {
            if object.get(&["metadata", field, key]).is_none() {
                object.set(&["metadata", field, key], value.clone());
            }
        }
    }
    let missing = missing_rules(old, wanted);
    if !missing.is_empty() {
        let mut rules = old.array(&["rules"]).to_vec();
        rules.extend(missing);
        object.set(&["rules"], rules.into());
    }
    append(&mut object, wanted, &["subjects"]);
    let selectors = ["aggregationRule", "clusterRoleSelectors"];
    if wanted.get(&["aggregationRule"]).is_some() {
        append(&mut object, wanted, &selectors);
    } else {
        object.remove(&["aggregationRule"]);
    }
    if object == *old { Wanted::Same } else { Wanted::Changed(object) }
}

/// Appends what a list lacks.
fn append(object: &mut Object, wanted: &Object, path: &[&str]) {
    let mut list = object.array(path).to_vec();
    let before = list.len();
    for one in wanted.array(path) {
        if !list.contains(one) {
            list.push(one.clone());
        }
    }
    if list.len() > before {
        object.set(path, list.into());
    }
}

fn missing_rules(old: &Object, wanted: &Object) -> Vec<Value> {
    let read = |object: &Object| -> Vec<PolicyRule> {
        let rules = object.array(&["rules"]).iter();
        rules.filter_map(|rule| PolicyRule::deserialize(rule).ok()).collect()
    };
    let held = read(old);
    let held: Vec<&PolicyRule> = held.iter().collect();
    // The rules of the data are few.
    let missing = cover::missing_rules(&held, &read(wanted)).unwrap_or_default();
    missing.iter().filter_map(|rule| serde_json::to_value(rule).ok()).collect()
}
