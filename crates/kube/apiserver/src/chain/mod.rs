//! Handler chain: the functions that each request passes.
//!
//! ```text
//! connection ─► well-formed ─► authentication ─► impersonation ─► audit, metrics ─► timeout
//!   ─► priority and fairness ─► authorization ─► body ─► aggregation ─► handler ─► response format
//! ```
//!
//! Each layer is a function of this file that calls the next one, in this order. The head of a
//! request is parsed once ([`RequestHead`]). A [`RequestRecord`] collects facts for audit and metrics.
//!
//! The timeout is that of the query, one minute at most. A long-running request (a watch, a stream)
//! has none, and an in-process request has none unless its query sets one. A request that exceeds its
//! timeout gets 504 and its handler is dropped, as when its client disconnects.

pub(crate) mod head;
pub(crate) mod info;
mod record;

use self::head::{MAX_TIMEOUT, RequestHead};
use self::info::RequestSummary;
use self::record::RequestRecord;
use crate::aggregation::{documents, proxy};
use crate::flow::{Seat, SeatOutcome};
use crate::handlers;
use crate::handlers::blocking::block_in_place;
use crate::handlers::compute::{self, WorkSize};
use crate::serve::Peer;
use crate::server::ApiServer;
use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use mainstay_auth::Identity;
use mainstay_auth::authn::{ClientCertificate, impersonation};
use mainstay_auth::authz::Attributes;
use mainstay_http::path::ApiPath;
use mainstay_http::request_body::read_body;
use mainstay_http::response::{ApiResponse, ResponseFormat, add_warnings};
use mainstay_http::{Body, malformed};
use mainstay_object::{Reason, Status};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Responses from this size on are rewritten without blocking the other connections of a thread.
const LARGE_RESPONSE: usize = 256 * 1024;
/// How long a request without a timeout waits for a seat.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(15);

/// The body of a request.
pub(crate) trait RequestBody:
    http_body::Body<Data: Buf, Error: fmt::Display> + Send
{
}
impl<B: http_body::Body<Data: Buf, Error: fmt::Display> + Send> RequestBody for B {}

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestOrigin {
    /// This process, which awaits each response without a timeout.
    InProcess,
    /// A connection.
    Connection,
}

impl ApiServer {
    /// Answers an in-process request.
    pub async fn answer<B>(
        self: &Arc<Self>,
        identity: &Identity,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Buf, Error: fmt::Display> + Send,
    {
        let (parts, body) = request.into_parts();
        self.impersonate(Ok(identity), RequestOrigin::InProcess, parts, body).await
    }

    /// Answers a request of a connection.
    pub(crate) async fn answer_connection<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if let Some(refusal) = malformed::reject(&parts) {
            return refusal;
        }
        self.authenticate(parts, body).await
    }

    /// Authentication: finds the identity of the sender.
    async fn authenticate<B: RequestBody>(
        self: &Arc<Self>,
        parts: Parts,
        body: B,
    ) -> Response<Body> {
        let peer = parts.extensions.get::<Peer>();
        let certificate = peer.and_then(|peer| peer.certificate.as_deref());
        let (identity, warnings) = match self.identify(certificate, &parts).await {
            Ok((identity, warnings)) => {
                // This comes first, because connections of proven clients have reserved room.
                if let Some(peer) = peer.filter(|_| !identity.is_anonymous()) {
                    peer.seat.mark_authenticated(identity.client());
                }
                (Ok(identity), warnings)
            }
            Err(status) => (Err(status), Vec::new()),
        };
        let identity = identity.as_ref().map_err(Clone::clone);
        let mut response = self.impersonate(identity, RequestOrigin::Connection, parts, body).await;
        let warnings: Vec<String> = warnings.into_iter().map(ToOwned::to_owned).collect();
        add_warnings(response.headers_mut(), &warnings);
        response
    }

    async fn identify(
        self: &Arc<Self>,
        certificate: Option<&ClientCertificate>,
        parts: &Parts,
    ) -> Result<(Identity, Vec<&'static str>), Status> {
        let proof = self.authenticator.identify(certificate, &parts.headers, &self.store)?;
        if let Some(secret_use) = &proof.secret_use {
            handlers::account_tokens::record_token_use(self, secret_use).await;
        }
        Ok((proof.identity, proof.warnings))
    }

    /// Impersonation: finds the identity for which the sender acts. The credentials are removed
    /// from the headers here; no later layer needs them.
    async fn impersonate<B: RequestBody>(
        self: &Arc<Self>,
        identity: Result<&Identity, Status>,
        origin: RequestOrigin,
        mut parts: Parts,
        body: B,
    ) -> Response<Body> {
        let proved = identity.as_ref().ok().copied();
        let acting = identity.and_then(|proved| {
            let acting =
                impersonation::impersonated_identity(proved, &parts.headers, &self.authorizer)?;
            Ok((proved, acting))
        });
        parts.headers.remove(AUTHORIZATION);
        impersonation::remove_headers(&mut parts.headers);
        let head = Arc::new(RequestHead::read(parts));
        self.record_request(proved, acting, origin, &head, body).await
    }

    /// Audit and metrics: begins the record of the request, and ends it with its response.
    async fn record_request<B: RequestBody>(
        self: &Arc<Self>,
        proved: Option<&Identity>,
        acting: Result<(&Identity, Option<Identity>), Status>,
        origin: RequestOrigin,
        head: &Arc<RequestHead>,
        body: B,
    ) -> Response<Body> {
        let anonymous = Identity::anonymous();
        let identity = acting
            .as_ref()
            .map_or(&anonymous, |(proved, acting)| acting.as_ref().unwrap_or(proved));
        let attributes = head.info.as_ref().map(|info| info.attributes(identity));
        let info = attributes
            .as_ref()
            .map_or_else(|| head.nonresource_summary(), RequestSummary::from_attributes);
        let identities = proved.map(|proved| {
            let acting = acting.as_ref().ok().and_then(|(_, acting)| acting.as_ref());
            (proved, acting)
        });
        let mut record = RequestRecord::begin(self, head, &info, identities);
        let mut response = if let Err(status) = &acting {
            if proved.is_none() {
                self.metrics.count_unauthenticated();
            }
            head.refusal_response(status)
        } else {
            let (attributes, info) = (attributes.as_ref(), &info);
            let authenticated =
                AuthenticatedRequest { server: self, head, identity, attributes, info, origin };
            record.record_decision(&self.authorizer, attributes);
            authenticated.limit_time(&mut record, body).await
        };
        if head.parts.method == Method::HEAD {
            // A HEAD response has the length of the body, without the body.
            if let Some(length) = http_body::Body::size_hint(response.body()).exact() {
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            *response.body_mut() = Body::from(Bytes::new());
        }
        record.end(response)
    }
}

/// An authenticated request on its way through the layers.
#[derive(Clone, Copy)]
struct AuthenticatedRequest<'a> {
    server: &'a Arc<ApiServer>,
    head: &'a Arc<RequestHead>,
    identity: &'a Identity,
    /// The attributes for authorization; none if the path does not yield them.
    attributes: Option<&'a Attributes<'a>>,
    /// Their summary for audit, metrics and flow schemas.
    info: &'a RequestSummary<'a>,
    origin: RequestOrigin,
}

impl AuthenticatedRequest<'_> {
    /// Timeout: limits the duration of the remaining layers.
    async fn limit_time<B: RequestBody>(
        self,
        record: &mut RequestRecord,
        body: B,
    ) -> Response<Body> {
        let timeout = match self.head.timeout() {
            _ if self.info.is_long() => None,
            Ok(None) => (self.origin == RequestOrigin::Connection).then_some(MAX_TIMEOUT),
            Ok(timeout) => timeout.filter(|_| !mainstay_fault::is_on("timeouts-are-not-heard")),
            Err(_) if mainstay_fault::is_on("unreadable-timeouts-are-none") => Some(MAX_TIMEOUT),
            Err(why) => {
                let text = format!("invalid timeout specified in the request URL - {why}");
                return ApiResponse::refusal(&Status::bad_request(text))
                    .into_response(ResponseFormat::default());
            }
        };
        let response_future = self.wait_in_queue(record, timeout, body);
        let Some(timeout) = timeout else { return response_future.await };
        // Timers have a resolution of one millisecond.
        if timeout < Duration::from_millis(1) {
            return timeout_response();
        }
        tokio::time::timeout(timeout, response_future).await.unwrap_or_else(|_| timeout_response())
    }

    /// Priority and fairness: waits for a seat.
    async fn wait_in_queue<B: RequestBody>(
        self,
        record: &mut RequestRecord,
        timeout: Option<Duration>,
        body: B,
    ) -> Response<Body> {
        let seat = match self.take_seat(record, timeout).await {
            SeatOutcome::Served(seat) => seat,
            SeatOutcome::Refused => return too_many_requests(),
        };
        record.counted.start_serving();
        let response = self.authorize(body).await;
        // The client paces the rest of a stream, so the seat is free before it.
        drop::<Option<Seat>>(seat);
        response
    }

    /// Waits for a seat, and records the flow schema and priority level of the request.
    async fn take_seat(self, record: &mut RequestRecord, timeout: Option<Duration>) -> SeatOutcome {
        let Self { server, identity, info, .. } = self;
        if info.is_long() && info.verb != "watch" {
            return SeatOutcome::Served(None);
        }
        let classified = server.flow.classify(identity, info, |schema| {
            let uids = (schema.uid.clone(), schema.level.uid.clone());
            let names = (schema.name.clone(), schema.level.name.clone());
            (uids, names, schema.level.has_queues(), schema.level_and_flow(identity, info))
        });
        let Some((uids, names, has_queues, (level, flow_hash))) = classified else {
            return SeatOutcome::Served(None);
        };
        record.flow = Some(uids);
        let queue_timeout = timeout.map_or(QUEUE_TIMEOUT, |timeout| timeout / 4);
        let mut queued = server.metrics.flow.begin(&names.0, &names.1);
        let begun = server.clock.elapsed();
        let outcome = server.flow.take_seat(level, flow_hash, queue_timeout).await;
        let waited = server.clock.elapsed().saturating_sub(begun);
        match outcome {
            SeatOutcome::Served(_) => {
                if let Some(queued) = &mut queued {
                    queued.start(waited);
                }
                record.queued = queued;
            }
            SeatOutcome::Refused => {
                let reason = match has_queues {
                    _ if waited >= queue_timeout => "time-out",
                    true => "queue-full",
                    false => "concurrency-limit",
                };
                if let Some(queued) = queued {
                    queued.reject(waited, reason);
                }
            }
        }
        outcome
    }

    /// Authorization. The body is read after it, so that a refused request costs no memory.
    async fn authorize<B: RequestBody>(self, body: B) -> Response<Body> {
        let Self { server, head, .. } = self;
        match self.attributes {
            Some(attributes) => {
                if let Err(refusal) = server.authorizer.require(attributes) {
                    return head.refusal_response(&refusal);
                }
            }
            // A path without a meaning is refused here rather than as not found.
            None if head.path.is_some() => return request_info_failure(&head.parts),
            None => {}
        }
        let body = if head.is_read() { Ok(Bytes::new()) } else { read_body(body).await };
        self.proxy_aggregated(body).await
    }

    /// Aggregation: proxies requests of aggregated groups.
    async fn proxy_aggregated(self, body: Result<Bytes, Status>) -> Response<Body> {
        let Self { server, head, identity, .. } = self;
        if !server.aggregation.is_empty()
            && let Some(path) = &head.path
        {
            let response = if let Some(group_version) = head.group_version() {
                proxy::proxy_request(server, identity, &head.parts, group_version, body.clone())
                    .await
            } else {
                documents::document(server, identity, &head.parts, path).await
            };
            if let Some(response) = response {
                return response;
            }
        }
        self.handle(body).await
    }

    /// The handler; encodes its response in the format that the client asks for.
    async fn handle(self, body: Result<Bytes, Status>) -> Response<Body> {
        let Self { server, head, identity, .. } = self;
        let response = match (&head.query, body) {
            (Ok(_), Ok(body)) if head.is_read() => {
                server.route(identity, head, body, WorkSize::default()).await
            }
            (Ok(_), Ok(body)) => self.complete_write(body).await,
            (Err(status), _) => Err(status.clone()),
            (_, Err(status)) => Err(status),
        };
        let response = response.unwrap_or_else(|status| ApiResponse::refusal(&status));
        if response.size >= LARGE_RESPONSE && response.is_rewritten(head.format) {
            return block_in_place(|| response.into_response(head.format));
        }
        response.into_response(head.format)
    }

    /// Completes a write even if its client disconnects or its timeout expires. The effects of a
    /// commit (served kinds, allocated addresses, used quota) must not be left undone.
    ///
    /// The future is boxed, because the handler of a write may issue a write itself.
    fn complete_write(self, body: Bytes) -> BoxFuture<'static, Result<ApiResponse, Status>> {
        let size = WorkSize::new(body.len() >= compute::LARGE || self.is_large());
        let work_size = size.clone();
        let (server, head) = (Arc::clone(self.server), Arc::clone(self.head));
        let identity = self.identity.clone();
        let pool = Arc::clone(self.server);
        let work = async move { server.route(&identity, &head, body, work_size).await };
        let task = tokio::spawn(pool.compute.run(work, size));
        Box::pin(async move {
            match task.await {
                Ok(response) => response,
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

    /// Whether the request changes an object that is large already, or evicts a pod whose
    /// `PodDisruptionBudget`s are.
    fn is_large(self) -> bool {
        let (server, parts) = (self.server, &self.head.parts);
        let ApiPath::Resource(path) = &self.head.target else { return false };
        if parts.method == Method::POST && path.subresource == "eviction" {
            return handlers::evict::is_large(server, path);
        }
        if !matches!(parts.method, Method::PUT | Method::PATCH | Method::DELETE) {
            return false;
        }
        let row = server.registry.find(&path.group, &path.version, &path.plural);
        row.and_then(|row| server.store.find(&row.storage, &path.namespace, &path.name))
            .is_some_and(|stored| stored.size() >= compute::LARGE)
    }
}

/// The response to a path that promises a resource and names none; the text is kube-apiserver's.
fn request_info_failure(parts: &Parts) -> Response<Body> {
    let url = parts.uri.path_and_query().map_or("", |url| url.as_str());
    let why = format!(
        "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, {url}\n",
        mainstay_gocompat::quote(url)
    );
    ApiResponse::text(StatusCode::INTERNAL_SERVER_ERROR, why)
        .into_response(ResponseFormat::default())
}

fn too_many_requests() -> Response<Body> {
    let text = "Too many requests, please try again later.\n".to_owned();
    ApiResponse::text(StatusCode::TOO_MANY_REQUESTS, text)
        .header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .header(RETRY_AFTER, HeaderValue::from_static("1"))
        .into_response(ResponseFormat::default())
}

/// The response after a timeout: a Status without a kind, as text; the text is kube-apiserver's.
fn timeout_response() -> Response<Body> {
    let text = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
    ApiResponse::text(StatusCode::GATEWAY_TIMEOUT, text.to_owned())
        .into_response(ResponseFormat::default())
}
