//! The server: what it is made of, and from an HTTP request to a handler.

use crate::aggregation::{self, Aggregation};
use crate::discovery::{self, DiscoveryRequest};
use crate::handlers::aside::aside;
use crate::handlers::compute::{ComputePool, LARGE};
use crate::handlers::{self, Request};
use crate::limits::From;
use crate::limits::flow::Flow;
use crate::messages::Messages;
use crate::metrics::{self, Metrics};
use crate::service::{ApiService, LoopbackClient, PortService};
use crate::version::VersionInfo;
use crate::{Readiness, audit, limits, serve};
use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, HOST, HeaderValue, IF_NONE_MATCH, USER_AGENT,
};
use http::{Method, Response, StatusCode, request};
use hyper::upgrade::OnUpgrade;
use mainstay_admission::Admission;
use mainstay_auth::Identity;
use mainstay_auth::authn::openid::{CONFIGURATION_PATH, KEYS_PATH};
use mainstay_auth::authn::{Authenticator, Shown};
use mainstay_auth::authz::{Attributes, Authorizer};
use mainstay_clock::Clock;
use mainstay_exposition::Page;
pub(crate) use mainstay_http::header_text as text;
use mainstay_http::path::{self, Target};
use mainstay_http::query::Query;
use mainstay_http::request_body::gather;
use mainstay_http::response::{ApiResponse, JSON, ResponseFormat};
use mainstay_http::{Body, negotiate};
use mainstay_kinds::Registry;
use mainstay_kinds::allocator::Allocator;
use mainstay_object::{Reason, Status};
use mainstay_outbound::Outbound;
use mainstay_store::Store;
use mainstay_streams::NativePods;
use std::fmt;
use std::sync::{Arc, OnceLock};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Answers from this size on are rewritten where nobody waits for the thread.
const LARGE_ANSWER: usize = 256 * 1024;

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where objects live.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Issues and reads the tokens of service accounts.
    pub authenticator: Arc<Authenticator>,
    /// What `/version` says.
    pub version: VersionInfo,
    /// Ends watches and background work.
    pub stop: CancellationToken,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A namespace that every cluster has could not be made.
    #[error("creating the namespace {name}: {status}")]
    CreateNamespace {
        /// Name of the namespace.
        name: String,
        /// The refusal.
        status: Status,
    },
    /// A flow schema or priority level that every cluster has could not be made.
    #[error("creating flow schemas and priority levels: {0}")]
    Flow(Status),
    /// The range of addresses of Services could not be made.
    #[error("creating the ServiceCIDR kubernetes: {0}")]
    ServiceRange(Status),
    /// An `APIService` of a group that is built in could not be made.
    #[error("creating APIServices: {0}")]
    Groups(Status),
    /// A role or binding that every cluster has could not be made.
    #[error("creating the {kind} {name}: {status}")]
    CreateRole {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// The refusal.
        status: Status,
    },
}

/// A Kubernetes API server.
#[derive(Debug)]
pub struct ApiServer {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) readiness: Readiness,
    /// Asks whether changes are saved.
    pub(crate) storage_check: handlers::health::StorageCheck,
    pub(crate) version: VersionInfo,
    pub(crate) stop: CancellationToken,
    /// Definitions change one at a time: whether names are free depends on all of them.
    pub(crate) definitions: tokio::sync::Mutex<()>,
    /// Which addresses and ports Services have.
    pub(crate) allocator: Arc<Allocator>,
    /// Changes and refuses writes.
    pub(crate) admission: Admission,
    /// Calls webhooks and other backends.
    pub(crate) outbound: Arc<Outbound>,
    /// Pods that something in this process stands for.
    pub(crate) native_pods: NativePods,
    /// When old events were last looked for.
    pub(crate) last_sweep: handlers::events::LastSweep,
    /// Which requests wait for which others.
    pub(crate) flow: Flow,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// Where requests are written down.
    pub(crate) audit: OnceLock<audit::Log>,
    /// Where requests run whose work takes long.
    pub(crate) compute: ComputePool,
    /// Groups that others serve.
    pub(crate) aggregation: Aggregation,
    /// Objects as clients written in Go read them.
    pub(crate) messages: Arc<Messages>,
    /// When the server started.
    pub(crate) started: jiff::Timestamp,
}

impl ApiServer {
    /// Starts a server on a store: serves the kinds of the definitions that the store has, finishes
    /// deletions of definitions that were under way, and makes the namespaces, roles and bindings that
    /// every cluster has.
    pub async fn start(config: Config) -> Result<Arc<Self>, StartError> {
        let Config { store, clock, authenticator, version, stop } = config;
        let registry = Arc::new(Registry::new(mainstay_validation::for_kind));
        let authorizer = Arc::new(Authorizer::new(store.clone()));
        let outbound = Arc::new(Outbound::new(store.clone(), clock));
        let admission = Admission::new(
            store.clone(),
            clock,
            Arc::clone(&registry),
            Arc::clone(&authorizer),
            Arc::clone(&outbound),
        );
        let server = Arc::new(Self {
            admission,
            allocator: Allocator::new(store.clone(), clock),
            authorizer,
            outbound,
            store,
            clock,
            authenticator,
            registry,
            readiness: Readiness::default(),
            storage_check: handlers::health::StorageCheck::default(),
            version,
            stop,
            definitions: tokio::sync::Mutex::default(),
            native_pods: NativePods::default(),
            last_sweep: handlers::events::LastSweep::default(),
            flow: Flow::default(),
            messages: Arc::default(),
            metrics: Metrics::default(),
            audit: OnceLock::new(),
            compute: ComputePool::default(),
            aggregation: Aggregation::default(),
            started: clock.now(),
        });
        handlers::definitions::restore(&server);
        handlers::bootstrap::namespaces(&server).await?;
        handlers::bootstrap::service_range(&server).await.map_err(StartError::ServiceRange)?;
        handlers::roles::settle(&server).await?;
        limits::flow::start(&server).await.map_err(StartError::Flow)?;
        crate::policy_status::keep(&server);
        aggregation::seed(&server).await.map_err(StartError::Groups)?;
        aggregation::start(&server).map_err(StartError::Groups)?;
        Ok(server)
    }

    /// The service as one identity uses it.
    pub fn service(self: &Arc<Self>, identity: Identity) -> ApiService {
        ApiService::new(self.clone(), identity)
    }

    /// The gates of `/readyz`.
    pub const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Where objects live.
    pub const fn store(&self) -> &Store {
        &self.store
    }

    /// The time.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Issues and reads the tokens of service accounts.
    pub fn authenticator(&self) -> &Authenticator {
        &self.authenticator
    }

    /// Cancelled when the server is to end.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Decides who may do what.
    pub fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Has what runs beside the server write its counts onto the page of `/metrics`. Only the first
    /// one that is given counts.
    pub fn also_measures(&self, write: impl Fn(&mut Page) + Send + Sync + 'static) {
        self.metrics.others.set(write);
    }

    /// Writes every request from now on down in a log. Only the first one that is given counts.
    pub fn write_down(&self, log: audit::Log) {
        // A second one was a mistake of the program; the first goes on.
        let _ = self.audit.set(log);
    }

    /// The service as whoever connects uses it.
    pub fn port_service(self: &Arc<Self>) -> PortService {
        PortService::new(self.clone())
    }

    /// Serves a TLS port until `shutdown` is cancelled and its connections have ended, and keeps the
    /// Service `default/kubernetes` that names it. Watches of in-process clients go on until the
    /// server's own end.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Arc<rustls::ServerConfig>,
        shutdown: CancellationToken,
    ) {
        let service = self.port_service();
        let address = match listener.local_addr() {
            Ok(address) => Some(address),
            Err(error) => {
                tracing::warn!(%error, "the port has no address");
                None
            }
        };
        let keeping = async {
            if let Some(address) = address {
                handlers::bootstrap::keep_service(self, address).await;
            }
            std::future::pending::<()>().await;
        };
        if let Some(address) = address {
            handlers::bootstrap::service(self, address).await;
        }
        let port = serve::serve(listener, tls, serve::Limits::default(), shutdown, service);
        tokio::select! {
            () = port => {}
            () = keeping => {}
        }
    }

    /// Who sends a request over the port, and what to warn of.
    pub(crate) async fn identify(
        self: &Arc<Self>,
        certificate: Option<&Shown>,
        parts: &request::Parts,
    ) -> Result<(Identity, Vec<&'static str>), Status> {
        let proof = self.authenticator.identify(certificate, &parts.headers, &self.store)?;
        if let Some(used) = &proof.used {
            handlers::tokens::note_use(self, used).await;
        }
        Ok((proof.identity, proof.warnings))
    }

    /// What other systems read to check our tokens themselves.
    fn openid(&self, path: &str, host: Option<&str>) -> Option<ApiResponse> {
        let (content_type, text) = match path {
            KEYS_PATH => ("application/jwk-set+json", self.authenticator.openid_keys()),
            CONFIGURATION_PATH => {
                (JSON, self.authenticator.openid_configuration(host.unwrap_or_default()))
            }
            _ => return None,
        };
        let an_hour = HeaderValue::from_static("public, max-age=3600");
        let mut document = ApiResponse::bytes(StatusCode::OK, text.into());
        document.content_type = content_type;
        Some(document.unindented().header(CACHE_CONTROL, an_hour))
    }

    /// Answers one request of one identity.
    pub async fn answer<B>(
        self: &Arc<Self>,
        identity: &Identity,
        request: http::Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Buf, Error: fmt::Display> + Send,
    {
        self.attend(Ok(identity), From::Inside, request).await
    }

    /// Answers a request whose turn it is.
    pub(crate) async fn serve_one<B>(
        self: &Arc<Self>,
        identity: &Identity,
        parts: &request::Parts,
        asked: Option<&Attributes<'_>>,
        body: B,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Buf, Error: fmt::Display> + Send,
    {
        // Before the body is read: who may not send it need not be listened to.
        if let Some(refusal) = self.refusal(parts, asked) {
            return refusal;
        }
        let body = if matches!(parts.method, Method::GET | Method::HEAD) {
            Ok(Bytes::new())
        } else {
            gather(body).await
        };
        if !self.aggregation.is_empty()
            && let Some(path) = path::decoded(parts.uri.path())
        {
            let response = if let Some((group, version)) = version_of(&path) {
                let found = (group.as_str(), version.as_str());
                aggregation::proxied(self, identity, parts, found, body.clone()).await
            } else {
                aggregation::document(self, identity, parts, &path).await
            };
            if let Some(response) = response {
                return response;
            }
        }
        self.respond(identity, parts, body).await
    }

    /// The answer to whoever may not do what is asked.
    fn refusal(
        &self,
        parts: &request::Parts,
        asked: Option<&Attributes<'_>>,
    ) -> Option<Response<Body>> {
        let Some(asked) = asked else {
            // What has no meaning at all is not found later.
            path::decoded(parts.uri.path())?;
            let url = parts.uri.path_and_query().map_or("", |url| url.as_str());
            let why = format!(
                "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, {url}\n",
                mainstay_gocompat::quote(url)
            );
            let answer = ApiResponse::text(StatusCode::INTERNAL_SERVER_ERROR, why);
            return Some(answer.into_response(ResponseFormat::default()));
        };
        let refused = self.authorizer.require(asked).err()?;
        Some(refuse(parts, &refused))
    }

    async fn respond(
        self: &Arc<Self>,
        identity: &Identity,
        parts: &request::Parts,
        body: Result<Bytes, Status>,
    ) -> Response<Body> {
        let query = Query::parse(parts.uri.query());
        let wishes = wishes(parts, query.as_ref().ok());
        let answer = match (query, body) {
            (Ok(query), Ok(body)) if matches!(parts.method, Method::GET | Method::HEAD) => {
                self.route(identity, parts, query, body).await
            }
            (Ok(query), Ok(body)) => self.to_the_end(identity, parts, query, body).await,
            (Err(status), _) | (_, Err(status)) => Err(status),
        };
        let answer = answer.unwrap_or_else(|status| ApiResponse::refusal(&status));
        if answer.size >= LARGE_ANSWER && answer.is_rewritten(wishes) {
            return aside(|| answer.into_response(wishes));
        }
        answer.into_response(wishes)
    }

    /// Carries a write out even if whoever sent it goes away or is out of patience meanwhile: what
    /// follows from a commit (kinds that are served, addresses and quotas that are taken) must not be
    /// left undone.
    ///
    /// Boxed, because what a write calls may write itself.
    fn to_the_end(
        self: &Arc<Self>,
        identity: &Identity,
        parts: &request::Parts,
        query: Query,
        body: Bytes,
    ) -> BoxFuture<'static, Result<ApiResponse, Status>> {
        let large = body.len() >= LARGE || self.is_large(parts);
        let (server, identity, parts) = (self.clone(), identity.clone(), parts.clone());
        let task = async move { server.route(&identity, &parts, query, body).await };
        let task = tokio::spawn(self.compute.run(task, large));
        Box::pin(async move {
            match task.await {
                Ok(answer) => answer,
                Err(failure) => match failure.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(Status::new(
                        Reason::ServiceUnavailable,
                        "the server is shutting down".to_owned(),
                    )),
                },
            }
        })
    }

    /// Whether a change is about an object that is large already, or an eviction about budgets that are.
    fn is_large(&self, parts: &request::Parts) -> bool {
        let evicts = parts.method == Method::POST && parts.uri.path().ends_with("/eviction");
        if !evicts && !matches!(parts.method, Method::PUT | Method::PATCH | Method::DELETE) {
            return false;
        }
        let Some(Target::Resource(path)) =
            path::decoded(parts.uri.path()).as_deref().map(path::parse)
        else {
            return false;
        };
        if evicts {
            return handlers::evict::is_large(self, &path);
        }
        let row = self.registry.find(&path.group, &path.version, &path.plural);
        row.and_then(|row| self.store.find(&row.storage, &path.namespace, &path.name))
            .is_some_and(|stored| stored.size() >= LARGE)
    }

    async fn route(
        self: &Arc<Self>,
        identity: &Identity,
        parts: &request::Parts,
        query: Query,
        body: Bytes,
    ) -> Result<ApiResponse, Status> {
        let Some(path) = path::decoded(parts.uri.path()) else {
            return Ok(ApiResponse::page_not_found());
        };
        // No route begins like that.
        if path.starts_with("//") {
            return Ok(ApiResponse::page_not_found());
        }
        let target = path::parse(&path);
        if let Target::Resource(path) = target {
            let Some(row) = self.registry.find(&path.group, &path.version, &path.plural) else {
                return discovery::nothing_at(&self.registry.kinds(), &path.group);
            };
            let headers = &parts.headers;
            let warnings = mainstay_http::Warnings::default();
            let kept = warnings.clone();
            let reservations = self.allocator.reservations();
            let server = self;
            let on_upgrade = parts.extensions.get::<OnUpgrade>().cloned();
            let request = Request {
                server,
                identity,
                row,
                path,
                query,
                headers,
                uri: &parts.uri,
                body,
                warnings,
                on_upgrade,
                loopback: LoopbackClient(Arc::clone(self)),
                reservations,
            };
            let deprecated = request.row.deprecation().map(str::to_owned);
            let outcome = handlers::dispatch(request, &parts.method).await;
            // No route, no warning.
            let routed = !matches!(&outcome, Err(status) if *status == Status::no_such_method());
            let mut answer = outcome.unwrap_or_else(|status| ApiResponse::refusal(&status));
            let deprecated = deprecated.filter(|_| routed);
            answer.audit_annotations = kept.take_annotations();
            answer.warnings.splice(..0, deprecated.into_iter().chain(kept.take()));
            return Ok(answer);
        }
        let asked = DiscoveryRequest {
            accept: text(&parts.headers, &ACCEPT),
            known: text(&parts.headers, &IF_NONE_MATCH),
            hash: query.text("hash"),
            now: self.clock.now(),
            host: parts
                .uri
                .authority()
                .map(http::uri::Authority::as_str)
                .or_else(|| text(&parts.headers, &HOST)),
        };
        if parts.method != Method::GET && target.is_routed() {
            return Err(Status::no_such_method());
        }
        if let Some(document) = self.openid(parts.uri.path(), asked.host) {
            return if parts.method == Method::GET {
                Ok(document)
            } else {
                Err(Status::no_such_method())
            };
        }
        let kinds = self.registry.kinds();
        match target {
            Target::Root => Ok(discovery::root(&kinds)),
            Target::CoreVersions => discovery::roots(&kinds, true, asked),
            Target::Groups => discovery::groups(&kinds, &self.aggregation, asked),
            Target::Group(group) => discovery::any_group(&kinds, &self.aggregation, &group, asked),
            Target::GroupVersion(group, version) => {
                discovery::group_version(&kinds, &group, &version, asked)
            }
            Target::Version => discovery::version(&self.version, asked),
            Target::OpenApiV2 => {
                let others = Arc::new(aggregation::Remotes(self.clone()));
                discovery::swagger(&kinds, others, asked).await
            }
            Target::OpenApiV3 => {
                Ok(discovery::index(&kinds, &aggregation::index(&self.aggregation)))
            }
            Target::OpenApiV3Document(path) => discovery::document(&kinds, &path, asked).await,
            Target::Health(path) => {
                Ok(handlers::health::answer(self, identity, &path, &query).await)
            }
            Target::Metrics => Ok(metrics::answer(self)),
            Target::Resource(_) | Target::Unknown => Ok(ApiResponse::page_not_found()),
        }
    }
}

/// A refusal of a request that nobody has looked at closely.
pub(crate) fn refuse(parts: &request::Parts, status: &Status) -> Response<Body> {
    let query = Query::parse(parts.uri.query()).ok();
    ApiResponse::refusal(status).into_response(wishes(parts, query.as_ref()))
}

/// The group and version that a path is below, or is.
fn version_of(path: &str) -> Option<(String, String)> {
    match path::parse(path) {
        Target::Resource(path) => Some((path.group, path.version)),
        Target::GroupVersion(group, version) => Some((group, version)),
        _ => None,
    }
}

/// How the client wants the answer to be written.
fn wishes(parts: &request::Parts, query: Option<&Query>) -> ResponseFormat {
    let headers = &parts.headers;
    ResponseFormat {
        gzip: negotiate::accepts_gzip(text(headers, &ACCEPT_ENCODING)),
        is_local: serve::Peer::is_local(parts),
        pretty: is_for_reading(query, text(headers, &USER_AGENT)),
        encoding: negotiate::encoding(text(headers, &ACCEPT)),
    }
}

/// Whether an answer is indented: as the query says, else for browsers and tools of the shell.
fn is_for_reading(query: Option<&Query>, user_agent: Option<&str>) -> bool {
    match query.and_then(|query| query.text("pretty")) {
        Some(wish) => matches!(wish, "1" | "t" | "T" | "true" | "TRUE" | "True"),
        None => user_agent.is_some_and(|agent| {
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|tool| agent.starts_with(tool))
        }),
    }
}
