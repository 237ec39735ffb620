//! Controllers on a cluster in the process of the test.

#![expect(clippy::unwrap_used, reason = "the lint knows test functions only, not their helpers")]

use futures::future::BoxFuture;
use mainstay_client::{Action, Cache, CacheSet, Cluster, Reconciler, Selection};
use mainstay_controller::{
    ControllerMonitor, Controllers, Monitor, ReconcileError, RequestError, RunningControllers,
    RunningSubsystems, Signal, Subsystem, SubsystemInfo, WithOperation as _,
};
use mainstay_exposition::Page;
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use mainstay_testkit::TestCluster;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The context of the controllers of these tests.
struct Context {
    config_maps: Cache<String>,
    signal: Signal,
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Error(#[from] RequestError);

impl ReconcileError for Error {
    fn request(&self) -> Option<&mainstay_client::Error> {
        Some(&self.0.source)
    }
}

/// Reports each key, and writes an outdated object the first time: a conflict.
struct Reporter {
    cluster: Cluster,
    keys: mpsc::UnboundedSender<NamespacedName>,
    conflicts: bool,
}

impl Reconciler for Reporter {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        self.keys.send(key.clone()).unwrap();
        if self.conflicts && key.namespace().is_some() {
            let mut outdated = config_map(&key.name);
            outdated.set(&["metadata", "resourceVersion"], json!("1"));
            self.cluster.update(&builtin::CONFIG_MAP, &outdated).await.during("writing")?;
        }
        Ok(Action::Done)
    }
}

fn config_map(name: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
    }))
    .unwrap()
}

fn context(set: &mut CacheSet) -> Arc<Context> {
    let selection =
        Selection::all(builtin::CONFIG_MAP).namespace("default").fields("metadata.name=a");
    let config_maps =
        set.start(Cache::builder(selection, |map| Some(map.resource_version().to_owned())));
    Arc::new(Context { config_maps, signal: Signal::default() })
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_and_signals_enqueue_keys_and_a_conflict_requeues_without_a_failure() {
    let test = TestCluster::bare().await;
    let stop = CancellationToken::new();
    let mut set = CacheSet::new(test.cluster().clone(), stop.clone());
    let context = context(&mut set);
    let (sender, mut keys) = mpsc::unbounded_channel();
    let mut controllers = Controllers::new(Arc::clone(&context), set, stop.clone());
    controllers
        .add("reporter")
        .watch(&context.config_maps, |_, queue, change| queue.add(change.key.clone()))
        .watch_source(|enqueuer| {
            let key = NamespacedName::cluster("signalled");
            context.signal.subscribe(move || enqueuer.with(|_, queue| queue.add(key.clone())));
        })
        .reconcile(Reporter { cluster: test.cluster().clone(), keys: sender, conflicts: true });
    let started = controllers.start();
    test.cluster().create(&builtin::CONFIG_MAP, &config_map("a")).await.unwrap();
    let a = NamespacedName::new("default", "a");
    assert_eq!(keys.recv().await.as_ref(), Some(&a));
    assert_eq!(keys.recv().await.as_ref(), Some(&a), "requeued after the conflict");
    context.signal.send();
    while keys.recv().await.unwrap() != NamespacedName::cluster("signalled") {}
    assert_eq!(started.handles()[0].counters().failed(), 0);
    stop.cancel();
    started.ended().await;
}

/// A subsystem of one controller.
struct Reports(RunningControllers);

static REPORTS: SubsystemInfo = SubsystemInfo {
    name: "reports",
    summary: "Reports of ConfigMaps",
    definitions: Vec::new,
    cluster_roles: Vec::new,
    permissions: Vec::new,
};

impl Subsystem for Reports {
    fn info(&self) -> &'static SubsystemInfo {
        &REPORTS
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.synced())
    }

    fn monitor(&self) -> Arc<dyn Monitor> {
        Arc::new(ReportsMonitor(self.0.monitors()))
    }

    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(self.0.ended())
    }
}

struct ReportsMonitor(Vec<ControllerMonitor>);

impl Monitor for ReportsMonitor {
    fn write_metrics(&self, page: &mut Page) {
        page.one("reports_total", "counter", "Reports.", 1);
    }

    fn controllers(&self) -> &[ControllerMonitor] {
        &self.0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_is_unhealthy_when_a_controller_ends_unexpectedly() {
    let test = TestCluster::bare().await;
    let stop = CancellationToken::new();
    let mut set = CacheSet::new(test.cluster().clone(), stop.clone());
    let context = context(&mut set);
    let (sender, _keys) = mpsc::unbounded_channel();
    let mut controllers = Controllers::new(Arc::clone(&context), set, stop.clone());
    controllers.add("reporter").watch(&context.config_maps, |_, _, _| {}).reconcile(Reporter {
        cluster: test.cluster().clone(),
        keys: sender,
        conflicts: false,
    });
    let started = controllers.start();
    let task = started.handles()[0].task();
    let mut subsystems = RunningSubsystems::default();
    subsystems.add(Reports(started));
    subsystems.synced().await;
    let monitors = subsystems.monitors();
    assert_eq!(monitors.check_health(), Ok(()));
    let mut page = Page::default();
    monitors.write_metrics(&mut page);
    let text = page.text();
    assert!(text.contains("reports_total 1\n"), "{text}");
    assert!(text.contains("workqueue_depth{name=\"reporter\"} 0\n"), "{text}");

    task.abort();
    while !task.is_finished() {
        tokio::task::yield_now().await;
    }
    let cause = monitors.check_health().unwrap_err().to_string();
    assert!(cause.contains("reports: the controller reporter has ended"), "{cause}");
    // The end of a stopped controller is no failure.
    stop.cancel();
    assert_eq!(monitors.check_health(), Ok(()));
    subsystems.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_controller_reconciles_before_every_shared_cache_has_synced() {
    let test = TestCluster::bare().await;
    let stop = CancellationToken::new();
    let mut set = CacheSet::new(test.cluster().clone(), stop.clone());
    let context = context(&mut set);
    // No CustomResourceDefinition defines this kind yet, so this cache cannot sync.
    let anvil = Resource::namespaced("forge.example.com", "v1", "Anvil", "anvils");
    set.start(Cache::builder(Selection::all(anvil), |_| Some(())));
    let (sender, mut keys) = mpsc::unbounded_channel();
    let mut controllers = Controllers::new(Arc::clone(&context), set, stop.clone());
    controllers
        .add("reporter")
        .watch(&context.config_maps, |_, queue, change| queue.add(change.key.clone()))
        .reconcile(Reporter { cluster: test.cluster().clone(), keys: sender, conflicts: false });
    let started = controllers.start();
    test.cluster().create(&builtin::CONFIG_MAP, &config_map("a")).await.unwrap();
    let queue = started.handles()[0].queue().clone();
    context.config_maps.until(|| queue.len() == 1).await;
    assert!(keys.try_recv().is_err(), "the key waits");
    test.apply_yaml(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: anvils.forge.example.com}
spec:
  group: forge.example.com
  scope: Namespaced
  names: {kind: Anvil, plural: anvils}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
",
    )
    .await;
    assert_eq!(keys.recv().await, Some(NamespacedName::new("default", "a")));
    started.synced().await;
    stop.cancel();
    started.ended().await;
}
