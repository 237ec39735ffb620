//! The two kinds of server a scenario runs against.

use crate::exchange::{Answer, Request};
use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use mainstay_testkit::TestCluster;
use std::path::Path;
use std::time::Duration;

/// How long any answer may take to begin, and to end if it is no watch.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// Something that answers Kubernetes requests with all permissions.
pub struct Server {
    client: kube::Client,
    name: &'static str,
    embedded: Option<TestCluster>,
}

impl Server {
    /// The embedded API with its controllers and one node, in this process and in memory.
    pub async fn embedded() -> Self {
        let cluster = TestCluster::start().await;
        Self { client: cluster.kube_client(), name: "embedded", embedded: Some(cluster) }
    }

    /// The server of a kubeconfig's current context.
    ///
    /// # Errors
    ///
    /// A kubeconfig that cannot be read or used.
    pub async fn at(kubeconfig: &Path) -> anyhow::Result<Self> {
        // Somebody else may have been first, with the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let file = kube::config::Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("read {}", kubeconfig.display()))?;
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(file, &options).await?;
        // Every answer counts, also "try again"; and watches last as long as they last.
        config.default_retry = false;
        config.read_timeout = None;
        let client = kube::Client::try_from(config).context("make a client")?;
        Ok(Self { client, name: "real", embedded: None })
    }

    /// What to call it.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it is the embedded one.
    pub(crate) const fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Its version, as `v1.35.4`.
    ///
    /// # Errors
    ///
    /// A server that does not tell.
    pub async fn version(&self) -> anyhow::Result<String> {
        let request = Request {
            method: "GET".to_owned(),
            path: "/version".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let answer = self.ask(request).await?.value();
        let version = answer["gitVersion"].as_str().context("the server has no version")?;
        Ok(version.to_owned())
    }

    /// The answer without its body, which may go on and on.
    pub(crate) async fn open(&self, request: Request) -> anyhow::Result<http::Response<Body>> {
        open(&self.client, request).await
    }

    /// The whole answer.
    pub(crate) async fn ask(&self, request: Request) -> anyhow::Result<Answer> {
        let what = format!("{} {}", request.method, request.path);
        let (head, body) = self.open(request).await?.into_parts();
        let body = tokio::time::timeout(PATIENCE, body.collect())
            .await
            .with_context(|| format!("{what}: the answer does not end"))?
            .with_context(|| what.clone())?;
        Ok(Answer {
            status: head.status.as_u16(),
            headers: headers(&head.headers),
            body: body.to_bytes().to_vec(),
        })
    }

    /// The client underneath.
    pub(crate) fn client(&self) -> kube::Client {
        self.client.clone()
    }
}

/// Sends a request and returns as soon as the answer begins.
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
    let answer = tokio::time::timeout(PATIENCE, client.send(request))
        .await
        .with_context(|| format!("{what}: no answer"))?;
    answer.with_context(|| what.clone())
}

/// Headers as names and texts.
pub(crate) fn headers(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}
