//! The server under test: embedded, or that of a kubeconfig.

use crate::exchange::{Request, ServerResponse};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use mainstay_testkit::TestCluster;
use std::path::Path;
use std::time::Duration;

/// The timeout for a response to begin, and to end unless it is a watch.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(40);

/// A Kubernetes API server, reached with all permissions.
pub struct Server {
    client: kube::Client,
    name: &'static str,
    embedded: Option<TestCluster>,
}

impl Server {
    /// Starts the embedded API with its controllers and one node, in this process and in memory.
    pub async fn embedded() -> Self {
        let cluster = TestCluster::start().await;
        Self { client: cluster.kube_client(), name: "embedded", embedded: Some(cluster) }
    }

    /// The server of a kubeconfig's current context.
    ///
    /// # Errors
    ///
    /// The kubeconfig cannot be read or used.
    pub async fn from_kubeconfig(kubeconfig: &Path) -> anyhow::Result<Self> {
        // Another caller may have installed the same provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let file = kube::config::Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("read {}", kubeconfig.display()))?;
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(file, &options).await?;
        // Every response counts, including "try again", and watches have no read timeout.
        config.default_retry = false;
        config.read_timeout = None;
        let client = kube::Client::try_from(config).context("make a client")?;
        Ok(Self { client, name: "real", embedded: None })
    }

    /// Its name in reports.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it is the embedded one.
    pub(crate) const fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Its version, such as `v1.35.4`.
    ///
    /// # Errors
    ///
    /// The server does not report a version.
    pub async fn version(&self) -> anyhow::Result<String> {
        let request = Request {
            method: "GET".to_owned(),
            path: "/version".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let response = self.send(request).await?.value();
        let version = response["gitVersion"].as_str().context("the server has no version")?;
        Ok(version.to_owned())
    }

    /// Sends a request, and returns when the response begins.
    pub(crate) async fn open(&self, request: Request) -> anyhow::Result<http::Response<Body>> {
        open(&self.client, request).await
    }

    /// Sends a request, and returns the whole response.
    pub(crate) async fn send(&self, request: Request) -> anyhow::Result<ServerResponse> {
        let what = format!("{} {}", request.method, request.path);
        let (head, body) = self.open(request).await?.into_parts();
        let body = tokio::time::timeout(TIMEOUT, body.collect())
            .await
            .with_context(|| format!("{what}: the answer does not end"))?
            .with_context(|| what.clone())?;
        Ok(ServerResponse {
            status: head.status.as_u16(),
            headers: headers(&head.headers),
            body: body.to_bytes().to_vec(),
        })
    }

    /// The underlying client.
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }
}

/// Sends a request, and returns when the response begins.
pub(crate) async fn open(
    client: &kube::Client,
    request: Request,
) -> anyhow::Result<http::Response<Body>> {
    let Request { method, path, headers, body } = request;
    let what = format!("{method} {path}");
    let mut builder = http::Request::builder().method(method.as_str()).uri(&path);
    for (name, value) in headers {
        builder = builder.header(name, value);
    }
    let body = Body::from(Bytes::from(body));
    let request = builder.body(body).with_context(|| what.clone())?;
    let response = tokio::time::timeout(TIMEOUT, client.send(request))
        .await
        .with_context(|| format!("{what}: no answer"))?;
    response.with_context(|| what.clone())
}

/// Headers as names and texts.
pub(crate) fn headers(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
