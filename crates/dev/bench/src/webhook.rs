//! Creates with webhooks: the same requests to several servers, which call the same webhook in this
//! process.
//!
//! Servers take turns, round by round, so that other load on the machine affects all of them.

use crate::api::{Api, NAMESPACE};
use crate::figure::{Figure, Unit, median};
use crate::launch::{Data, MainstayServer, Program, RealControlPlane};
use crate::table::{Cell, Report, Table, percentile};
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

/// Options of `webhook`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    program: Program,
    /// A program that starts a real control plane to compare with. It is called with
    /// `--dir DIR --controllers=false`, prints `KUBECONFIG=FILE` and lines `NAME pid N` (etcd,
    /// kube-apiserver) once all is ready, and runs until SIGTERM.
    #[arg(long, value_name = "PROGRAM", conflicts_with = "kubeconfig")]
    real: Option<PathBuf>,
    /// The kubeconfig of a running server to measure instead (repeatable; ours first, then the real
    /// one).
    #[arg(long, value_name = "FILE")]
    kubeconfig: Vec<PathBuf>,
    /// The number of objects created per turn.
    #[arg(long, default_value_t = 500)]
    objects: usize,
    /// The number of turns per server.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// The name of the webhook configurations.
const NAME: &str = "mainstay-bench";
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
/// The greatest number of polls until a server observes a configuration.
const MAX_POLLS: usize = 100;
/// The interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The configured type of webhook.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WebhookMode {
    None,
    Validating,
    Mutating,
}

impl WebhookMode {
    const ALL: [Self; 3] = [Self::None, Self::Validating, Self::Mutating];

    const fn key(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Validating => "judge",
            Self::Mutating => "change",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::None => "no webhook",
            Self::Validating => "a webhook that judges",
            Self::Mutating => "a webhook that changes the object",
        }
    }

    /// Kind and plural of the configuration.
    const fn kind(self) -> (&'static str, &'static str) {
        match self {
            Self::Mutating => ("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
            _ => ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
        }
    }
}

/// The measurements of each turn.
const MEASUREMENTS: [(&str, &str); 3] = [
    ("creates-1", "1 client: creates/s"),
    ("creates-1-p50", "1 client: p50"),
    ("creates-32", "32 clients: creates/s"),
];

pub(crate) async fn run(arguments: &Arguments) -> Result<Report> {
    let mut report = Report::default();
    if !arguments.kubeconfig.is_empty() {
        let mut apis = Vec::new();
        for kubeconfig in &arguments.kubeconfig {
            apis.push(Api::connect(kubeconfig).await?);
        }
        let all: Vec<&Api> = apis.iter().collect();
        report.table(measure(arguments, &all).await?)?;
        return Ok(report);
    }
    let program = &arguments.program;
    let (data, work, other) = (program.folder()?, program.folder()?, program.folder()?);
    let data = Data::Folder(data.path());
    let ours = MainstayServer::start(&program.path()?, data, None, work.path()).await?;
    if let Some(real) = &arguments.real {
        let real = RealControlPlane::start(real, other.path()).await?;
        report.fact("peer", real.api.version().await?);
        report.table(measure(arguments, &[&ours.api, &real.api]).await?)?;
        real.stop().await?;
    } else {
        report.table(measure(arguments, &[&ours.api]).await?)?;
    }
    ours.stop().await?;
    Ok(report)
}

/// Measures the servers in turns; of two servers, also the ratio.
async fn measure(arguments: &Arguments, apis: &[&Api]) -> Result<Table> {
    let webhook = Webhook::start().await?;
    let numbers: Vec<String> = (3..=apis.len()).map(|number| format!("server-{number}")).collect();
    let mut columns: Vec<(&str, &str)> = match apis.len() {
        1 => vec![("ours", "ours")],
        _ => vec![("ours", "ours"), ("real", "real"), ("times", "times as fast")],
    };
    columns.extend(numbers.iter().map(|number| (number.as_str(), number.as_str())));
    let mut table = Table::new("creates", "work", &columns);
    for mode in WebhookMode::ALL {
        let mut figures: Vec<[Vec<Figure>; 3]> = vec![Default::default(); apis.len()];
        for api in apis {
            configure(api, &webhook, mode).await?;
        }
        for _ in 0..arguments.rounds.max(1) {
            for (api, [rates, medians, many]) in apis.iter().zip(&mut figures) {
                let before = webhook.calls();
                api.begin().await?;
                let (elapsed, samples) = api.create(1, 0..arguments.objects).await?;
                rates.push(Figure::rate(arguments.objects, elapsed));
                medians.push(Figure::time(percentile(&samples, 50)));
                let all = arguments.objects * 2;
                let (elapsed, _) = api.create(32, arguments.objects..all).await?;
                many.push(Figure::rate(arguments.objects, elapsed));
                let calls = webhook.calls() - before;
                // Controllers recreate default objects in the namespace, which calls the webhook
                // too.
                let expected = if mode == WebhookMode::None { 0 } else { all };
                ensure!(calls >= expected, "the webhook was called {calls} times, not {expected}");
            }
        }
        for api in apis {
            remove(api, mode).await?;
            api.begin().await?;
        }
        for (at, (key, title)) in MEASUREMENTS.iter().enumerate() {
            let medians: Vec<Option<Figure>> =
                figures.iter().map(|server| median(&server[at])).collect();
            let mut cells: Vec<Cell> = medians.iter().map(|figure| (*figure).into()).collect();
            if let [ours, theirs, ..] = medians.as_slice() {
                // A greater rate is better, a shorter time is better.
                let times = ours.zip(*theirs).and_then(|(ours, theirs)| match ours.unit {
                    Unit::Time => theirs.ratio_to(ours),
                    _ => ours.ratio_to(theirs),
                });
                cells.insert(2, times.into());
            }
            table.row(format!("{}-{key}", mode.key()), format!("{}, {title}", mode.name()), cells);
        }
    }
    Ok(table)
}

/// Creates the configuration, and waits until the server applies it.
async fn configure(api: &Api, webhook: &Webhook, mode: WebhookMode) -> Result<()> {
    api.begin().await?;
    remove(api, WebhookMode::Validating).await?;
    remove(api, WebhookMode::Mutating).await?;
    let (kind, plural) = mode.kind();
    if mode != WebhookMode::None {
        let path = if mode == WebhookMode::Mutating { "change" } else { "judge" };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME},
            "webhooks": [{
                "name": "one.bench.mainstay.dev", "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("{}/{path}", webhook.url), "caBundle": webhook.ca},
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
    // Without a webhook, wait until the server has forgotten the last configuration.
    for at in 0..MAX_POLLS {
        let before = webhook.calls();
        let _ = api.create(1, at..at + 1).await?;
        if (webhook.calls() > before) == (mode != WebhookMode::None) {
            return Ok(());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    anyhow::bail!("the server does not notice the configuration")
}

async fn remove(api: &Api, mode: WebhookMode) -> Result<()> {
    let (_, plural) = mode.kind();
    let request =
        Request::new(format!("{GROUP}/{plural}")).delete(NAME, &DeleteParams::default())?;
    match api.client.request_text(request).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        outcome => outcome.map(drop).context("removing the configuration"),
    }
}

/// The webhook server of this process.
struct Webhook {
    url: String,
    /// The CA certificate, in Base64.
    ca: String,
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
                    // Responses are small: send them at once.
                    let _ = stream.set_nodelay(true);
                    let Ok(stream) = tls.accept(stream).await else { return };
                    let service = service_fn(move |request| answer(request, counted.clone()));
                    let http = hyper::server::conn::http1::Builder::new();
                    // Clients may disconnect at any time.
                    drop(http.serve_connection(TokioIo::new(stream), service).await);
                });
            }
        });
        Ok(Self { url, ca: STANDARD.encode(certificate.pem()), calls })
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
