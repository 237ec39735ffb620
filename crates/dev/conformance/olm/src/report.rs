//! What is printed of a replay.

use super::compare::{Compared, Finding};
use super::listed::Lists;
use super::run::Judged;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How all cases compare: everything is counted before a difference is called wanted.
#[derive(Debug, Default)]
pub struct Score {
    /// Cases without a difference that is not wanted, and all.
    pub cases: [usize; 2],
    /// How many fields were compared.
    pub compared: Compared,
    /// How many of them differ, by kind.
    pub differ: BTreeMap<String, usize>,
    /// How many differ and are not wanted.
    pub open: usize,
    /// How many differ and are wanted without a citation.
    pub uncited: usize,
}

/// Adds up.
pub fn score(judged: &[Judged]) -> Score {
    let mut score = Score::default();
    for case in judged {
        let mut agrees = case.broken.is_none();
        for step in &case.steps {
            score.compared += &step.compared;
            for finding in step.wanted.iter().chain(&step.open) {
                *score.differ.entry(finding.kind.clone()).or_default() += finding.fields;
            }
            score.open += step.open.iter().map(|finding| finding.fields).sum::<usize>();
            score.uncited += step.uncited;
            agrees &= step.open.is_empty();
        }
        score.cases[1] += 1;
        score.cases[0] += usize::from(agrees);
    }
    score
}

/// One case: a line, and what differs without being wanted; `all` also what is wanted.
pub fn case(case: &Judged, lists: &Lists, all: bool, most: usize) -> String {
    let mut text = String::new();
    let Judged { id, rule, took, .. } = case;
    let sum = |findings: &[Finding]| findings.iter().map(|finding| finding.fields).sum::<usize>();
    let open: usize = case.steps.iter().map(|step| sum(&step.open)).sum();
    let wanted: usize = case.steps.iter().map(|step| sum(&step.wanted)).sum();
    let verdict = if lists.fault(case).is_none() { "agrees" } else { "differs" };
    let _ = writeln!(
        text,
        "{id} {rule} (about {}): {verdict}; of {} fields {wanted} differ as wanted and {open} otherwise, {:.1} s",
        lists.subject(rule).join(", "),
        case.compared().total(),
        took.as_secs_f64()
    );
    if let Some(broken) = &case.broken {
        let _ = writeln!(text, "  not run to its end: {broken}");
    }
    for step in &case.steps {
        let shown: Vec<&Finding> =
            step.open.iter().chain(step.wanted.iter().filter(|_| all)).take(most).collect();
        if !shown.is_empty() {
            let _ = writeln!(text, " {}", step.name);
        }
        for finding in shown {
            let _ = writeln!(text, "{finding}");
        }
    }
    text
}

/// The totals.
pub fn totals(score: &Score, lists: &Lists) -> String {
    let mut text = String::new();
    let share = |part: usize, whole: usize| {
        let parts = (part * 10_000).checked_div(whole).unwrap_or_default();
        format!("{part} of {whole} ({}.{:02} %)", parts / 100, parts % 100)
    };
    let compared = score.compared.total();
    let differ: usize = score.differ.values().sum();
    let [good, all] = score.cases;
    let _ = writeln!(
        text,
        "{good} of {all} cases agree, {} of them differ as a whole as wanted; {} fields differ, {} of them not as wanted; without a citation {}",
        lists.exceptions(),
        share(differ, compared),
        score.open,
        share(score.uncited, compared),
    );
    let kinds = score.compared.0.iter().filter_map(|(kind, fields)| {
        let differ = score.differ.get(kind)?;
        Some(format!("{kind} {}", share(*differ, *fields)))
    });
    let _ = writeln!(text, "fields that differ, by kind: {}", kinds.collect::<Vec<_>>().join(", "));
    text
}
