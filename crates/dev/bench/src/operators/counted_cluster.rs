//! A cluster in which the work of the operator controllers is counted: they have threads of their
//! own, and every request of theirs is counted.

use crate::figure::Figure;
use anyhow::{Context, Result};
use http::{Method, Request, Response};
use kube::client::Body;
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_auth::Identity;
use mainstay_classic::{Classic, FolderCatalog, Options};
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_testkit::TestCluster;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tower::Service as _;

/// The namespace of the catalogs.
pub(crate) const CATALOG_NAMESPACE: &str = "olm";
/// The name of the controllers' threads.
const THREAD_NAME: &str = "classic";
/// After so much time without a write, the controllers are idle.
const IDLE_AFTER: Duration = Duration::from_millis(300);
/// The interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The requests of the controllers.
#[derive(Default)]
pub(crate) struct Requests {
    reads: AtomicUsize,
    writes: AtomicUsize,
    /// Writes by method, kind and subresource.
    kinds: Mutex<BTreeMap<String, usize>>,
}

impl Requests {
    fn count(&self, method: &Method, path: &str) {
        if method == Method::GET {
            self.reads.fetch_add(1, Ordering::SeqCst);
            return;
        }
        self.writes.fetch_add(1, Ordering::SeqCst);
        let parts: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let below = if parts.first() == Some(&"api") { 2 } else { 3 };
        let scope = if parts.get(below) == Some(&"namespaces") && parts.len() > below + 2 {
            below + 2
        } else {
            below
        };
        let kind = parts.get(scope).unwrap_or(&"?");
        let part = parts.get(scope + 2).map(|segment| format!("/{segment}")).unwrap_or_default();
        *self.kinds.lock().entry(format!("{method} {kind}{part}")).or_default() += 1;
    }
}

/// The requests and processor time of the controllers up to some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ControllerUsage {
    pub(crate) reads: usize,
    pub(crate) writes: usize,
    pub(crate) processor: Duration,
}

impl ControllerUsage {
    /// The difference to an earlier usage.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            processor: self.processor.saturating_sub(earlier.processor),
        }
    }

    /// Writes, reads and processor time per operation.
    pub(crate) fn per_operation(self, count: usize) -> [Figure; 3] {
        let parts = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        let [writes, reads] = [self.writes, self.reads].map(|sum| Figure::each(sum, count));
        [writes, reads, Figure::time(self.processor / parts)]
    }
}

/// A cluster in this process.
pub(crate) struct CountedCluster {
    pub(crate) test_cluster: TestCluster,
    pub(crate) clock: Clock,
    requests: Arc<Requests>,
    controller_runtime: Option<Runtime>,
    classic: Option<Classic>,
    catalogs: Vec<FolderCatalog>,
}

impl CountedCluster {
    /// Starts a cluster with these catalogs, by name and folder, without its controllers.
    pub(crate) async fn new(catalogs: &[(String, &Path)]) -> Result<Self> {
        let cluster = TestCluster::start().await;
        for crd in mainstay_api::crds() {
            cluster.apply(crd).await;
        }
        let controller_runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .thread_name(THREAD_NAME)
            // The processor time of a terminated thread would be lost.
            .thread_keep_alive(Duration::from_hours(1))
            .build()
            .context("starting threads")?;
        let world = Self {
            clock: cluster.clock(),
            test_cluster: cluster,
            requests: Arc::default(),
            controller_runtime: Some(controller_runtime),
            classic: None,
            catalogs: catalogs
                .iter()
                .map(|(name, folder)| FolderCatalog {
                    namespace: CATALOG_NAMESPACE.to_owned(),
                    name: name.clone(),
                    folder: (*folder).to_owned(),
                    served: None,
                    address: None,
                })
                .collect(),
        };
        world.create_namespace(CATALOG_NAMESPACE).await;
        for (name, _) in catalogs {
            let source = json!({
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
                "metadata": {"name": name, "namespace": CATALOG_NAMESPACE},
                "spec": {"sourceType": "grpc", "address": mainstay_classic::FOLDER_ADDRESS},
            });
            world.apply(source).await?;
        }
        Ok(world)
    }

    /// Starts the controllers, and returns when their caches have synced.
    pub(crate) async fn start(&mut self) -> Result<()> {
        let cluster =
            counting_client(&self.test_cluster, Arc::clone(&self.requests), Handle::current());
        let catalogs = self.catalogs.clone();
        let clock = self.clock;
        let controller_runtime =
            self.controller_runtime.as_ref().context("threads that have ended")?;
        let classic = controller_runtime.spawn(async move {
            let options = Options { catalogs, ..Options::new(clock, CATALOG_NAMESPACE) };
            let classic = Classic::start(&cluster, options);
            classic.synced().await;
            classic
        });
        self.classic = Some(classic.await.context("starting the controllers")?);
        Ok(())
    }

    /// Stops the controllers; the cluster continues.
    pub(crate) async fn stop(&mut self) {
        if let Some(classic) = self.classic.take() {
            classic.shutdown().await;
        }
    }

    /// Stops controllers and cluster.
    pub(crate) async fn shutdown(mut self) {
        self.stop().await;
        if let Some(controller_runtime) = self.controller_runtime.take() {
            controller_runtime.shutdown_background();
        }
        self.test_cluster.shutdown().await;
    }

    /// The usage of the controllers so far.
    pub(crate) fn usage(&self) -> Result<ControllerUsage> {
        Ok(ControllerUsage {
            reads: self.requests.reads.load(Ordering::SeqCst),
            writes: self.requests.writes.load(Ordering::SeqCst),
            processor: processor_time()?,
        })
    }

    /// The writes since the last call, by method and kind, per operation.
    pub(crate) fn take_writes(&self, count: usize) -> String {
        let kinds = std::mem::take(&mut *self.requests.kinds.lock());
        let mut lines: Vec<(usize, String)> =
            kinds.into_iter().map(|(kind, writes)| (writes, kind)).collect();
        lines.sort_unstable_by(|a, b| b.cmp(a));
        let tenths = |writes: usize| writes * 10 / count.max(1);
        let lines = lines.iter().map(|(writes, kind)| {
            format!("{:>6}.{} {kind}\n", tenths(*writes) / 10, tenths(*writes) % 10)
        });
        lines.collect()
    }

    /// Waits until the controllers are idle; returns the time of their last write.
    pub(crate) async fn wait_until_idle(&self) -> Duration {
        let mut last = (self.requests.writes.load(Ordering::SeqCst), self.clock.elapsed());
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            let writes = self.requests.writes.load(Ordering::SeqCst);
            let now = self.clock.elapsed();
            if writes != last.0 {
                last = (writes, now);
            } else if now.saturating_sub(last.1) > IDLE_AFTER {
                return last.1;
            }
        }
    }

    async fn apply(&self, object: Value) -> Result<Object> {
        Ok(self.test_cluster.apply(Object::from_value(object).context("an object")?).await)
    }

    /// Creates a namespace.
    pub(crate) async fn create_namespace(&self, name: &str) {
        let text = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
        self.test_cluster.apply_yaml(&text).await;
    }

    /// Creates a namespace with an OperatorGroup for itself.
    pub(crate) async fn create_own_namespace(&self, name: &str) -> Result<()> {
        self.create_namespace(name).await;
        let group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "group", "namespace": name},
            "spec": {"targetNamespaces": [name]},
        });
        self.apply(group).await.map(drop)
    }

    /// Creates a namespace with an OperatorGroup for all namespaces.
    pub(crate) async fn create_global_namespace(&self, name: &str) -> Result<()> {
        self.create_namespace(name).await;
        let group = json!({
            "apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
            "metadata": {"name": "group", "namespace": name},
        });
        self.apply(group).await.map(drop)
    }

    /// Creates a Subscription, with further fields for its spec.
    pub(crate) async fn subscribe(
        &self,
        namespace: &str,
        package: &str,
        catalog: &str,
        more: Value,
    ) -> Result<()> {
        let mut spec = json!({
            "name": package, "channel": "stable", "source": catalog, "sourceNamespace": CATALOG_NAMESPACE,
        });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        let subscription = Object::from_value(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": package, "namespace": namespace}, "spec": spec,
        }))?;
        self.test_cluster.cluster().create(&SUBSCRIPTION, &subscription).await?;
        Ok(())
    }

    /// Waits until a ClusterServiceVersion has succeeded.
    pub(crate) async fn wait_until_succeeded(&self, namespace: &str, version: &str) {
        let runs = |csv: &Object| csv.str(&["status", "phase"]) == Some("Succeeded");
        self.test_cluster.wait_for(&CLUSTER_SERVICE_VERSION, Some(namespace), version, runs).await;
    }
}

/// The client of the controllers: requests are counted, and handled on other threads.
fn counting_client(cluster: &TestCluster, requests: Arc<Requests>, answering: Handle) -> Cluster {
    let service = cluster.server().service(Identity::admin());
    let service = tower::service_fn(move |request: Request<Body>| {
        requests.count(request.method(), request.uri().path());
        let mut service = service.clone();
        let answer = answering.spawn(async move { service.call(request).await });
        async move {
            match answer.await {
                Ok(Ok(answer)) => Ok::<Response<_>, tokio::task::JoinError>(answer),
                Ok(Err(never)) => match never {},
                Err(ended) => Err(ended),
            }
        }
    });
    Cluster::new(kube::Client::new(service, "default"))
}

/// The processor time of the controllers' threads.
fn processor_time() -> Result<Duration> {
    let mut total = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task").context("reading the threads")? {
        let task = task.context("reading the threads")?.path();
        // A thread may have ended since the listing.
        let Ok(name) = fs::read_to_string(task.join("comm")) else { continue };
        if name.trim() != THREAD_NAME {
            continue;
        }
        let spent =
            fs::read_to_string(task.join("schedstat")).context("reading a thread's time")?;
        let nanos = spent.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        total += Duration::from_nanos(nanos.context("a thread without a time")?);
    }
    Ok(total)
}
