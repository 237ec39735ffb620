//! Local `APIService` objects: those of the groups that this server serves itself. The built-in
//! ones are created at the first start; those of CRDs are created and deleted with their CRDs.

use super::available;
use super::priority::{CRD_PRIORITIES, priorities};
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

/// The label of objects that this server manages, and its values.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const ON_START: &str = "onstart";
const ALWAYS: &str = "true";
/// Creates the missing objects of the built-in groups.
pub(crate) async fn seed(server: &Arc<ApiServer>) -> Result<(), Status> {
    let versions: BTreeSet<(&str, &str)> = builtin::kinds()
        .iter()
        .map(|kind| (kind.group, kind.version))
        // The aggregator registers no `APIService` for its own group.
        .filter(|(group, _)| *group != "apiregistration.k8s.io")
        .collect();
    let mut objects = Vec::new();
    for (group, version) in versions {
        if server.store.find(STORAGE, "", &format!("{version}.{group}")).is_none() {
            let priorities = priorities(group, version);
            objects.push((STORAGE, complete_object(server, group, version, priorities, ON_START)?));
        }
    }
    handlers::bootstrap::create_missing(server, objects).await
}

/// An `APIService` as stored, with its managed fields and status.
fn complete_object(
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
    let labels = json!({"f:labels": {".": {}, format!("f:{AUTOMANAGED}"): {}}});
    let value = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {
            "name": format!("{version}.{group}"), "labels": {AUTOMANAGED: managed},
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

/// The fields of a CRD that this module reads; schemas are large, and skipped.
#[derive(Deserialize)]
struct Crd {
    spec: CrdSpec,
}

#[derive(Deserialize)]
struct CrdSpec {
    group: String,
    versions: Vec<CrdVersion>,
}

#[derive(Deserialize)]
struct CrdVersion {
    name: String,
    served: bool,
}

/// The last observed CRDs and `APIService` objects, so that a change costs only the decoding of
/// what changed.
#[derive(Default)]
pub(super) struct LocalServices {
    /// For each CRD, the observed revision and the group-versions that it serves.
    crds: HashMap<Arc<str>, (u64, Vec<ServedVersion>)>,
    /// The store revision up to which all local objects have the condition `Local`.
    written_upto: u64,
}

/// A group and a version that a CRD serves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ServedVersion {
    group: String,
    version: String,
}

impl ServedVersion {
    fn name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }
}

impl LocalServices {
    /// Creates and deletes the objects of CRDs. A failure is retried at the next change.
    pub(super) async fn sync(&mut self, server: &Arc<ApiServer>) {
        let required = self.required(server);
        let mut objects = Vec::new();
        for (name, ServedVersion { group, version }) in &required {
            if server.store.find(STORAGE, "", name).is_none()
                && let Ok(object) = complete_object(server, group, version, CRD_PRIORITIES, ALWAYS)
            {
                objects.push((STORAGE, object));
            }
        }
        if let Err(status) = handlers::bootstrap::create_missing(server, objects).await {
            tracing::warn!(%status, "cannot create the APIServices of CRDs");
        }
        for stored in server.store.list(STORAGE, None).iter() {
            // The name of an APIService is its version and group.
            if stored.label(AUTOMANAGED) == Some(ALWAYS)
                && !required.contains_key(&*stored.key.name)
            {
                available::own_request(server, Method::DELETE, &stored.key.name, "", &Value::Null)
                    .await;
            }
        }
    }

    /// The group-versions of all CRDs, by the names of their objects.
    fn required(&mut self, server: &ApiServer) -> BTreeMap<String, ServedVersion> {
        let list = server.store.list(handlers::crds::STORAGE, None);
        let mut previous = std::mem::take(&mut self.crds);
        let mut required = BTreeMap::new();
        for stored in list.iter() {
            let name = &stored.key.name;
            let cached = previous.remove(name).filter(|(revision, _)| *revision == stored.revision);
            let (_, served_versions) = self.crds.entry(name.clone()).or_insert(
                cached.unwrap_or_else(|| (stored.revision, served_versions(&stored.bytes()))),
            );
            required
                .extend(served_versions.iter().map(|version| (version.name(), version.clone())));
        }
        required
    }

    /// Writes the condition of new local objects.
    pub(super) async fn write_conditions(&mut self, server: &Arc<ApiServer>) {
        let upto = server.store.revision();
        let mut all_written = true;
        for stored in server.store.list(STORAGE, None).iter() {
            if stored.revision <= self.written_upto || has_service(&stored.bytes()) {
                continue;
            }
            let object = stored.object();
            let is_local = object.get(&["spec", "service"]).is_none_or(Value::is_null);
            let is_written =
                condition(&object).is_some_and(|condition| condition["reason"] == "Local");
            if is_local && !is_written {
                all_written = false;
                let local = mainstay_validation::local_condition(&server.clock.now_rfc3339());
                available::write_condition(server, object, local).await;
            }
        }
        // A write may have failed, so these objects are checked once more.
        if all_written {
            self.written_upto = upto;
        }
    }
}

/// The group-versions that a stored CRD serves.
fn served_versions(bytes: &[u8]) -> Vec<ServedVersion> {
    // Stored CRDs are validated; an unreadable one serves nothing.
    let Ok(Crd { spec }) = serde_json::from_slice(bytes) else { return Vec::new() };
    let served = spec.versions.into_iter().filter(|version| {
        version.served || mainstay_fault::is_on("apiservices-of-dropped-versions-stay")
    });
    served
        .map(|version| ServedVersion { group: spec.group.clone(), version: version.name })
        .collect()
}
