//! Counts of watches and of turns: what was sent to whom, and who waited.

use mainstay_exposition::{Histogram, Page};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Bounds of the sizes of events, in bytes.
const SIZES: [u64; 8] = [1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];
/// Bounds of the time that a request waits for its turn, in seconds.
const WAITS: [f64; 13] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// Flow schemas that are remembered; further ones are not counted.
const SCHEMAS: usize = 1000;

/// What the watches of a kind were sent. Shared by all of them.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    bytes: AtomicU64,
    sizes: [AtomicU64; SIZES.len() + 1],
}

impl Sent {
    /// Counts an event of so many bytes.
    pub(crate) fn event(&self, bytes: usize) {
        let bytes = bytes as u64;
        let at = SIZES.iter().position(|bound| bytes <= *bound).unwrap_or(SIZES.len());
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.sizes[at].fetch_add(1, Ordering::Relaxed);
    }
}

type Kind = (Arc<str>, Arc<str>, Arc<str>);

/// The counts of all watches, by group, plural and version.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<BTreeMap<Kind, Arc<Sent>>>);

impl Watches {
    /// The counts of a kind that is served.
    pub(crate) fn of(&self, group: &Arc<str>, plural: &Arc<str>, version: &Arc<str>) -> Arc<Sent> {
        let kind = (group.clone(), plural.clone(), version.clone());
        self.0.lock().entry(kind).or_default().clone()
    }

    pub(super) fn write(&self, page: &mut Page) {
        let all: Vec<(Kind, Arc<Sent>)> =
            self.0.lock().iter().map(|(kind, sent)| (kind.clone(), sent.clone())).collect();
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let total = |sent: &Sent| sent.sizes.iter().map(load).sum::<u64>();
        let labels = |kind: &Kind| {
            [
                ("group", kind.0.to_string()),
                ("resource", kind.1.to_string()),
                ("version", kind.2.to_string()),
            ]
        };
        let name = "apiserver_watch_events_total";
        page.head(name, "counter", "[ALPHA] Events that watches were sent.");
        for (kind, sent) in &all {
            let labels = labels(kind);
            page.line(
                name,
                &labels.each_ref().map(|(name, text)| (*name, text.as_str())),
                total(sent),
            );
        }
        let name = "apiserver_watch_events_sizes";
        page.head(name, "histogram", "[ALPHA] Bytes of the events that watches were sent.");
        for (kind, sent) in &all {
            let labels = labels(kind);
            let labels = labels.each_ref().map(|(name, text)| (*name, text.as_str()));
            let bounds = SIZES.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
            let mut sum = 0;
            for (bound, count) in bounds.zip(&sent.sizes) {
                sum += load(count);
                let mut labels = labels.to_vec();
                labels.insert(1, ("le", &bound));
                page.line("apiserver_watch_events_sizes_bucket", &labels, sum);
            }
            page.line("apiserver_watch_events_sizes_sum", &labels, load(&sent.bytes));
            page.line("apiserver_watch_events_sizes_count", &labels, sum);
        }
    }
}

/// The counts of turns, by flow schema and priority level.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<BTreeMap<Place, Arc<Turn>>>);

/// A flow schema and its priority level.
type Place = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
struct Turn {
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
        let (served, refused) = (Histogram::new(&WAITS), Histogram::new(&WAITS));
        Self { served, refused, reasons: BTreeMap::new() }
    }
}

/// A request that waits for its turn, or has it; counted until it is dropped.
#[derive(Debug)]
pub(crate) struct Waits {
    turn: Arc<Turn>,
    serving: bool,
}

impl Turns {
    /// A request waits; none if there are too many schemas to count.
    pub(crate) fn begin(&self, schema: &Arc<str>, level: &Arc<str>) -> Option<Waits> {
        let mut all = self.0.lock();
        let key = (schema.clone(), level.clone());
        if all.len() >= SCHEMAS && !all.contains_key(&key) {
            return None;
        }
        let turn = all.entry(key).or_default().clone();
        drop(all);
        turn.waiting.fetch_add(1, Ordering::Relaxed);
        Some(Waits { turn, serving: false })
    }

    pub(super) fn write(&self, page: &mut Page) {
        let all: Vec<(Place, Arc<Turn>)> =
            self.0.lock().iter().map(|(key, turn)| (key.clone(), turn.clone())).collect();
        for (name, help, value) in [
            (
                "apiserver_flowcontrol_current_executing_requests",
                "[BETA] Requests that are served.",
                (|turn: &Turn| turn.executing.load(Ordering::Relaxed)) as fn(&Turn) -> i64,
            ),
            (
                "apiserver_flowcontrol_current_inqueue_requests",
                "[BETA] Requests that wait for their turn.",
                |turn: &Turn| turn.waiting.load(Ordering::Relaxed),
            ),
        ] {
            page.head(name, "gauge", help);
            for ((schema, level), turn) in &all {
                page.line(name, &[("flow_schema", schema), ("priority_level", level)], value(turn));
            }
        }
        let name = "apiserver_flowcontrol_dispatched_requests_total";
        page.head(name, "counter", "[BETA] Requests that had their turn.");
        for ((schema, level), turn) in &all {
            let count = turn.tally.lock().served.count();
            page.line(name, &[("flow_schema", schema), ("priority_level", level)], count);
        }
        let name = "apiserver_flowcontrol_rejected_requests_total";
        page.head(name, "counter", "[BETA] Requests that were refused for want of a place.");
        for ((schema, level), turn) in &all {
            for (reason, count) in &turn.tally.lock().reasons {
                let labels =
                    [("flow_schema", &**schema), ("priority_level", level), ("reason", reason)];
                page.line(name, &labels, count);
            }
        }
        let name = "apiserver_flowcontrol_request_wait_duration_seconds";
        page.head(name, "histogram", "[BETA] Seconds that requests waited for their turn.");
        for ((schema, level), turn) in &all {
            let tally = turn.tally.lock();
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

impl Waits {
    /// The request has its turn after this time.
    pub(crate) fn served(&mut self, waited: Duration) {
        self.turn.tally.lock().served.add(waited.as_secs_f64());
        self.turn.waiting.fetch_sub(1, Ordering::Relaxed);
        self.turn.executing.fetch_add(1, Ordering::Relaxed);
        self.serving = true;
    }

    /// The request is refused after this time: `queue-full`, `concurrency-limit` or `time-out`.
    pub(crate) fn refused(self, waited: Duration, reason: &'static str) {
        let mut tally = self.turn.tally.lock();
        tally.refused.add(waited.as_secs_f64());
        *tally.reasons.entry(reason).or_default() += 1;
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let gauge = if self.serving { &self.turn.executing } else { &self.turn.waiting };
        gauge.fetch_sub(1, Ordering::Relaxed);
    }
}
