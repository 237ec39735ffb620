//! `APIService` objects of the groups that this server has itself: built-in ones are made when it
//! first starts, those of definitions come and go with them.

use super::available;
use super::priority::{CUSTOM, priorities};
use super::remote::{STORAGE, condition, has_service};
use crate::handlers;
use crate::server::ApiServer;
use http::Method;
use mainstay_object::{Object, Status};
use mainstay_schema::builtin;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The label of what this server manages, and its values.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const ALWAYS: &str = "true";
/// Makes the objects of the built-in groups that are not there yet.
pub(crate) async fn seed(server: &Arc<ApiServer>) -> Result<(), Status> {
    let versions: BTreeSet<(&str, &str)> = builtin::kinds()
        .iter()
        .map(|kind| (kind.group, kind.version))
        // Whoever serves these objects needs none of its own.
        .filter(|(group, _)| *group != "apiregistration.k8s.io")
        .collect();
    let mut objects = Vec::new();
    for (group, version) in versions {
        if server.store.find(STORAGE, "", &format!("{version}.{group}")).is_none() {
            let priorities = priorities(group, version);
            objects.push((STORAGE, made(server, group, version, priorities, ON_START)?));
        }
    }
    handlers::bootstrap::seed(server, objects).await
}

/// An object as it is stored: complete, since all of it is known.
fn made(
    server: &ApiServer,
    group: &str,
    version: &str,
    (of_group, of_version): (i64, i64),
    managed: &str,
) -> Result<Object, Status> {
    let now = server.clock.now_rfc3339();
    let mut spec = json!({
        "version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version,
    });
    let mut fields =
        json!({"f:groupPriorityMinimum": {}, "f:version": {}, "f:versionPriority": {}});
    if !group.is_empty() {
        spec["group"] = group.into();
        fields["f:group"] = json!({});
    }
    let labels = json!({"f:labels": {".": {}, format!("f:{MANAGED}"): {}}});
    let value = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {
            "name": format!("{version}.{group}"), "labels": {MANAGED: managed},
            "managedFields": [{
                "manager": "kube-apiserver", "operation": "Update", "time": now,
                "apiVersion": "apiregistration.k8s.io/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": labels, "f:spec": fields},
            }],
        },
        "spec": spec, "status": {"conditions": [mainstay_validation::local_condition(&now)]},
    });
    Object::from_value(value).map_err(Status::internal)
}

/// What is read of a definition: schemas are large, and not looked at.
#[derive(Deserialize)]
struct Definition {
    spec: DefinitionSpec,
}

#[derive(Deserialize)]
struct DefinitionSpec {
    group: String,
    versions: Vec<DefinitionVersion>,
}

#[derive(Deserialize)]
struct DefinitionVersion {
    name: String,
    served: bool,
}

/// What is known of definitions and `APIService` objects already, so that a change makes only what
/// has changed be read.
#[derive(Default)]
pub(super) struct Known {
    /// Of each definition the revision that was read, and the names of the objects it needs.
    definitions: HashMap<Arc<str>, (u64, Vec<Needed>)>,
    /// Up to which revision of the store all local objects say that they are local.
    written_upto: u64,
}

/// A group and a version of definitions.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Needed {
    group: String,
    version: String,
}

impl Needed {
    fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

impl Known {
    /// Makes and removes the objects of definitions. What goes wrong is tried again with the next
    /// change.
    pub(super) async fn settle(&mut self, server: &Arc<ApiServer>) {
        let wanted = self.wanted(server);
        let mut objects = Vec::new();
        for (name, Needed { group, version }) in &wanted {
            if server.store.find(STORAGE, "", name).is_none()
                && let Ok(object) = made(server, group, version, CUSTOM, ALWAYS)
            {
                objects.push((STORAGE, object));
            }
        }
        if let Err(status) = handlers::bootstrap::seed(server, objects).await {
            tracing::warn!(%status, "APIServices of definitions could not be made");
        }
        for stored in server.store.list(STORAGE, None).iter() {
            // The name of an APIService is its version and group.
            if stored.label(MANAGED) == Some(ALWAYS) && !wanted.contains_key(&*stored.key.name) {
                available::own_request(server, Method::DELETE, &stored.key.name, "", &Value::Null)
                    .await;
            }
        }
    }

    /// The group-versions of all definitions, by the names of their objects.
    fn wanted(&mut self, server: &ApiServer) -> BTreeMap<String, Needed> {
        let list = server.store.list(handlers::definitions::STORAGE, None);
        let mut before = std::mem::take(&mut self.definitions);
        let mut wanted = BTreeMap::new();
        for stored in list.iter() {
            let name = &stored.key.name;
            let known = before.remove(name).filter(|(revision, _)| *revision == stored.revision);
            let (_, needed) = self
                .definitions
                .entry(name.clone())
                .or_insert(known.unwrap_or_else(|| (stored.revision, needed(&stored.bytes()))));
            wanted.extend(needed.iter().map(|one| (one.name(), one.clone())));
        }
        wanted
    }

    /// Writes the condition of what has become local.
    pub(super) async fn write_conditions(&mut self, server: &Arc<ApiServer>) {
        let upto = server.store.revision();
        let mut all = true;
        for stored in server.store.list(STORAGE, None).iter() {
            if stored.revision <= self.written_upto || has_service(&stored.bytes()) {
                continue;
            }
            let object = stored.object();
            let is_local = object.get(&["spec", "service"]).is_none_or(Value::is_null);
            let is_written =
                condition(&object).is_some_and(|condition| condition["reason"] == "Local");
            if is_local && !is_written {
                all = false;
                let local = mainstay_validation::local_condition(&server.clock.now_rfc3339());
                available::write(server, object, local).await;
            }
        }
        // What was written is looked at once more: a write may have failed.
        if all {
            self.written_upto = upto;
        }
    }
}

/// The group-versions that a stored definition serves.
fn needed(bytes: &[u8]) -> Vec<Needed> {
    // What was stored was validated; what cannot be read serves nothing.
    let Ok(Definition { spec }) = serde_json::from_slice(bytes) else { return Vec::new() };
    let served = spec.versions.into_iter().filter(|version| {
        version.served || mainstay_fault::is_on("apiservices-of-dropped-versions-stay")
    });
    served.map(|version| Needed { group: spec.group.clone(), version: version.name }).collect()
}
