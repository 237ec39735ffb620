//! The handler chain: what every request passes, whoever sends it and whatever it asks.
//!
//! ```text
//! connection ─► well-formed ─► authentication ─► impersonation ─► audit, counts ─► timeout
//!   ─► priority and fairness ─► authorization ─► body ─► aggregation ─► handler ─► form of the answer
//! ```
//!
//! Each layer is a function of this file that calls the next one, in this order. The head of a request
//! is read once ([`RequestHead`]); what is told of it afterwards is in its [`Record`].
//!
//! The time is that of the query's `timeout`, one minute at most; a request that takes as long as its
//! client wants (a watch, a stream) has none, and neither has one of this process, unless it says so.
//! What is over its time is answered with 504 and its handler dropped, as when its client had gone.

pub(crate) mod head;
pub(crate) mod info;
mod record;

use self::head::{LONGEST, RequestHead};
use self::info::Info;
use self::record::Record;
use crate::aggregation::{documents, proxy};
use crate::flow::{Seat, Turn};
use crate::handlers;
use crate::handlers::aside::aside;
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
use mainstay_auth::authn::{Shown, impersonation};
use mainstay_auth::authz::Attributes;
use mainstay_http::path::Target;
use mainstay_http::request_body::gather;
use mainstay_http::response::{ApiResponse, ResponseFormat, warn};
use mainstay_http::{Body, malformed};
use mainstay_object::{Reason, Status};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Answers from this size on are written anew without holding up the other connections of a thread.
const LARGE_ANSWER: usize = 256 * 1024;
/// How long a request without an end waits for its turn.
const PATIENCE: Duration = Duration::from_secs(15);

/// The body of a request.
pub(crate) trait RequestBody:
    http_body::Body<Data: Buf, Error: fmt::Display> + Send
{
}
impl<B: http_body::Body<Data: Buf, Error: fmt::Display> + Send> RequestBody for B {}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// This process, which waits for as long as an answer takes.
    Inside,
    /// A connection.
    Port,
}

impl ApiServer {
    /// Answers a request of this process.
    pub async fn answer<B>(
        self: &Arc<Self>,
        identity: &Identity,
        request: Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Buf, Error: fmt::Display> + Send,
    {
        let (parts, body) = request.into_parts();
        self.impersonated(Ok(identity), Source::Inside, parts, body).await
    }

    /// Answers a request that came over a connection.
    pub(crate) async fn answer_connection<B: RequestBody>(
        self: &Arc<Self>,
        request: Request<B>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if let Some(refusal) = malformed::refusal(&parts) {
            return refusal;
        }
        self.authenticated(parts, body).await
    }

    /// Authentication: finds out who sends the request.
    async fn authenticated<B: RequestBody>(
        self: &Arc<Self>,
        parts: Parts,
        body: B,
    ) -> Response<Body> {
        let peer = parts.extensions.get::<Peer>();
        let certificate = peer.and_then(|peer| peer.certificate.as_deref());
        let (identity, warnings) = match self.identify(certificate, &parts).await {
            Ok((identity, warnings)) => {
                // Before anything else: there is room for those who say who they are.
                if let Some(peer) = peer.filter(|_| !identity.is_anonymous()) {
                    peer.seat.mark_authenticated(identity.client());
                }
                (Ok(identity), warnings)
            }
            Err(status) => (Err(status), Vec::new()),
        };
        let identity = identity.as_ref().map_err(Clone::clone);
        let mut response = self.impersonated(identity, Source::Port, parts, body).await;
        let warnings: Vec<String> = warnings.into_iter().map(ToOwned::to_owned).collect();
        warn(response.headers_mut(), &warnings);
        response
    }

    async fn identify(
        self: &Arc<Self>,
        certificate: Option<&Shown>,
        parts: &Parts,
    ) -> Result<(Identity, Vec<&'static str>), Status> {
        let proof = self.authenticator.identify(certificate, &parts.headers, &self.store)?;
        if let Some(used) = &proof.used {
            handlers::tokens::note_use(self, used).await;
        }
        Ok((proof.identity, proof.warnings))
    }

    /// Impersonation: finds out for whom the sender acts. From here on nobody needs to know by what
    /// somebody proved who they are.
    async fn impersonated<B: RequestBody>(
        self: &Arc<Self>,
        identity: Result<&Identity, Status>,
        source: Source,
        mut parts: Parts,
        body: B,
    ) -> Response<Body> {
        let proved = identity.as_ref().ok().copied();
        let acting = identity.and_then(|proved| {
            let acting = impersonation::acting(proved, &parts.headers, &self.authorizer)?;
            Ok((proved, acting))
        });
        parts.headers.remove(AUTHORIZATION);
        impersonation::strip(&mut parts.headers);
        let head = Arc::new(RequestHead::read(parts));
        self.recorded(proved, acting, source, &head, body).await
    }

    /// Audit and counts: begins the record of the request, and ends it with its answer.
    async fn recorded<B: RequestBody>(
        self: &Arc<Self>,
        proved: Option<&Identity>,
        acting: Result<(&Identity, Option<Identity>), Status>,
        source: Source,
        head: &Arc<RequestHead>,
        body: B,
    ) -> Response<Body> {
        let nobody = Identity::anonymous();
        let identity =
            acting.as_ref().map_or(&nobody, |(proved, acting)| acting.as_ref().unwrap_or(proved));
        let asked = head.info.as_ref().map(|info| info.attributes(identity));
        let info = asked.as_ref().map_or_else(|| head.path_alone(), Info::of);
        let people = proved.map(|proved| {
            let acting = acting.as_ref().ok().and_then(|(_, acting)| acting.as_ref());
            (proved, acting)
        });
        let mut record = Record::begin(self, head, &info, people);
        let mut response = if let Err(status) = &acting {
            if proved.is_none() {
                self.metrics.stranger();
            }
            head.refused(status)
        } else {
            let (asked, info) = (asked.as_ref(), &info);
            let call = Call { server: self, head, identity, asked, info, source };
            record.decide(&self.authorizer, asked);
            call.timed(&mut record, body).await
        };
        if head.parts.method == Method::HEAD {
            // How long it would be is told; it does not follow.
            if let Some(length) = http_body::Body::size_hint(response.body()).exact() {
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            *response.body_mut() = Body::from(Bytes::new());
        }
        record.end(response)
    }
}

/// A request of somebody, on its way from layer to layer.
#[derive(Clone, Copy)]
struct Call<'a> {
    server: &'a Arc<ApiServer>,
    head: &'a Arc<RequestHead>,
    identity: &'a Identity,
    /// What permission is asked for; none if that cannot be said.
    asked: Option<&'a Attributes<'a>>,
    /// The same in the words of records, counts and flow schemas.
    info: &'a Info<'a>,
    source: Source,
}

impl Call<'_> {
    /// Timeout: gives the rest of the way as long as the request may take.
    async fn timed<B: RequestBody>(self, record: &mut Record, body: B) -> Response<Body> {
        let allotted = match self.head.timeout() {
            _ if self.info.is_long() => None,
            Ok(None) => (self.source == Source::Port).then_some(LONGEST),
            Ok(allotted) => allotted.filter(|_| !mainstay_fault::is_on("timeouts-are-not-heard")),
            Err(_) if mainstay_fault::is_on("unreadable-timeouts-are-none") => Some(LONGEST),
            Err(why) => {
                let text = format!("invalid timeout specified in the request URL - {why}");
                return ApiResponse::refusal(&Status::bad_request(text))
                    .into_response(ResponseFormat::default());
            }
        };
        let answered = self.queued(record, allotted, body);
        let Some(allotted) = allotted else { return answered.await };
        // Timers are no finer than this.
        if allotted < Duration::from_millis(1) {
            return too_late();
        }
        tokio::time::timeout(allotted, answered).await.unwrap_or_else(|_| too_late())
    }

    /// Priority and fairness: waits for the request's turn.
    async fn queued<B: RequestBody>(
        self,
        record: &mut Record,
        allotted: Option<Duration>,
        body: B,
    ) -> Response<Body> {
        let seat = match self.turn(record, allotted).await {
            Turn::Served(seat) => seat,
            Turn::Refused => return too_many(),
        };
        record.counted.serving();
        let response = self.authorized(body).await;
        // What is sent after this is made as the client takes it.
        drop::<Option<Seat>>(seat);
        response
    }

    /// Waits for the request's turn, and notes what it counts as.
    async fn turn(self, record: &mut Record, allotted: Option<Duration>) -> Turn {
        let Self { server, identity, info, .. } = self;
        if info.is_long() && info.verb != "watch" {
            return Turn::Served(None);
        }
        let found = server.flow.classify(identity, info, |schema| {
            let uids = (schema.uid.clone(), schema.level.uid.clone());
            let names = (schema.name.clone(), schema.level.name.clone());
            (uids, names, schema.level.queues(), schema.place(identity, info))
        });
        let Some((uids, names, queues, (level, number))) = found else {
            return Turn::Served(None);
        };
        record.flow = Some(uids);
        let patience = allotted.map_or(PATIENCE, |allotted| allotted / 4);
        let mut waits = server.metrics.turns.begin(&names.0, &names.1);
        let begun = server.clock.elapsed();
        let turn = server.flow.turn(level, number, patience).await;
        let waited = server.clock.elapsed().saturating_sub(begun);
        match turn {
            Turn::Served(_) => {
                if let Some(waits) = &mut waits {
                    waits.served(waited);
                }
                record.waits = waits;
            }
            Turn::Refused => {
                let reason = match queues {
                    _ if waited >= patience => "time-out",
                    true => "queue-full",
                    false => "concurrency-limit",
                };
                if let Some(waits) = waits {
                    waits.refused(waited, reason);
                }
            }
        }
        turn
    }

    /// Authorization, and then the body: who may not send it need not be listened to.
    async fn authorized<B: RequestBody>(self, body: B) -> Response<Body> {
        let Self { server, head, .. } = self;
        match self.asked {
            Some(asked) => {
                if let Err(refusal) = server.authorizer.require(asked) {
                    return head.refused(&refusal);
                }
            }
            // What has no meaning at all is not found later.
            None if head.path.is_some() => return without_request_info(&head.parts),
            None => {}
        }
        let body = if head.is_read() { Ok(Bytes::new()) } else { gather(body).await };
        self.aggregated(body).await
    }

    /// Aggregation: has others answer for their groups.
    async fn aggregated(self, body: Result<Bytes, Status>) -> Response<Body> {
        let Self { server, head, identity, .. } = self;
        if !server.aggregation.is_empty()
            && let Some(path) = &head.path
        {
            let response = if let Some(group_version) = head.group_version() {
                proxy::proxied(server, identity, &head.parts, group_version, body.clone()).await
            } else {
                documents::document(server, identity, &head.parts, path).await
            };
            if let Some(response) = response {
                return response;
            }
        }
        self.handled(body).await
    }

    /// The handler, whose answer gets the form that the client wants.
    async fn handled(self, body: Result<Bytes, Status>) -> Response<Body> {
        let Self { server, head, identity, .. } = self;
        let answer = match (&head.query, body) {
            (Ok(_), Ok(body)) if head.is_read() => {
                server.route(identity, head, body, WorkSize::default()).await
            }
            (Ok(_), Ok(body)) => self.to_the_end(body).await,
            (Err(status), _) => Err(status.clone()),
            (_, Err(status)) => Err(status),
        };
        let answer = answer.unwrap_or_else(|status| ApiResponse::refusal(&status));
        if answer.size >= LARGE_ANSWER && answer.is_rewritten(head.format) {
            return aside(|| answer.into_response(head.format));
        }
        answer.into_response(head.format)
    }

    /// Carries a write out even if its client goes away or its time is over meanwhile: what follows
    /// from a commit (kinds that are served, addresses and quotas that are taken) must not be left
    /// undone.
    ///
    /// Boxed, because what a write calls may write itself.
    fn to_the_end(self, body: Bytes) -> BoxFuture<'static, Result<ApiResponse, Status>> {
        let size = WorkSize::new(body.len() >= compute::LARGE || self.is_large());
        let known = size.clone();
        let (server, head) = (Arc::clone(self.server), Arc::clone(self.head));
        let identity = self.identity.clone();
        let pool = Arc::clone(self.server);
        let work = async move { server.route(&identity, &head, body, known).await };
        let task = tokio::spawn(pool.compute.run(work, size));
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
    fn is_large(self) -> bool {
        let (server, parts) = (self.server, &self.head.parts);
        let Target::Resource(path) = &self.head.target else { return false };
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

/// What the original says of a path that promises a resource and names none.
fn without_request_info(parts: &Parts) -> Response<Body> {
    let url = parts.uri.path_and_query().map_or("", |url| url.as_str());
    let why = format!(
        "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, {url}\n",
        mainstay_gocompat::quote(url)
    );
    ApiResponse::text(StatusCode::INTERNAL_SERVER_ERROR, why)
        .into_response(ResponseFormat::default())
}

fn too_many() -> Response<Body> {
    let text = "Too many requests, please try again later.\n".to_owned();
    ApiResponse::text(StatusCode::TOO_MANY_REQUESTS, text)
        .header(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"))
        .header(RETRY_AFTER, HeaderValue::from_static("1"))
        .into_response(ResponseFormat::default())
}

/// What the original says of a request that is over its time: a Status without a kind, as text.
fn too_late() -> Response<Body> {
    let text = r#"{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}"#;
    ApiResponse::text(StatusCode::GATEWAY_TIMEOUT, text.to_owned())
        .into_response(ResponseFormat::default())
}
