//! Metrics of admission: durations of phases, plugins and webhooks, and rejections by webhooks.

use mainstay_exposition::{Histogram, Page};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Histogram buckets of phases and plugins, in seconds.
const PHASE_BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// Histogram buckets of webhooks, in seconds.
const WEBHOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Maximum number of series of webhooks; further webhooks are not counted.
const MAX_WEBHOOKS: usize = 1000;

/// Labels of a phase of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PhaseLabels {
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    pub(crate) operation: &'static str,
    /// Whether the phase ended with a rejection.
    pub(crate) rejected: bool,
    /// The label `type`: `admit` or `validate`; for webhooks `admit` or `validating`.
    pub(crate) kind: &'static str,
}

/// Outcome of the call of a webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallOutcome {
    /// The webhook admitted the request.
    Allowed,
    /// The webhook rejected the request with this code.
    Rejected(u16),
    /// The call failed or its response is malformed. `ignored`: the failure policy is `Ignore`.
    /// `code`: the code of the metric.
    Failed { ignored: bool, code: u16 },
    /// The server rejected the request before or after the call.
    NotCalled,
}

/// Metrics of admission.
#[derive(Debug, Default)]
pub struct AdmissionMetrics(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    phases: BTreeMap<PhaseLabels, Histogram>,
    plugins: BTreeMap<(&'static str, PhaseLabels), Histogram>,
    webhooks: BTreeMap<(Arc<str>, PhaseLabels), WebhookMetrics>,
    rejections: BTreeMap<(Arc<str>, &'static str, u16, PhaseLabels), u64>,
    failed_open: BTreeMap<(Arc<str>, &'static str), u64>,
}

#[derive(Debug)]
struct WebhookMetrics {
    seconds: Histogram,
    codes: BTreeMap<u16, u64>,
}

impl AdmissionMetrics {
    /// Records a phase.
    pub(crate) fn record_phase(&self, labels: PhaseLabels, seconds: f64) {
        let mut tables = self.0.lock();
        tables.phases.entry(labels).or_insert_with(|| Histogram::new(&PHASE_BUCKETS)).add(seconds);
    }

    /// Records one plugin in a phase.
    pub(crate) fn record_plugin(&self, name: &'static str, labels: PhaseLabels, seconds: f64) {
        let mut tables = self.0.lock();
        let histogram = tables.plugins.entry((name, labels));
        histogram.or_insert_with(|| Histogram::new(&PHASE_BUCKETS)).add(seconds);
    }

    /// Records a call of a webhook.
    pub(crate) fn record_webhook(
        &self,
        name: &str,
        operation: &'static str,
        kind: &'static str,
        outcome: CallOutcome,
        seconds: f64,
    ) {
        let (rejected, code, error) = match outcome {
            CallOutcome::Allowed => (false, 200, None),
            CallOutcome::Rejected(code) => (true, code, Some("no_error")),
            CallOutcome::Failed { ignored, code } => {
                (!ignored, code, (!ignored).then_some("calling_webhook_error"))
            }
            CallOutcome::NotCalled => (true, 0, Some("apiserver_internal_error")),
        };
        let labels = PhaseLabels { operation, rejected, kind };
        let name: Arc<str> = name.into();
        let mut tables = self.0.lock();
        if tables.webhooks.len() >= MAX_WEBHOOKS
            && !tables.webhooks.contains_key(&(name.clone(), labels))
        {
            return;
        }
        let webhook = tables.webhooks.entry((name.clone(), labels)).or_insert_with(|| {
            WebhookMetrics { seconds: Histogram::new(&WEBHOOK_BUCKETS), codes: BTreeMap::new() }
        });
        webhook.seconds.add(seconds);
        // A webhook chooses the code; the cap bounds the number of series.
        *webhook.codes.entry(code.min(600)).or_default() += 1;
        if let Some(error) = error {
            *tables.rejections.entry((name, error, code.min(600), labels)).or_default() += 1;
        } else if matches!(outcome, CallOutcome::Failed { .. }) {
            *tables.failed_open.entry((name, kind)).or_default() += 1;
        }
    }

    /// Writes the metrics to a page.
    pub fn write(&self, page: &mut Page) {
        let tables = self.0.lock();
        let bool_label = |rejected: bool| if rejected { "true" } else { "false" };
        let name = "apiserver_admission_step_admission_duration_seconds";
        page.head(name, "histogram", "[STABLE] Seconds that a phase of admission took.");
        for (phase, histogram) in &tables.phases {
            let labels = [
                ("operation", phase.operation),
                ("rejected", bool_label(phase.rejected)),
                ("type", phase.kind),
            ];
            page.histogram(name, &labels, histogram);
        }
        let name = "apiserver_admission_controller_admission_duration_seconds";
        page.head(name, "histogram", "[STABLE] Seconds that a plugin of admission took.");
        for ((plugin, phase), histogram) in &tables.plugins {
            page.histogram(name, &labels(plugin, phase, bool_label(phase.rejected)), histogram);
        }
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        page.head(name, "histogram", "[STABLE] Seconds that a webhook took.");
        for ((webhook, phase), metrics) in &tables.webhooks {
            let labels = labels(webhook, phase, bool_label(phase.rejected));
            page.histogram(name, &labels, &metrics.seconds);
        }
        let name = "apiserver_admission_webhook_request_total";
        page.head(name, "counter", "[ALPHA] Calls of webhooks.");
        for ((webhook, phase), metrics) in &tables.webhooks {
            for (code, count) in &metrics.codes {
                let code = code.to_string();
                let mut all = vec![("code", code.as_str())];
                all.extend(labels(webhook, phase, bool_label(phase.rejected)));
                page.line(name, &all, count);
            }
        }
        let name = "apiserver_admission_webhook_rejection_count";
        page.head(name, "counter", "[ALPHA] Requests that webhooks refused.");
        for ((webhook, error, code, phase), count) in &tables.rejections {
            let code = code.to_string();
            let all = [
                ("error_type", *error),
                ("name", webhook),
                ("operation", phase.operation),
                ("rejection_code", &code),
                ("type", phase.kind),
            ];
            page.line(name, &all, count);
        }
        let name = "apiserver_admission_webhook_fail_open_count";
        page.head(name, "counter", "[ALPHA] Calls of webhooks that failed and are not needed.");
        for ((webhook, kind), count) in &tables.failed_open {
            page.line(name, &[("name", webhook), ("type", kind)], count);
        }
    }
}

fn labels<'a>(name: &'a str, phase: &'a PhaseLabels, rejected: &'a str) -> [(&'a str, &'a str); 4] {
    [("name", name), ("operation", phase.operation), ("rejected", rejected), ("type", phase.kind)]
}
