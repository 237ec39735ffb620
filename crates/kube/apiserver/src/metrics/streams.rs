//! Metrics of watches, and of priority and fairness.

use mainstay_exposition::{Histogram, Page};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of event sizes, in bytes.
const SIZE_BOUNDS: [u64; 8] = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];
/// Bounds of the waiting time in a queue, in seconds.
const WAIT_BOUNDS: [f64; 13] =
    [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// `FlowSchema`s that are counted; further ones are not.
const MAX_SCHEMAS: usize = 1000;

/// What the watches of a kind have sent. All watches of the kind share it.
#[derive(Debug, Default)]
pub(crate) struct WatchCounts {
    bytes: AtomicU64,
    sizes: [AtomicU64; SIZE_BOUNDS.len() + 1],
}

impl WatchCounts {
    /// Counts an event of so many bytes.
    pub(crate) fn add_event(&self, bytes: usize) {
        let bytes = bytes as u64;
        let at = SIZE_BOUNDS.iter().position(|bound| bytes <= *bound).unwrap_or(SIZE_BOUNDS.len());
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.sizes[at].fetch_add(1, Ordering::Relaxed);
    }
}

type KindKey = (Arc<str>, Arc<str>, Arc<str>);

/// Metrics of all watches, by group, plural and version.
#[derive(Debug, Default)]
pub(crate) struct WatchMetrics(Mutex<BTreeMap<KindKey, Arc<WatchCounts>>>);

impl WatchMetrics {
    /// The counts of a kind.
    pub(crate) fn counts_of(
        &self,
        group: &Arc<str>,
        plural: &Arc<str>,
        version: &Arc<str>,
    ) -> Arc<WatchCounts> {
        let kind = (group.clone(), plural.clone(), version.clone());
        self.0.lock().entry(kind).or_default().clone()
    }

    pub(super) fn write(&self, page: &mut Page) {
        let all: Vec<(KindKey, Arc<WatchCounts>)> =
            self.0.lock().iter().map(|(kind, counts)| (kind.clone(), counts.clone())).collect();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let total = |counts: &WatchCounts| counts.sizes.iter().map(load).sum::<u64>();
        let labels = |kind: &KindKey| {
            [
                ("group", kind.0.to_string()),
                ("resource", kind.1.to_string()),
                ("version", kind.2.to_string()),
            ]
        };
        let name = "apiserver_watch_events_total";
        page.head(name, "counter", "[ALPHA] Events that watches were sent.");
        for (kind, counts) in &all {
            let labels = labels(kind);
            page.line(
                name,
                &labels.each_ref().map(|(name, text)| (*name, text.as_str())),
                total(counts),
            );
        }
        let name = "apiserver_watch_events_sizes";
        page.head(name, "histogram", "[ALPHA] Bytes of the events that watches were sent.");
        for (kind, counts) in &all {
            let labels = labels(kind);
            let labels = labels.each_ref().map(|(name, text)| (*name, text.as_str()));
            let bounds = SIZE_BOUNDS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
            let mut sum = 0;
            for (bound, count) in bounds.zip(&counts.sizes) {
                sum += load(count);
                let mut labels = labels.to_vec();
                labels.insert(1, ("le", &bound));
                page.line("apiserver_watch_events_sizes_bucket", &labels, sum);
            }
            page.line("apiserver_watch_events_sizes_sum", &labels, load(&counts.bytes));
            page.line("apiserver_watch_events_sizes_count", &labels, sum);
        }
    }
}

/// Metrics of flow schemas and priority levels.
#[derive(Debug, Default)]
pub(crate) struct FlowMetrics(Mutex<BTreeMap<FlowKey, Arc<FlowCounts>>>);

/// A `FlowSchema` and its `PriorityLevelConfiguration`.
type FlowKey = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
struct FlowCounts {
    executing: AtomicI64,
    waiting: AtomicI64,
    tally: Mutex<Tally>,
}

#[derive(Debug)]
struct Tally {
    served: Histogram,
    refused: Histogram,
    reasons: BTreeMap<&'static str, u64>,
}

impl Default for Tally {
    fn default() -> Self {
        let (served, refused) = (Histogram::new(&WAIT_BOUNDS), Histogram::new(&WAIT_BOUNDS));
        Self { served, refused, reasons: BTreeMap::new() }
    }
}

/// A request that waits for a seat, or has one; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct FlowRequest {
    counts: Arc<FlowCounts>,
    serving: bool,
}

impl FlowMetrics {
    /// Counts a waiting request; none if there are too many `FlowSchema`s.
    pub(crate) fn begin(&self, schema: &Arc<str>, level: &Arc<str>) -> Option<FlowRequest> {
        let mut all = self.0.lock();
        let key = (schema.clone(), level.clone());
        if all.len() >= MAX_SCHEMAS && !all.contains_key(&key) {
            return None;
        }
        let counts = all.entry(key).or_default().clone();
        drop(all);
        counts.waiting.fetch_add(1, Ordering::Relaxed);
        Some(FlowRequest { counts, serving: false })
    }

    pub(super) fn write(&self, page: &mut Page) {
        let all: Vec<(FlowKey, Arc<FlowCounts>)> =
            self.0.lock().iter().map(|(key, counts)| (key.clone(), counts.clone())).collect();
        for (name, help, value) in [
            (
                "apiserver_flowcontrol_current_executing_requests",
                "[BETA] Requests that are served.",
                (|counts: &FlowCounts| counts.executing.load(Ordering::Relaxed))
                    as fn(&FlowCounts) -> i64,
            ),
            (
                "apiserver_flowcontrol_current_inqueue_requests",
                "[BETA] Requests that wait for their turn.",
                |counts: &FlowCounts| counts.waiting.load(Ordering::Relaxed),
            ),
        ] {
            page.head(name, "gauge", help);
            for ((schema, level), counts) in &all {
                page.line(
                    name,
                    &[("flow_schema", schema), ("priority_level", level)],
                    value(counts),
                );
            }
        }
        let name = "apiserver_flowcontrol_dispatched_requests_total";
        page.head(name, "counter", "[BETA] Requests that had their turn.");
        for ((schema, level), counts) in &all {
            let count = counts.tally.lock().served.count();
            page.line(name, &[("flow_schema", schema), ("priority_level", level)], count);
        }
        let name = "apiserver_flowcontrol_rejected_requests_total";
        page.head(name, "counter", "[BETA] Requests that were refused for want of a place.");
        for ((schema, level), counts) in &all {
            for (reason, count) in &counts.tally.lock().reasons {
                let labels =
                    [("flow_schema", &**schema), ("priority_level", level), ("reason", reason)];
                page.line(name, &labels, count);
            }
        }
        let name = "apiserver_flowcontrol_request_wait_duration_seconds";
        page.head(name, "histogram", "[BETA] Seconds that requests waited for their turn.");
        for ((schema, level), counts) in &all {
            let tally = counts.tally.lock();
            for (execute, histogram) in [("true", &tally.served), ("false", &tally.refused)] {
                if histogram.count() > 0 {
                    let labels =
                        [("execute", execute), ("flow_schema", schema), ("priority_level", level)];
                    page.histogram(name, &labels, histogram);
                }
            }
        }
    }
}

impl FlowRequest {
    /// Counts that the request got a seat after this time.
    pub(crate) fn start(&mut self, waited: Duration) {
        self.counts.tally.lock().served.add(waited.as_secs_f64());
        self.counts.waiting.fetch_sub(1, Ordering::Relaxed);
        self.counts.executing.fetch_add(1, Ordering::Relaxed);
        self.serving = true;
    }

    /// Counts a refusal after this time; the reason is `queue-full`, `concurrency-limit` or
    /// `time-out`.
    pub(crate) fn reject(self, waited: Duration, reason: &'static str) {
        let mut tally = self.counts.tally.lock();
        tally.refused.add(waited.as_secs_f64());
        *tally.reasons.entry(reason).or_default() += 1;
    }
}

impl Drop for FlowRequest {
    fn drop(&mut self) {
        let gauge = if self.serving { &self.counts.executing } else { &self.counts.waiting };
        gauge.fetch_sub(1, Ordering::Relaxed);
    }
}
