//! Metrics of the server, under the names that kube-apiserver has for them.
//!
//! A request is counted if its kind is served or its path exists, so that clients cannot grow the
//! metrics with invented names. All values live in memory; `/metrics` reports them in the
//! Prometheus text format.

pub(crate) mod page;
pub(crate) mod streams;

use crate::chain::head::RequestHead;
use crate::chain::info::RequestSummary;
use crate::health::Readiness;
use http::{Method, StatusCode};
use mainstay_exposition::Page;
use mainstay_http::path::ApiPath;
use mainstay_http::query::Query;
use mainstay_kinds::KindRegistry;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Upper bounds of the buckets of `apiserver_request_duration_seconds`, in seconds.
const BUCKETS: [f64; 24] = [
    0.005,
    0.025,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    1.0,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    5.0,
    6.0,
    8.0,
    10.0,
    15.0,
    20.0,
    30.0,
    45.0,
    60.0,
    f64::INFINITY,
];

/// The metrics of one server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Arc<Counts>,
    /// Metrics of watches.
    pub(crate) watches: streams::WatchMetrics,
    /// Metrics of priority and fairness.
    pub(crate) flow: streams::FlowMetrics,
    /// Metrics of components beside the server.
    pub(crate) external: ExternalMetrics,
}

type Write = Box<dyn Fn(&mut Page) + Send + Sync>;

/// Writes the metrics of components beside the server.
#[derive(Default)]
pub(crate) struct ExternalMetrics(OnceLock<Write>);

impl ExternalMetrics {
    /// Only the first call has an effect.
    pub(crate) fn set(&self, write: impl Fn(&mut Page) + Send + Sync + 'static) {
        let _ = self.0.set(Box::new(write));
    }

    pub(crate) fn write(&self, page: &mut Page) {
        if let Some(write) = self.0.get() {
            write(page);
        }
    }
}

impl fmt::Debug for ExternalMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Others").field(&self.0.get().is_some()).finish()
    }
}

#[derive(Debug, Default)]
struct Counts {
    requests: Mutex<BTreeMap<Series, Tally>>,
    read_only: AtomicI64,
    mutating: AtomicI64,
    /// Requests that failed authentication.
    unauthenticated: AtomicU64,
    rejected: AtomicU64,
}

/// The labels by which requests are counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    group: Arc<str>,
    version: Arc<str>,
    resource: Arc<str>,
    subresource: Arc<str>,
    scope: &'static str,
    verb: &'static str,
    dry_run: bool,
}

#[derive(Debug, Default)]
struct Tally {
    codes: BTreeMap<u16, u64>,
    buckets: [u64; BUCKETS.len()],
    seconds: f64,
    long_running: i64,
}

/// A request that is counted.
#[derive(Debug)]
pub(crate) struct CountedRequest {
    counts: Arc<Counts>,
    series: Option<Series>,
    mutating: bool,
    long_running: bool,
    serving: bool,
}

/// An open stream, counted until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenStream {
    counts: Arc<Counts>,
    series: Series,
}

impl Metrics {
    /// Begins to count a request.
    pub(crate) fn begin(
        &self,
        registry: &KindRegistry,
        readiness: &Readiness,
        info: &RequestSummary<'_>,
        head: &RequestHead,
    ) -> CountedRequest {
        CountedRequest {
            counts: self.requests.clone(),
            series: series(registry, readiness, info, head),
            mutating: info.is_mutating() && info.is_resource,
            long_running: info.is_long(),
            serving: false,
        }
    }

    /// Counts a request that failed authentication.
    pub(crate) fn count_unauthenticated(&self) {
        self.requests.unauthenticated.fetch_add(1, Ordering::Relaxed);
    }
}

fn series(
    registry: &KindRegistry,
    readiness: &Readiness,
    info: &RequestSummary<'_>,
    head: &RequestHead,
) -> Option<Series> {
    let query = head.query();
    let verb = verb(info, &head.parts.method, query)?;
    let dry_run = query.is_some_and(|query| query.text("dryRun") == Some("All"));
    if !info.is_resource {
        let path = match &head.target {
            // Only existing health checks are counted.
            ApiPath::Health(path) => readiness.has_path(path).then_some(path.as_str())?,
            ApiPath::Version | ApiPath::OpenApiV2 | ApiPath::OpenApiV3 | ApiPath::Root => info.path,
            ApiPath::Metrics => "/metrics",
            _ => return None,
        };
        return Some(Series {
            group: "".into(),
            version: "".into(),
            resource: "".into(),
            subresource: path.into(),
            scope: "",
            verb,
            dry_run,
        });
    }
    let row = registry.find(info.group, info.version, info.resource)?;
    let subresource: Arc<str> = if info.subresource.is_empty() {
        "".into()
    } else {
        row.subresource(info.subresource)?.name.clone()
    };
    let (group, version) = (row.group.clone(), row.version.clone());
    let (resource, scope) = (row.plural.clone(), info.scope());
    Some(Series { group, version, resource, subresource, scope, verb, dry_run })
}

/// The label `verb` of metrics.
fn verb(info: &RequestSummary<'_>, method: &Method, query: Option<&Query>) -> Option<&'static str> {
    if matches!(info.subresource, "exec" | "attach" | "portforward" | "proxy") {
        return Some("CONNECT");
    }
    Some(match (info.verb, method) {
        ("list", _) => "LIST",
        ("watch", _) => "WATCH",
        ("deletecollection", _) => "DELETECOLLECTION",
        ("patch", _) if query.is_some_and(|query| query.text("force").is_some()) => "APPLY",
        (_, &Method::GET) => "GET",
        (_, &Method::POST) => "POST",
        (_, &Method::PUT) => "PUT",
        (_, &Method::PATCH) => "PATCH",
        (_, &Method::DELETE) => "DELETE",
        _ => return None,
    })
}

impl CountedRequest {
    fn gauge(&self) -> &AtomicI64 {
        if self.mutating { &self.counts.mutating } else { &self.counts.read_only }
    }

    /// Counts the request as in flight.
    pub(crate) fn start_serving(&mut self) {
        if !self.long_running && !self.serving {
            self.gauge().fetch_add(1, Ordering::Relaxed);
            self.serving = true;
        }
    }

    /// Counts the response: its code and its duration. `streams` says whether the body lasts as
    /// long as the client wants.
    pub(crate) fn record_response(
        mut self,
        code: StatusCode,
        took: Duration,
        streams: bool,
    ) -> Option<OpenStream> {
        if code == StatusCode::TOO_MANY_REQUESTS {
            self.counts.rejected.fetch_add(1, Ordering::Relaxed);
        }
        let series = self.series.take()?;
        let mut requests = self.counts.requests.lock();
        let tally = requests.entry(series.clone()).or_default();
        *tally.codes.entry(code.as_u16()).or_default() += 1;
        let seconds = took.as_secs_f64();
        tally.seconds += seconds;
        if let Some(at) = BUCKETS.iter().position(|bound| seconds <= *bound) {
            tally.buckets[at] += 1;
        }
        if !streams {
            return None;
        }
        tally.long_running += 1;
        drop(requests);
        Some(OpenStream { counts: self.counts.clone(), series })
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        if self.serving {
            self.gauge().fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        if let Some(tally) = self.counts.requests.lock().get_mut(&self.series) {
            tally.long_running -= 1;
        }
    }
}
