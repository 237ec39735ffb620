//! Counts of admission: how long its steps, plugins and webhooks took, and what webhooks refused.

use mainstay_exposition::{Histogram, Page};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bounds of steps and plugins, in seconds.
const STEPS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];
/// Bounds of webhooks, in seconds.
const WEBHOOKS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// Webhooks that are remembered; further ones are not counted.
const NAMES: usize = 1000;

/// What a phase of admission was about, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Step {
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT`.
    pub(crate) operation: &'static str,
    /// Whether it ended with a refusal.
    pub(crate) rejected: bool,
    /// `admit` or `validate`; of webhooks `admit` or `validating`.
    pub(crate) kind: &'static str,
}

/// How the call of a webhook ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// It agreed.
    Agreed,
    /// It refused with this code.
    Refused(u16),
    /// It could not be asked, or its answer is none; whether that is as if it had agreed, and the
    /// code that is said of it.
    Failed { ignored: bool, code: u16 },
    /// The server refused before or after it.
    Unasked,
}

/// The counts.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    steps: BTreeMap<Step, Histogram>,
    plugins: BTreeMap<(&'static str, Step), Histogram>,
    webhooks: BTreeMap<(Arc<str>, Step), Webhook>,
    rejections: BTreeMap<(Arc<str>, &'static str, u16, Step), u64>,
    open: BTreeMap<(Arc<str>, &'static str), u64>,
}

#[derive(Debug)]
struct Webhook {
    seconds: Histogram,
    codes: BTreeMap<u16, u64>,
}

impl Metrics {
    /// Counts a phase.
    pub(crate) fn step(&self, step: Step, seconds: f64) {
        let mut tables = self.0.lock();
        tables.steps.entry(step).or_insert_with(|| Histogram::new(&STEPS)).add(seconds);
    }

    /// Counts what one plugin did in a phase.
    pub(crate) fn plugin(&self, name: &'static str, step: Step, seconds: f64) {
        let mut tables = self.0.lock();
        let tally = tables.plugins.entry((name, step));
        tally.or_insert_with(|| Histogram::new(&STEPS)).add(seconds);
    }

    /// Counts a call of a webhook.
    pub(crate) fn webhook(
        &self,
        name: &str,
        operation: &'static str,
        kind: &'static str,
        ended: Ended,
        seconds: f64,
    ) {
        let (rejected, code, error) = match ended {
            Ended::Agreed => (false, 200, None),
            Ended::Refused(code) => (true, code, Some("no_error")),
            Ended::Failed { ignored, code } => {
                (!ignored, code, (!ignored).then_some("calling_webhook_error"))
            }
            Ended::Unasked => (true, 0, Some("apiserver_internal_error")),
        };
        let step = Step { operation, rejected, kind };
        let name: Arc<str> = name.into();
        let mut tables = self.0.lock();
        if tables.webhooks.len() >= NAMES && !tables.webhooks.contains_key(&(name.clone(), step)) {
            return;
        }
        let webhook = tables.webhooks.entry((name.clone(), step)).or_insert_with(|| Webhook {
            seconds: Histogram::new(&WEBHOOKS),
            codes: BTreeMap::new(),
        });
        webhook.seconds.add(seconds);
        // Codes are those of refusals: three digits.
        *webhook.codes.entry(code.min(600)).or_default() += 1;
        if let Some(error) = error {
            *tables.rejections.entry((name, error, code.min(600), step)).or_default() += 1;
        } else if matches!(ended, Ended::Failed { .. }) {
            *tables.open.entry((name, kind)).or_default() += 1;
        }
    }

    /// Writes the counts onto a page of metrics.
    pub fn write(&self, page: &mut Page) {
        let tables = self.0.lock();
        let shown = |rejected: bool| if rejected { "true" } else { "false" };
        let name = "apiserver_admission_step_admission_duration_seconds";
        page.head(name, "histogram", "[STABLE] Seconds that a phase of admission took.");
        for (step, tally) in &tables.steps {
            let labels = [
                ("operation", step.operation),
                ("rejected", shown(step.rejected)),
                ("type", step.kind),
            ];
            page.histogram(name, &labels, tally);
        }
        let name = "apiserver_admission_controller_admission_duration_seconds";
        page.head(name, "histogram", "[STABLE] Seconds that a plugin of admission took.");
        for ((plugin, step), tally) in &tables.plugins {
            page.histogram(name, &labels(plugin, step, shown(step.rejected)), tally);
        }
        let name = "apiserver_admission_webhook_admission_duration_seconds";
        page.head(name, "histogram", "[STABLE] Seconds that a webhook took.");
        for ((webhook, step), tally) in &tables.webhooks {
            page.histogram(name, &labels(webhook, step, shown(step.rejected)), &tally.seconds);
        }
        let name = "apiserver_admission_webhook_request_total";
        page.head(name, "counter", "[ALPHA] Calls of webhooks.");
        for ((webhook, step), tally) in &tables.webhooks {
            for (code, count) in &tally.codes {
                let code = code.to_string();
                let mut all = vec![("code", code.as_str())];
                all.extend(labels(webhook, step, shown(step.rejected)));
                page.line(name, &all, count);
            }
        }
        let name = "apiserver_admission_webhook_rejection_count";
        page.head(name, "counter", "[ALPHA] Requests that webhooks refused.");
        for ((webhook, error, code, step), count) in &tables.rejections {
            let code = code.to_string();
            let all = [
                ("error_type", *error),
                ("name", webhook),
                ("operation", step.operation),
                ("rejection_code", &code),
                ("type", step.kind),
            ];
            page.line(name, &all, count);
        }
        let name = "apiserver_admission_webhook_fail_open_count";
        page.head(name, "counter", "[ALPHA] Calls of webhooks that failed and are not needed.");
        for ((webhook, kind), count) in &tables.open {
            page.line(name, &[("name", webhook), ("type", kind)], count);
        }
    }
}

fn labels<'a>(name: &'a str, step: &'a Step, rejected: &'a str) -> [(&'a str, &'a str); 4] {
    [("name", name), ("operation", step.operation), ("rejected", rejected), ("type", step.kind)]
}
