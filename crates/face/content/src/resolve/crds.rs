//! CRD changes of a hop that upstream's CRD upgrade safety check refuses, as text and JSON.

use super::text::line;
use crate::crd::{count_impacts, finding_place, finding_value, shorten};
use mainstay_command::text::escape_controls;
use mainstay_crdsafety::Impact;
use mainstay_whatif::{CrdChange, Hop};
use serde_json::{Value, json};

/// Most changes of a hop that text lists.
const MAX_CHANGES: usize = 5;

/// The changes of a hop as text; `paint` colours the first line.
pub(super) fn write_text(out: &mut String, hop: &Hop, paint: impl Fn(&str) -> String) {
    let changes = &*hop.crd_changes;
    if changes.is_empty() {
        return;
    }
    let number =
        |impact: Impact| changes.iter().filter(|change| change.finding.impact == impact).count();
    let bundle = escape_controls(&hop.bundle);
    let counts = count_impacts(number);
    let title = format!("OLM v1 would refuse the CRDs of {bundle}: {counts}");
    line(out, "warning", &paint(&title));
    for CrdChange { crd, finding } in changes.iter().take(MAX_CHANGES) {
        let words = format!(
            "{}: {crd}: {}: {}: {}",
            finding.impact.name(),
            finding_place(finding),
            finding.check.name(),
            shorten(&finding.summary())
        );
        line(out, "", &escape_controls(&words));
    }
    if let Some(more) = changes.len().checked_sub(MAX_CHANGES).filter(|more| *more > 0) {
        line(out, "", &format!("and {more} more (-o json shows all)"));
    }
}

/// The changes of a hop as JSON.
pub(super) fn value(changes: &[CrdChange]) -> Value {
    changes
        .iter()
        .map(|CrdChange { crd, finding }| {
            let mut value = finding_value(finding);
            value["crd"] = json!(crd);
            value
        })
        .collect()
}
