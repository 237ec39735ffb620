//! The aggregated API server of PackageManifests on an existing cluster: a listener to which the
//! cluster's API server forwards requests.
//!
//! ```text
//! client ───► API server ─► Service ─► listener ──► authentication ────► authorization ─► packages
//!                 ▲                                                            │
//!                 └── `APIService` (registration)      `SubjectAccessReview` ──┘
//! ```
//!
//! The listener is open from the start. PackageManifests are served, and the APIService is registered,
//! while this process is the leader.

mod certificate;
mod registration;
mod request_header;

use self::certificate::ServingCertificate;
use self::registration::Registration;
pub(in crate::run) use self::registration::remove_stale_registration;
use self::request_header::RequestHeaderConfig;
use super::access::AccessReviews;
use crate::embedded::{chain, io};
use crate::packages::response_body;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use mainstay_apiserver::serve::{self, Limits, Peer};
use mainstay_auth::Identity;
use mainstay_auth::authz::RequestInfo;
use mainstay_cause::Cause;
use mainstay_classic::CatalogContents;
use mainstay_cli::config::PackagesAddresses;
use mainstay_client::{Cache, Cluster, Selection};
use mainstay_clock::Clock;
use mainstay_command::environment::text_variable;
use mainstay_command::exit::CommandFailure;
use mainstay_http::Body;
use mainstay_http::query::Query;
use mainstay_object::{NamespacedName, Reason, Status, builtin};
use mainstay_packages::PackageApi;
use mainstay_port::TrackedBody;
use mainstay_tls::ServerTls;
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

/// The port of OLM's package server.
const PORT: u16 = 5443;
/// Concurrent connections; an API server needs few.
const CONNECTIONS: usize = 512;

/// An open listener of the package server.
pub(super) struct PackagesListener {
    listener: TcpListener,
    server: PackagesServer,
}

/// The package server. Clones share the state.
#[derive(Clone)]
pub(super) struct PackagesServer {
    /// The address under which the cluster reaches the listener.
    address: SocketAddr,
    namespace: &'static str,
    certificate: Arc<ServingCertificate>,
    clock: Clock,
    backend: Arc<Mutex<Option<Arc<Backend>>>>,
}

/// What responses need while this process is the leader.
struct Backend {
    packages: PackageApi,
    request_headers: Cache<RequestHeaderConfig>,
    access: AccessReviews,
}

/// The address under which the cluster reaches this process: the configured one, or in a pod the pod's.
pub(in crate::run) fn reachable_address(config: &PackagesAddresses) -> Option<IpAddr> {
    let in_a_pod = || registration::source_address_for(&text_variable("KUBERNETES_SERVICE_HOST")?);
    config.address.or_else(in_a_pod)
}

impl PackagesListener {
    /// Opens the listener, if the cluster can reach it. `namespace` is that of the Service.
    pub(super) async fn open(
        config: &PackagesAddresses,
        namespace: &'static str,
        clock: Clock,
    ) -> Result<Option<Self>, CommandFailure> {
        let Some(ip) = reachable_address(config) else { return Ok(None) };
        let unspecified: IpAddr =
            if ip.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let listen = config.listen.unwrap_or_else(|| SocketAddr::new(unspecified, PORT));
        let bound_listener = TcpListener::bind(listen)
            .await
            .and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (bound_address, listener) = bound_listener.map_err(|error| {
            CommandFailure::usage(
                Cause::new(format!("packages cannot be served at {listen}"))
                    .because(io(&error))
                    .remedy("choose another address with --packages-listen ADDR:PORT; port 0 selects a free port"),
            )
        })?;
        let server = PackagesServer {
            address: SocketAddr::new(ip, bound_address.port()),
            namespace,
            certificate: ServingCertificate::new(namespace, clock)?,
            clock,
            backend: Arc::default(),
        };
        Ok(Some(Self { listener, server }))
    }

    /// Serves until `stop`, on a task of its own.
    pub(super) fn serve(
        self,
        tls: &ServerTls,
        stop: CancellationToken,
    ) -> Result<(PackagesServer, JoinHandle<()>), Cause> {
        let Self { listener, server } = self;
        let tls = server.certificate.server_config(tls)?;
        let limits = Limits { connections: CONNECTIONS, ..Limits::default() };
        let server_clone = server.clone();
        let service = service_fn(move |request: Request<TrackedBody>| {
            let server = server_clone.clone();
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        let serving = tokio::spawn(serve::serve(listener, tls, limits, stop, service));
        Ok((server, serving))
    }
}

impl PackagesServer {
    /// Serves the catalogs of the controllers until `term` ends, and keeps the APIService registered
    /// meanwhile. `say` reports the address, or that another program serves packages.
    pub(super) async fn work(
        &self,
        cluster: &Cluster,
        catalogs: CatalogContents,
        global_namespace: &str,
        term: &CancellationToken,
        say: impl Fn(&str),
    ) {
        let stop = CancellationToken::new();
        let _ended = stop.clone().drop_guard();
        let packages = PackageApi::new(global_namespace, self.clock, stop.clone());
        packages.attach(catalogs);
        let mut selection =
            Selection::all(builtin::CONFIG_MAP).namespace(request_header::NAMESPACE);
        selection.fields = format!("metadata.name={}", request_header::NAME);
        let request_headers = Cache::start(
            cluster,
            selection,
            |config_map| Some(RequestHeaderConfig::of(config_map)),
            stop.clone(),
        );
        let backend = Backend {
            packages,
            request_headers,
            access: AccessReviews::new(cluster.clone(), self.clock),
        };
        *self.backend.lock() = Some(Arc::new(backend));
        let registration = Registration {
            cluster: cluster.clone(),
            clock: self.clock,
            namespace: self.namespace,
            address: self.address,
            certificate: Arc::clone(&self.certificate),
        };
        match registration.is_owned_by_another_program().await {
            Ok(false) => {
                say(&format!(
                    "packages    https://{} as {}.{}",
                    self.address,
                    mainstay_packages::VERSION,
                    mainstay_packages::GROUP
                ));
                registration.maintain(term).await;
            }
            Ok(true) => {
                say("packages    served by another program, according to the APIService");
                term.cancelled().await;
            }
            Err(error) => {
                let cause = chain(&error);
                tracing::error!(%cause, "the APIService of packages cannot be read, so packages are not registered");
                term.cancelled().await;
            }
        }
        *self.backend.lock() = None;
    }

    async fn respond(&self, request: Request<TrackedBody>) -> Response<Body> {
        let (parts, _) = request.into_parts();
        let backend = self.backend.lock().clone();
        let path = parts.uri.path();
        if matches!(path, "/healthz" | "/livez" | "/readyz") {
            let ready = path != "/readyz" || backend.is_some();
            return probe_response(ready);
        }
        let Some(backend) = backend else {
            let why = "this process is not the leader";
            return status_response(&Status::new(Reason::ServiceUnavailable, why).retry_after(1));
        };
        let authorization = async {
            let peer = parts.extensions.get::<Peer>();
            let identity = backend.identity(peer, &parts.headers, self.clock).await?;
            if let Some(peer) = peer.filter(|_| !identity.is_anonymous()) {
                peer.seat.mark_authenticated(identity.client());
            }
            let query = Query::parse(parts.uri.query()).ok();
            let resource = mainstay_http::path::parse_resource(path);
            let info = RequestInfo::read(&parts.method, path, resource, query.as_ref())
                .ok_or_else(Status::no_such_path)?;
            backend.access.authorize(&info.attributes(&identity)).await
        };
        match authorization.await {
            Ok(()) => {
                let request = Request::from_parts(parts, ());
                backend.packages.answer(&request).await.map(response_body)
            }
            Err(status) => status_response(&status),
        }
    }
}

impl Backend {
    /// The user of a request.
    async fn identity(
        &self,
        peer: Option<&Peer>,
        headers: &HeaderMap,
        clock: Clock,
    ) -> Result<Identity, Status> {
        self.request_headers.synced().await;
        let config = self
            .request_headers
            .get(&NamespacedName::new(request_header::NAMESPACE, request_header::NAME));
        let certificate = peer.and_then(|peer| peer.certificate.as_deref());
        let seconds = u64::try_from(clock.now().as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        if let (Some(config), Some(certificate)) = (config, certificate) {
            // A client with a certificate is the API server's front proxy, or it is refused.
            return config
                .identity(certificate.chain(), headers, now)
                .ok_or_else(Status::unauthorized);
        }
        self.access.authenticate(headers).await
    }
}

fn probe_response(ok: bool) -> Response<Body> {
    let text = if ok { "ok" } else { "this process is not the leader\n" };
    let mut response = Response::new(Body::from(bytes::Bytes::from_static(text.as_bytes())));
    if !ok {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

fn status_response(status: &Status) -> Response<Body> {
    let text = status.to_value().to_string();
    let mut response = Response::new(Body::from(bytes::Bytes::from(text)));
    *response.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
