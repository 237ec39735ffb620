//! Controller of `FlowSchema` and `PriorityLevelConfiguration` objects.
//!
//! It creates the default objects at the first start and again after their deletion. It sets the
//! condition `Dangling` of a `FlowSchema`, which says whether its priority level exists. After each
//! change the server reads its flow configuration again.

use super::config::{LEVELS, SCHEMAS};
use crate::handlers;
use crate::server::ApiServer;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use mainstay_auth::Identity;
use mainstay_object::{Object, Status};
use mainstay_store::{WatchCursor, WatchError};
use mainstay_validation::flow_defaults;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Group and version of the objects.
const GROUP: &str = "flowcontrol.apiserver.k8s.io/v1";
/// Field manager of the default objects.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// Field manager of their status.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
/// Annotation of objects whose spec this program maintains.
const MANAGED: &str = "apf.kubernetes.io/autoupdate-spec";
/// How often deleted or changed default objects are repaired.
const REPAIR_INTERVAL: Duration = Duration::from_mins(1);

/// Creates the default objects, reads all objects, and follows their changes until the server ends.
pub(crate) async fn start(server: &Arc<ApiServer>) -> Result<(), Status> {
    seed(server).await?;
    // The watches report changes after this revision.
    let revision = server.store.revision();
    server.flow.read(&server.store);
    let watch = |storage| server.store.watch(storage, revision).map_err(Status::internal);
    let (schemas, levels) = (watch(SCHEMAS)?, watch(LEVELS)?);
    let stop = server.stop.clone();
    let follower = follow(Arc::downgrade(server), schemas, levels);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = follower => {}
        }
    });
    Ok(())
}

/// Follows changes until the store or the server ends.
async fn follow(server: Weak<ApiServer>, mut schemas: WatchCursor, mut levels: WatchCursor) {
    let mut needs_repair = false;
    loop {
        let batch = tokio::select! {
            batch = schemas.next_batch(64) => batch.map(drop),
            batch = levels.next_batch(64) => batch.map(drop),
            // The timer runs only while a repair is due.
            () = tokio::time::sleep(REPAIR_INTERVAL), if needs_repair => {
                let Some(server) = server.upgrade() else { return };
                repair(&server).await;
                Ok(())
            }
        };
        let Some(server) = server.upgrade() else { return };
        match batch {
            Ok(()) => {}
            Err(WatchError::Closed) => return,
            Err(WatchError::Expired(_)) => {
                // The watch fell behind very many changes; all objects are read again anyway.
                let revision = server.store.revision();
                let watch = |storage| server.store.watch(storage, revision).ok();
                let (Some(schema_watch), Some(level_watch)) = (watch(SCHEMAS), watch(LEVELS))
                else {
                    return;
                };
                (schemas, levels) = (schema_watch, level_watch);
            }
        }
        server.flow.read(&server.store);
        write_conditions(&server).await;
        needs_repair = is_repair_needed(&server);
    }
}

/// Whether a default object is missing or changed.
fn is_repair_needed(server: &ApiServer) -> bool {
    default_objects().any(|(_, storage, name, spec)| {
        server
            .store
            .find(storage, "", name)
            .is_none_or(|stored| is_modified(&stored.object(), spec))
    })
}

/// Whether an object that this program maintains has another spec.
fn is_modified(object: &Object, spec: &Value) -> bool {
    let is_managed = object.str(&["metadata", "annotations", MANAGED]) == Some("true");
    is_managed && object.get(&["spec"]) != Some(spec)
}

/// The default objects: plural, storage name, name and spec.
fn default_objects()
-> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static Value)> {
    [("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)].into_iter().flat_map(
        |(plural, storage)| {
            let specs = flow_defaults::specs(plural);
            specs.map(move |(name, spec)| (plural, storage, name.as_str(), spec))
        },
    )
}

/// Creates the missing default objects.
async fn seed(server: &Arc<ApiServer>) -> Result<(), Status> {
    let mut objects = Vec::new();
    for (plural, storage, name, spec) in default_objects() {
        let schema = plural == "flowschemas";
        let kind = if schema { "FlowSchema" } else { "PriorityLevelConfiguration" };
        if server.store.find(storage, "", name).is_none() {
            objects.push((storage, complete_object(server, kind, name, spec)?));
        }
    }
    handlers::bootstrap::create_missing(server, objects).await
}

/// A default object as stored, with its managed fields and status.
fn complete_object(
    server: &ApiServer,
    kind: &str,
    name: &str,
    spec: &Value,
) -> Result<Object, Status> {
    let now = server.clock.now_rfc3339();
    let entry = |manager: &str, operation: &str, fields: Value| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": GROUP, "time": now,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let annotations = json!({"f:annotations": {".": {}, format!("f:{MANAGED}"): {}}});
    let producer_fields = json!({"f:metadata": annotations, "f:spec": managed_fields(spec, true)});
    let mut managers = Vec::new();
    let mut status = json!({});
    if kind == "FlowSchema" {
        let level = spec.pointer("/priorityLevelConfiguration/name").and_then(Value::as_str);
        let mut condition = dangling_condition(level.unwrap_or_default(), true);
        condition["lastTransitionTime"] = now.as_str().into();
        status = json!({"conditions": [condition]});
        let fields = json!({
            ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {},
        });
        let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"Dangling\"}": fields}}});
        let mut consumer = entry(CONSUMER, "Apply", fields);
        consumer["subresource"] = "status".into();
        managers.push(consumer);
    }
    managers.push(entry(PRODUCER, "Update", producer_fields));
    let value = json!({
        "apiVersion": GROUP, "kind": kind,
        "metadata": {
            "name": name, "generation": 1, "annotations": {MANAGED: "true"},
            "managedFields": managers,
        },
        "spec": spec, "status": status,
    });
    Object::from_value(value).map_err(Status::internal)
}

/// The fields of a spec as `FieldsV1`; a list counts as one field.
fn managed_fields(value: &Value, top: bool) -> Value {
    let mut fields = Map::new();
    if let Some(inner) = value.as_object() {
        if !top && !inner.is_empty() && !inner.contains_key("name") {
            fields.insert(".".to_owned(), json!({}));
        }
        for (key, value) in inner {
            fields.insert(format!("f:{key}"), managed_fields(value, false));
        }
    }
    Value::Object(fields)
}

/// The condition `Dangling` of a `FlowSchema`, without its time.
fn dangling_condition(level: &str, found: bool) -> Value {
    let head =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    if found {
        let message = format!("{head} and it exists");
        json!({"type": "Dangling", "status": "False", "reason": "Found", "message": message})
    } else {
        let message = format!("{head} but there is no such object");
        json!({"type": "Dangling", "status": "True", "reason": "NotFound", "message": message})
    }
}

/// Writes the conditions that differ.
async fn write_conditions(server: &Arc<ApiServer>) {
    for stored in server.store.list(SCHEMAS, None).iter() {
        let object = stored.object();
        let level = object.str(&["spec", "priorityLevelConfiguration", "name"]).unwrap_or_default();
        let found = server.store.find(LEVELS, "", level).is_some();
        let expected = dangling_condition(level, found);
        let conditions = object.get(&["status", "conditions"]).and_then(Value::as_array);
        let current =
            conditions.into_iter().flatten().find(|condition| condition["type"] == "Dangling");
        let is_same =
            |field: &str| current.and_then(|current| current.get(field)) == expected.get(field);
        if ["status", "reason", "message"].into_iter().all(is_same) {
            continue;
        }
        let mut condition = expected;
        condition["lastTransitionTime"] = server.clock.now_rfc3339().into();
        let body = json!({
            "apiVersion": GROUP, "kind": "FlowSchema", "metadata": {"name": object.name()},
            "status": {"conditions": [condition]},
        });
        let path = format!(
            "/apis/{GROUP}/flowschemas/{}/status?fieldManager={CONSUMER}&force=true",
            object.name()
        );
        // A deleted FlowSchema needs no condition; any other change causes another run.
        own_request(server, Method::PATCH, &path, "application/apply-patch+yaml", &body).await;
    }
}

/// Recreates deleted default objects, and restores the spec of maintained ones.
async fn repair(server: &Arc<ApiServer>) {
    if let Err(status) = seed(server).await {
        tracing::warn!(%status, "cannot create the default flow schemas and priority levels");
    }
    for (plural, storage, name, spec) in default_objects() {
        let Some(stored) = server.store.find(storage, "", name) else { continue };
        let object = stored.object();
        if is_modified(&object, spec) {
            let mut body = object.into_value();
            body["spec"] = spec.clone();
            let path = format!("/apis/{GROUP}/{plural}/{name}?fieldManager={PRODUCER}");
            own_request(server, Method::PUT, &path, "application/json", &body).await;
        }
    }
}

/// Sends a request of the server itself. A refused one is repeated at the next change.
async fn own_request(
    server: &Arc<ApiServer>,
    method: Method,
    path: &str,
    media: &str,
    body: &Value,
) {
    let request = Request::builder().method(method).uri(path).header("content-type", media);
    let Ok(request) = request.body(Full::new(Bytes::from(body.to_string()))) else { return };
    let response = server.answer(&Identity::admin(), request).await;
    if response.status().is_client_error() || response.status().is_server_error() {
        tracing::debug!(path, status = %response.status(), "cannot write a flow schema or priority level");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_objects_have_the_managed_fields_of_their_producer() {
        let spec = flow_defaults::spec("flowschemas", "catch-all").unwrap();
        let expected = json!({
            "f:distinguisherMethod": {".": {}, "f:type": {}}, "f:matchingPrecedence": {},
            "f:priorityLevelConfiguration": {"f:name": {}}, "f:rules": {},
        });
        assert_eq!(managed_fields(&spec, true), expected);
    }
}
