//! Custom resource definitions: made, waited for, and changed only when nothing is lost.

use super::decide::StepError;
use super::execute::{Runner, api_error, manifest};
use crate::facts;
use mainstay_api::{Step, StepStatus, names, resources};
use mainstay_client::ListParams;
use mainstay_object::{FieldPath, NamespacedName, Object, Resource, Scope, fnv, known};
use mainstay_schema::structural::Schema;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const CRD: &Resource = &known::CUSTOM_RESOURCE_DEFINITION;

/// Runs the step of a definition from the state that it is in.
pub(super) async fn run(runner: &Runner<'_>, step: &Step) -> Result<StepStatus, StepError> {
    let name = &step.resource.name;
    match step.status {
        StepStatus::WaitingForApi => {
            let key = NamespacedName::cluster(name.as_str());
            Ok(match runner.context.caches.crds.get(&key) {
                Some(it) if it.established => StepStatus::Created,
                Some(_) => StepStatus::WaitingForApi,
                // Deleted meanwhile, or not seen yet: trying to make it again tells.
                None => make(runner, step).await?,
            })
        }
        _ => make(runner, step).await,
    }
}

async fn make(runner: &Runner<'_>, step: &Step) -> Result<StepStatus, StepError> {
    let mut crd = manifest(step)?;
    crd.set_label(names::MANAGED, names::MANAGED_VALUE);
    let shipped = facts::alongside(&crd);
    let kept = existing(runner, &shipped).await?;
    set_alongside(&mut crd, runner.namespace, &step.resolving, &kept);
    let cluster = &runner.context.cluster;
    match cluster.create(CRD, &crd).await {
        Ok(_) => return Ok(StepStatus::WaitingForApi),
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(api_error("", &error)),
    }
    // Somebody may write to it meanwhile; then it is compared again.
    for _ in 0..5 {
        let current = cluster.get(CRD, None, crd.name()).await;
        let current = current.map_err(|error| api_error("", &error))?;
        validate_existing(runner, &current, &crd).await?;
        if let Some(lost) = lost_version(&current, &crd) {
            return Err(StepError::new(format!(
                "risk of data loss updating \"{}\": new CRD removes version {lost} that is listed as a stored version on the existing CRD",
                crd.name()
            )));
        }
        let mut kept = existing(runner, &facts::alongside(&current)).await?;
        kept.extend(existing(runner, &shipped).await?);
        match cluster.update(CRD, &merged(runner, step, &current, &crd, &kept)).await {
            Ok(_) => return Ok(StepStatus::Present),
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                return Err(api_error(&format!("error updating CRD \"{}\"", crd.name()), &error));
            }
        }
    }
    Err(StepError::new(format!("error updating CRD \"{}\": it keeps changing", crd.name())))
}

/// The new definition with the labels and annotations that others gave the present one.
fn merged(
    runner: &Runner<'_>,
    step: &Step,
    current: &Object,
    crd: &Object,
    kept: &[NamespacedName],
) -> Object {
    let mut new = crd.clone();
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let mut all = current.get(&path).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        for (key, value) in crd.get(&path).and_then(Value::as_object).into_iter().flatten() {
            all[key.as_str()] = value.clone();
        }
        new.set(&path, all);
    }
    set_alongside(&mut new, runner.namespace, &step.resolving, kept);
    new.set(&["metadata", "resourceVersion"], current.resource_version().into());
    if let Some(status) = current.get(&["status"]) {
        new.set(&["status"], status.clone());
    }
    new
}

/// Of the versions that a definition names, those that are still there and are no copies.
///
/// A version exists before a definition names it, yet the cache may lag; so the API is asked about
/// those that the cache does not know.
async fn existing(
    runner: &Runner<'_>,
    named: &[NamespacedName],
) -> Result<Vec<NamespacedName>, StepError> {
    let mut kept = Vec::new();
    for it in named {
        let is_there = if let Some(csv) = runner.context.caches.csvs.get(it) {
            !csv.is_copy()
        } else {
            let csv = &resources::CLUSTER_SERVICE_VERSION;
            let found = runner.context.cluster.find(csv, it.namespace(), &it.name).await;
            let found = found.map_err(|error| api_error("", &error))?;
            found.is_some_and(|it| it.label(names::COPIED_FROM).is_none())
        };
        if is_there {
            kept.push(it.clone());
        }
    }
    Ok(kept)
}

/// Writes with which versions a definition was installed.
fn set_alongside(crd: &mut Object, namespace: &str, name: &str, others: &[NamespacedName]) {
    let stale: Vec<String> = crd
        .annotations()
        .map(|(key, _)| key.to_owned())
        .filter(|key| key.starts_with(names::INSTALLED_ALONGSIDE_PREFIX))
        .collect();
    for key in stale {
        crd.remove(&["metadata", "annotations", &key]);
    }
    let own = NamespacedName::new(namespace, name);
    for it in others.iter().chain(std::iter::once(&own)) {
        crd.set_annotation(&alongside_key(it), it.to_string());
    }
}

/// The annotation by which a definition names a version.
pub(crate) fn alongside_key(version: &NamespacedName) -> String {
    let hash = fnv::fnv64a(version.to_string().as_bytes());
    format!("{}{hash:x}", names::INSTALLED_ALONGSIDE_PREFIX)
}

/// A version in which objects are stored and that the new definition does not have.
fn lost_version(current: &Object, new: &Object) -> Option<String> {
    let kept: BTreeSet<&str> =
        new.array(&["spec", "versions"]).iter().filter_map(|it| it.get("name")?.as_str()).collect();
    current
        .array(&["status", "storedVersions"])
        .iter()
        .filter_map(Value::as_str)
        .find(|it| !kept.contains(it))
        .map(str::to_owned)
}

/// Existing objects must be valid in every version that is served before and after.
async fn validate_existing(
    runner: &Runner<'_>,
    current: &Object,
    new: &Object,
) -> Result<(), StepError> {
    let served = |crd: &Object, name: &str| {
        crd.array(&["spec", "versions"]).iter().any(|it| {
            it.get("name").and_then(Value::as_str) == Some(name)
                && it.get("served") == Some(&Value::Bool(true))
        })
    };
    let text = |path: &[&str]| new.str(path).unwrap_or_default().to_owned();
    let (group, kind, plural) = (
        text(&["spec", "group"]),
        text(&["spec", "names", "kind"]),
        text(&["spec", "names", "plural"]),
    );
    for version in new.array(&["spec", "versions"]) {
        let Some(name) = version.get("name").and_then(Value::as_str) else { continue };
        if !served(current, name) || !served(new, name) {
            continue;
        }
        let Some(schema) = version.get("schema").and_then(|it| it.get("openAPIV3Schema")) else {
            continue;
        };
        // A schema that cannot be read is refused by the API with better words.
        let Ok(schema) = Schema::parse(schema) else { continue };
        let scope =
            if text(&["spec", "scope"]) == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
        let resource = Resource::new(&*group, name, &*kind, &*plural, scope);
        let list = runner.context.cluster.list_pages(&resource, None, &ListParams::default()).await;
        let list = match list {
            Ok(list) => list,
            // Not established yet: there is nothing that could be invalid.
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(api_error("", &error)),
        };
        for object in list.items {
            let errors = schema.validate(&object.to_value(), &FieldPath::new("[]"));
            if errors.is_empty() {
                continue;
            }
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let all = if all.len() == 1 { all.concat() } else { format!("[{}]", all.join(", ")) };
            return Err(StepError::new(format!(
                "error validating existing CRs against new CRD's schema for \"{}\": error validating {group}/{name}, Kind={kind} \"{}\": updated validation is too restrictive: {all}",
                new.name(),
                object.key()
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn the_recorded_annotation_comes_out_the_same() {
        let mut crd = object(json!({"metadata": {"name": "anvils.c019.example.com"}}));
        set_alongside(&mut crd, "c019", "anvil-c019.v1.0.0", &[]);
        assert_eq!(
            crd.annotation("operatorframework.io/installed-alongside-f6a12c803db6a6c8"),
            Some("c019/anvil-c019.v1.0.0")
        );
        let before = crd.clone();
        set_alongside(&mut crd, "c019", "anvil-c019.v2.0.0", &facts::alongside(&before));
        assert_eq!(crd.annotations().count(), 2);
        set_alongside(&mut crd, "c019", "anvil-c019.v3.0.0", &[]);
        assert_eq!(crd.annotations().count(), 1);
    }

    #[test]
    fn a_version_in_which_objects_are_stored_must_stay() {
        let current = object(json!({"status": {"storedVersions": ["v1", "v2"]}}));
        let with = |names: &[&str]| {
            let versions: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            object(json!({"spec": {"versions": versions}}))
        };
        assert_eq!(lost_version(&current, &with(&["v1", "v2", "v3"])), None);
        assert_eq!(lost_version(&current, &with(&["v2", "v3"])).as_deref(), Some("v1"));
    }
}
