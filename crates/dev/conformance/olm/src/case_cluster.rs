//! The cluster of one case: API server, workloads, nodes, controllers, and the catalogs that
//! registry servers serve to it.

use super::case::{Case, CaseStep};
use super::servers::Servers;
use super::wait_condition::{self, WaitCondition};
use super::{inferred_catalog, kubectl_get, normalize};
use anyhow::Context;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_api::resources;
use mainstay_apiserver::NativeGroup;
use mainstay_auth::Identity;
use mainstay_classic::{CatalogMode, CatalogPods, Classic, Options, Timeouts};
use mainstay_client::{Cluster, ObjectList};
use mainstay_conformance_harness::kubectl::{self, CommandLine, CommandResult};
use mainstay_controller::Subsystem as _;
use mainstay_exposition::Page;
use mainstay_http::Body;
use mainstay_object::{Object, builtin};
use mainstay_packages::{PackageApi, ResponseBody, SERVICE};
use mainstay_testkit::{TestCluster, TestClusterSettings};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The Kubernetes version that the recorded server reported.
const VERSION: &str = "v1.35.0+simulated.answers";
/// The pod label with which recorded pods ask to fail.
const BEHAVIOUR_LABEL: &str = "answers.test/behave";
/// The namespace of global catalogs.
const CATALOG_NAMESPACE: &str = "olm";
/// The InstallPlan and install timeouts for steps that wait for a timeout.
const SHORT_TIMEOUT: Duration = Duration::from_millis(1500);
/// The debounce of Subscriptions. On a busy machine the objects of one command are written at
/// greater intervals than by kubectl.
const DEBOUNCE: Duration = Duration::from_secs(1);
/// The interval between two polls for changes.
const POLL_INTERVAL: Duration = Duration::from_millis(40);
/// After so many polls without a change, the cluster is idle: the recordings used four seconds.
/// Polls are counted instead of time, because on a busy machine they come later, as everything else
/// does.
const IDLE_POLLS: usize = 100;
/// After so many polls without a change, a step's condition will not come true.
const STALL_POLLS: usize = 500;
/// The number of polls after which the cluster counts as not idle: the recordings used 45 seconds.
const MAX_IDLE_POLLS: usize = 1_125;
/// The greatest number of polls for a step's condition: the recordings used 60 seconds.
const MAX_WAIT_POLLS: usize = 1_500;

/// The `packages.operators.coreos.com` API, as the API server calls it.
#[derive(Debug)]
struct PackagesGroup(PackageApi);

impl NativeGroup for PackagesGroup {
    fn call(&self, _: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            self.0.answer(&request).await.map(|content| match content {
                ResponseBody::Whole(bytes) => Body::from(bytes),
                ResponseBody::Pieces(pieces) => Body::chunks(pieces),
                ResponseBody::Stream(lines) => Body::stream(lines),
            })
        })
    }
}

/// The result of a step.
#[derive(Debug)]
pub(super) struct StepOutcome {
    /// The result of its command; none if the command only reads.
    pub(super) command: Option<CommandResult>,
    /// Whether its condition came true.
    pub(super) reached: bool,
    /// Whether the cluster became idle.
    pub(super) idle: bool,
}

/// The cluster of a case.
pub(super) struct CaseCluster {
    cluster: TestCluster,
    classic: Option<Classic>,
    namespaces: Vec<String>,
    servers: Servers,
}

impl CaseCluster {
    /// Starts a cluster with the standard layout and running controllers.
    pub(super) async fn of(case: &Case) -> anyhow::Result<Self> {
        let cluster = TestCluster::with(TestClusterSettings {
            version: Some(VERSION.to_owned()),
            behaviour_label: Some(BEHAVIOUR_LABEL.to_owned()),
            // No recorded container ends by itself, not even those of Jobs.
            behaviour: Some("run".to_owned()),
            ..TestClusterSettings::default()
        })
        .await;
        // Only in these cases did the recorded operators answer requests.
        if !case.rule.ends_with("-serving") {
            cluster.server().silence_pods();
        }
        for crd in mainstay_api::crds() {
            cluster.apply(crd).await;
        }
        cluster
            .apply_yaml(
                "
{apiVersion: v1, kind: Namespace, metadata: {name: olm}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: operators}}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: olm-operators, namespace: olm}
spec: {targetNamespaces: [olm]}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: global-operators, namespace: operators}
---
{apiVersion: operators.coreos.com/v1, kind: OLMConfig, metadata: {name: cluster}, spec: {}}
",
            )
            .await;
        let mut texts = String::new();
        for step in &case.steps {
            texts += &step.input;
            texts += step.command.as_deref().unwrap_or_default();
        }
        let servers = Servers::of(&texts).await?;
        let namespaces = case.namespaces.clone();
        let mut cluster_of_case = Self { cluster, classic: None, namespaces, servers };
        cluster_of_case.start(Timeouts::default()).await;
        let cluster = &cluster_of_case.cluster;
        cluster.apply(mainstay_packages::registration(CATALOG_NAMESPACE)).await;
        let name = format!("{}.{}", mainstay_packages::VERSION, mainstay_packages::GROUP);
        cluster.wait_for_condition(&builtin::API_SERVICE, None, &name, "Available").await;
        Ok(cluster_of_case)
    }

    /// Starts the controllers.
    async fn start(&mut self, timeouts: Timeouts) {
        let timeouts = Timeouts { debounce_window: DEBOUNCE, ..timeouts };
        let options = Options { timeouts, ..Options::new(self.cluster.clock(), CATALOG_NAMESPACE) };
        // In the recordings, catalogs from images and ConfigMaps are served by pods.
        let pods = CatalogPods { mode: CatalogMode::Pods, ..CatalogPods::default() };
        let classic = Classic::start_with(self.cluster.cluster(), options, pods);
        classic.synced().await;
        let server = self.cluster.server();
        let packages =
            PackageApi::new(CATALOG_NAMESPACE, self.cluster.clock(), server.stop().clone());
        packages.attach(classic.catalogs());
        server.put_native_group(CATALOG_NAMESPACE, SERVICE, Arc::new(PackagesGroup(packages)));
        self.classic = Some(classic);
    }

    async fn stop(&mut self) {
        if let Some(classic) = self.classic.take() {
            classic.shutdown().await;
        }
    }

    /// Stops the controllers, the registry servers and the cluster.
    pub(super) async fn shutdown(mut self) {
        self.stop().await;
        self.servers.stop_all().await;
        self.cluster.shutdown().await;
    }

    /// The client of the cluster, with an administrator's permissions.
    pub(super) const fn cluster(&self) -> &Cluster {
        self.cluster.cluster()
    }

    /// The recordings' placeholder of each registry server's address.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        self.servers.addresses()
    }

    /// Replaces placeholders in a recorded text by this cluster's addresses and generated names.
    fn fill_placeholders(&self, text: &str, names: &BTreeMap<String, String>) -> String {
        let mut text = text.to_owned();
        for (address, placeholder) in self.addresses() {
            text = text.replace(&placeholder, &address);
        }
        for (name, placeholder) in names {
            text = text.replace(placeholder, name);
        }
        text.replace("{time}", "2024-01-02T03:04:05Z")
    }

    /// Carries out a step, and waits for its condition and for an idle cluster.
    pub(super) async fn run_step(
        &mut self,
        step: &CaseStep,
        names: &BTreeMap<String, String>,
    ) -> anyhow::Result<StepOutcome> {
        let title = step.title.to_lowercase();
        let conditions = step.until.as_deref().map(wait_condition::parse).transpose()?;
        // OLM retries a failing InstallPlan for a minute, and waits for Deployments for five. Where
        // the recording waited for such a timeout, the controllers run with short timeouts.
        let short_timeouts = conditions.as_deref().is_some_and(wait_condition::waits_for_failure);
        let restarts = title.contains("restart") || title.contains("olm starts") || short_timeouts;
        let mut timeouts = Timeouts::default();
        if short_timeouts {
            (timeouts.plan, timeouts.install) = (SHORT_TIMEOUT, SHORT_TIMEOUT);
        }
        if restarts {
            self.stop().await;
        }
        if title.contains("server of the first catalog stops") {
            self.servers.stop("cat").await;
        }
        for (server, text) in &step.catalogs {
            self.servers.publish(server, text).await?;
        }
        let (main_catalog, unserved) =
            self.servers.unserved(step.command.as_deref().unwrap_or_default());
        if !unserved.is_empty() {
            let text = inferred_catalog::catalog(main_catalog, &step.objects)?;
            for server in unserved {
                self.servers.publish(&server, &text).await?;
            }
        }
        if restarts {
            self.start(timeouts).await;
        }
        let mut command_result = None;
        if let Some(text) = &step.command {
            let (text, input) =
                (self.fill_placeholders(text, names), self.fill_placeholders(&step.input, names));
            let line = CommandLine::parse(&text).with_context(|| step.name.clone())?;
            command_result = kubectl::run(self.cluster(), &line, &input)
                .await
                .with_context(|| format!("{}: {text}", step.name))?;
        }
        let mut reached = true;
        if let Some(conditions) = conditions {
            let command_namespace = step.command.as_deref().and_then(kubectl::namespace);
            let namespace =
                command_namespace.as_ref().or(self.namespaces.first()).cloned().unwrap_or_default();
            reached = if step.reached {
                self.wait_for(&namespace, &conditions, deadline(&step.objects)).await?
            } else {
                // The condition did not come true in the recording: it must be false in the idle
                // cluster too.
                self.wait_until_idle(IDLE_POLLS).await;
                wait_condition::all_hold(self.cluster(), &self.namespaces, &namespace, &conditions)
                    .await?
            };
        }
        // Where the recording was idle before the deadline of a Deployment, this cluster must be
        // too.
        let idle_polls =
            if has_short_deadline(&step.objects) { IDLE_POLLS / 4 } else { IDLE_POLLS };
        let mut idle = self.wait_until_idle(idle_polls).await;
        if short_timeouts {
            self.stop().await;
            self.start(Timeouts::default()).await;
            idle &= self.wait_until_idle(IDLE_POLLS).await;
        }
        Ok(StepOutcome { command: command_result, reached, idle })
    }

    /// The output of a command that only reads packages; none for other commands.
    pub(super) async fn run_kubectl_get(
        &self,
        step: &CaseStep,
        names: &BTreeMap<String, String>,
    ) -> anyhow::Result<Option<Value>> {
        let Some(text) = &step.command else { return Ok(None) };
        let fill_placeholders = self.fill_placeholders(text, names);
        let run_kubectl_get = kubectl_get::print(self.cluster(), &fill_placeholders).await;
        run_kubectl_get.with_context(|| step.name.clone())
    }

    /// Waits for the step's condition, longer than the deadline of any Deployment.
    async fn wait_for(
        &self,
        namespace: &str,
        conditions: &[WaitCondition],
        deadline: Duration,
    ) -> anyhow::Result<bool> {
        let (mut last_revision, mut idle_polls) = (None, 0);
        let polls = usize::try_from(deadline.as_millis() / POLL_INTERVAL.as_millis())
            .unwrap_or(MAX_WAIT_POLLS);
        let stall_polls = STALL_POLLS + polls;
        let computed = wait_condition::is_computed(conditions);
        for _ in 0..MAX_WAIT_POLLS {
            let revision = self.cluster.store().revision();
            idle_polls += 1;
            if last_revision != Some(revision) || computed {
                idle_polls = if last_revision == Some(revision) { idle_polls } else { 0 };
                last_revision = Some(revision);
                if wait_condition::all_hold(self.cluster(), &self.namespaces, namespace, conditions)
                    .await?
                {
                    return Ok(true);
                }
            }
            if idle_polls > stall_polls {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(false)
    }

    /// Waits until so many polls see no change; false if the cluster keeps changing.
    async fn wait_until_idle(&self, polls: usize) -> bool {
        let (mut last_revision, mut idle_polls) = (self.cluster.store().revision(), 0);
        for _ in 0..MAX_IDLE_POLLS {
            if idle_polls >= polls {
                return true;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
            let revision = self.cluster.store().revision();
            idle_polls += 1;
            if revision != last_revision {
                (last_revision, idle_polls) = (revision, 0);
            }
        }
        false
    }

    /// All objects of the recorded kinds.
    pub(super) async fn objects(&self) -> anyhow::Result<Vec<Object>> {
        let mut all = Vec::new();
        let served = self.cluster().resources().await?.resources;
        for api in served {
            let resource = &api.resource;
            let recorded =
                RECORDED_KINDS.contains(&(resource.group.as_ref(), resource.kind.as_ref()));
            // OperatorConditions were recorded in the newest version, which is also the preferred
            // one.
            if !recorded || !api.preferred || !api.can("list") {
                continue;
            }
            all.extend(self.cluster().list(resource, None, &ObjectList::default()).await?.items);
        }
        Ok(all)
    }

    /// The recorded metric series that name the case, normalized.
    pub(super) fn metrics(&self, id: &str) -> Vec<String> {
        let mut page = Page::default();
        if let Some(classic) = &self.classic {
            classic.monitor().write_metrics(&mut page);
        }
        page.text()
            .lines()
            .filter(|line| line.contains(id))
            .filter_map(normalize::normalize_series)
            .collect()
    }

    /// All events.
    pub(super) async fn events(&self) -> anyhow::Result<Vec<Object>> {
        let events = builtin::EVENT;
        Ok(self.cluster().list(&events, None, &ObjectList::default()).await?.items)
    }

    /// All InstallPlans, in order of their creation.
    pub(super) async fn plans(&self) -> anyhow::Result<Vec<Object>> {
        let params = ObjectList::default();
        let mut plans = self.cluster().list(&resources::INSTALL_PLAN, None, &params).await?.items;
        plans.sort_by_key(|plan| {
            let generation = plan.i64(&["spec", "generation"]).unwrap_or_default();
            json!([plan.creation_timestamp().map(|time| time.to_string()), generation, plan.name()])
                .to_string()
        });
        Ok(plans)
    }
}

/// The kinds of objects that were recorded.
const RECORDED_KINDS: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "Namespace"),
    ("", "Pod"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("apps", "Deployment"),
    ("batch", "Job"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("operators.coreos.com", "CatalogSource"),
    ("operators.coreos.com", "ClusterServiceVersion"),
    ("operators.coreos.com", "InstallPlan"),
    ("operators.coreos.com", "OLMConfig"),
    ("operators.coreos.com", "Operator"),
    ("operators.coreos.com", "OperatorCondition"),
    ("operators.coreos.com", "OperatorGroup"),
    ("operators.coreos.com", "Subscription"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
];

/// Whether the recording has a Deployment with a short progress deadline that still progresses.
fn has_short_deadline(objects: &[Value]) -> bool {
    let progresses = |object: &&Value| {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| condition["reason"] == "ReplicaSetUpdated")
    };
    objects
        .iter()
        .filter(progresses)
        .any(|object| !deadline(std::slice::from_ref(object)).is_zero())
}

/// The longest progress deadline among the Deployments that set a short one, in order to exceed it.
fn deadline(objects: &[Value]) -> Duration {
    const SHORT: i64 = 60;
    let short_deadline = |object: &Value| object.pointer("/spec/progressDeadlineSeconds")?.as_i64();
    let seconds = objects
        .iter()
        .filter_map(short_deadline)
        .filter(|seconds| *seconds < SHORT)
        .max()
        .unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
