//! The system under test: a cluster with the controllers and the catalog server.

use super::case::{Case, FeatureProfile};
use super::controllers::CaseControllers;
use super::network::CaseNetwork;
use super::remote::{self, RemoteSystem, SharedCluster};
use bytes::Bytes;
use futures::future::BoxFuture;
use mainstay_api::CrdChannel;
use mainstay_client::Cluster;
use mainstay_object::Object;
use mainstay_testkit::{TestCluster, TestClusterSettings};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// The Kubernetes version that the recorded server reported.
const VERSION: &str = "v1.35.0+simulated.answers";
/// The pod label with which recorded pods ask to fail.
pub(super) const BEHAVIOUR_LABEL: &str = "answers.test/behave";
/// The time until the garbage collector of an existing cluster knows new CRDs: Kubernetes looks for
/// them every 30 seconds.
const COLLECTOR_DELAY: Duration = Duration::from_secs(40);
/// The namespace of the lifecycle system.
pub(super) const SYSTEM_NAMESPACE: &str = "olmv1-system";

/// A response of the catalog server.
#[derive(Debug)]
pub(super) struct CatalogResponse {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

/// What a replay needs of the system that it runs against.
pub(super) trait CaseSystem: Send + Sync {
    /// A client with an administrator's permissions.
    fn cluster(&self) -> &Cluster;

    /// A value that changes with every write to the objects that cases are about.
    fn revision(&self) -> BoxFuture<'_, anyhow::Result<u64>>;

    /// The controllers and the catalog server.
    fn controllers(&mut self) -> &mut CaseControllers;

    /// Stops everything.
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The clusters that cases run on.
#[derive(Clone, Default)]
pub enum CaseClusters {
    /// Each case has a cluster of its own in this process.
    #[default]
    InProcess,
    /// All cases run on one existing cluster, one after the other.
    Existing(Box<SharedCluster>),
}

impl CaseClusters {
    /// The cluster of a kubeconfig. It serves this purpose only: everything of OLM v1 on it is deleted
    /// between two cases.
    ///
    /// # Errors
    /// The kubeconfig cannot be read, the server does not respond, or the cluster has the CRDs of OLM v1
    /// for another purpose.
    pub async fn existing(kubeconfig: &Path) -> anyhow::Result<Self> {
        let cluster = remote::connect(kubeconfig).await?;
        let existing = SharedCluster { cluster, collector_delay: COLLECTOR_DELAY };
        Ok(Self::Existing(Box::new(existing)))
    }

    /// Whether cases can run at the same time.
    pub(super) const fn are_independent(&self) -> bool {
        matches!(self, Self::InProcess)
    }

    /// The system of a case, without running controllers.
    pub(super) async fn system(
        &self,
        case: &Case,
        network: &CaseNetwork,
    ) -> anyhow::Result<Box<dyn CaseSystem>> {
        Ok(match self {
            Self::InProcess => Box::new(InProcessSystem::of(case, network).await?),
            Self::Existing(existing) => {
                Box::new(RemoteSystem::of(case, network, existing.as_ref().clone()).await?)
            }
        })
    }
}

/// The CRDs of a case.
pub(super) fn crds(case: &Case) -> Vec<Object> {
    let channel = match case.profile {
        FeatureProfile::Standard => CrdChannel::Standard,
        FeatureProfile::Experimental | FeatureProfile::Boxcutter => CrdChannel::Experimental,
    };
    mainstay_api::require_service_accounts(mainstay_api::olm_v1_crds(channel))
}

/// The CRDs that stand for cert-manager.
pub(super) fn cert_manager() -> Vec<Object> {
    [("Certificate", "certificates"), ("Issuer", "issuers")]
        .into_iter()
        .filter_map(|(kind, plural)| {
            let crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.cert-manager.io")},
                "spec": {
                    "group": "cert-manager.io",
                    "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                    "versions": [{
                        "name": "v1", "served": true, "storage": true,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {
                            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        }},
                    }],
                },
            });
            Object::from_value(crd).ok()
        })
        .collect()
}

/// A cluster and controllers in this process.
struct InProcessSystem {
    cluster: TestCluster,
    controllers: CaseControllers,
}

impl InProcessSystem {
    /// Starts the cluster of a case, without controllers.
    async fn of(case: &Case, network: &CaseNetwork) -> anyhow::Result<Self> {
        let cluster = TestCluster::with(TestClusterSettings {
            version: Some(VERSION.to_owned()),
            behaviour_label: Some(BEHAVIOUR_LABEL.to_owned()),
            behaviour: Some("run".to_owned()),
            ..TestClusterSettings::default()
        })
        .await;
        for crd in crds(case).into_iter().chain(cert_manager()) {
            cluster.apply(crd).await;
        }
        let namespace =
            format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {SYSTEM_NAMESPACE}}}}}");
        cluster.apply_yaml(&namespace).await;
        let controllers = CaseControllers::of(case, network, cluster.cluster(), cluster.clock())?;
        Ok(Self { cluster, controllers })
    }
}

impl CaseSystem for InProcessSystem {
    fn cluster(&self) -> &Cluster {
        self.cluster.cluster()
    }

    fn revision(&self) -> BoxFuture<'_, anyhow::Result<u64>> {
        Box::pin(async { Ok(self.cluster.store().revision()) })
    }

    fn controllers(&mut self) -> &mut CaseControllers {
        &mut self.controllers
    }

    fn shutdown(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.controllers.stop().await;
            self.cluster.shutdown().await;
        })
    }
}
