//! What every request passes, whoever sends it and whatever it asks: its number, its time, its turn,
//! its record.
//!
//! ```text
//! request ─► Audit-Id ─► who ─► timeout ─► flow schema, seat ─► body, handler ─► headers ─► record, counts
//! ```
//!
//! The time is that of the query's `timeout`, one minute at most; a request that takes as long as its
//! client wants (a watch, a stream) has none, and neither has one of this process, unless it says so. What is over its time is answered with 504 and its
//! handler dropped, as when its client had gone.

pub(crate) mod flow;
pub(crate) mod info;

use self::flow::{Seat, Turn};
use self::info::Info;
use crate::audit::Entry;
use crate::metrics::Counted;
use crate::metrics::streams::Waits;
use crate::server::{ApiServer, refuse};
use bytes::{Buf, Bytes};
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use mainstay_auth::Identity;
use mainstay_auth::authn::impersonation;
use mainstay_auth::authz::Attributes;
use mainstay_auth::authz::RequestInfo;
use mainstay_http::AuditAnnotations;
use mainstay_http::Body;
use mainstay_http::path;
use mainstay_http::query::Query;
use mainstay_http::response::{ApiResponse, ResponseFormat};
use mainstay_object::fnv::random_uid;
use mainstay_object::{Status, duration};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The number of a request, in records and answers.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// The longest that a request may take, and takes unless it says less.
const LONGEST: Duration = Duration::from_mins(1);
/// How long a request without an end waits for its turn.
const PATIENCE: Duration = Duration::from_secs(15);

/// A request on its way.
struct Visit<'a> {
    server: &'a Arc<ApiServer>,
    started: Duration,
    audit_id: HeaderValue,
    schema: Option<(HeaderValue, HeaderValue)>,
    /// Counts the request while it is served.
    waits: Option<Waits>,
}

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// This process, which waits for as long as an answer takes.
    Inside,
    /// A connection.
    Port,
}

impl ApiServer {
    /// Answers a request of whoever it was found to be from, or refuses whoever could not prove who
    /// they are.
    pub(crate) async fn attend<B>(
        self: &Arc<Self>,
        identity: Result<&Identity, Status>,
        from: From,
        request: http::Request<B>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Buf, Error: fmt::Display> + Send,
    {
        let (mut parts, body) = request.into_parts();
        let started = self.clock.elapsed();
        let given = parts.headers.get(&AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        let given = given.filter(|_| !mainstay_fault::is_on("requests-always-get-a-new-id"));
        let audit_id = given.or_else(|| HeaderValue::try_from(random_uid()).ok());
        let audit_id = audit_id.unwrap_or_else(|| HeaderValue::from_static("unknown"));
        let query = Query::parse(parts.uri.query()).ok();
        let proved = identity.as_ref().ok().copied();
        let acting = identity.and_then(|proved| {
            let acting = impersonation::acting(proved, &parts.headers, &self.authorizer)?;
            Ok((proved, acting))
        });
        // Nobody behind this needs to know by what somebody proved who they are.
        parts.headers.remove(AUTHORIZATION);
        impersonation::strip(&mut parts.headers);
        let nobody = Identity::anonymous();
        let who =
            acting.as_ref().map_or(&nobody, |(proved, acting)| acting.as_ref().unwrap_or(proved));
        let path = path::decoded(parts.uri.path());
        let read = path
            .as_deref()
            .and_then(|path| RequestInfo::read(&parts.method, path, parts.uri.query()));
        let asked = read.as_ref().map(|read| read.attributes(who));
        let path = parts.uri.path();
        let info = asked.as_ref().map_or(Info { path, ..Info::default() }, Info::of);
        let mut counted = self.metrics.begin(self, &info, &parts.method, query.as_ref());
        let entry = self.audit.get().map(|log| {
            let people =
                proved.map(|proved| (proved, acting.as_ref().ok().and_then(|it| it.1.as_ref())));
            log.begin(&self.clock, &parts, &info, people, &audit_id)
        });
        let mut visit = Visit { server: self, started, audit_id, schema: None, waits: None };
        // Only a log would tell it.
        let decided = entry.as_ref().and(asked.as_ref()).filter(|_| acting.is_ok());
        let decided = decided.map(|asked| self.authorizer.decide(asked));
        let mut response = if let Err(status) = &acting {
            if proved.is_none() {
                self.metrics.stranger();
            }
            refuse(&parts, status)
        } else {
            let (query, asked) = (query.as_ref(), asked.as_ref());
            let line = Line { parts: &parts, query, asked, from };
            visit.answer(who, line, &info, body, &mut counted).await
        };
        if parts.method == Method::HEAD {
            // How long it would be is told; it does not follow.
            if let Some(length) = http_body::Body::size_hint(response.body()).exact() {
                response.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            *response.body_mut() = Body::from(Bytes::new());
        }
        let mut entry = entry;
        if let (Some(entry), Some(decided)) = (&mut entry, decided) {
            entry.decided(&decided);
        }
        visit.done(response, counted, entry, info.is_long())
    }
}

/// What the first line of a request says.
#[derive(Clone, Copy)]
struct Line<'a> {
    parts: &'a Parts,
    query: Option<&'a Query>,
    asked: Option<&'a Attributes<'a>>,
    from: From,
}

impl Visit<'_> {
    async fn answer<B>(
        &mut self,
        identity: &Identity,
        line: Line<'_>,
        info: &Info<'_>,
        body: B,
        counted: &mut Counted,
    ) -> Response<Body>
    where
        B: http_body::Body<Data: Buf, Error: fmt::Display> + Send,
    {
        let long = info.is_long();
        let allotted = match timeout(line.query) {
            _ if long => None,
            Ok(None) => (line.from == From::Port).then_some(LONGEST),
            Ok(allotted) => allotted.filter(|_| !mainstay_fault::is_on("timeouts-are-not-heard")),
            Err(_) if mainstay_fault::is_on("unreadable-timeouts-are-none") => Some(LONGEST),
            Err(why) => {
                let text = format!("invalid timeout specified in the request URL - {why}");
                return ApiResponse::refusal(&Status::bad_request(text))
                    .into_response(ResponseFormat::default());
            }
        };
        let answered = async {
            let seat = match self.turn(identity, info, long, allotted).await {
                Turn::Served(seat) => seat,
                Turn::Refused => return too_many(),
            };
            counted.serving();
            let Line { parts, asked, .. } = line;
            let response = self.server.serve_one(identity, parts, asked, body).await;
            // What is sent after this is made as the client takes it.
            drop::<Option<Seat>>(seat);
            response
        };
        let Some(allotted) = allotted else { return answered.await };
        // Timers are no finer than this.
        if allotted < Duration::from_millis(1) {
            return too_late();
        }
        tokio::time::timeout(allotted, answered).await.unwrap_or_else(|_| too_late())
    }

    /// Waits for the request's turn, and notes what it counts as.
    async fn turn(
        &mut self,
        identity: &Identity,
        info: &Info<'_>,
        long: bool,
        allotted: Option<Duration>,
    ) -> Turn {
        if long && info.verb != "watch" {
            return Turn::Served(None);
        }
        let flow = &self.server.flow;
        let found = flow.classify(identity, info, |schema| {
            let uids = (schema.uid.clone(), schema.level.uid.clone());
            let names = (schema.name.clone(), schema.level.name.clone());
            (uids, names, schema.level.queues(), schema.place(identity, info))
        });
        let Some((uids, names, queues, (level, number))) = found else {
            return Turn::Served(None);
        };
        self.schema = Some(uids);
        let patience = allotted.map_or(PATIENCE, |allotted| allotted / 4);
        let mut waits = self.server.metrics.turns.begin(&names.0, &names.1);
        let begun = self.server.clock.elapsed();
        let turn = flow.turn(level, number, patience).await;
        let waited = self.server.clock.elapsed().saturating_sub(begun);
        match turn {
            Turn::Served(_) => {
                if let Some(waits) = &mut waits {
                    waits.served(waited);
                }
                self.waits = waits;
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

    /// Gives an answer what every answer has, and writes the request down.
    fn done(
        self,
        mut response: Response<Body>,
        counted: Counted,
        entry: Option<Entry>,
        long: bool,
    ) -> Response<Body> {
        let code = response.status();
        let headers = response.headers_mut();
        headers.entry(AUDIT_ID).or_insert(self.audit_id);
        if let Some((schema, level)) = self.schema {
            headers.insert(SCHEMA, schema);
            headers.insert(LEVEL, level);
        }
        let streams = long && (code.is_success() || code == StatusCode::SWITCHING_PROTOCOLS);
        let counted = counted.answered(
            code,
            self.server.clock.elapsed().saturating_sub(self.started),
            streams,
        );
        let (mut parts, body) = response.into_parts();
        let body = match entry {
            Some(mut entry) => {
                if let Some(annotations) = parts.extensions.remove::<AuditAnnotations>() {
                    entry.annotate(annotations);
                }
                entry.answered(code, body, streams)
            }
            None => body,
        };
        Response::from_parts(parts, body.holding(counted))
    }
}

/// How long a request may take, if it says so.
pub(crate) fn timeout(query: Option<&Query>) -> Result<Option<Duration>, String> {
    let Some(text) = query.and_then(|query| query.text("timeout")) else { return Ok(None) };
    Ok(duration::parse(text)?.filter(|asked| !asked.is_zero()).map(|asked| asked.min(LONGEST)))
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
