//! Record of a request beside its response: its audit id, its metrics, its audit events.

use super::head::RequestHead;
use super::info::RequestSummary;
use crate::audit::AuditEntry;
use crate::metrics::CountedRequest;
use crate::metrics::streams::FlowRequest;
use crate::server::ApiServer;
use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use mainstay_auth::Identity;
use mainstay_auth::authz::{Attributes, Authorizer, Decision};
use mainstay_clock::Clock;
use mainstay_http::{AuditAnnotations, Body};
use mainstay_object::fnv::random_uid;
use std::time::Duration;

/// The audit id of a request, in audit events and responses.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The record of a request that is being answered.
pub(super) struct RequestRecord {
    clock: Clock,
    started: Duration,
    audit_id: HeaderValue,
    /// The UIDs of the flow schema and the priority level of the request.
    pub(super) flow: Option<(HeaderValue, HeaderValue)>,
    /// Counts the request in its flow schema and priority level.
    pub(super) queued: Option<FlowRequest>,
    pub(super) counted: CountedRequest,
    entry: Option<AuditEntry>,
    decision: Option<Decision>,
    is_long: bool,
}

impl RequestRecord {
    /// Begins the record of a request. `identities` are the authenticated identity and, if there is
    /// one, the impersonated identity.
    pub(super) fn begin(
        server: &ApiServer,
        head: &RequestHead,
        info: &RequestSummary<'_>,
        identities: Option<(&Identity, Option<&Identity>)>,
    ) -> Self {
        let client_id = head.parts.headers.get(&AUDIT_ID).filter(|id| !id.is_empty()).cloned();
        let client_id =
            client_id.filter(|_| !mainstay_fault::is_on("requests-always-get-a-new-id"));
        let audit_id = client_id.or_else(|| HeaderValue::try_from(random_uid()).ok());
        let audit_id = audit_id.unwrap_or_else(|| HeaderValue::from_static("unknown"));
        let entry = server
            .audit
            .get()
            .map(|log| log.begin(&server.clock, &head.parts, info, identities, &audit_id));
        Self {
            clock: server.clock,
            started: server.clock.elapsed(),
            audit_id,
            flow: None,
            queued: None,
            counted: server.metrics.begin(&server.registry, &server.readiness, info, head),
            entry,
            decision: None,
            is_long: info.is_long(),
        }
    }

    /// Records the authorization decision, which only the audit log contains.
    pub(super) fn record_decision(
        &mut self,
        authorizer: &Authorizer,
        attributes: Option<&Attributes<'_>>,
    ) {
        if self.entry.is_some() {
            self.decision = attributes.map(|attributes| authorizer.decide(attributes));
        }
    }

    /// Adds the headers of every response, and completes the audit events.
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
        let duration = self.clock.elapsed().saturating_sub(self.started);
        let counted = self.counted.record_response(code, duration, streams);
        let (mut parts, body) = response.into_parts();
        let body = match self.entry {
            Some(mut entry) => {
                if let Some(decision) = &self.decision {
                    entry.add_decision(decision);
                }
                if let Some(annotations) = parts.extensions.remove::<AuditAnnotations>() {
                    entry.annotate(annotations);
                }
                entry.record_response(code, body, streams)
            }
            None => body,
        };
        Response::from_parts(parts, body.with_guard(counted))
    }
}
