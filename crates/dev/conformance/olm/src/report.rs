//! The printed report of a replay.

use super::compare::{FieldCounts, FieldDifference};
use super::differences::ExpectedDifferences;
use super::run::CaseResult;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The totals over all cases. Everything is counted before a difference counts as expected.
#[derive(Debug, Default)]
pub struct Score {
    /// The number of cases without unexpected differences, and of all cases.
    pub cases: [usize; 2],
    /// The number of compared fields.
    pub compared: FieldCounts,
    /// The number of differing fields, by kind.
    pub differ: BTreeMap<String, usize>,
    /// The number of unexpectedly differing fields.
    pub unexpected: usize,
    /// The number of expected differing fields without a citation.
    pub uncited: usize,
}

/// Sums up the results.
pub fn score(results: &[CaseResult]) -> Score {
    let mut score = Score::default();
    for case in results {
        let mut agrees = case.error.is_none();
        for step in &case.steps {
            score.compared += &step.compared;
            for finding in step.expected.iter().chain(&step.unexpected) {
                *score.differ.entry(finding.kind.clone()).or_default() += finding.fields;
            }
            score.unexpected += step.unexpected.iter().map(|finding| finding.fields).sum::<usize>();
            score.uncited += step.uncited;
            agrees &= step.unexpected.is_empty();
        }
        score.cases[1] += 1;
        score.cases[0] += usize::from(agrees);
    }
    score
}

/// The report of one case: a summary line and the unexpected differences; with `all` also the
/// expected ones.
pub fn case(case: &CaseResult, lists: &ExpectedDifferences, all: bool, limit: usize) -> String {
    let mut text = String::new();
    let CaseResult { id, rule, duration, .. } = case;
    let sum =
        |findings: &[FieldDifference]| findings.iter().map(|finding| finding.fields).sum::<usize>();
    let unexpected: usize = case.steps.iter().map(|step| sum(&step.unexpected)).sum();
    let expected: usize = case.steps.iter().map(|step| sum(&step.expected)).sum();
    let verdict = if lists.problem(case).is_none() { "agrees" } else { "differs" };
    let _ = writeln!(
        text,
        "{id} {rule} (about {}): {verdict}; of {} fields {expected} differ as wanted and {unexpected} otherwise, {:.1} s",
        lists.subject(rule).join(", "),
        case.compared().total(),
        duration.as_secs_f64()
    );
    if let Some(error) = &case.error {
        let _ = writeln!(text, "  not run to its end: {error}");
    }
    for step in &case.steps {
        let findings: Vec<&FieldDifference> = step
            .unexpected
            .iter()
            .chain(step.expected.iter().filter(|_| all))
            .take(limit)
            .collect();
        if !findings.is_empty() {
            let _ = writeln!(text, " {}", step.name);
        }
        for finding in findings {
            let _ = writeln!(text, "{finding}");
        }
    }
    text
}

/// The totals.
pub fn totals(score: &Score, lists: &ExpectedDifferences) -> String {
    let mut text = String::new();
    let percentage = |part: usize, whole: usize| {
        let parts = (part * 10_000).checked_div(whole).unwrap_or_default();
        format!("{part} of {whole} ({}.{:02} %)", parts / 100, parts % 100)
    };
    let compared = score.compared.total();
    let differ: usize = score.differ.values().sum();
    let [agreeing, all] = score.cases;
    let _ = writeln!(
        text,
        "{agreeing} of {all} cases agree, {} of them differ as a whole as wanted; {} fields differ, {} of them not as wanted; without a citation {}",
        lists.exceptions(),
        percentage(differ, compared),
        score.unexpected,
        percentage(score.uncited, compared),
    );
    let kinds = score.compared.0.iter().filter_map(|(kind, fields)| {
        let differ = score.differ.get(kind)?;
        Some(format!("{kind} {}", percentage(*differ, *fields)))
    });
    let _ = writeln!(text, "fields that differ, by kind: {}", kinds.collect::<Vec<_>>().join(", "));
    text
}
