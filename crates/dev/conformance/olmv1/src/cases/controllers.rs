//! The controllers and the catalog server of a case, in this process.

use super::case::{Case, FeatureProfile};
use super::network::CaseNetwork;
use super::system::{CatalogResponse, SYSTEM_NAMESPACE};
use anyhow::Context;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_extensions::{Extensions, Features, Options, TrustMode};
use mainstay_image::policy::SignaturePolicy;
use mainstay_image::reference::ImageReference;
use mainstay_image::registry::ClientSettings;
use mainstay_image::store::ImageStore;
use mainstay_images::{ImageSources, LocalName};
use mainstay_registry::ServedCatalogs;
use mainstay_registry::http::CatalogHttpApi;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// The name of the global pull secret.
const PULL_SECRET: &str = "pull-secret";
/// The host of the catalog server.
const EXTERNAL_ADDRESS: &str = "catalogd-service.olmv1-system.svc";
/// The pauses between two attempts to pull: shorter than the original's, to save time.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(4));
/// How often the registry client repeats a failed request. The original does not.
const ATTEMPTS: u32 = 1;

/// The controllers and the catalog server of a case. They can stop and start again, with the content
/// that they stored.
pub(super) struct CaseControllers {
    cluster: Cluster,
    clock: Clock,
    running: Option<(Extensions, Arc<ServedCatalogs>)>,
    images: ImageSources,
    folder: TempDir,
    /// Whether the catalog server has `metas`: a feature gate of the original.
    metas: bool,
    /// The features of the case.
    own_features: Features,
    /// Those of the process that runs.
    features: Features,
    /// Whether operator-controller runs.
    has_extensions: bool,
}

/// The features of the process in which a case was recorded.
pub(super) const fn features(case: &Case) -> Features {
    match case.profile {
        FeatureProfile::Standard => Features {
            preflight_permissions: false,
            ..Features::standard(TrustMode::ServiceAccount)
        },
        FeatureProfile::Experimental => Features::experimental(TrustMode::ServiceAccount),
        FeatureProfile::Boxcutter => Features::object_sets(TrustMode::ServiceAccount),
    }
}

impl CaseControllers {
    /// The controllers of a case, which do not run yet.
    pub(super) fn of(
        case: &Case,
        network: &CaseNetwork,
        cluster: &Cluster,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let features = features(case);
        Ok(Self {
            cluster: cluster.clone(),
            clock,
            running: None,
            images: images(&folder, network, clock)?,
            folder,
            metas: case.profile != FeatureProfile::Standard,
            has_extensions: true,
            own_features: features,
            features,
        })
    }

    /// Starts them, and returns once each reconciles.
    pub(super) async fn start(&mut self) -> anyhow::Result<()> {
        let content = self.folder.path().join("content");
        std::fs::create_dir_all(&content).context("the folder of catalogs")?;
        let served = Arc::new(ServedCatalogs::default());
        let options = Options {
            folders: BTreeMap::new(),
            clock: self.clock,
            system_namespace: SYSTEM_NAMESPACE.to_owned(),
            release_namespace: SYSTEM_NAMESPACE.to_owned(),
            pull_secrets: vec![PULL_SECRET.to_owned()],
            external_address: EXTERNAL_ADDRESS.to_owned(),
            images: self.images.clone(),
            content,
            served: Arc::clone(&served),
            retry: RETRY,
            features: self.features,
            extensions: self.has_extensions,
        };
        let extensions = Extensions::start(&self.cluster, options);
        let (extensions, _) = self.running.insert((extensions, served));
        extensions.synced().await;
        Ok(())
    }

    /// Starts or stops one process of the original, or all.
    pub(super) async fn control(&mut self, process: &str, runs: bool) -> anyhow::Result<()> {
        self.stop().await;
        // One subsystem stands for both processes. Without catalogd, none of ours runs.
        if process == "operator-controller" {
            self.has_extensions = runs;
            self.features = self.own_features;
        } else if process == "helm" {
            // operator-controller with the Helm applier, until its next start.
            self.features.object_sets = false;
        } else if !runs {
            return Ok(());
        }
        self.start().await
    }

    /// Stops them.
    pub(super) async fn stop(&mut self) {
        if let Some((extensions, _)) = self.running.take() {
            extensions.shutdown().await;
        }
    }

    /// The response of the catalog server; none if it does not run.
    pub(super) async fn request(
        &self,
        method: &str,
        path: &str,
    ) -> anyhow::Result<Option<CatalogResponse>> {
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
    }
}

fn images(folder: &TempDir, network: &CaseNetwork, clock: Clock) -> anyhow::Result<ImageSources> {
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
            ..ClientSettings::new(clock)
        },
        policy: Arc::new(|| Ok(SignaturePolicy::accept_anything())),
        work,
    })
}
