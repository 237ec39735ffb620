//! The controller of `FlowSchema` and `PriorityLevelConfiguration` objects.
//!
//! The objects that every cluster has are made at the first start and made again when somebody
//! deletes them; whether a schema names a level that there is stands in its status. Each change makes
//! the server read its plan again.

use super::plan::{LEVELS, SCHEMAS};
use crate::handlers;
use crate::server::ApiServer;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use mainstay_auth::Identity;
use mainstay_object::{Object, Status};
use mainstay_store::{Watch, WatchError};
use mainstay_validation::flow_defaults;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The group and version of the objects.
const GROUP: &str = "flowcontrol.apiserver.k8s.io/v1";
/// Who makes the objects that every cluster has.
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
/// Who writes their status.
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
/// On what is kept as this program wants it.
const MANAGED: &str = "apf.kubernetes.io/autoupdate-spec";
/// How often what was deleted or changed is put right.
const AGAIN: Duration = Duration::from_mins(1);

/// Makes what every cluster has, reads what there is, and follows it until the server's end.
pub(crate) async fn start(server: &Arc<ApiServer>) -> Result<(), Status> {
    seed(server).await?;
    // Changes after this moment are seen by the watches.
    let revision = server.store.revision();
    server.flow.read(&server.store);
    let watch = |storage| server.store.watch(storage, revision).map_err(Status::internal);
    let (schemas, levels) = (watch(SCHEMAS)?, watch(LEVELS)?);
    let stop = server.stop.clone();
    let followed = follow(Arc::downgrade(server), schemas, levels);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = followed => {}
        }
    });
    Ok(())
}

/// Ends with the store or the server.
async fn follow(server: Weak<ApiServer>, mut schemas: Watch, mut levels: Watch) {
    let mut wrong = false;
    loop {
        let batch = tokio::select! {
            batch = schemas.next_batch(64) => batch.map(drop),
            batch = levels.next_batch(64) => batch.map(drop),
            // A server that is left alone does nothing.
            () = tokio::time::sleep(AGAIN), if wrong => {
                let Some(server) = server.upgrade() else { return };
                put_right(&server).await;
                Ok(())
            }
        };
        let Some(server) = server.upgrade() else { return };
        match batch {
            Ok(()) => {}
            Err(WatchError::Closed) => return,
            Err(WatchError::Expired(_)) => {
                // Left behind by very many changes: everything is read again anyway.
                let revision = server.store.revision();
                let again = |storage| server.store.watch(storage, revision).ok();
                let (Some(one), Some(other)) = (again(SCHEMAS), again(LEVELS)) else { return };
                (schemas, levels) = (one, other);
            }
        }
        server.flow.read(&server.store);
        write_conditions(&server).await;
        wrong = is_wrong(&server);
    }
}

/// Whether something is missing or not as it should be.
fn is_wrong(server: &ApiServer) -> bool {
    all().any(|(_, storage, name, spec)| {
        server.store.find(storage, "", name).is_none_or(|stored| is_changed(&stored.object(), spec))
    })
}

/// Whether an object that is kept as this program wants it is not.
fn is_changed(object: &Object, spec: &Value) -> bool {
    let managed = object.str(&["metadata", "annotations", MANAGED]) == Some("true");
    managed && object.get(&["spec"]) != Some(spec)
}

/// What every cluster has: plural, the store's name for it, name and spec.
fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str, &'static Value)> {
    [("prioritylevelconfigurations", LEVELS), ("flowschemas", SCHEMAS)].into_iter().flat_map(
        |(plural, storage)| {
            let specs = flow_defaults::specs(plural);
            specs.map(move |(name, spec)| (plural, storage, name.as_str(), spec))
        },
    )
}

/// Creates what every cluster has and this one has not.
async fn seed(server: &Arc<ApiServer>) -> Result<(), Status> {
    let mut objects = Vec::new();
    for (plural, storage, name, spec) in all() {
        let schema = plural == "flowschemas";
        let kind = if schema { "FlowSchema" } else { "PriorityLevelConfiguration" };
        if server.store.find(storage, "", name).is_none() {
            objects.push((storage, made(server, kind, name, spec)?));
        }
    }
    handlers::bootstrap::seed(server, objects).await
}

/// An object as it is stored: complete, since all of it is known.
fn made(server: &ApiServer, kind: &str, name: &str, spec: &Value) -> Result<Object, Status> {
    let now = server.clock.now_rfc3339();
    let entry = |manager: &str, operation: &str, fields: Value| {
        json!({
            "manager": manager, "operation": operation, "apiVersion": GROUP, "time": now,
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    };
    let annotations = json!({"f:annotations": {".": {}, format!("f:{MANAGED}"): {}}});
    let produced = json!({"f:metadata": annotations, "f:spec": owned(spec, true)});
    let mut managers = Vec::new();
    let mut status = json!({});
    if kind == "FlowSchema" {
        let level = spec.pointer("/priorityLevelConfiguration/name").and_then(Value::as_str);
        let mut condition = wanted_condition(level.unwrap_or_default(), true);
        condition["lastTransitionTime"] = now.as_str().into();
        status = json!({"conditions": [condition]});
        let fields = json!({
            ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}, "f:status": {}, "f:type": {},
        });
        let fields = json!({"f:status": {"f:conditions": {"k:{\"type\":\"Dangling\"}": fields}}});
        let mut consumed = entry(CONSUMER, "Apply", fields);
        consumed["subresource"] = "status".into();
        managers.push(consumed);
    }
    managers.push(entry(PRODUCER, "Update", produced));
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

/// The fields of a spec in the notation of managers; lists count as one.
fn owned(value: &Value, top: bool) -> Value {
    let mut fields = Map::new();
    if let Some(inner) = value.as_object() {
        if !top && !inner.is_empty() && !inner.contains_key("name") {
            fields.insert(".".to_owned(), json!({}));
        }
        for (key, value) in inner {
            fields.insert(format!("f:{key}"), owned(value, false));
        }
    }
    Value::Object(fields)
}

/// The condition of a schema, without its time.
fn wanted_condition(level: &str, found: bool) -> Value {
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

/// Writes the conditions that are not as they should be.
async fn write_conditions(server: &Arc<ApiServer>) {
    for stored in server.store.list(SCHEMAS, None).iter() {
        let object = stored.object();
        let level = object.str(&["spec", "priorityLevelConfiguration", "name"]).unwrap_or_default();
        let found = server.store.find(LEVELS, "", level).is_some();
        let wanted = wanted_condition(level, found);
        let conditions = object.get(&["status", "conditions"]).and_then(Value::as_array);
        let is = conditions.into_iter().flatten().find(|one| one["type"] == "Dangling");
        let same = |field: &str| is.and_then(|is| is.get(field)) == wanted.get(field);
        if ["status", "reason", "message"].into_iter().all(same) {
            continue;
        }
        let mut condition = wanted;
        condition["lastTransitionTime"] = server.clock.now_rfc3339().into();
        let body = json!({
            "apiVersion": GROUP, "kind": "FlowSchema", "metadata": {"name": object.name()},
            "status": {"conditions": [condition]},
        });
        let path = format!(
            "/apis/{GROUP}/flowschemas/{}/status?fieldManager={CONSUMER}&force=true",
            object.name()
        );
        // A schema that went meanwhile needs no condition; any other change comes here again.
        own_request(server, Method::PATCH, &path, "application/apply-patch+yaml", &body).await;
    }
}

/// Makes again what was deleted, and gives what is managed its spec again.
async fn put_right(server: &Arc<ApiServer>) {
    if let Err(status) = seed(server).await {
        tracing::warn!(%status, "flow schemas and priority levels could not be made");
    }
    for (plural, storage, name, spec) in all() {
        let Some(stored) = server.store.find(storage, "", name) else { continue };
        let object = stored.object();
        if is_changed(&object, spec) {
            let mut body = object.into_value();
            body["spec"] = spec.clone();
            let path = format!("/apis/{GROUP}/{plural}/{name}?fieldManager={PRODUCER}");
            own_request(server, Method::PUT, &path, "application/json", &body).await;
        }
    }
}

/// A request of the server itself; what is refused is tried again when it matters.
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
        tracing::debug!(path, status = %response.status(), "a flow schema was not written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_owned_as_by_whoever_writes_them() {
        let spec = flow_defaults::spec("flowschemas", "catch-all").unwrap();
        let expected = json!({
            "f:distinguisherMethod": {".": {}, "f:type": {}}, "f:matchingPrecedence": {},
            "f:priorityLevelConfiguration": {"f:name": {}}, "f:rules": {},
        });
        assert_eq!(owned(&spec, true), expected);
    }
}
