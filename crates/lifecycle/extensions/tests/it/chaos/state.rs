//! The state of a cluster with extensions: all objects, without fields that differ between two runs.

use crate::olm_cluster::OlmCluster;
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION, CLUSTER_OBJECT_SET};
use mainstay_object::{Object, Resource, builtin};
use mainstay_releases::{MAX_DECODED_BYTES, Release, ReleaseStatus, decode_release};
use mainstay_testkit::chaos::{State, list_objects};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds of a state.
const KINDS: [&Resource; 13] = [
    &CLUSTER_CATALOG,
    &CLUSTER_EXTENSION,
    &CLUSTER_OBJECT_SET,
    &builtin::NAMESPACE,
    &builtin::CONFIG_MAP,
    &builtin::DEPLOYMENT,
    &builtin::SECRET,
    &builtin::SERVICE,
    &builtin::SERVICE_ACCOUNT,
    &builtin::ROLE,
    &builtin::ROLE_BINDING,
    &builtin::CLUSTER_ROLE,
    &builtin::CLUSTER_ROLE_BINDING,
];

/// Fields that differ between two runs.
const VOLATILE: [&str; 7] = [
    "resourceVersion",
    "managedFields",
    "uid",
    "creationTimestamp",
    "generation",
    "observedGeneration",
    "lastUnpacked",
];

/// The state of a cluster.
pub(super) async fn of(olm: &OlmCluster) -> State {
    let objects = list_objects(&olm.cluster, &KINDS).await;
    let key = |object: &Object| format!("{} {}", object.kind(), object.key());
    let uids: BTreeMap<String, String> = objects
        .iter()
        .map(|object| (object.uid().to_owned(), format!("{{uid of {}}}", key(object))))
        .collect();
    let mut state = State::new();
    for object in objects {
        let release = decode_release(&object.to_value(), &[], MAX_DECODED_BYTES).ok();
        let (mut key, mut value) = match release {
            None => (key(&object), object.into_value()),
            // An earlier version, or an attempt that was interrupted: their number depends on the faults.
            Some(release) if release.info.status != ReleaseStatus::Deployed => continue,
            Some(release) => ("deployed release".to_owned(), content(&release)),
        };
        normalize(&mut value, &uids);
        while state.contains_key(&key) {
            key.push_str(" again");
        }
        state.insert(key, value);
    }
    state
}

/// What a release says, without its number and times.
fn content(release: &Release) -> Value {
    let mut value: Value = serde_json::from_str(&release.to_json()).unwrap();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|field, _| field != "info" && field != "version");
    }
    value
}

fn normalize(value: &mut Value, uids: &BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            for field in VOLATILE {
                fields.remove(field);
            }
            for field in fields.values_mut() {
                normalize(field, uids);
            }
        }
        Value::Array(items) => {
            for item in items.iter_mut() {
                normalize(item, uids);
            }
            let is_condition =
                |item: &Value| item["type"].is_string() && item["status"].is_string();
            if items.iter().all(is_condition) {
                items.sort_by_key(|item| item["type"].to_string());
            }
        }
        Value::String(text) => {
            if text.parse::<jiff::Timestamp>().is_ok() {
                "{time}".clone_into(text);
                return;
            }
            for (uid, owner) in uids {
                if text.contains(uid.as_str()) {
                    *text = text.replace(uid.as_str(), owner);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
