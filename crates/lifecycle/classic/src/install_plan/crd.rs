//! CustomResourceDefinition steps: create, await and update CustomResourceDefinitions without data
//! loss.

use super::decide::StepError;
use super::execute::{CRD_VALIDATION, StepRunner, api_error, manifest, set_kind};
use crate::csv::serving::CERTIFICATE_SUFFIX;
use crate::csv::serving::observed::Conversion;
use crate::fields;
use mainstay_api::{Step, StepStatus, names, resources};
use mainstay_client::ObjectList;
use mainstay_object::{FieldPath, NamespacedName, Object, Resource, Scope, builtin, fnv};
use mainstay_schema::structural::Schema;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// How many invalid objects a report names.
const MAX_REPORTED: usize = 20;
/// How many objects one list request reads.
const PAGE_SIZE: u32 = 500;

const CRD: &Resource = &builtin::CUSTOM_RESOURCE_DEFINITION;

/// Runs the step of a CustomResourceDefinition, depending on its status.
pub(super) async fn run(runner: &StepRunner<'_>, step: &Step) -> Result<StepStatus, StepError> {
    let name = &step.resource.name;
    match step.status {
        StepStatus::WaitingForApi => {
            let key = NamespacedName::cluster(name.as_str());
            Ok(match runner.context.caches.crds.get(&key) {
                Some(crd) if crd.established => StepStatus::Created,
                Some(_) => StepStatus::WaitingForApi,
                // Deleted, or not in the cache yet; a create request shows which.
                None => create_or_update(runner, step).await?,
            })
        }
        _ => create_or_update(runner, step).await,
    }
}

async fn create_or_update(runner: &StepRunner<'_>, step: &Step) -> Result<StepStatus, StepError> {
    let mut crd = manifest(step)?;
    set_kind(&mut crd, CRD);
    crd.set_label(names::MANAGED, names::MANAGED_VALUE);
    runner.label_component(step, &mut crd);
    let shipped = fields::installed_alongside(&crd);
    let csvs = existing_csvs(runner, &shipped).await?;
    set_alongside(&mut crd, runner.namespace, &step.resolving, &csvs);
    // CustomResourceDefinitions concern the whole cluster, so they are written with our own
    // permissions and not with those of a ServiceAccount.
    let cluster = &runner.own;
    match cluster.create(CRD, &crd).await {
        Ok(_) => return Ok(StepStatus::WaitingForApi),
        Err(error) if error.is_already_exists() => {}
        Err(error) => return Err(api_error("", &error)),
    }
    // After a conflict the CustomResourceDefinition is read and compared again.
    for _ in 0..5 {
        let current = cluster.get(CRD, None, crd.name()).await;
        let current = current.map_err(|error| api_error("", &error))?;
        check_existing_objects(runner, &current, &crd).await?;
        if let Some(lost) = removed_stored_version(&current, &crd) {
            return Err(StepError::new(format!(
                "risk of data loss updating \"{}\": new CRD removes version {lost} that is listed as a stored version on the existing CRD",
                crd.name()
            )));
        }
        let mut csvs = existing_csvs(runner, &fields::installed_alongside(&current)).await?;
        if let Some((version, user)) =
            removed_served_version(&current, &crd, runner.namespace, &csvs)
        {
            return Err(StepError::new(format!(
                "not updating CRD \"{}\": the new CRD does not have version {version}, which is served and which {user} was installed with; upgrade or remove that first",
                crd.name()
            )));
        }
        csvs.extend(existing_csvs(runner, &shipped).await?);
        match cluster.update(CRD, &merged(runner, step, &current, &crd, &csvs)).await {
            Ok(_) => return Ok(StepStatus::Present),
            Err(error) if error.is_conflict() => {}
            Err(error) => {
                return Err(api_error(&format!("error updating CRD \"{}\"", crd.name()), &error));
            }
        }
    }
    Err(StepError::new(format!("error updating CRD \"{}\": it keeps changing", crd.name())))
}

/// The new CustomResourceDefinition with the labels and annotations of other clients on the current
/// one.
fn merged(
    runner: &StepRunner<'_>,
    step: &Step,
    current: &Object,
    crd: &Object,
    csvs: &[NamespacedName],
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
    set_alongside(&mut new, runner.namespace, &step.resolving, csvs);
    if is_converted(runner, current, crd) {
        let conversion = current.get(&["spec", "conversion"]).cloned().unwrap_or_default();
        new.set(&["spec", "conversion"], conversion);
    }
    new.set(&["metadata", "resourceVersion"], current.resource_version().into());
    if let Some(status) = current.get(&["status"]) {
        new.set(&["status"], status.clone());
    }
    new
}

/// Whether a CSV of this namespace converts the objects by an installed webhook, and the new
/// CustomResourceDefinition names no other one. The conversion then stays for the next CSV. Without
/// it, clients would read objects in their stored version meanwhile.
fn is_converted(runner: &StepRunner<'_>, current: &Object, new: &Object) -> bool {
    let Some(now) = Conversion::of(current) else { return false };
    let (namespace, service) = &now.service;
    let secret = NamespacedName::new(namespace.as_str(), format!("{service}{CERTIFICATE_SUFFIX}"));
    let trusted = runner.context.caches.certificates.get(&secret);
    namespace == runner.namespace
        && trusted.is_some_and(|secret| now.ca_hashes.contains(&secret.ca_hash))
        && Conversion::of(new).is_none_or(|conversion| conversion.service == now.service)
}

/// The CSVs among `named` that exist and are not copied ones.
///
/// A CSV exists before an annotation names it, yet the cache may lag. So the API is queried for
/// those that are not in the cache.
async fn existing_csvs(
    runner: &StepRunner<'_>,
    named: &[NamespacedName],
) -> Result<Vec<NamespacedName>, StepError> {
    let mut existing = Vec::new();
    for owner in named {
        let is_there = if let Some(csv) = runner.context.caches.csvs.get(owner) {
            !csv.is_copy()
        } else {
            let csv = &resources::CLUSTER_SERVICE_VERSION;
            let found = runner.own.find(csv, owner.namespace(), &owner.name).await;
            let found = found.map_err(|error| api_error("", &error))?;
            found.is_some_and(|object| object.label(names::COPIED_FROM).is_none())
        };
        if is_there {
            existing.push(owner.clone());
        }
    }
    Ok(existing)
}

/// Writes the annotations with the CSVs that a CustomResourceDefinition was installed alongside.
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
    for owner in others.iter().chain(std::iter::once(&own)) {
        crd.set_annotation(&alongside_key(owner), owner.to_string());
    }
}

/// The annotation key for a CSV that a CustomResourceDefinition was installed alongside.
pub(crate) fn alongside_key(version: &NamespacedName) -> String {
    let hash = fnv::fnv64a(version.to_string().as_bytes());
    format!("{}{hash:x}", names::INSTALLED_ALONGSIDE_PREFIX)
}

/// A stored version that the new CustomResourceDefinition does not have.
fn removed_stored_version(current: &Object, new: &Object) -> Option<String> {
    let remaining: BTreeSet<&str> = new
        .array(&["spec", "versions"])
        .iter()
        .filter_map(|version| version.get("name")?.as_str())
        .collect();
    current
        .array(&["status", "storedVersions"])
        .iter()
        .filter_map(Value::as_str)
        .find(|version| {
            !remaining.contains(version) && !mainstay_fault::is_on("stored-versions-are-taken-away")
        })
        .map(str::to_owned)
}

/// A served version that the new CustomResourceDefinition does not have, with a CSV of another
/// namespace that may need it. Within a namespace the CSVs with this CustomResourceDefinition
/// replace each other.
fn removed_served_version<'a>(
    current: &Object,
    new: &Object,
    namespace: &str,
    users: &'a [NamespacedName],
) -> Option<(String, &'a NamespacedName)> {
    let user = users.iter().find(|user| *user.namespace != *namespace)?;
    let names = |crd: &Object, wanted: fn(&Value) -> bool| -> BTreeSet<String> {
        let versions = crd.array(&["spec", "versions"]).iter().filter(|version| wanted(version));
        versions.filter_map(|version| Some(version.get("name")?.as_str()?.to_owned())).collect()
    };
    let remaining = names(new, |_| true);
    let gone =
        names(current, is_served).into_iter().find(|version| !remaining.contains(version))?;
    Some((gone, user))
}

fn is_served(version: &Value) -> bool {
    version.get("served") == Some(&Value::Bool(true))
}

/// Checks whether existing objects are valid with a new CustomResourceDefinition. With a conversion
/// webhook, invalid objects only cause an Event, as the webhook is expected to convert them.
async fn check_existing_objects(
    runner: &StepRunner<'_>,
    current: &Object,
    new: &Object,
) -> Result<(), StepError> {
    let invalid = validate_existing(runner, current, new).await?;
    let Some(first) = invalid.first() else { return Ok(()) };
    if new.str(&["spec", "conversion", "strategy"]) == Some("Webhook") {
        runner.add_event(
            CRD_VALIDATION,
            format!(
                "existing objects do not fit the new schema of CRD \"{}\", but it has a conversion webhook, which is trusted to make them fit once it runs: {}",
                new.name(),
                first.message
            ),
        );
        return Ok(());
    }
    let mut error = StepError::new(format!(
        "error validating existing CRs against new CRD's schema for \"{}\": {}",
        new.name(),
        first.message
    ));
    error.report = Some(report(new.name(), &invalid));
    Err(error)
}

/// An existing object that is invalid with the new CustomResourceDefinition.
struct InvalidObject {
    /// Version and object.
    object: String,
    /// What is invalid.
    problem: String,
    /// Upstream's message.
    message: String,
}

/// The report of all invalid objects.
fn report(crd: &str, invalid: &[InvalidObject]) -> String {
    let mut text = format!(
        "{} of the existing objects do not fit the new schema of CRD \"{crd}\"; change or delete them, then delete this plan",
        invalid.len()
    );
    for finding in invalid.iter().take(MAX_REPORTED) {
        // Writing into a String does not fail.
        let _ = write!(text, "; {}: {}", finding.object, finding.problem);
    }
    if invalid.len() > MAX_REPORTED {
        let _ = write!(text, "; and {} more", invalid.len() - MAX_REPORTED);
    }
    text
}

/// Finds the existing objects that are invalid in a version which is served before and after the
/// update. Reads them page by page.
///
/// A version with an unchanged schema is skipped. So a repeated step does not validate objects in a
/// version that the first run began to serve.
async fn validate_existing(
    runner: &StepRunner<'_>,
    current: &Object,
    new: &Object,
) -> Result<Vec<InvalidObject>, StepError> {
    let served = |crd: &Object, name: &str| {
        crd.array(&["spec", "versions"]).iter().any(|version| {
            version.get("name").and_then(Value::as_str) == Some(name) && is_served(version)
        })
    };
    let text = |path: &[&str]| new.str(path).unwrap_or_default().to_owned();
    let (group, kind, plural) = (
        text(&["spec", "group"]),
        text(&["spec", "names", "kind"]),
        text(&["spec", "names", "plural"]),
    );
    let mut invalid = Vec::new();
    for version in new.array(&["spec", "versions"]) {
        let Some(name) = version.get("name").and_then(Value::as_str) else { continue };
        if !served(current, name) || !served(new, name) {
            continue;
        }
        let Some(schema) = version.get("schema").and_then(|schema| schema.get("openAPIV3Schema"))
        else {
            continue;
        };
        let before = current.array(&["spec", "versions"]).iter();
        let mut before =
            before.filter(|version| version.get("name").and_then(Value::as_str) == Some(name));
        if before.any(|version| version.pointer("/schema/openAPIV3Schema") == Some(schema)) {
            continue;
        }
        // The API refuses an invalid schema with a better message.
        let Ok(schema) = Schema::parse(schema) else { continue };
        let scope =
            if text(&["spec", "scope"]) == "Cluster" { Scope::Cluster } else { Scope::Namespaced };
        let resource = Resource::new(&*group, name, &*kind, &*plural, scope);
        let validate = |object: &Object| {
            let errors = schema.validate(&object.to_value(), &FieldPath::new("[]"));
            let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let problem = match all.as_slice() {
                [] => return None,
                [one] => one.clone(),
                many => format!("[{}]", many.join(", ")),
            };
            let object = format!("{group}/{name}, Kind={kind} \"{}\"", object.key());
            let message = format!(
                "error validating {object}: updated validation is too restrictive: {problem}"
            );
            Some(InvalidObject { object, problem, message })
        };
        invalid.extend(validate_pages(runner, &resource, validate).await?);
    }
    Ok(invalid)
}

/// The objects of a kind that `validate` finds invalid.
async fn validate_pages(
    runner: &StepRunner<'_>,
    resource: &Resource,
    validate: impl Fn(&Object) -> Option<InvalidObject>,
) -> Result<Vec<InvalidObject>, StepError> {
    let mut found = Vec::new();
    let mut params = ObjectList { limit: PAGE_SIZE, ..ObjectList::default() };
    loop {
        let page = match runner.own.list(resource, None, &params).await {
            Ok(page) => page,
            // Not established yet, so there are no objects.
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            // The list expired during the paging, so it starts again.
            Err(error) if error.is_expired() && !params.continue_token.is_empty() => {
                found.clear();
                params.continue_token.clear();
                continue;
            }
            Err(error) => return Err(api_error("", &error)),
        };
        found.extend(page.items.iter().filter_map(&validate));
        if page.continue_token.is_empty() {
            return Ok(found);
        }
        params.continue_token = page.continue_token;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn the_installed_alongside_annotation_matches_the_recorded_one() {
        let mut crd = object(json!({"metadata": {"name": "anvils.c019.example.com"}}));
        set_alongside(&mut crd, "c019", "anvil-c019.v1.0.0", &[]);
        assert_eq!(
            crd.annotation("operatorframework.io/installed-alongside-f6a12c803db6a6c8"),
            Some("c019/anvil-c019.v1.0.0")
        );
        let before = crd.clone();
        set_alongside(&mut crd, "c019", "anvil-c019.v2.0.0", &fields::installed_alongside(&before));
        // shows E069
        assert_eq!(crd.annotations().count(), 2);
        set_alongside(&mut crd, "c019", "anvil-c019.v3.0.0", &[]);
        assert_eq!(crd.annotations().count(), 1);
    }

    #[test]
    fn a_stored_version_must_stay_in_the_crd() {
        let current = object(json!({"status": {"storedVersions": ["v1", "v2"]}}));
        let with = |names: &[&str]| {
            let versions: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            object(json!({"spec": {"versions": versions}}))
        };
        // shows E060
        assert_eq!(removed_stored_version(&current, &with(&["v1", "v2", "v3"])), None);
        // shows CRU-05 E060
        assert_eq!(removed_stored_version(&current, &with(&["v2", "v3"])).as_deref(), Some("v1"));
    }

    #[test]
    fn a_served_version_stays_while_a_csv_of_another_namespace_was_installed_with_it() {
        let current = object(json!({"spec": {"versions": [
            {"name": "v1", "served": true}, {"name": "v0", "served": false},
        ]}}));
        let new = |name: &str| object(json!({"spec": {"versions": [{"name": name}]}}));
        let own = NamespacedName::new("ns", "a.v1");
        let other = NamespacedName::new("other", "a.v1");
        for (version, users, refused) in [
            ("v2", vec![own.clone()], false),
            ("v2", vec![own.clone(), other.clone()], true),
            ("v1", vec![own, other], false),
        ] {
            let found = removed_served_version(&current, &new(version), "ns", &users);
            // shows CRU-02 CRU-04
            assert_eq!(found.is_some(), refused, "{version} {users:?}");
        }
    }

    #[test]
    fn a_report_names_each_object_up_to_a_limit() {
        let invalid: Vec<InvalidObject> = (0..MAX_REPORTED + 3)
            .map(|at| InvalidObject {
                object: format!("o{at}"),
                problem: "no".into(),
                message: String::new(),
            })
            .collect();
        let text = report("as.example.com", &invalid);
        assert!(text.starts_with("23 of the existing objects do not fit"), "{text}");
        assert!(text.ends_with("; o19: no; and 3 more"), "{text}");
    }
}
