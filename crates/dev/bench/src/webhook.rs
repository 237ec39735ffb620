//! Creates that webhooks are asked about: the same requests to several servers, which ask the same
//! webhook, a process of its own in this program.
//!
//! Servers take turns, round by round, so that what else the machine does hits all of them.

use crate::api::{Api, NAMESPACE};
use crate::figure::{Figure, median};
use crate::table::{Table, percentile};
use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::api::{DeleteParams, PostParams};
use kube::core::Request;
use rcgen::{CertificateParams, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Which servers, and how much.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How to reach a server, as whom (repeatable).
    #[arg(long = "kubeconfig", required = true)]
    kubeconfigs: Vec<PathBuf>,
    /// How many objects are created in one turn.
    #[arg(long, default_value_t = 500)]
    objects: usize,
    /// How many turns each server has.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// The name of the configurations that are made, and go again.
const NAME: &str = "mainstay-bench";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
/// How often a server is asked whether it has noticed a configuration.
const LOOKS: usize = 100;
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// What webhooks are asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    ToJudge,
    ToChange,
}

impl Asked {
    const ALL: [Self; 3] = [Self::Nothing, Self::ToJudge, Self::ToChange];

    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "no webhook",
            Self::ToJudge => "a webhook that judges",
            Self::ToChange => "a webhook that changes the object",
        }
    }

    /// Kind and plural of the configuration.
    const fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::ToChange => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            _ => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        }
    }
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let webhook = Webhook::start().await?;
    let mut apis = Vec::new();
    for kubeconfig in &arguments.kubeconfigs {
        apis.push(Api::connect(kubeconfig).await?);
    }
    let names = arguments.kubeconfigs.iter().map(|path| path.display().to_string());
    let columns: Vec<String> = std::iter::once("work".to_owned()).chain(names).collect();
    let mut table = Table::new(&columns.iter().map(String::as_str).collect::<Vec<_>>());
    for asked in Asked::ALL {
        let mut figures: Vec<[Vec<Figure>; 3]> = vec![Default::default(); apis.len()];
        for api in &apis {
            configure(api, &webhook, asked).await?;
        }
        for _ in 0..arguments.rounds {
            for (api, [rates, medians, many]) in apis.iter().zip(&mut figures) {
                let before = webhook.calls();
                api.begin().await?;
                let (elapsed, samples) = api.create(1, 0..arguments.objects).await?;
                rates.push(Figure::rate(arguments.objects, elapsed));
                medians.push(Figure::Time(percentile(&samples, 50)));
                let all = arguments.objects * 2;
                let (elapsed, _) = api.create(32, arguments.objects..all).await?;
                many.push(Figure::rate(arguments.objects, elapsed));
                let calls = webhook.calls() - before;
                // Controllers put back what they want in the namespace.
                let expected = if asked == Asked::Nothing { 0 } else { all };
                ensure!(calls >= expected, "the webhook was called {calls} times, not {expected}");
            }
        }
        for api in &apis {
            remove(api, asked).await?;
            api.begin().await?;
        }
        for (at, what) in
            ["creates/s, 1 client", "- p50", "creates/s, 32 clients"].iter().enumerate()
        {
            let of = |figures: &[Vec<Figure>; 3]| {
                median(&figures[at]).map_or_else(String::new, |it| it.to_string())
            };
            let work = format!("{}: {what}", asked.name());
            table.row(std::iter::once(work).chain(figures.iter().map(of)));
        }
    }
    println!(
        "Medians of {} turns with {} objects.\n\n{table}",
        arguments.rounds, arguments.objects
    );
    Ok(())
}

/// Makes the configuration, and waits until the server acts on it.
async fn configure(api: &Api, webhook: &Webhook, asked: Asked) -> Result<()> {
    api.begin().await?;
    remove(api, Asked::ToJudge).await?;
    remove(api, Asked::ToChange).await?;
    let (kind, plural) = asked.kind();
    if asked != Asked::Nothing {
        let path = if asked == Asked::ToChange { "change" } else { "judge" };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME},
            "webhooks": [{
                "name": "one.bench.mainstay.dev", "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("{}/{path}", webhook.url), "caBundle": webhook.authority},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
                "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
                    "resources": ["configmaps"]}],
            }],
        });
        let request = Request::new(format!("{GROUP}/{plural}"));
        let request =
            request.create(&PostParams::default(), serde_json::to_vec(&configuration)?)?;
        api.client.request_text(request).await.context("making the configuration")?;
    }
    // One that is asked nothing is done when the last configuration is forgotten.
    for at in 0..LOOKS {
        let before = webhook.calls();
        let _ = api.create(1, at..at + 1).await?;
        if (webhook.calls() > before) == (asked != Asked::Nothing) {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    anyhow::bail!("the server does not notice the configuration")
}

async fn remove(api: &Api, asked: Asked) -> Result<()> {
    let (_, plural) = asked.kind();
    let request =
        Request::new(format!("{GROUP}/{plural}")).delete(NAME, &DeleteParams::default())?;
    match api.client.request_text(request).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => outcome.map(drop).context("removing the configuration"),
    }
}

/// A webhook on this machine.
struct Webhook {
    url: String,
    /// Who signs for it, in Base64.
    authority: String,
    calls: Arc<AtomicUsize>,
}

impl Webhook {
    async fn start() -> Result<Self> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        let certificate = parameters.self_signed(&key)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = vec![CertificateDer::from(certificate.der().to_vec())];
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, private)?;
        let tls = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("https://{}", listener.local_addr()?);
        let calls = Arc::<AtomicUsize>::default();
        let counted = calls.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, counted) = (tls.clone(), counted.clone());
                tokio::spawn(async move {
                    // Answers are small: they leave at once.
                    let _ = stream.set_nodelay(true);
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, counted.clone()));
                    let http = hyper::server::conn::http1::Builder::new();
                    // Clients go when they like.
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Ok(Self { url, authority: STANDARD.encode(certificate.pem()), calls })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

async fn answer(
    request: http::Request<hyper::body::Incoming>,
    calls: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>> {
    calls.fetch_add(1, Ordering::Relaxed);
    let changes = request.uri().path() == "/change";
    let body = request.into_body().collect().await?.to_bytes();
    let review: Value = serde_json::from_slice(&body)?;
    let mut response = json!({"uid": review["request"]["uid"], "allowed": true});
    if changes {
        let patch = json!([{"op": "add", "path": "/data/added", "value": "by a webhook"}]);
        response["patchType"] = "JSONPatch".into();
        response["patch"] = STANDARD.encode(patch.to_string()).into();
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let response = Response::builder().header("content-type", "application/json");
    Ok(response.body(Full::new(review.to_string().into()))?)
}
