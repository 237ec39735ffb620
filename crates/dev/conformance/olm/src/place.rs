//! A cluster for one case: API server, workloads, nodes and controllers, and the catalogs served
//! to it.

use super::case::{Case, Step};
use super::servers::Servers;
use super::until::{self, Wanted};
use super::{command, normal, shown, unrecorded};
use anyhow::Context;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use mainstay_api::resources;
use mainstay_apiserver::NativeGroup;
use mainstay_auth::Identity;
use mainstay_classic::{CatalogMode, CatalogPods, Classic, Options, Timeouts};
use mainstay_client::{Cluster, ListParams};
use mainstay_controller::Subsystem as _;
use mainstay_exposition::Page;
use mainstay_http::Body;
use mainstay_object::{Object, known};
use mainstay_packages::{Content, Packages, SERVICE};
use mainstay_testkit::{Settings, TestCluster};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The version of Kubernetes that the recordings were made with, as its server names it.
const VERSION: &str = "v1.35.0+simulated.answers";
/// The label that asks pods of the recordings to fail.
const BEHAVIOUR: &str = "answers.test/behave";
/// The namespace of catalogs that everybody sees.
const GLOBAL: &str = "olm";
/// How long plans are tried again where the recording waits for them to fail.
const HASTE: Duration = Duration::from_millis(1500);
/// How long Subscriptions that are made together are waited for: on a busy machine the objects of one
/// command are written further apart than by kubectl.
const TOGETHER: Duration = Duration::from_secs(1);
/// How often it is looked whether something was written.
const LOOK: Duration = Duration::from_millis(40);
/// After so many looks without news the cluster is at rest: the four seconds of the recordings. Looks are
/// counted, not time: on a busy machine they come later, as does everything else.
const CALM: usize = 100;
/// After so many looks without news nothing more is expected of what a step waits for.
const HOPELESS: usize = 500;
/// After so many looks the cluster does not come to rest: the 45 seconds of the recordings.
const RESTLESS: usize = 1_125;
/// So many looks are taken at most for what a step waits for: the 60 seconds of the recordings.
const PATIENCE: usize = 1_500;

/// Packages as the server asks for them.
#[derive(Debug)]
struct Group(Packages);

impl NativeGroup for Group {
    fn call(&self, _: &Identity, request: Request<Bytes>) -> BoxFuture<'_, Response<Body>> {
        Box::pin(async move {
            self.0.answer(&request).await.map(|content| match content {
                Content::Whole(bytes) => Body::from(bytes),
                Content::Pieces(pieces) => Body::chunks(pieces),
                Content::Stream(lines) => Body::stream(lines),
            })
        })
    }
}

/// What became of a step.
#[derive(Debug)]
pub(super) struct Outcome {
    /// How its command ended, if that changes anything.
    pub(super) command: Option<command::Done>,
    /// Whether what it waits for came.
    pub(super) reached: bool,
    /// Whether the cluster came to rest.
    pub(super) rests: bool,
}

/// The cluster of a case.
pub(super) struct Place {
    cluster: TestCluster,
    classic: Option<Classic>,
    namespaces: Vec<String>,
    servers: Servers,
}

impl Place {
    /// A fresh cluster with the standard layout and running controllers.
    pub(super) async fn of(case: &Case) -> anyhow::Result<Self> {
        let cluster = TestCluster::with(Settings {
            version: Some(VERSION.to_owned()),
            behaviour_label: Some(BEHAVIOUR.to_owned()),
            // Nothing there ends by itself, not even pods of Jobs.
            behaviour: Some("run".to_owned()),
            ..Settings::default()
        })
        .await;
        // Servers of operators answered in these cases only.
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
        let mut place = Self { cluster, classic: None, namespaces, servers };
        place.start(Timeouts::default()).await;
        let cluster = &place.cluster;
        cluster.apply(mainstay_packages::registration(GLOBAL)).await;
        let name = format!("{}.{}", mainstay_packages::VERSION, mainstay_packages::GROUP);
        cluster.wait_for_condition(&known::API_SERVICE, None, &name, "Available").await;
        Ok(place)
    }

    /// Starts the controllers.
    async fn start(&mut self, timeouts: Timeouts) {
        let timeouts = Timeouts { together: TOGETHER, ..timeouts };
        let options = Options { timeouts, ..Options::new(self.cluster.clock(), GLOBAL) };
        // The recorded catalogs by image and in ConfigMaps are pods.
        let pods = CatalogPods { mode: CatalogMode::Pods, ..CatalogPods::default() };
        let classic = Classic::start_with(self.cluster.cluster(), options, pods);
        classic.synced().await;
        let server = self.cluster.server();
        let packages = Packages::new(GLOBAL, self.cluster.clock(), server.stop().clone());
        packages.attach(classic.catalogs());
        server.put_native_group(GLOBAL, SERVICE, Arc::new(Group(packages)));
        self.classic = Some(classic);
    }

    async fn stop(&mut self) {
        if let Some(classic) = self.classic.take() {
            classic.shutdown().await;
        }
    }

    /// Ends everything.
    pub(super) async fn end(mut self) {
        self.stop().await;
        self.servers.end().await;
        self.cluster.shutdown().await;
    }

    /// The cluster as its administrator sees it.
    pub(super) const fn cluster(&self) -> &Cluster {
        self.cluster.cluster()
    }

    /// What stands for an address of a catalog in the recordings, by the address.
    pub(super) fn addresses(&self) -> BTreeMap<String, String> {
        self.servers.addresses()
    }

    /// A text of the recordings with this cluster's own names in it; `names` are those that stand
    /// for generated ones.
    fn filled(&self, text: &str, names: &BTreeMap<String, String>) -> String {
        let mut text = text.to_owned();
        for (address, placeholder) in self.addresses() {
            text = text.replace(&placeholder, &address);
        }
        for (name, placeholder) in names {
            text = text.replace(placeholder, name);
        }
        text.replace("{time}", "2024-01-02T03:04:05Z")
    }

    /// Does what a step does, and waits until its consequences are there.
    pub(super) async fn carry_out(
        &mut self,
        step: &Step,
        names: &BTreeMap<String, String>,
    ) -> anyhow::Result<Outcome> {
        let title = step.title.to_lowercase();
        let wanted = step.until.as_deref().map(until::parse).transpose()?;
        // A plan that cannot be carried out is tried for a minute before it has failed, and Deployments
        // are waited for five. Nobody waits for that here: where the recording did, the controllers run
        // with a short patience.
        let hasty = wanted.as_deref().is_some_and(until::fails);
        let restarts = title.contains("restart") || title.contains("olm starts") || hasty;
        let mut timeouts = Timeouts::default();
        if hasty {
            (timeouts.plan, timeouts.install) = (HASTE, HASTE);
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
        let (usual, silent) = self.servers.silent(step.command.as_deref().unwrap_or_default());
        if !silent.is_empty() {
            let text = unrecorded::catalog(usual, &step.objects)?;
            for server in silent {
                self.servers.publish(&server, &text).await?;
            }
        }
        if restarts {
            self.start(timeouts).await;
        }
        let mut done = None;
        if let Some(text) = &step.command {
            let (text, input) = (self.filled(text, names), self.filled(&step.input, names));
            done = command::run(self.cluster(), &text, &input)
                .await
                .with_context(|| step.name.clone())?;
        }
        let mut reached = true;
        if let Some(wanted) = wanted {
            let named = step.command.as_deref().and_then(command::namespace);
            let here = named.as_ref().or(self.namespaces.first()).cloned().unwrap_or_default();
            reached = if step.reached {
                self.until(&here, &wanted, deadline(&step.objects)).await?
            } else {
                // It did not come in the recording: it must not have come when all is at rest either.
                self.rest(CALM).await;
                until::holds(self.cluster(), &self.namespaces, &here, &wanted).await?
            };
        }
        // Where the recording was at rest before the deadline of a Deployment, so must this be.
        let calm = if is_short(&step.objects) { CALM / 4 } else { CALM };
        let mut rests = self.rest(calm).await;
        if hasty {
            self.stop().await;
            self.start(Timeouts::default()).await;
            rests &= self.rest(CALM).await;
        }
        Ok(Outcome { command: done, reached, rests })
    }

    /// What a command that only reads prints, if it is about packages.
    pub(super) async fn printed(
        &self,
        step: &Step,
        names: &BTreeMap<String, String>,
    ) -> anyhow::Result<Option<Value>> {
        let Some(text) = &step.command else { return Ok(None) };
        let filled = self.filled(text, names);
        let printed = shown::ours(self.cluster(), &filled).await;
        printed.with_context(|| step.name.clone())
    }

    /// Waits for what the recording waited for, beyond the deadline of any Deployment.
    async fn until(
        &self,
        here: &str,
        wanted: &[Wanted],
        deadline: Duration,
    ) -> anyhow::Result<bool> {
        let (mut seen, mut calm) = (None, 0);
        let looks = usize::try_from(deadline.as_millis() / LOOK.as_millis()).unwrap_or(PATIENCE);
        let hopeless = HOPELESS + looks;
        let unwritten = until::is_unwritten(wanted);
        for _ in 0..PATIENCE {
            let revision = self.cluster.store().revision();
            calm += 1;
            if seen != Some(revision) || unwritten {
                calm = if seen == Some(revision) { calm } else { 0 };
                seen = Some(revision);
                if until::holds(self.cluster(), &self.namespaces, here, wanted).await? {
                    return Ok(true);
                }
            }
            if calm > hopeless {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        Ok(false)
    }

    /// Returns once nothing was written for so many looks; whether that came.
    async fn rest(&self, looks: usize) -> bool {
        let (mut seen, mut calm) = (self.cluster.store().revision(), 0);
        for _ in 0..RESTLESS {
            if calm >= looks {
                return true;
            }
            tokio::time::sleep(LOOK).await;
            let revision = self.cluster.store().revision();
            calm += 1;
            if revision != seen {
                (seen, calm) = (revision, 0);
            }
        }
        false
    }

    /// Everything of the kinds that were recorded.
    pub(super) async fn objects(&self) -> anyhow::Result<Vec<Object>> {
        let mut all = Vec::new();
        let served = self.cluster().resources().await?.resources;
        for api in served {
            let resource = &api.resource;
            let kept = KINDS.contains(&(resource.group.as_ref(), resource.kind.as_ref()));
            // Of OperatorConditions the newest version was recorded; discovery prefers it as well.
            if !kept || !api.preferred || !api.can("list") {
                continue;
            }
            all.extend(self.cluster().list(resource, None, &ListParams::default()).await?.items);
        }
        Ok(all)
    }

    /// The series of metrics that are recorded and name the case, in the form of the recordings.
    pub(super) fn metrics(&self, id: &str) -> Vec<String> {
        let mut page = Page::default();
        if let Some(classic) = &self.classic {
            classic.monitor().write_metrics(&mut page);
        }
        page.text().lines().filter(|line| line.contains(id)).filter_map(normal::series).collect()
    }

    /// All events.
    pub(super) async fn events(&self) -> anyhow::Result<Vec<Object>> {
        let events = known::EVENT;
        Ok(self.cluster().list(&events, None, &ListParams::default()).await?.items)
    }

    /// The names of all install plans, in order of their creation.
    pub(super) async fn plans(&self) -> anyhow::Result<Vec<Object>> {
        let params = ListParams::default();
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
const KINDS: &[(&str, &str)] = &[
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

/// Whether a Deployment was recorded that has a short deadline and still makes progress.
fn is_short(objects: &[Value]) -> bool {
    let progresses = |object: &&Value| {
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| condition["reason"] == "ReplicaSetUpdated")
    };
    objects
        .iter()
        .filter(progresses)
        .any(|object| !deadline(std::slice::from_ref(object)).is_zero())
}

/// The longest time after which a Deployment that makes no progress is given up, of those that set one
/// to see that happen.
fn deadline(objects: &[Value]) -> Duration {
    const SHORT: i64 = 60;
    let of = |object: &Value| object.pointer("/spec/progressDeadlineSeconds")?.as_i64();
    let seconds =
        objects.iter().filter_map(of).filter(|seconds| *seconds < SHORT).max().unwrap_or(0);
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
