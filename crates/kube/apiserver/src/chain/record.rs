//! What is kept and told of a request besides its answer: its number, its counts, its line in the
//! audit log.

use super::head::RequestHead;
use super::info::Info;
use crate::audit::Entry;
use crate::metrics::Counted;
use crate::metrics::streams::Waits;
use crate::server::ApiServer;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use mainstay_auth::Identity;
use mainstay_auth::authz::{Attributes, Authorizer, Decision};
use mainstay_clock::Clock;
use mainstay_http::{AuditAnnotations, Body};
use mainstay_object::fnv::random_uid;
use std::time::Duration;

/// The number of a request, in records and answers.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The record of a request that is being answered.
pub(super) struct Record {
    clock: Clock,
    started: Duration,
    audit_id: HeaderValue,
    /// The UIDs of the flow schema and the priority level that it counts as.
    pub(super) flow: Option<(HeaderValue, HeaderValue)>,
    /// Counts the request while it is served.
    pub(super) waits: Option<Waits>,
    pub(super) counted: Counted,
    entry: Option<Entry>,
    decision: Option<Decision>,
    is_long: bool,
}

impl Record {
    /// Begins the record of a request. `people` are who proved who they are, and whom they act for,
    /// if they do.
    pub(super) fn begin(
        server: &ApiServer,
        head: &RequestHead,
        info: &Info<'_>,
        people: Option<(&Identity, Option<&Identity>)>,
    ) -> Self {
        let given = head.parts.headers.get(&AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        let given = given.filter(|_| !mainstay_fault::is_on("requests-always-get-a-new-id"));
        let audit_id = given.or_else(|| HeaderValue::try_from(random_uid()).ok());
        let audit_id = audit_id.unwrap_or_else(|| HeaderValue::from_static("unknown"));
        let entry = server
            .audit
            .get()
            .map(|log| log.begin(&server.clock, &head.parts, info, people, &audit_id));
        Self {
            clock: server.clock,
            started: server.clock.elapsed(),
            audit_id,
            flow: None,
            waits: None,
            counted: server.metrics.begin(&server.registry, &server.readiness, info, head),
            entry,
            decision: None,
            is_long: info.is_long(),
        }
    }

    /// Notes whether the request is allowed, which only a log tells.
    pub(super) fn decide(&mut self, authorizer: &Authorizer, asked: Option<&Attributes<'_>>) {
        if self.entry.is_some() {
            self.decision = asked.map(|asked| authorizer.decide(asked));
        }
    }

    /// Gives an answer what every answer has, and writes the request down.
    pub(super) fn end(self, mut response: Response<Body>) -> Response<Body> {
        let code = response.status();
        let headers = response.headers_mut();
        headers.entry(AUDIT_ID).or_insert(self.audit_id);
        if let Some((schema, level)) = self.flow {
            headers.insert(SCHEMA, schema);
            headers.insert(LEVEL, level);
        }
        let streams =
            self.is_long && (code.is_success() || code == StatusCode::SWITCHING_PROTOCOLS);
        let took = self.clock.elapsed().saturating_sub(self.started);
        let counted = self.counted.answered(code, took, streams);
        let (mut parts, body) = response.into_parts();
        let body = match self.entry {
            Some(mut entry) => {
                if let Some(decision) = &self.decision {
                    entry.decided(decision);
                }
                if let Some(annotations) = parts.extensions.remove::<AuditAnnotations>() {
                    entry.annotate(annotations);
                }
                entry.answered(code, body, streams)
            }
            None => body,
        };
        Response::from_parts(parts, body.with_guard(counted))
    }
}
