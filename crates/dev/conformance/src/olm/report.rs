//! What is told of a replay.

use super::compare::{Count, Finding};
use super::listed::Lists;
use super::run::Judged;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How the cases of a scope compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Cases that agree, and all.
    pub cases: [usize; 2],
    /// How much was compared.
    pub compared: Count,
    /// How much differs and is not cited: what is not wanted, and what is wanted without a citation.
    pub uncited: Count,
}

/// How all of it compares.
#[derive(Debug, Default)]
pub struct Score {
    /// The same by what cases are about.
    pub scopes: BTreeMap<String, Scope>,
    /// How much was compared.
    pub compared: Count,
    /// How much differs and is not wanted.
    pub open: Count,
    /// How much differs and is wanted, with a citation or without.
    pub wanted: usize,
    /// How much of it without.
    pub uncited: usize,
}

/// Takes the wanted differences away and adds up.
pub fn settle(judged: &mut [Judged], lists: &Lists) -> Score {
    let mut score = Score::default();
    for case in judged {
        let mut agrees = case.broken.is_none();
        let scope = score.scopes.entry(lists.scope(&case.rule).to_owned()).or_default();
        for step in &mut case.steps {
            score.compared += step.count;
            let before = step.findings.len();
            let number = step.name.get(..2).unwrap_or_default();
            let uncited = lists.take(&case.rule, number, &mut step.findings);
            score.uncited += uncited.first + uncited.further;
            score.wanted += before - step.findings.len();
            let first = step.findings.iter().filter(|it| it.first).count();
            let open = Count { first, further: step.findings.len() - first };
            score.open += open;
            scope.compared += step.count;
            scope.uncited += open;
            scope.uncited += uncited;
            agrees &= first == 0;
        }
        scope.cases[1] += 1;
        scope.cases[0] += usize::from(agrees);
    }
    score
}

/// One case: a line for each step, with what differs if `verbose`.
pub fn case(case: &Judged, scope: &str, verbose: bool, all: bool, most: usize) -> String {
    let mut text = String::new();
    let Judged { id, rule, took, .. } = case;
    let first: usize =
        case.steps.iter().map(|it| it.findings.iter().filter(|it| it.first).count()).sum();
    let further: usize = case.steps.iter().map(|it| it.findings.len()).sum::<usize>() - first;
    let verdict = if first == 0 && case.broken.is_none() { "agrees" } else { "differs" };
    let _ = writeln!(
        text,
        "{id} {rule} ({scope}): {verdict}, {first} deciding and {further} other fields differ, {:.1} s",
        took.as_secs_f64()
    );
    if let Some(broken) = &case.broken {
        let _ = writeln!(text, "  not run to its end: {broken}");
    }
    if !verbose {
        return text;
    }
    for step in &case.steps {
        let first = step.findings.iter().filter(|it| it.first).count();
        let _ = writeln!(
            text,
            " {}: {first} of {} deciding, {} of {} other",
            step.name,
            step.count.first,
            step.findings.len() - first,
            step.count.further
        );
        if let Some(missed) = &step.missed {
            let _ = writeln!(text, "  waited in vain for: {missed}");
        }
        let shown = step.findings.iter().filter(|it| it.first || all).take(most);
        for finding in shown {
            let _ = writeln!(text, "{finding}");
        }
    }
    text
}

/// The totals.
pub fn totals(score: &Score) -> String {
    let mut text = String::new();
    let share = |part: usize, whole: usize| {
        let parts = (part * 10_000).checked_div(whole).unwrap_or_default();
        format!("{part} of {whole} ({}.{:02} %)", parts / 100, parts % 100)
    };
    for (scope, it) in &score.scopes {
        let [good, all] = it.cases;
        let Scope { compared, uncited, .. } = it;
        let _ = writeln!(
            text,
            "{scope:<10} {good} of {all} cases agree; without a citation differ {} deciding fields, {} others, {} in all",
            share(uncited.first, compared.first),
            share(uncited.further, compared.further),
            share(uncited.first + uncited.further, compared.first + compared.further),
        );
    }
    let Score { compared, open, wanted, uncited, .. } = score;
    let _ = writeln!(
        text,
        "deciding fields: {} of {} differ; others: {} of {}; wanted differences: {wanted}, {uncited} without a citation",
        open.first, compared.first, open.further, compared.further
    );
    text
}

/// Deciding fields that differ, by kind and path, the ones in most cases first.
pub fn summary(judged: &[Judged], most: usize) -> String {
    let mut groups: BTreeMap<(String, String), (Vec<&str>, usize, &Finding)> = BTreeMap::new();
    for case in judged {
        for step in &case.steps {
            for finding in step.findings.iter().filter(|it| it.first) {
                let path = generalized(&finding.path);
                let path = match (&finding.recorded, &finding.ours) {
                    (Some(_), None) => format!("{path} (ours has none)"),
                    (None, _) => format!("{path} (only ours)"),
                    _ => path,
                };
                let group = groups
                    .entry((finding.kind.clone(), path))
                    .or_insert_with(|| (Vec::new(), 0, finding));
                if group.0.last() != Some(&case.id.as_str()) {
                    group.0.push(&case.id);
                }
                group.1 += 1;
            }
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (cases, count, _))| std::cmp::Reverse((cases.len(), *count)));
    let mut text = String::new();
    for ((kind, path), (cases, count, example)) in groups.into_iter().take(most) {
        let ids = cases.iter().take(12).copied().collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "{:>3} cases {count:>5} fields  {kind} {path}\n      {ids}",
            cases.len()
        );
        let _ = writeln!(text, "{example}");
    }
    text
}

/// A path without the numbers of list entries.
fn generalized(path: &str) -> String {
    let part = |part: &str| {
        if part.parse::<usize>().is_ok() { "*".to_owned() } else { part.to_owned() }
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}
