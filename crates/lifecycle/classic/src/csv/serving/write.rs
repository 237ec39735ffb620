//! Serving writes: create or update single objects around servers, and keep the fields of other
//! clients.

use super::apply::InstallError;
use mainstay_api::resources;
use mainstay_client::Cluster;
use mainstay_object::{Object, Resource};
use serde_json::{Map, Value};

/// Creates or updates an object so that it has these fields. Returns its resource version.
pub(super) async fn ensure_fields(
    cluster: &Cluster,
    resource: &Resource,
    wanted: &Object,
    fields: &[&[&str]],
) -> Result<String, InstallError> {
    match cluster.find(resource, Some(wanted.namespace()), wanted.name()).await? {
        None => Ok(cluster.create(resource, wanted).await?.resource_version().to_owned()),
        Some(live) => update_fields(cluster, resource, &live, wanted, fields).await,
    }
}

/// Replaces these fields of an object, adds labels and annotations, and makes the CSV its owner
/// instead of other CSVs. Writes nothing if the object does not change.
pub(super) async fn update_fields(
    cluster: &Cluster,
    resource: &Resource,
    live: &Object,
    wanted: &Object,
    fields: &[&[&str]],
) -> Result<String, InstallError> {
    let mut new = live.clone();
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let entries_of = |object: &Object| -> Map<String, Value> {
            object.get(&path).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let mut all = entries_of(live);
        all.extend(entries_of(wanted));
        if !all.is_empty() {
            new.set(&path, Value::Object(all));
        }
    }
    let owners = wanted.array(&["metadata", "ownerReferences"]);
    if !owners.is_empty() {
        let is_csv = |owner: &&Value| {
            owner.get("kind").and_then(Value::as_str)
                == Some(&*resources::CLUSTER_SERVICE_VERSION.kind)
        };
        let others =
            live.array(&["metadata", "ownerReferences"]).iter().filter(|owner| !is_csv(owner));
        let all: Vec<Value> = others.chain(owners).cloned().collect();
        new.set(&["metadata", "ownerReferences"], all.into());
    }
    for path in fields {
        if let Some(value) = wanted.get(path) {
            new.set(path, value.clone());
        }
    }
    if new == *live {
        return Ok(live.resource_version().to_owned());
    }
    match cluster.update(resource, &new).await {
        Ok(updated) => Ok(updated.resource_version().to_owned()),
        Err(error) if error.is_not_found() => Err(InstallError::Removed(error)),
        Err(error) => Err(error.into()),
    }
}
