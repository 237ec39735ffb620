//! The printed report of a replay.

use super::compare::PARTS;
use super::run::{CaseResult, ReplayedStep};
use std::fmt::Write as _;

/// The report of one case: a summary line and the differences; with `all` also the listed ones.
pub fn case(case: &CaseResult, all: bool, limit: usize) -> String {
    let mut text = String::new();
    let agreeing = case.steps.iter().filter(|step| step.agrees()).count();
    let _ = writeln!(
        text,
        "{}: {agreeing} of {} steps agree, {:.1} s{}",
        case.name(),
        case.recorded_steps,
        case.duration.as_secs_f64(),
        if case.is_repeated { ", at the second attempt" } else { "" }
    );
    if let Some(error) = &case.error {
        let _ = writeln!(text, "  not run to its end: {error}");
    }
    for step in &case.steps {
        let listed = step.expected.iter().filter(|_| all).map(|(_, difference)| difference);
        let shown: Vec<_> = step.unexpected.iter().chain(listed).take(limit).collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "  {}", step.name);
        }
        for difference in shown {
            let _ = writeln!(text, "{difference}");
        }
    }
    text
}

/// The totals: steps that agree, what differs in the others, and what is excused.
pub fn totals(results: &[CaseResult]) -> String {
    let steps: Vec<&ReplayedStep> = results.iter().flat_map(|case| &case.steps).collect();
    let recorded: usize = results.iter().map(|case| case.recorded_steps).sum();
    let agreeing = steps.iter().filter(|step| step.agrees()).count();
    let listed = steps.iter().filter(|step| !step.expected.is_empty()).count();
    let by_rule = steps.iter().filter(|step| step.by_rule > 0).count();
    let mut text = format!(
        "{agreeing} of {recorded} steps agree, {listed} of them with listed differences and {by_rule} but for the original's webhook"
    );
    for part in PARTS {
        let differs = |step: &&&ReplayedStep| step.unexpected.iter().any(|one| one.part == part);
        let count = steps.iter().filter(differs).count();
        if count > 0 {
            let _ = write!(text, "; {} differ in {count}", part.as_str());
        }
    }
    text.push('\n');
    text
}
