//! Audit log: which identity requested what, when, and with which response.
//!
//! Each line is a JSON `Event` of `audit.k8s.io/v1` at the level `Metadata`, without bodies. A
//! request has a line when it is received, one when a stream begins (`ResponseStarted`), and one
//! when its response is complete. A separate thread writes the lines. Requests never wait for it:
//! when it falls behind by `QUEUE_SIZE` lines, further lines are lost and counted
//! (`apiserver_audit_error_total`), and a log message says so. A file that has reached
//! `MAX_FILE_SIZE` is renamed to `FILE.1` and replaces the previous one.

mod writer;

use crate::chain::info::RequestSummary;
use crate::serve;
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderValue, USER_AGENT};
use http::request::Parts;
use mainstay_auth::Identity;
use mainstay_auth::authz::Decision;
use mainstay_clock::Clock;
use mainstay_http::AuditAnnotations;
use mainstay_http::Body;
use serde_json::{Map, Value, json};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

/// Lines that may wait to be written.
const QUEUE_SIZE: usize = 10_000;
/// Bytes of a file before its rotation.
pub const MAX_FILE_SIZE: u64 = 100 * 1024 * 1024;

/// An audit log file. Clones write to the same file.
#[derive(Clone)]
pub struct AuditLog(Arc<Inner>);

struct Inner {
    lines: SyncSender<String>,
    written: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("audit log")
    }
}

impl AuditLog {
    /// Opens a file for appending.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or no thread can be started.
    pub fn open(file: &Path) -> std::io::Result<Self> {
        Self::with_size(file, MAX_FILE_SIZE)
    }

    /// As [`AuditLog::open`], with another file size for the rotation.
    ///
    /// # Errors
    ///
    /// As [`AuditLog::open`].
    pub fn with_size(file: &Path, size: u64) -> std::io::Result<Self> {
        let (lines, queue) = sync_channel(QUEUE_SIZE);
        let (written, lost) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let writer = writer::Writer::open(file, size, written.clone(), lost.clone())?;
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&queue))?;
        Ok(Self(Arc::new(Inner { lines, written, lost })))
    }

    /// Numbers of written and of lost lines.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.0.written), load(&self.0.lost))
    }

    /// Records that a request was received. `identities` are the authenticated identity and, if
    /// there is one, the impersonated identity.
    pub(crate) fn begin(
        &self,
        clock: &Clock,
        parts: &Parts,
        info: &RequestSummary<'_>,
        identities: Option<(&Identity, Option<&Identity>)>,
        id: &HeaderValue,
    ) -> AuditEntry {
        let received = clock.now_micro();
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let mut event = json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata",
            "auditID": text(id), "requestURI": parts.uri.path_and_query().map_or("/", |uri| uri.as_str()),
            "verb": info.verb, "user": user(identities.map(|(proved, _)| proved)), "requestReceivedTimestamp": received,
        });
        if let Some((_, Some(acting))) = identities {
            event["impersonatedUser"] = user(Some(acting));
        }
        if let Some(peer) = parts.extensions.get::<serve::Peer>() {
            event["sourceIPs"] = json!([peer.address.ip().to_string()]);
        }
        if let Some(agent) = parts.headers.get(USER_AGENT) {
            event["userAgent"] = text(agent).into();
        }
        if info.is_resource {
            event["objectRef"] = object_reference(info);
        }
        let entry = AuditEntry { log: self.clone(), clock: *clock, event };
        entry.write("RequestReceived", &received);
        entry
    }

    fn write(&self, line: String) {
        if self.0.lines.try_send(line).is_err() {
            self.0.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn user(identity: Option<&Identity>) -> Value {
    let mut user = Map::new();
    if let Some(identity) = identity {
        user.insert("username".to_owned(), identity.user().into());
        if !identity.uid().is_empty() {
            user.insert("uid".to_owned(), identity.uid().into());
        }
        if !identity.groups().is_empty() {
            user.insert("groups".to_owned(), identity.groups().into());
        }
        if !identity.extra().is_empty() {
            user.insert("extra".to_owned(), json!(identity.extra()));
        }
    }
    Value::Object(user)
}

fn object_reference(info: &RequestSummary<'_>) -> Value {
    let fields = [
        ("resource", info.resource),
        ("namespace", info.namespace),
        ("name", info.name),
        ("apiGroup", info.group),
        ("apiVersion", info.version),
        ("subresource", info.subresource),
    ];
    let set = fields.into_iter().filter(|(_, text)| !text.is_empty());
    Value::Object(set.map(|(field, text)| (field.to_owned(), text.into())).collect())
}

/// The audit event of one request.
#[derive(Debug)]
pub(crate) struct AuditEntry {
    log: AuditLog,
    clock: Clock,
    event: Value,
}

/// Writes the last line when the stream ends.
struct CompleteOnDrop(Option<AuditEntry>);

impl Drop for CompleteOnDrop {
    fn drop(&mut self) {
        if let Some(entry) = self.0.take() {
            entry.complete();
        }
    }
}

impl AuditEntry {
    fn write(&self, stage: &str, time: &str) {
        let mut event = self.event.clone();
        event["stage"] = stage.into();
        event["stageTimestamp"] = time.into();
        self.log.write(event.to_string());
    }

    fn complete(&self) {
        self.write("ResponseComplete", &self.clock.now_micro());
    }

    /// Adds the authorization decision and its reason.
    pub(crate) fn add_decision(&mut self, decision: &Decision) {
        let (decision, reason) = match decision {
            Decision::Allow(reason) => ("allow", reason),
            Decision::NoOpinion(reason) => ("forbid", reason),
        };
        self.event["annotations"]["authorization.k8s.io/decision"] = decision.into();
        self.event["annotations"]["authorization.k8s.io/reason"] = reason.as_str().into();
    }

    /// Adds annotations.
    pub(crate) fn annotate(&mut self, annotations: AuditAnnotations) {
        for (name, value) in annotations.0 {
            self.event["annotations"][name] = value.into();
        }
    }

    /// Records the response of a request; for a stream, its begin and later its end. Returns the
    /// body.
    pub(crate) fn record_response(mut self, code: StatusCode, body: Body, streams: bool) -> Body {
        let mut status = json!({"metadata": {}, "code": code.as_u16()});
        let body = if code.is_client_error() || code.is_server_error() {
            match body.into_bytes() {
                Ok(bytes) => {
                    copy_status(&mut status, &bytes);
                    Body::from(bytes)
                }
                Err(body) => body,
            }
        } else {
            body
        };
        self.event["responseStatus"] = status;
        if streams {
            self.write("ResponseStarted", &self.clock.now_micro());
            return body.with_guard(Some(CompleteOnDrop(Some(self))));
        }
        self.complete();
        body
    }
}

/// Copies the fields of a refusal into the response status.
fn copy_status(status: &mut Value, bytes: &Bytes) {
    let Ok(refusal) = serde_json::from_slice::<Value>(bytes) else { return };
    for field in ["status", "message", "reason", "details"] {
        if let Some(value) = refusal.get(field) {
            status[field] = value.clone();
        }
    }
}
