//! Step execution: runs the steps of an InstallPlan, each of which creates or updates one object.
//!
//! Every step can run again with the same result. So an interrupted InstallPlan continues with its
//! first unfinished step.

use super::crd;
use super::decide::StepError;
use crate::bundle_config_map::{self, MissingManifest};
use crate::context::Context;
use crate::fields;
use crate::permissions;
use crate::steps::BUNDLE_SECRET;
use mainstay_api::{
    InstallPlan, ObjectReference, Step, StepResource, StepStatus, names, resources,
};
use mainstay_client::Cluster;
use mainstay_object::{Gvk, NamespacedName, Object, Reason, Resource, Scope, builtin};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The kinds beyond the built-in ones that a bundle may contain.
const ALLOWED_KINDS: [&str; 11] = [
    "PrometheusRule",
    "ServiceMonitor",
    "PodDisruptionBudget",
    "PriorityClass",
    "VerticalPodAutoscaler",
    "ConsoleYAMLSample",
    "ConsoleQuickStart",
    "ConsoleCLIDownload",
    "ConsoleLink",
    "ConsolePlugin",
    "NetworkPolicy",
];

/// How long a run waits for CustomResourceDefinitions before the status says so.
const CRD_WAIT: Duration = Duration::from_secs(1);

/// Reason of Events about objects that are invalid with a new CustomResourceDefinition.
pub(super) const CRD_VALIDATION: &str = "CRDValidation";
/// Reason of Events with warnings of the API.
const APPLIED_WITH_WARNINGS: &str = "AppliedWithWarnings";

/// Runs the steps of one InstallPlan.
pub(crate) struct StepRunner<'a> {
    pub(crate) context: &'a Context,
    /// The namespace of the InstallPlan.
    pub(crate) namespace: &'a str,
    /// The name of the InstallPlan.
    pub(crate) plan: &'a str,
    /// The CSVs in the spec of the InstallPlan.
    names: BTreeSet<&'a str>,
    /// The cluster client with our own permissions, for CustomResourceDefinitions.
    pub(super) own: Cluster,
    /// The cluster client with the permissions for all other objects.
    scoped: Cluster,
    /// The component label for the objects of each CSV, by CSV.
    pub(super) components: OnceLock<BTreeMap<String, String>>,
    /// The warnings of the API since the current step began.
    warnings: Arc<Mutex<Vec<String>>>,
    /// Events to publish.
    events: Mutex<Vec<PlanEvent>>,
}

/// An event about an InstallPlan.
pub(crate) struct PlanEvent {
    pub(crate) reason: &'static str,
    /// The field that it is about, such as `status.plan[0]`; empty for the whole InstallPlan.
    pub(crate) field: String,
    pub(crate) message: String,
}

/// The error of an API request, with `what` as its prefix unless that is empty.
pub(super) fn api_error(what: &str, error: &mainstay_client::Error) -> StepError {
    let message = error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
    StepError {
        message: if what.is_empty() { message } else { format!("{what}: {message}") },
        forbidden: error.is_forbidden(),
        away: error.is_passing(),
        report: None,
    }
}

impl From<MissingManifest> for StepError {
    fn from(missing: MissingManifest) -> Self {
        match &missing.source {
            Some(error) => api_error(&missing.message, error),
            None => Self::new(missing.message),
        }
    }
}

fn no_such_api(step: &Step) -> StepError {
    let resource = &step.resource;
    let api = if resource.group.is_empty() {
        resource.version.clone()
    } else {
        format!("{}/{}", resource.group, resource.version)
    };
    StepError::new(format!(
        "api-server resource not found installing {kind} {}: GroupVersionKind {api}, Kind={kind} not found on the cluster. This API may have been deprecated and removed, see https://kubernetes.io/docs/reference/using-api/deprecation-guide/ for more information.",
        resource.name,
        kind = resource.kind,
    ))
}

/// The kind of a step. Users put the group into `version`, as in manifests, or leave it out; then
/// the manifest has it.
fn gvk(step: &Step) -> Result<Gvk, StepError> {
    let StepResource { group, version, kind, .. } = &step.resource;
    let (group, version) = match version.split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None if group.is_empty() => {
            let written = manifest(step)?.gvk();
            let same = written.kind == *kind && (version.is_empty() || written.version == *version);
            let group = if same { written.group } else { String::new() };
            (group, if version.is_empty() { written.version } else { version.clone() })
        }
        None => (group.clone(), version.clone()),
    };
    Ok(Gvk { group, version, kind: kind.clone() })
}

/// Sets the kind of an object to that of its step. Manifests of older packages lack the group, and
/// generated manifests lack the kind as well.
pub(super) fn set_kind(object: &mut Object, resource: &Resource) {
    object.set(&["apiVersion"], resource.api_version().into());
    object.set(&["kind"], resource.kind.as_ref().into());
}

/// The object of a step.
pub(super) fn manifest(step: &Step) -> Result<Object, StepError> {
    serde_json::from_str(&step.resource.manifest).map_err(|error| {
        StepError::new(format!("error parsing step manifest: {}: {error}", step.resource.name))
    })
}

impl<'a> StepRunner<'a> {
    /// A runner for an InstallPlan, with the permissions of `account` if there is one.
    pub(crate) fn new(
        context: &'a Context,
        plan: &'a InstallPlan,
        account: Option<&ObjectReference>,
    ) -> mainstay_client::Result<Self> {
        let warnings = Arc::<Mutex<Vec<String>>>::default();
        let heard = Arc::clone(&warnings);
        let own = context.cluster.clone().warning(move |text| heard.lock().push(text.to_owned()));
        let scoped = match account {
            Some(account) => own.clone().impersonating(&account.namespace, &account.name)?,
            None => own.clone(),
        };
        let names = plan.spec.cluster_service_version_names.iter().map(String::as_str).collect();
        let namespace = &plan.metadata.namespace;
        let (events, components) = (Mutex::default(), OnceLock::new());
        let plan = &plan.metadata.name;
        Ok(Self { context, namespace, plan, names, own, scoped, components, warnings, events })
    }

    /// Takes the Events to publish.
    pub(crate) fn take_events(&self) -> Vec<PlanEvent> {
        mem::take(&mut *self.events.lock())
    }

    /// Adds an Event about the whole InstallPlan.
    pub(super) fn add_event(&self, reason: &'static str, message: String) {
        self.events.lock().push(PlanEvent { reason, field: String::new(), message });
    }

    /// Turns the warnings of the API about the step at `at` into an Event, and counts it.
    fn report_warnings(&self, at: usize, step: &Step) {
        let warnings = mem::take(&mut *self.warnings.lock());
        if warnings.is_empty() {
            return;
        }
        let what = if step.resolving.is_empty() {
            "operator installation".to_owned()
        } else {
            format!("installation of operator \"{}\"", step.resolving)
        };
        self.context.metrics.plan_warnings.fetch_add(1, Ordering::Relaxed);
        let message = format!(
            "{} warning(s) generated during {what} ({} \"{}\"): {}",
            warnings.len(),
            step.resource.kind,
            step.resource.name,
            warnings.join(", ")
        );
        let (reason, field) = (APPLIED_WITH_WARNINGS, format!("status.plan[{at}]"));
        self.events.lock().push(PlanEvent { reason, field, message });
    }
}

impl StepRunner<'_> {
    /// Runs every step up to the first that fails. Returns the status of all steps.
    pub(crate) async fn run(&self, plan: &[Step]) -> (Vec<StepStatus>, Result<(), StepError>) {
        let mut states: Vec<StepStatus> = plan.iter().map(|step| step.status.clone()).collect();
        let plan = match bundle_config_map::with_manifests(&self.own, self.namespace, plan).await {
            Ok(plan) => plan,
            Err(missing) => return (states, Err(missing.into())),
        };
        // The runner runs once, so this is the first value.
        let _ = self.components.set(self.components_of(&plan));
        for (at, step) in plan.iter().enumerate() {
            let outcome = self.step(step).await;
            self.report_warnings(at, step);
            match outcome {
                Ok(state) => states[at] = state,
                Err(error) => {
                    if error.message == INVALID_PLAN {
                        states[at] = StepStatus::UnsupportedResource;
                    }
                    return (states, Err(error));
                }
            }
        }
        self.await_apis(&plan, &mut states).await;
        (states, Ok(()))
    }

    /// Waits briefly for new CustomResourceDefinitions. Most are served at once, which completes
    /// the InstallPlan.
    async fn await_apis(&self, plan: &[Step], states: &mut [StepStatus]) {
        let crds = &self.context.caches.crds;
        let is_served = |name: &str| {
            crds.get(&NamespacedName::cluster(name)).is_some_and(|crd| crd.established)
        };
        let waits = |at: &usize| states[*at] == StepStatus::WaitingForApi;
        let waiting: Vec<usize> = (0..states.len()).filter(waits).collect();
        if waiting.is_empty() {
            return;
        }
        let all = crds.until(|| waiting.iter().all(|at| is_served(&plan[*at].resource.name)));
        // After that, the status says so, and the CustomResourceDefinition triggers a
        // reconciliation.
        let _ = tokio::time::timeout(CRD_WAIT, all).await;
        for at in waiting {
            if is_served(&plan[at].resource.name) {
                states[at] = StepStatus::Created;
            }
        }
    }

    async fn step(&self, step: &Step) -> Result<StepStatus, StepError> {
        match step.status {
            StepStatus::Created | StepStatus::Present => return Ok(step.status.clone()),
            // An unsupported kind fails again with the same message.
            StepStatus::Unknown
            | StepStatus::NotPresent
            | StepStatus::WaitingForApi
            | StepStatus::UnsupportedResource => {}
            _ => return Err(StepError::new(INVALID_PLAN)),
        }
        let name = &step.resource.name;
        match step.resource.kind.as_str() {
            "CustomResourceDefinition" if gvk(step)?.version == "v1" => crd::run(self, step).await,
            "CustomResourceDefinition" => Err(no_such_api(step)),
            "ClusterServiceVersion" => {
                self.refuse_rivals(step)?;
                let mut csv = self.owned(step, manifest(step)?, OwnerTie::None).await?;
                self.set_membership(&mut csv);
                self.create_only(&resources::CLUSTER_SERVICE_VERSION, csv, "csv").await
            }
            "Subscription" => {
                let mut subscription = self.owned(step, manifest(step)?, OwnerTie::None).await?;
                subscription.set_annotation(names::GENERATED_BY, self.plan);
                self.create_only(&resources::SUBSCRIPTION, subscription, "subscription").await
            }
            "ServiceAccount" => {
                let kind = &builtin::SERVICE_ACCOUNT;
                self.create_or_update(step, kind, OwnerTie::Version, "service account: ").await
            }
            "Role" => self.create_or_update(step, &builtin::ROLE, OwnerTie::Version, "role ").await,
            "RoleBinding" => {
                self.create_or_update(
                    step,
                    &builtin::ROLE_BINDING,
                    OwnerTie::Version,
                    "rolebinding ",
                )
                .await
            }
            "ClusterRole" => {
                self.create_or_update(step, &builtin::CLUSTER_ROLE, OwnerTie::Label, "clusterrole ")
                    .await
            }
            "ClusterRoleBinding" => {
                let kind = &builtin::CLUSTER_ROLE_BINDING;
                self.create_or_update(step, kind, OwnerTie::Label, "clusterrolebinding ").await
            }
            "Secret" => self.copy_secret(step).await,
            "Service" => {
                self.create_or_update(step, &builtin::SERVICE, OwnerTie::Version, "service: ").await
            }
            "ConfigMap" => {
                self.create_or_update(step, &builtin::CONFIG_MAP, OwnerTie::Version, "configmap: ")
                    .await
            }
            BUNDLE_SECRET => {
                self.create_or_update(step, &builtin::SECRET, OwnerTie::Version, "secret: ").await
            }
            kind if ALLOWED_KINDS.contains(&kind) => {
                let found = self.own.resource_of(&gvk(step)?).await;
                let resource = found
                    .map_err(|error| api_error("", &error))?
                    .ok_or_else(|| no_such_api(step))?;
                let owner = if resource.scope == Scope::Namespaced {
                    OwnerTie::Version
                } else {
                    OwnerTie::Label
                };
                self.create_or_update(step, &resource, owner, "unstructured object ").await
            }
            _ => {
                tracing::debug!(
                    step = name,
                    "skipped: no InstallPlan creates objects of this kind"
                );
                Err(StepError::new(INVALID_PLAN))
            }
        }
    }

    /// Refuses a CSV that the InstallPlan does not name, so a dependency, if another CSV of the
    /// namespace already owns one of its CustomResourceDefinitions.
    fn refuse_rivals(&self, step: &Step) -> Result<(), StepError> {
        let name = step.resource.name.as_str();
        if self.names.contains(name) {
            return Ok(());
        }
        let csv = manifest(step)?;
        let csvs = self.context.caches.csvs.list(Some(self.namespace));
        if has_rival(&csv, csvs.iter().map(|(key, csv)| (&*key.name, &**csv))) {
            return Err(StepError::new(format!(
                "pre-existing CRD owners found for owned CRD(s) of dependent CSV {name}"
            )));
        }
        Ok(())
    }

    /// Copies a pull secret of the catalog's namespace.
    async fn copy_secret(&self, step: &Step) -> Result<StepStatus, StepError> {
        let StepResource { name, source_namespace, .. } = &step.resource;
        let from = if source_namespace.is_empty() {
            &*self.context.global_namespace
        } else {
            source_namespace
        };
        let secret = self.scoped.get(&builtin::SECRET, Some(from), name).await;
        let secret = secret.map_err(|error| {
            let missing = format!("secret {name} does not exist in namespace {from}");
            api_error(if error.is_not_found() { &missing } else { "" }, &error)
        })?;
        let mut copy = Object::new(&builtin::SECRET.gvk(), name);
        copy.set_label(names::MANAGED, names::MANAGED_VALUE);
        for field in ["data", "type"] {
            if let Some(value) = secret.get(&[field]) {
                copy.set(&[field], value.clone());
            }
        }
        self.write(step, &builtin::SECRET, copy, "secret: ").await
    }

    /// The object with the namespace, labels and owners that every object of an InstallPlan has.
    async fn owned(
        &self,
        step: &Step,
        mut object: Object,
        owner: OwnerTie,
    ) -> Result<Object, StepError> {
        object.remove(&["status"]);
        object.set_label(names::MANAGED, names::MANAGED_VALUE);
        self.label_component(step, &mut object);
        let mut owners = object.array(&["metadata", "ownerReferences"]).to_vec();
        match owner {
            OwnerTie::Version if !step.resolving.is_empty() => {
                let own = |owner: &Value| {
                    owner.get("kind").and_then(Value::as_str) == Some(CSV)
                        && owner.get("name").and_then(Value::as_str) == Some(&step.resolving)
                };
                if !owners.iter().any(own) {
                    owners.push(permissions::csv_owner(&step.resolving, ""));
                }
            }
            OwnerTie::Label if !step.resolving.is_empty() => {
                let kind = &resources::CLUSTER_SERVICE_VERSION.kind;
                let labels = permissions::owner_labels(kind, self.namespace, &step.resolving);
                for (key, value) in labels {
                    object.set(&["metadata", "labels", &key], value);
                }
            }
            _ => {}
        }
        for reference in &mut owners {
            self.set_owner_uid(step, reference).await?;
        }
        if !owners.is_empty() {
            object.set(&["metadata", "ownerReferences"], Value::Array(owners));
        }
        Ok(object)
    }

    /// Sets the uid of the CSV in an owner reference.
    async fn set_owner_uid(&self, step: &Step, reference: &mut Value) -> Result<(), StepError> {
        let csv = &resources::CLUSTER_SERVICE_VERSION;
        if reference.get("kind").and_then(Value::as_str) != Some(CSV) {
            return Ok(());
        }
        let name = reference.get("name").and_then(Value::as_str).unwrap_or_default();
        let found = self.own.get(csv, Some(self.namespace), name).await;
        let found = found.map_err(|error| {
            let what = format!("error generating ownerrefs for {}", step.resource.name);
            api_error(&what, &error)
        })?;
        reference["uid"] = found.uid().into();
        Ok(())
    }

    /// Existing CSVs and Subscriptions belong to users, so they are never updated.
    async fn create_only(
        &self,
        resource: &Resource,
        mut object: Object,
        what: &str,
    ) -> Result<StepStatus, StepError> {
        set_kind(&mut object, resource);
        object.set(&["metadata", "namespace"], self.namespace.into());
        match self.scoped.create(resource, &object).await {
            Ok(_) => Ok(StepStatus::Created),
            Err(error) if error.is_already_exists() => Ok(StepStatus::Present),
            Err(error) => {
                Err(api_error(&format!("error creating {what} {}", object.name()), &error))
            }
        }
    }

    /// Creates or updates an object.
    async fn create_or_update(
        &self,
        step: &Step,
        resource: &Resource,
        owner: OwnerTie,
        what: &str,
    ) -> Result<StepStatus, StepError> {
        let object = self.owned(step, manifest(step)?, owner).await?;
        self.write(step, resource, object, what).await
    }

    async fn write(
        &self,
        step: &Step,
        resource: &Resource,
        mut object: Object,
        what: &str,
    ) -> Result<StepStatus, StepError> {
        set_kind(&mut object, resource);
        if resource.scope == Scope::Namespaced {
            object.set(&["metadata", "namespace"], self.namespace.into());
        } else {
            object.remove(&["metadata", "namespace"]);
        }
        let cluster = &self.scoped;
        let error_of = |error: &mainstay_client::Error| {
            let missing = error.status().is_some_and(|status| status.reason == Reason::NotFound)
                && self
                    .context
                    .caches
                    .namespaces
                    .get(&NamespacedName::cluster(self.namespace))
                    .is_some();
            if missing {
                no_such_api(step)
            } else {
                api_error(&format!("error creating {what}{}", object.name()), error)
            }
        };
        for _ in 0..5 {
            match cluster.create(resource, &object).await {
                Ok(_) => return Ok(StepStatus::Created),
                Err(error) if error.is_already_exists() => {}
                Err(error) => return Err(error_of(&error)),
            }
            let name = object.name();
            let live = cluster.find(resource, object_namespace(&object), name).await;
            // Deleted since, most likely with its owner.
            let Some(live) = live.map_err(|error| error_of(&error))? else { continue };
            let new = merged(&live, &object);
            if is_unchanged(&live, &new) {
                return Ok(StepStatus::Present);
            }
            match cluster.update(resource, &new).await {
                Ok(_) => return Ok(StepStatus::Present),
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => {
                    return Err(api_error(&format!("error updating {what}{name}"), &error));
                }
            }
        }
        Err(StepError::new(format!("error updating {what}{}: it keeps changing", object.name())))
    }
}

/// Whether another CSV of the namespace owns a CustomResourceDefinition that this CSV owns.
fn has_rival<'a>(
    csv: &Object,
    there: impl IntoIterator<Item = (&'a str, &'a fields::Csv)>,
) -> bool {
    let owned = csv.array(&["spec", "customresourcedefinitions", "owned"]);
    let crds: BTreeSet<&str> = owned
        .iter()
        .filter_map(|description| description.get("name").and_then(Value::as_str))
        .collect();
    there.into_iter().any(|(name, peer)| {
        name != csv.name()
            && !peer.is_copy()
            && peer.owned_crds.iter().any(|crd| crds.contains(crd.as_str()))
    })
}

/// The kind of the owners of InstallPlan objects.
pub(super) const CSV: &str = "ClusterServiceVersion";

/// The message for a step of a kind that is never created.
const INVALID_PLAN: &str = "the InstallPlan contains invalid data";

/// How an object of an InstallPlan is tied to its CSV.
#[derive(Clone, Copy)]
enum OwnerTie {
    /// By an owner reference.
    Version,
    /// By owner labels; the finalizer of the CSV removes it.
    Label,
    /// Not at all.
    None,
}

fn object_namespace(object: &Object) -> Option<&str> {
    Some(object.namespace()).filter(|namespace| !namespace.is_empty())
}

/// The object with the fields of the live one that an update must keep.
fn merged(live: &Object, object: &Object) -> Object {
    let mut new = object.clone();
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let mut all = live.get(&path).and_then(Value::as_object).cloned().unwrap_or_default();
        let ours = object.get(&path).and_then(Value::as_object).cloned().unwrap_or_default();
        all.extend(ours);
        if !all.is_empty() {
            new.set(&path, Value::Object(all));
        }
    }
    let kind = object.kind();
    let mut owners = live.array(&["metadata", "ownerReferences"]).to_vec();
    for reference in object.array(&["metadata", "ownerReferences"]) {
        let uid = reference.get("uid");
        if !owners.iter().any(|owner| owner.get("uid") == uid) {
            owners.push(reference.clone());
        }
    }
    if !owners.is_empty() {
        new.set(&["metadata", "ownerReferences"], Value::Array(owners));
    }
    if kind == "ServiceAccount" {
        // The ServiceAccount keeps its entries and gets those of the bundle.
        for field in ["secrets", "imagePullSecrets"] {
            let mut all = live.array(&[field]).to_vec();
            let more = object.array(&[field]).iter().filter(|value| !all.contains(value));
            all.extend(more.cloned().collect::<Vec<_>>());
            if !all.is_empty() {
                new.set(&[field], Value::Array(all));
            }
        }
    }
    if kind == "Service" {
        // Addresses and ports that the API server assigned stay.
        let mut spec: Map<String, Value> =
            live.get(&["spec"]).and_then(Value::as_object).cloned().unwrap_or_default();
        spec.extend(object.get(&["spec"]).and_then(Value::as_object).cloned().unwrap_or_default());
        new.set(&["spec"], Value::Object(spec));
    }
    new.set(&["metadata", "resourceVersion"], live.resource_version().into());
    new
}

/// Whether an update would change nothing.
fn is_unchanged(live: &Object, new: &Object) -> bool {
    mainstay_client::difference(&live.to_value(), &json!(new)).is_none()
        && ["rules", "subjects", "data", "stringData", "binaryData"]
            .iter()
            .all(|field| new.get(&[field]).is_none() || live.get(&[field]) == new.get(&[field]))
}

#[cfg(test)]
mod tests;
