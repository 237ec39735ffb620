//! A cluster in which the work of the operator controllers is counted: they have threads of their
//! own, and every request of theirs is counted.

use crate::counted::{ControllerUsage, CountedThreads};
use anyhow::{Context, Result};
use mainstay_api::resources::{CLUSTER_SERVICE_VERSION, SUBSCRIPTION};
use mainstay_classic::{Classic, FolderCatalog, Options};
use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_testkit::TestCluster;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The namespace of the catalogs.
pub(crate) const CATALOG_NAMESPACE: &str = "olm";
/// The name of the controllers' threads.
const THREAD_NAME: &str = "classic";

/// A cluster in this process.
pub(crate) struct CountedCluster {
    pub(crate) test_cluster: TestCluster,
    pub(crate) clock: Clock,
    threads: CountedThreads,
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
        let world = Self {
            clock: cluster.clock(),
            test_cluster: cluster,
            threads: CountedThreads::start(THREAD_NAME)?,
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
        let cluster = self.threads.client(&self.test_cluster);
        let catalogs = self.catalogs.clone();
        let clock = self.clock;
        let classic = self.threads.handle().spawn(async move {
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
        self.threads.stop();
        self.test_cluster.shutdown().await;
    }

    /// The usage of the controllers so far.
    pub(crate) fn usage(&self) -> Result<ControllerUsage> {
        self.threads.usage()
    }

    /// The requests since the last call, by method and kind, per operation.
    pub(crate) fn take_requests(&self, count: usize) -> String {
        self.threads.take_requests(count)
    }

    /// Waits until the controllers are idle; returns the time of their last write.
    pub(crate) async fn wait_until_idle(&self) -> Duration {
        self.threads.wait_until_idle(&self.clock).await
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
