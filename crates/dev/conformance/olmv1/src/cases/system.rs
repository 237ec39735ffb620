//! The system under test: a cluster with the controllers and the catalog server.

use super::case::{Case, FeatureProfile};
use super::network::CaseNetwork;
use anyhow::Context;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use mainstay_api::CrdChannel;
use mainstay_client::Cluster;
use mainstay_extensions::{Extensions, Options};
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::ClientSettings;
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName};
use mainstay_registry::ServedCatalogs;
use mainstay_registry::http::CatalogHttpApi;
use mainstay_testkit::{TestCluster, TestClusterSettings};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The Kubernetes version that the recorded server reported.
const VERSION: &str = "v1.35.0+simulated.answers";
/// The pod label with which recorded pods ask to fail.
const BEHAVIOUR_LABEL: &str = "answers.test/behave";
/// The namespace of the lifecycle system.
pub(super) const SYSTEM_NAMESPACE: &str = "olmv1-system";
/// The name of the global pull secret.
const PULL_SECRET: &str = "pull-secret";
/// The host of the catalog server.
const EXTERNAL_ADDRESS: &str = "catalogd-service.olmv1-system.svc";
/// The pauses between two attempts to pull: shorter than the original's, to save time.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));
/// How often the registry client repeats a failed request. The original does not.
const ATTEMPTS: u32 = 1;

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

    /// A value that changes with every write to the cluster.
    fn revision(&self) -> BoxFuture<'_, anyhow::Result<u64>>;

    /// Starts the controllers and the catalog server.
    fn start(&mut self) -> BoxFuture<'_, anyhow::Result<()>>;

    /// Stops the controllers and the catalog server.
    fn stop(&mut self) -> BoxFuture<'_, ()>;

    /// The response of the catalog server; none if it does not run.
    fn request<'a>(
        &'a self,
        method: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, anyhow::Result<Option<CatalogResponse>>>;

    /// Stops everything.
    fn shutdown(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// A cluster and controllers in this process.
pub(super) struct InProcessSystem {
    cluster: TestCluster,
    running: Option<(Extensions, Arc<ServedCatalogs>)>,
    images: ImageSources,
    folder: TempDir,
    /// Whether the catalog server has `metas`: a feature gate of the original.
    metas: bool,
}

impl InProcessSystem {
    /// Starts the cluster of a case, without controllers.
    pub(super) async fn of(case: &Case, network: &CaseNetwork) -> anyhow::Result<Self> {
        let cluster = TestCluster::with(TestClusterSettings {
            version: Some(VERSION.to_owned()),
            behaviour_label: Some(BEHAVIOUR_LABEL.to_owned()),
            behaviour: Some("run".to_owned()),
            ..TestClusterSettings::default()
        })
        .await;
        let channel = match case.profile {
            FeatureProfile::Standard => CrdChannel::Standard,
            FeatureProfile::Experimental | FeatureProfile::Boxcutter => CrdChannel::Experimental,
        };
        for crd in mainstay_api::olm_v1_crds(channel) {
            cluster.apply(crd).await;
        }
        let namespace =
            format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {SYSTEM_NAMESPACE}}}}}");
        cluster.apply_yaml(&namespace).await;
        let folder = tempfile::tempdir()?;
        let images = images(&folder, network, &cluster)?;
        let metas = case.profile != FeatureProfile::Standard;
        Ok(Self { cluster, running: None, images, folder, metas })
    }
}

fn images(
    folder: &TempDir,
    network: &CaseNetwork,
    cluster: &TestCluster,
) -> anyhow::Result<ImageSources> {
    let store = |name: &str| ImageStore::open(folder.path().join(name));
    let work = folder.path().join("work");
    std::fs::create_dir_all(&work)?;
    Ok(ImageSources {
        local: store("local")?,
        named: Arc::new(|reference: &ImageReference| LocalName {
            reference: reference.clone(),
            only_here: false,
        }),
        pulled: store("pulled")?,
        registries: ClientSettings {
            dial: network.dialer(),
            authorities: vec![network.authority.clone()],
            system_authorities: false,
            attempts: ATTEMPTS,
            ..ClientSettings::new(cluster.clock())
        },
        policy: Arc::new(|| Ok(SignaturePolicy::accept_anything())),
        work,
    })
}

impl CaseSystem for InProcessSystem {
    fn cluster(&self) -> &Cluster {
        self.cluster.cluster()
    }

    fn revision(&self) -> BoxFuture<'_, anyhow::Result<u64>> {
        Box::pin(async { Ok(self.cluster.store().revision()) })
    }

    fn start(&mut self) -> BoxFuture<'_, anyhow::Result<()>> {
        Box::pin(async {
            let content = self.folder.path().join("content");
            std::fs::create_dir_all(&content).context("the folder of catalogs")?;
            let served = Arc::new(ServedCatalogs::default());
            let options = Options {
                folders: std::collections::BTreeMap::new(),
                clock: self.cluster.clock(),
                system_namespace: SYSTEM_NAMESPACE.to_owned(),
                pull_secrets: vec![PULL_SECRET.to_owned()],
                external_address: EXTERNAL_ADDRESS.to_owned(),
                images: self.images.clone(),
                content,
                served: Arc::clone(&served),
                retry: RETRY,
            };
            let extensions = Extensions::start(self.cluster.cluster(), options);
            extensions.synced().await;
            self.running = Some((extensions, served));
            Ok(())
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some((extensions, _)) = self.running.take() {
                extensions.shutdown().await;
            }
        })
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, anyhow::Result<Option<CatalogResponse>>> {
        Box::pin(async move {
            let Some((_, served)) = &self.running else { return Ok(None) };
            let api = CatalogHttpApi::new(Arc::clone(served)).with_metas(self.metas);
            let method = Method::from_bytes(method.as_bytes())?;
            let response = api.answer(&Request::builder().method(method).uri(path).body(())?);
            let (parts, body) = response.into_parts();
            let content_type = parts.headers.get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            Ok(Some(CatalogResponse {
                status: parts.status.as_u16(),
                content_type: content_type.unwrap_or_default().to_owned(),
                body: body.collect().await?.to_bytes(),
            }))
        })
    }

    fn shutdown(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.stop().await;
            self.cluster.shutdown().await;
        })
    }
}
