//! Metrics of ClusterCatalogs.

use crate::context::Context;
use mainstay_exposition::Page;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of attempts to load catalogs.
#[derive(Debug, Default)]
pub(crate) struct LoadCounters {
    /// Attempts that served new content.
    loaded: AtomicU64,
    /// Attempts that found the content that is served already.
    unchanged: AtomicU64,
    /// Attempts that failed.
    failed: AtomicU64,
    /// Microseconds of all attempts.
    busy: AtomicU64,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadResult {
    Loaded,
    Unchanged,
    Failed,
}

impl LoadCounters {
    pub(super) fn count(&self, result: LoadResult, time: Duration) {
        let counter = match result {
            LoadResult::Loaded => &self.loaded,
            LoadResult::Unchanged => &self.unchanged,
            LoadResult::Failed => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.busy.fetch_add(micros, Ordering::Relaxed);
    }
}

/// Writes the metrics.
#[expect(clippy::cast_precision_loss, reason = "counts far below what a float holds")]
pub(crate) fn write(page: &mut Page, context: &Context) {
    let counters = &context.load_counters;
    let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed) as f64;
    let name = "mainstay_clustercatalog_loads_total";
    page.head(name, "counter", "Attempts to load a ClusterCatalog, by result.");
    page.line(name, &[("result", "loaded")], value(&counters.loaded));
    page.line(name, &[("result", "unchanged")], value(&counters.unchanged));
    page.line(name, &[("result", "failed")], value(&counters.failed));
    let name = "mainstay_clustercatalog_load_seconds_total";
    page.head(name, "counter", "Seconds that attempts to load ClusterCatalogs took.");
    page.line(name, &[], value(&counters.busy) / 1e6);
    let name = "mainstay_clustercatalog_serving";
    page.head(name, "gauge", "Whether a ClusterCatalog is served, 1 or 0.");
    for (key, _) in context.catalogs.list(None) {
        let serving = if context.contents.current(&key.name).is_some() { 1.0 } else { 0.0 };
        page.line(name, &[("catalog", &key.name)], serving);
    }
}
