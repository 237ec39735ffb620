//! Metrics of the controllers, with upstream's names.
//!
//! Gauges are computed from the caches at each scrape, so they are never stale, and a series ends
//! with its object. Only counters are kept in memory.

use crate::context::Context;
use mainstay_api::{CatalogSource, CsvPhase, LastObservedState, Subscription};
use mainstay_exposition::Page;
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct ClassicMetrics {
    /// InstallPlan steps that the API accepted with warnings.
    pub(crate) plan_warnings: AtomicU64,
    /// CSVs that were replaced after they had succeeded.
    pub(crate) upgrades: AtomicU64,
    /// How often each Subscription was reconciled.
    reconciliations: Mutex<BTreeMap<NamespacedName, u64>>,
    /// Durations of successful and of failed resolutions.
    resolutions: [Mutex<Summary>; 2],
}

impl ClassicMetrics {
    /// Counts a reconciliation of the Subscriptions of a namespace.
    pub(crate) fn count_reconciliation(&self, namespace: &str, subscriptions: &[Subscription]) {
        let mut reconciliations = self.reconciliations.lock();
        for subscription in subscriptions {
            let key = NamespacedName::new(namespace, &*subscription.metadata.name);
            *reconciliations.entry(key).or_default() += 1;
        }
    }

    /// Removes the counts of Subscriptions that a namespace no longer has.
    pub(crate) fn remove_deleted(&self, namespace: &str, subscriptions: &[Subscription]) {
        let is_there = |name: &str| {
            subscriptions.iter().any(|subscription| subscription.metadata.name == *name)
        };
        self.reconciliations
            .lock()
            .retain(|key, _| *key.namespace != *namespace || is_there(&key.name));
    }

    /// Counts a resolution.
    pub(crate) fn count_resolution(&self, succeeded: bool, duration: Duration) {
        self.resolutions[usize::from(!succeeded)].lock().add(duration);
    }
}

/// The durations of the last resolutions, with sum and count of all.
#[derive(Debug, Default)]
struct Summary {
    last: VecDeque<f64>,
    sum: f64,
    count: u64,
}

impl Summary {
    /// How many durations the quantiles cover.
    const WINDOW: usize = 1024;

    fn add(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if self.last.len() == Self::WINDOW {
            self.last.pop_front();
        }
        self.last.push_back(seconds);
        self.sum += seconds;
        self.count += 1;
    }

    /// The duration that this share of the last ones does not exceed.
    fn quantile(sorted: &[f64], share: f64) -> f64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index below a thousand and some"
        )]
        let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
        sorted.get(at).copied().unwrap_or(f64::NAN)
    }

    fn write(&self, page: &mut Page, name: &str, outcome: &str) {
        let mut sorted: Vec<f64> = self.last.iter().copied().collect();
        sorted.sort_by(f64::total_cmp);
        for (text, share) in [("0.9", 0.9), ("0.95", 0.95), ("0.99", 0.99)] {
            let labels = [("outcome", outcome), ("quantile", text)];
            page.line(name, &labels, Self::quantile(&sorted, share));
        }
        page.line(&format!("{name}_sum"), &[("outcome", outcome)], self.sum);
        page.line(&format!("{name}_count"), &[("outcome", outcome)], self.count);
    }
}

/// Writes all metrics.
pub(crate) fn write(page: &mut Page, context: &Context) {
    write_csv_metrics(page, context);
    let caches = &context.caches;
    let sources = caches.catalogs.sources.list(None);
    let subscriptions = caches.subscriptions.list(None);
    for (name, count, help) in [
        ("install_plan_count", caches.install_plans.len(), "InstallPlans that there are."),
        ("subscription_count", subscriptions.len(), "Subscriptions that there are."),
        ("catalog_source_count", sources.len(), "CatalogSources that there are."),
    ] {
        page.one(name, "gauge", help, count);
    }
    write_catalog_metrics(page, context, &sources);
    write_sync_metrics(page, context, &subscriptions);
    let name = "olm_resolution_duration_seconds";
    page.head(name, "summary", "How long it took to choose what a namespace gets.");
    for (outcome, summary) in ["succeeded", "failed"].into_iter().zip(&context.metrics.resolutions)
    {
        summary.lock().write(page, name, outcome);
    }
    page.one(
        "installplan_warnings_total",
        "counter",
        "Steps of InstallPlans that the API accepted with warnings.",
        context.metrics.plan_warnings.load(Ordering::Relaxed),
    );
}

fn write_csv_metrics(page: &mut Page, context: &Context) {
    let csvs = context.caches.csvs.list(None);
    let csvs: Vec<_> = csvs.iter().filter(|(_, csv)| !csv.is_copy()).collect();
    page.one("csv_count", "gauge", "ClusterServiceVersions without copies.", csvs.len());
    let name = "csv_succeeded";
    let mut is_first = true;
    for (key, csv) in &csvs {
        if std::mem::take(&mut is_first) {
            page.head(name, "gauge", "Whether a ClusterServiceVersion has succeeded.");
        }
        let labels =
            [("name", &*key.name), ("namespace", &*key.namespace), ("version", &csv.version)];
        page.line(name, &labels, u8::from(csv.phase == CsvPhase::Succeeded));
    }
    let name = "csv_abnormal";
    let mut is_first = true;
    for (key, csv) in csvs.iter().filter(|(_, csv)| csv.phase != CsvPhase::Succeeded) {
        if std::mem::take(&mut is_first) {
            page.head(name, "gauge", "ClusterServiceVersions in any phase but Succeeded.");
        }
        let labels = [
            ("name", &*key.name),
            ("namespace", &*key.namespace),
            ("phase", csv.phase.as_str()),
            ("reason", csv.reason.as_str()),
            ("version", &csv.version),
        ];
        page.line(name, &labels, 1);
    }
    page.one(
        "csv_upgrade_count",
        "counter",
        "ClusterServiceVersions that gave way to a newer one.",
        context.metrics.upgrades.load(Ordering::Relaxed),
    );
}

fn write_catalog_metrics(
    page: &mut Page,
    context: &Context,
    sources: &[(NamespacedName, Arc<CatalogSource>)],
) {
    if sources.is_empty() {
        return;
    }
    let name = "catalogsource_ready";
    page.head(name, "gauge", "Whether a CatalogSource is in the state READY.");
    for (key, source) in sources {
        let state = source.status.connection_state.as_ref().map(|state| &state.last_observed_state);
        let labels = [("name", &*key.name), ("namespace", &*key.namespace)];
        page.line(name, &labels, u8::from(state == Some(&LastObservedState::Ready)));
    }
    let name = "catalog_source_snapshots_total";
    page.head(name, "counter", "How often the content of a CatalogSource was taken up.");
    for (key, _) in sources {
        let labels = [("name", &*key.name), ("namespace", &*key.namespace)];
        page.line(name, &labels, context.store.snapshots(key));
    }
}

/// The labels have no namespace, so Subscriptions with otherwise equal labels are one series.
fn write_sync_metrics(
    page: &mut Page,
    context: &Context,
    subscriptions: &[(NamespacedName, Arc<Subscription>)],
) {
    let counts = context.metrics.reconciliations.lock();
    let mut series: BTreeMap<[&str; 5], u64> = BTreeMap::new();
    for (key, subscription) in subscriptions {
        let Some(count) = counts.get(key) else { continue };
        let labels = [
            subscription.spec.install_plan_approval.as_str(),
            &*subscription.spec.channel,
            &*subscription.status.installed_csv,
            &*key.name,
            &*subscription.spec.package,
        ];
        *series.entry(labels).or_default() += count;
    }
    if series.is_empty() {
        return;
    }
    let name = "subscription_sync_total";
    page.head(name, "counter", "How often a Subscription was looked at.");
    for ([approval, channel, installed, subscription, package], count) in series {
        let labels = [
            ("approval", approval),
            ("channel", channel),
            ("installed", installed),
            ("name", subscription),
            ("package", package),
        ];
        page.line(name, &labels, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_cover_the_last_durations_and_sums_cover_all() {
        let mut summary = Summary::default();
        assert!(Summary::quantile(&[], 0.9).is_nan());
        for millis in 1..=2000 {
            summary.add(Duration::from_millis(millis));
        }
        let mut page = Page::default();
        summary.write(&mut page, "x", "failed");
        let text = page.text();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("x{outcome=\"failed\",quantile=\"0.9\"} 1.898"), "{text}");
        assert!(lines[3].starts_with("x_sum{outcome=\"failed\"} 2001"), "{text}");
        assert_eq!(lines[4], "x_count{outcome=\"failed\"} 2000");
    }
}
