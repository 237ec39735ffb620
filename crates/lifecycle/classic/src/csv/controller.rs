//! The CSV controller: applies the decisions of [`super::phase`].

use super::debounce::PhaseDebounce;
use super::deployment::DeploymentInputs;
use super::phase::{self, Decision, PhaseInput};
use super::rbac::TargetRbac;
use super::requirements::ObservedRequirements;
use super::serving::apply::{InstallError, PublishStage, ServingInstaller};
use super::serving::{check, required};
use super::status::Transition;
use super::{api_roles, deployment, finalizer, observe, serving};
use crate::context::Context;
use crate::error::Error;
use crate::fields;
use crate::install_plan::decide::{AccountError, plan_account};
use crate::membership::{apis::ApiSet, select};
use mainstay_api::{
    ClusterServiceVersion, CsvPhase, CsvReason, InstallPlanPhase, OperatorGroup, Time, names,
    resources,
};
use mainstay_client::{Action, Cluster, DeleteOptions, EventType, Patch, Reconciler};
use mainstay_controller::{
    WithOperation as _, decision,
    gojson::{self, GoType},
    patch,
};
use mainstay_object::{NamespacedName, Object, Reason, builtin};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const CSV: &mainstay_object::Resource = &resources::CLUSTER_SERVICE_VERSION;
/// Reason of the Event about a permission that is missing in a target namespace.
const MISSING_PERMISSION: &str = "PermissionNotGranted";

/// Reconciles CSVs.
pub(crate) struct Controller {
    context: Arc<Context>,
    debounce: PhaseDebounce,
}

impl Reconciler for Controller {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        match (self.reconcile_csv(key).await, self.context.timeouts.retry) {
            (Err(Error::Refused(..)), Some(pause)) => Ok(Action::After(pause)),
            (outcome, _) => outcome,
        }
    }
}

impl Controller {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, debounce: PhaseDebounce::default() }
    }

    async fn reconcile_csv(&self, key: &NamespacedName) -> Result<Action, Error> {
        let context = &*self.context;
        let known = context.caches.csvs.get(key);
        if known.as_ref().is_none_or(|csv| csv.is_copy()) {
            self.debounce.forget(key);
            context.missing_permissions.lock().remove(key);
            if known.is_none() {
                finalizer::remove_orphans(context, key).await?;
            }
            return Ok(Action::Done);
        }
        // The CSV is read from the API, because its spec is not cached. A decision from its live
        // status never repeats a transition.
        let live = context.cluster.find(CSV, key.namespace(), &key.name).await;
        let Some(live) = live.during("reading a ClusterServiceVersion")? else {
            return Ok(Action::Done);
        };
        let csv = ClusterServiceVersion::from_object(&live)?;
        if live.is_terminating() {
            return self.finalize(&live, &csv).await;
        }
        let groups = context.caches.groups_in(&key.namespace);
        let observed = observe::observe_requirements(context, &csv).await?;
        let config = observe::subscription_config(&context.caches, key);
        let proxy = context.proxies.settings(&context.caches).await;
        let deployment_inputs =
            DeploymentInputs { csv: &csv, config: config.as_ref(), proxy: &proxy };
        let desired_deployments = deployment_inputs.deployments(&observed.serving.ca_hashes());
        let deployments = observe::owned_deployments(&context.caches, key);
        let targets = match groups.as_slice() {
            [one] => select(context, one)?,
            _ => Vec::new(),
        };
        let decision = phase::decide(&PhaseInput {
            csv: &csv,
            groups: &groups,
            targets: Some(&targets),
            other_groups: &other_groups(context, &key.namespace),
            observed: &observed,
            expected: &deployment::expected_deployments(&desired_deployments),
            deployments: &deployments,
            provides: &provided_apis(&live),
            now: Time::new(context.clock.now()),
            install_timeout: context.timeouts.install,
        });
        tracing::debug!(%key, phase = %csv.status.phase, ?decision, "ClusterServiceVersion decided");
        let planned = || {
            let plans = context.caches.install_plans.list(Some(&key.namespace));
            plans.iter().any(|(_, plan)| {
                let over =
                    matches!(plan.phase, InstallPlanPhase::Complete | InstallPlanPhase::Failed);
                !over && plan.csvs.iter().any(|name| *name == *key.name)
            })
        };
        let now = context.clock.elapsed();
        if let Some(left) = self.debounce.delay(key, &csv.status, &decision, planned, now) {
            return Ok(Action::After(left));
        }
        let csv_context = CsvContext {
            live: &live,
            deployment_inputs: &deployment_inputs,
            observed: &observed,
            group: groups.first(),
        };
        self.apply_decision(decision, &csv_context, &deployments).await
    }
}

/// A CSV with its observed state.
struct CsvContext<'a> {
    live: &'a Object,
    deployment_inputs: &'a DeploymentInputs<'a>,
    observed: &'a ObservedRequirements,
    group: Option<&'a Arc<OperatorGroup>>,
}

/// The OperatorGroups of other namespaces. The APIs that they provide may conflict with a CSV.
fn other_groups(context: &Context, namespace: &str) -> Vec<Arc<OperatorGroup>> {
    context
        .caches
        .operator_groups
        .list(None)
        .into_iter()
        .filter(|(key, _)| *key.namespace != *namespace)
        .map(|(_, group)| group)
        .collect()
}

fn provided_apis(live: &Object) -> ApiSet {
    fields::Csv::of(live).provides.into_iter().collect()
}

impl Controller {
    async fn apply_decision(
        &self,
        decision: Decision,
        csv_context: &CsvContext<'_>,
        deployments: &BTreeMap<String, Arc<fields::Deployment>>,
    ) -> Result<Action, Error> {
        let context = &*self.context;
        let CsvContext { live, group, .. } = *csv_context;
        let csv = csv_context.deployment_inputs.csv;
        match decision {
            Decision::Rest => self.prune(csv_context).await?,
            Decision::Wait(while_) => {
                self.prune(csv_context).await?;
                return Ok(Action::After(while_));
            }
            Decision::Transition(transition) => self.write(live, csv, transition).await?,
            Decision::Withdraw(transition) => {
                // Owner labels alone do not make a Deployment the CSV's, as any editor of the
                // namespace can write them.
                let owned = |deployment: &fields::Deployment| {
                    deployment.owners.iter().any(|owner| owner.uid == live.uid())
                };
                for (name, _) in deployments.iter().filter(|(_, deployment)| owned(deployment)) {
                    self.delete_deployment(live, name).await?;
                }
                self.write(live, csv, transition).await?;
            }
            Decision::Claim(annotations) => add_membership(context, live, &annotations).await?,
            Decision::Provide(text) => {
                let Some(group) = group else { return Ok(Action::Done) };
                let body = json!({"metadata": {
                    "resourceVersion": group.metadata.resource_version,
                    "annotations": {names::PROVIDED_APIS: text},
                }});
                let metadata = &group.metadata;
                context
                    .cluster
                    .patch(
                        &resources::OPERATOR_GROUP,
                        Some(&metadata.namespace),
                        &metadata.name,
                        &Patch::Merge(body),
                    )
                    .await
                    .during("writing the provided APIs of an OperatorGroup")?;
            }
            Decision::Install(transition) => {
                self.install(csv_context, deployments, transition).await?;
                self.ensure_permissions(csv_context).await?;
            }
            Decision::Serve => self.publish_serving(csv_context, PublishStage::Serve).await?,
            Decision::Running => {
                let granted = self.ensure_permissions(csv_context).await;
                api_roles::ensure_api_roles(context, csv).await?;
                self.publish_serving(csv_context, PublishStage::DropOldCas).await?;
                granted?;
                let next = check::next_rotation(csv, &csv_context.observed.serving);
                return Ok(next.map_or(Action::Done, |due| Action::At(context.clock, due)));
            }
            Decision::Delete => {
                context
                    .cluster
                    .ensure_deleted(
                        CSV,
                        Some(live.namespace()),
                        live.name(),
                        &DeleteOptions::uid(live.uid()),
                    )
                    .await
                    .during("deleting a replaced ClusterServiceVersion")?;
            }
        }
        Ok(Action::Done)
    }

    /// Ensures that a CSV has its permissions in its target namespaces and nowhere else.
    async fn ensure_permissions(&self, csv_context: &CsvContext<'_>) -> Result<(), Error> {
        let CsvContext { live, group: Some(group), .. } = *csv_context else { return Ok(()) };
        let context = &*self.context;
        let cluster = match self.installer(live) {
            Ok(cluster) => cluster.during("acting as a ServiceAccount")?,
            Err(error) => return Err(Error::Refused(live.key(), error.to_string())),
        };
        let missing = TargetRbac { context, cluster: &cluster, csv: live, group }.ensure().await?;
        let key = live.key();
        if missing.is_empty() {
            context.missing_permissions.lock().remove(&key);
            return Ok(());
        }
        let reported = context.missing_permissions.lock().insert(key.clone(), missing.clone());
        let reported = reported.unwrap_or_default();
        for why in missing.iter().filter(|requirement| !reported.contains(requirement)) {
            context.recorder.publish(live, EventType::Warning, MISSING_PERMISSION, why.as_str());
        }
        Err(Error::Refused(key, missing.join("; ")))
    }

    /// Removes what a CSV has in its target namespaces for permissions that it lost.
    async fn prune(&self, csv_context: &CsvContext<'_>) -> Result<(), Error> {
        let CsvContext { live, group: Some(group), .. } = *csv_context else { return Ok(()) };
        let phase = &csv_context.deployment_inputs.csv.status.phase;
        if !matches!(phase, CsvPhase::Pending | CsvPhase::Failed) {
            return Ok(());
        }
        let context = &*self.context;
        TargetRbac { context, cluster: &context.cluster, csv: live, group }.prune().await
    }

    async fn write(
        &self,
        live: &Object,
        csv: &ClusterServiceVersion,
        transition: Transition,
    ) -> Result<(), Error> {
        let context = &*self.context;
        let (status, reported) = transition.apply(&csv.status, Time::new(context.clock.now()));
        let mut value = serde_json::to_value(&status)?;
        // Upstream writes this field even when it is empty.
        if value.get("cleanup").is_none() {
            value["cleanup"] = json!({});
        }
        let Some(patch) = patch::status(live, &value)? else { return Ok(()) };
        context
            .cluster
            .patch_status(CSV, Some(live.namespace()), live.name(), &patch)
            .await
            .during("writing the status of a ClusterServiceVersion")?;
        if csv.status.phase == CsvPhase::Succeeded && status.phase == CsvPhase::Replacing {
            context.metrics.upgrades.fetch_add(1, Ordering::Relaxed);
        }
        if reported || csv.status.phase != status.phase || csv.status.reason != status.reason {
            let why = format!("{}: {}", status.reason, status.message);
            decision::log(&CSV.kind, csv.key(), &status.phase, &why);
        }
        if reported {
            let kind = if status.phase == CsvPhase::Failed {
                EventType::Warning
            } else {
                EventType::Normal
            };
            context.recorder.publish(live, kind, status.reason.as_str(), status.message);
        }
        Ok(())
    }

    /// Ensures that the API server calls the servers of a CSV; writes only what differs.
    async fn publish_serving(
        &self,
        csv_context: &CsvContext<'_>,
        stage: PublishStage,
    ) -> Result<(), Error> {
        let CsvContext { live, deployment_inputs, observed, group: Some(group) } = *csv_context
        else {
            return Ok(());
        };
        let cluster = match self.installer(live) {
            Ok(cluster) => cluster.during("acting as a ServiceAccount")?,
            Err(error) => return Err(Error::Refused(live.key(), error.to_string())),
        };
        let csv = deployment_inputs.csv;
        let serving_installer =
            ServingInstaller { context: &self.context, cluster: &cluster, csv, group, observed };
        if stage == PublishStage::DropOldCas && serving_installer.is_up_to_date() {
            return Ok(());
        }
        let served = async {
            serving_installer.publish(&serving_installer.ensure_servers().await?, stage).await
        };
        served.await.map_err(|error| error.into_error(csv))
    }

    /// Creates or updates the Deployments of a CSV and the objects around them, and deletes the
    /// Deployments that it no longer lists.
    async fn install(
        &self,
        csv_context: &CsvContext<'_>,
        deployments: &BTreeMap<String, Arc<fields::Deployment>>,
        mut transition: Transition,
    ) -> Result<(), Error> {
        let CsvContext { live, deployment_inputs, observed, group: Some(group) } = *csv_context
        else {
            return Ok(());
        };
        let csv = deployment_inputs.csv;
        let cluster = match self.installer(live) {
            Ok(cluster) => cluster.during("acting as a ServiceAccount")?,
            Err(error) => {
                let message = format!("install strategy failed: {error}");
                return self
                    .fail_install(live, csv, CsvReason::ComponentFailedNoRetry, message)
                    .await;
            }
        };
        let serving_installer =
            ServingInstaller { context: &self.context, cluster: &cluster, csv, group, observed };
        let certificates = match serving_installer.ensure_servers().await {
            Ok(certificates) => certificates,
            Err(error) => return self.report_install_error(live, csv, error).await,
        };
        let desired_deployments = deployment_inputs.deployments(&certificates.hashes());
        for deployment in &desired_deployments {
            match create_or_update_deployment(&cluster, deployment).await {
                // The next reconciliation must see the new Deployment and not the old one.
                Ok(Some(deployment)) => {
                    self.context
                        .caches
                        .deployments
                        .wait_for_revision(deployment.resource_version())
                        .await;
                }
                Ok(None) => {}
                Err(error) => {
                    return self.report_install_error(live, csv, InstallError::Api(error)).await;
                }
            }
        }
        serving::legacy::remove(&self.context, csv).await?;
        if let Some(why) = required::conversion_problem(csv, &observed.crds) {
            let message = format!("install strategy failed: {why}");
            return self.write(live, csv, failed(CsvReason::ComponentFailed, message)).await;
        }
        if let Err(error) = serving_installer.publish(&certificates, PublishStage::Install).await {
            return self.report_install_error(live, csv, error).await;
        }
        for (name, found) in deployments {
            let listed = desired_deployments.iter().any(|deployment| deployment.name() == name);
            if !listed && found.owners.iter().any(|owner| owner.uid == live.uid()) {
                self.delete_deployment(live, name).await?;
            }
        }
        if let Some(rotate) = certificates.rotate {
            let created_at = csv.status.certs_last_updated.filter(|_| !certificates.renewed);
            let created_at = created_at.unwrap_or_else(|| Time::new(self.context.clock.now()));
            transition.certificates = Some((created_at, Time::new(rotate)));
        }
        self.write(live, csv, transition).await
    }

    /// Reports that something of a CSV cannot be installed, and retries later.
    async fn report_install_error(
        &self,
        live: &Object,
        csv: &ClusterServiceVersion,
        error: InstallError,
    ) -> Result<(), Error> {
        const OPERATION: &str = "installing a version";
        let error = match error {
            InstallError::Refused(why) => {
                let message = format!("install strategy failed: {why}");
                return self.fail_install(live, csv, CsvReason::ComponentFailed, message).await;
            }
            InstallError::Removed(error) => {
                return Err(error).during(OPERATION).map_err(Error::from);
            }
            InstallError::Api(error) => error,
        };
        let Some(status) = error.status() else {
            return Err(error).during(OPERATION).map_err(Error::from);
        };
        let reason = match status.reason {
            Reason::Forbidden => CsvReason::ComponentFailedNoRetry,
            Reason::Invalid
            | Reason::BadRequest
            | Reason::NotFound
            | Reason::RequestEntityTooLarge => CsvReason::ComponentFailed,
            // A conflict or an overloaded server is not worth a status.
            _ => return Err(error).during(OPERATION).map_err(Error::from),
        };
        // Upstream repeats the prefix where permissions are missing.
        let prefix = match reason {
            CsvReason::ComponentFailedNoRetry => "install strategy failed: ",
            _ => "",
        };
        let message = format!("install strategy failed: {prefix}{}", status.message);
        self.fail_install(live, csv, reason, message).await
    }

    /// The cluster client with the permissions that the objects of a CSV are installed with, or why
    /// there is none.
    fn installer(&self, live: &Object) -> Result<mainstay_client::Result<Cluster>, AccountError> {
        let context = &*self.context;
        let account = plan_account(&context.caches.groups_in(live.namespace()))?;
        let own = context.cluster.clone();
        Ok(match account {
            Some(account) => own.impersonating(&account.namespace, &account.name),
            None => Ok(own),
        })
    }

    async fn fail_install(
        &self,
        live: &Object,
        csv: &ClusterServiceVersion,
        reason: CsvReason,
        message: String,
    ) -> Result<(), Error> {
        self.write(live, csv, failed(reason, message.clone())).await?;
        Err(Error::Refused(live.key(), message))
    }

    async fn delete_deployment(&self, live: &Object, name: &str) -> Result<(), Error> {
        self.context
            .cluster
            .ensure_deleted(
                &builtin::DEPLOYMENT,
                Some(live.namespace()),
                name,
                &DeleteOptions::default(),
            )
            .await
            .during("deleting a Deployment")?;
        Ok(())
    }

    /// Removes the finalizer of a deleted CSV once nothing is left that owner references cannot
    /// reach.
    async fn finalize(&self, live: &Object, csv: &ClusterServiceVersion) -> Result<Action, Error> {
        let ours = |finalizer: &str| finalizer == names::CSV_CLEANUP_FINALIZER;
        if !live.finalizers().any(ours) || !finalizer::finalize(&self.context, csv).await? {
            return Ok(Action::Done);
        }
        let rest: Vec<&str> = live.finalizers().filter(|finalizer| !ours(finalizer)).collect();
        let body = json!({"metadata": {
            "resourceVersion": live.resource_version(), "finalizers": rest,
        }});
        match self
            .context
            .cluster
            .patch(CSV, Some(live.namespace()), live.name(), &Patch::Merge(body))
            .await
        {
            Err(error) if !error.is_not_found() => Err(error)
                .during("removing the finalizer of a ClusterServiceVersion")
                .map_err(Error::from),
            _ => Ok(Action::Done),
        }
    }
}

fn failed(reason: CsvReason, message: String) -> Transition {
    Transition::to(CsvPhase::Failed, reason, message)
}

/// Creates or updates a Deployment as a CSV lists it; `None` if another client created it
/// meanwhile.
async fn create_or_update_deployment(
    cluster: &Cluster,
    deployment: &Object,
) -> mainstay_client::Result<Option<Object>> {
    let namespace = Some(deployment.namespace());
    let old = match cluster.find(&builtin::DEPLOYMENT, namespace, deployment.name()).await? {
        // A selector is immutable. A Deployment that a CSV owns is replaced; upstream waits until a
        // person deletes it. It is deleted only if the API accepts the new one.
        Some(old) if deployment::must_be_replaced(&old, deployment) => {
            match cluster.try_create(&builtin::DEPLOYMENT, deployment).await {
                Err(error) if !error.is_already_exists() => return Err(error),
                _ => {}
            }
            let options = DeleteOptions::uid(old.uid());
            let name = Some(old.namespace());
            cluster.ensure_deleted(&builtin::DEPLOYMENT, name, old.name(), &options).await?;
            None
        }
        found => found,
    };
    if let Some(old) = old {
        match cluster.update(&builtin::DEPLOYMENT, &with_other_fields(&old, deployment)).await {
            // The garbage collector removed the Deployment with its old CSV, so it is created
            // again.
            Err(error) if error.is_not_found() => {}
            updated => return updated.map(Some),
        }
    }
    match cluster.create(&builtin::DEPLOYMENT, deployment).await {
        // Another client created it meanwhile; the next reconciliation compares it.
        Err(error) if error.is_already_exists() => Ok(None),
        created => created.map(Some),
    }
}

/// The existing Deployment with the spec of the desired one. Labels and owners of other clients
/// stay.
fn with_other_fields(old: &Object, deployment: &Object) -> Object {
    let mut new = deployment.clone();
    // Annotations without a Kubernetes prefix may come from an earlier Subscription config.
    let is_kept = |field: &str, key: &str| field == "labels" || key.contains("kubernetes.io/");
    for field in ["labels", "annotations"] {
        let path = ["metadata", field];
        let fields = |object: &Object| {
            object.get(&path).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let mut all = fields(old);
        all.retain(|key, _| is_kept(field, key));
        all.extend(fields(deployment));
        new.set(&path, Value::Object(all));
    }
    let mut owners: Vec<Value> = old
        .array(&["metadata", "ownerReferences"])
        .iter()
        .filter(|owner| owner.get("kind").and_then(Value::as_str) != Some(&*CSV.kind))
        .cloned()
        .collect();
    owners.extend_from_slice(deployment.array(&["metadata", "ownerReferences"]));
    new.set(&["metadata", "ownerReferences"], Value::Array(owners));
    new.set(&["metadata", "resourceVersion"], old.resource_version().into());
    new
}

async fn add_membership(
    context: &Context,
    live: &Object,
    annotations: &[(&'static str, Option<String>)],
) -> Result<(), Error> {
    let mut finalizers: Vec<&str> = live.finalizers().collect();
    if !finalizers.contains(&names::CSV_CLEANUP_FINALIZER) {
        finalizers.push(names::CSV_CLEANUP_FINALIZER);
    }
    let mut body = json!({"metadata": {
        "resourceVersion": live.resource_version(), "finalizers": finalizers,
    }});
    for (key, value) in annotations {
        body["metadata"]["annotations"][*key] = value.clone().into();
    }
    // Upstream writes the whole CSV with the empty fields of its Go types, and copied CSVs show it.
    let normalized = gojson::normalize(GoType::ClusterServiceVersion, &live.to_value());
    if let Some(old) = live.get(&["spec"])
        && let Some(spec) = patch::between(old, &normalized["spec"])
    {
        body["spec"] = spec;
    }
    context
        .cluster
        .patch(CSV, Some(live.namespace()), live.name(), &Patch::Merge(body))
        .await
        .during("writing the OperatorGroup of a ClusterServiceVersion")?;
    Ok(())
}
