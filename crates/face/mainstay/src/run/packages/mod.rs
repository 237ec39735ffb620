//! `PackageManifests` for a cluster that is there: the API of packages on a port of its own, which the
//! cluster's API server passes requests on to.
//!
//! ```text
//! somebody ─► API server ─► Service ─► this port ─► is it the API server? ─► may they? ─► packages
//!                 ▲                                                            │
//!                 └── `APIService` (registration)          `SubjectAccessReview` ──┘
//! ```
//!
//! The port is open from the start; packages are served, and registered, while this process works.

mod certificate;
mod front;
mod registration;

use self::certificate::Certificate;
use self::front::Front;
use self::registration::Registration;
pub(in crate::run) use self::registration::forget;
use super::access::Access;
use crate::embedded::{chain, io};
use crate::packages::body;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use mainstay_apiserver::serve::{self, Limits, Peer};
use mainstay_auth::Identity;
use mainstay_auth::authz::RequestInfo;
use mainstay_cause::Cause;
use mainstay_classic::CatalogContents;
use mainstay_cli::config::{PackagesAt, text_variable};
use mainstay_cli::exit::Failure;
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_clock::Clock;
use mainstay_http::Body;
use mainstay_http::query::Query;
use mainstay_object::{NamespacedName, Reason, Status, known};
use mainstay_packages::Packages;
use mainstay_port::Received;
use parking_lot::Mutex;
use rustls::pki_types::UnixTime;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::service_fn;

/// The port of the original.
const PORT: u16 = 5443;
/// Connections at one time; an API server needs few.
const CONNECTIONS: usize = 512;

/// A port for packages.
pub(super) struct Port {
    listener: TcpListener,
    server: Server,
}

/// Who answers. Clones are the same.
#[derive(Clone)]
pub(super) struct Server {
    /// Where the cluster reaches it.
    at: SocketAddr,
    namespace: &'static str,
    certificate: Arc<Certificate>,
    clock: Clock,
    work: Arc<Mutex<Option<Arc<Work>>>>,
}

/// What answers need while this process works.
struct Work {
    packages: Packages,
    fronts: Cache<Front>,
    access: Access,
}

/// Where the cluster reaches this process: as it was said, or, in a pod, at the pod's address.
fn address(said: &PackagesAt) -> Option<IpAddr> {
    let in_a_pod = || registration::towards(&text_variable("KUBERNETES_SERVICE_HOST")?);
    said.address.or_else(in_a_pod)
}

impl Port {
    /// Opens the port, if the cluster can reach it. `namespace` is that of the Service.
    pub(super) async fn open(
        said: &PackagesAt,
        namespace: &'static str,
        clock: Clock,
    ) -> Result<Option<Self>, Failure> {
        let Some(ip) = address(said) else { return Ok(None) };
        let any: IpAddr =
            if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let listen = said.listen.unwrap_or_else(|| SocketAddr::new(any, PORT));
        let opened = TcpListener::bind(listen)
            .await
            .and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (bound, listener) = opened.map_err(|error| {
            Failure::usage(
                Cause::new(format!("packages cannot be served at {listen}"))
                    .because(io(&error))
                    .remedy("choose another address with --packages-listen ADDR:PORT; port 0 picks a free one"),
            )
        })?;
        let server = Server {
            at: SocketAddr::new(ip, bound.port()),
            namespace,
            certificate: Certificate::new(namespace, clock)?,
            clock,
            work: Arc::default(),
        };
        Ok(Some(Self { listener, server }))
    }

    /// Answers until `stop`, on a task of its own.
    pub(super) fn serve(self, stop: CancellationToken) -> Result<(Server, JoinHandle<()>), Cause> {
        let Self { listener, server } = self;
        let settings = server.certificate.settings()?;
        let limits = Limits { connections: CONNECTIONS, ..Limits::default() };
        let answering = server.clone();
        let service = service_fn(move |request: Request<Received>| {
            let server = answering.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        let serving = tokio::spawn(serve::serve(listener, settings, limits, stop, service));
        Ok((server, serving))
    }
}

impl Server {
    /// Shows what the controllers know until `term` ends, and registers it meanwhile. `say` hears
    /// where it is served, or who serves it in place of this.
    pub(super) async fn work(
        &self,
        cluster: &Cluster,
        offered: CatalogContents,
        global: &str,
        term: &CancellationToken,
        say: impl Fn(&str),
    ) {
        let stop = CancellationToken::new();
        let _ended = stop.clone().drop_guard();
        let packages = Packages::new(global, self.clock, stop.clone());
        packages.attach(offered);
        let mut selection = Selection::all(known::CONFIG_MAP).namespace(front::NAMESPACE);
        selection.fields = format!("metadata.name={}", front::NAME);
        let fronts = Cache::start(
            cluster,
            selection,
            |config_map| Some(Front::of(config_map)),
            stop.clone(),
        );
        let work = Work { packages, fronts, access: Access::new(cluster.clone(), self.clock) };
        *self.work.lock() = Some(Arc::new(work));
        let registration = Registration {
            cluster: cluster.clone(),
            clock: self.clock,
            namespace: self.namespace,
            at: self.at,
            certificate: Arc::clone(&self.certificate),
        };
        match registration.is_taken().await {
            Ok(false) => {
                say(&format!(
                    "packages    https://{} as {}.{}",
                    self.at,
                    mainstay_packages::VERSION,
                    mainstay_packages::GROUP
                ));
                registration.keep(term).await;
            }
            Ok(true) => {
                say("packages    are served by another program, as its APIService says");
                term.cancelled().await;
            }
            Err(error) => {
                let cause = chain(&error);
                tracing::error!(%cause, "it cannot be seen who serves packages, so they are not registered");
                term.cancelled().await;
            }
        }
        *self.work.lock() = None;
    }

    async fn answer(&self, request: Request<Received>) -> Response<Body> {
        let (parts, _) = request.into_parts();
        let work = self.work.lock().clone();
        let path = parts.uri.path();
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            let ready = path != "/readyz" || work.is_some();
            return plain(ready);
        }
        let Some(work) = work else {
            let why = "this process does not work, another one may";
            return refusal(&Status::new(Reason::ServiceUnavailable, why).retry_after(1));
        };
        let allowed = async {
            let peer = parts.extensions.get::<Peer>();
            let identity = work.identity(peer, &parts.headers, self.clock).await?;
            if let Some(peer) = peer.filter(|_| !identity.is_anonymous()) {
                peer.seat.prove(identity.client());
            }
            let query = Query::parse(parts.uri.query()).ok();
            let resource = mainstay_http::path::resource(path);
            let info = RequestInfo::read(&parts.method, path, resource, query.as_ref())
                .ok_or_else(Status::no_such_path)?;
            work.access.allow(&info.attributes(&identity)).await
        };
        match allowed.await {
            Ok(()) => {
                let request = Request::from_parts(parts, ());
                work.packages.answer(&request).await.map(body)
            }
            Err(status) => refusal(&status),
        }
    }
}

impl Work {
    /// Who asks.
    async fn identity(
        &self,
        peer: Option<&Peer>,
        headers: &HeaderMap,
        clock: Clock,
    ) -> Result<Identity, Status> {
        self.fronts.synced().await;
        let front = self.fronts.get(&NamespacedName::new(front::NAMESPACE, front::NAME));
        let shown = peer.and_then(|peer| peer.certificate.as_deref());
        let seconds = u64::try_from(clock.now().as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        if let (Some(front), Some(shown)) = (front, shown) {
            // Whoever shows a certificate is the API server, or nobody.
            return front.identity(shown.chain(), headers, now).ok_or_else(Status::unauthorized);
        }
        self.access.bearer(headers).await
    }
}

fn plain(ok: bool) -> Response<Body> {
    let text = if ok { "ok" } else { "this process does not work, another one may\n" };
    let mut response = Response::new(Body::from(bytes::Bytes::from_static(text.as_bytes())));
    if !ok {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn refusal(status: &Status) -> Response<Body> {
    let text = status.to_value().to_string();
    let mut response = Response::new(Body::from(bytes::Bytes::from(text)));
    *response.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
