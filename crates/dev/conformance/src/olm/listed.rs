//! What is known of the cases: `olm/differences.txt`, `olm/agreeing.txt` and `olm/scope.txt`.
//!
//! Cases are named by their rules in all of them, so that they hold for other recordings of the
//! same rules. `#` begins a comment.
//!
//! * `differences.txt`: `RULES | KINDS | PATHS | REASON [CITATION]`, each of the first three one or
//!   several with commas between, with `*` for any letters; `STEPS/` (two digits each) may stand
//!   before the kinds as `03,04/Subscription`, and `.` is the path of an object as a whole. The
//!   citation is the rule under which the notes on the recordings tell of it, or a row of the
//!   specification. An entry that nothing needs fails; entries without citation may excuse at most
//!   one per cent of what is compared.
//! * `agreeing.txt`: `RULE` for a case that agrees, `RULE/NN` for one that agrees up to and
//!   including the step NN. A case that no longer does fails, and so does one that agrees as a
//!   whole and is not listed at all.
//! * `scope.txt`: `SCOPE RULES…`: what a case is about, with `*` for any letters.

use super::compare::{Count, Finding};
use super::run::Judged;
use anyhow::{Context, bail};
use regex::Regex;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A difference that is wanted.
#[derive(Debug)]
struct Entry {
    line: usize,
    text: String,
    rules: Regex,
    steps: Option<Vec<String>>,
    kind: Regex,
    path: Regex,
    cited: bool,
    used: AtomicUsize,
}

/// The lists.
#[derive(Debug, Default)]
pub struct Lists {
    differences: Vec<Entry>,
    /// How many steps agree, by rule; none: all.
    agreeing: BTreeMap<String, Option<String>>,
    scopes: Vec<(String, Regex)>,
}

fn glob(pattern: &str) -> anyhow::Result<Regex> {
    let parts: Vec<String> = pattern.trim().split('*').map(regex::escape).collect();
    Regex::new(&format!("^{}$", parts.join(".*"))).context("read the pattern")
}

/// Any of several patterns with commas between; `.` is the empty text.
fn globs(patterns: &str) -> anyhow::Result<Regex> {
    let one = |it: &str| {
        let it = it.trim();
        let parts = (if it == "." { "" } else { it }).split('*').map(regex::escape);
        parts.collect::<Vec<_>>().join(".*")
    };
    let all: Vec<String> = patterns.split(',').map(one).collect();
    Regex::new(&format!("^({})$", all.join("|"))).context("read the patterns")
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .map(str::trim)
        .enumerate()
        .map(|(at, line)| (at + 1, line))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

impl Lists {
    /// Reads the lists of a folder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a line that is no entry.
    pub fn read(home: &Path) -> anyhow::Result<Self> {
        let text = |name: &str| {
            let path = home.join("olm").join(name);
            std::fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        Self::parse(&text("differences.txt")?, &text("agreeing.txt")?, &text("scope.txt")?)
    }

    fn parse(differences: &str, agreeing: &str, scope: &str) -> anyhow::Result<Self> {
        let mut lists = Self::default();
        for (line, text) in lines(differences) {
            lists
                .differences
                .push(entry(line, text).with_context(|| format!("differences.txt:{line}"))?);
        }
        for (_, text) in lines(agreeing) {
            let (rule, step) = match text.split_once('/') {
                Some((rule, step)) => (rule, Some(step.to_owned())),
                None => (text, None),
            };
            lists.agreeing.insert(rule.to_owned(), step);
        }
        for (_, text) in lines(scope) {
            let mut words = text.split_whitespace();
            let scope = words.next().unwrap_or_default().to_owned();
            for rule in words {
                lists.scopes.push((scope.clone(), glob(rule)?));
            }
        }
        Ok(lists)
    }

    /// What a rule is about.
    pub fn scope(&self, rule: &str) -> &str {
        let found = self.scopes.iter().find(|(_, pattern)| pattern.is_match(rule));
        found.map_or("", |(scope, _)| scope)
    }

    /// Takes the wanted differences of a step away; how many of the deciding fields, and of all
    /// others, without a citation.
    pub fn take(&self, rule: &str, step: &str, findings: &mut Vec<Finding>) -> Count {
        let mut uncited = Count::default();
        findings.retain(|it| {
            let entry = self.differences.iter().find(|entry| entry.excuses(rule, step, it));
            let Some(entry) = entry else { return true };
            entry.used.fetch_add(1, Ordering::Relaxed);
            if !entry.cited {
                *(if it.first { &mut uncited.first } else { &mut uncited.further }) += 1;
            }
            false
        });
        uncited
    }

    /// How many differences were taken away for which no entry cites anything.
    pub fn uncited(&self) -> usize {
        let entries = self.differences.iter().filter(|it| !it.cited);
        entries.map(|it| it.used.load(Ordering::Relaxed)).sum()
    }

    /// What is wrong with the lists after all cases were judged, and their wanted differences taken
    /// away.
    pub fn faults(&self, judged: &[Judged], uncited: usize, compared: usize) -> Vec<String> {
        let mut faults = Vec::new();
        for Entry { line, text, used, .. } in &self.differences {
            if used.load(Ordering::Relaxed) == 0 {
                faults.push(format!("olm/differences.txt:{line}: nothing needs it: {text}"));
            }
        }
        if uncited * 100 > compared {
            faults.push(format!(
                "olm/differences.txt: {uncited} of {compared} fields are excused without a citation, more than one in 100"
            ));
        }
        for rule in self.agreeing.keys() {
            if !judged.iter().any(|it| it.rule == *rule) {
                faults.push(format!("olm/agreeing.txt: there is no case of the rule {rule}"));
            }
        }
        for case in judged {
            faults.extend(self.fault(case));
            if self.scope(&case.rule).is_empty() {
                faults.push(format!("olm/scope.txt: what is the rule {} about?", case.rule));
            }
        }
        faults
    }

    /// What is wrong with how a case stands in the list of those that agree.
    pub fn fault(&self, case: &Judged) -> Option<String> {
        let Judged { id, rule, .. } = case;
        let (agreeing, all) = agreeing(case);
        match self.agreeing.get(rule) {
            None => all.then(|| format!("olm/agreeing.txt: {rule} ({id}) agrees: add it")),
            Some(None) => (!all).then(|| format!("{rule} ({id}) agreed and does not any more")),
            Some(Some(step)) => {
                let there = all || agreeing.is_some_and(|it| it >= step.as_str());
                (!there).then(|| format!("{rule}/{step} ({id}) agreed and does not any more"))
            }
        }
    }

    /// The list of the cases that agree, as it should be.
    pub fn agreeing(&self, judged: &[Judged], old: &str) -> String {
        let mut text: String = old
            .lines()
            .take_while(|it| it.starts_with('#'))
            .fold(String::new(), |all, line| all + line + "\n");
        let mut rules: Vec<(&str, Option<&str>)> = Vec::new();
        for case in judged {
            let (steps, all) = agreeing(case);
            if all {
                rules.push((&case.rule, None));
            } else if let Some(step) = steps {
                rules.push((&case.rule, Some(step)));
            }
        }
        let ran = |rule: &str| judged.iter().any(|it| it.rule == rule);
        let others = self.agreeing.iter().filter(|(rule, _)| !ran(rule));
        rules.extend(others.map(|(rule, step)| (rule.as_str(), step.as_deref())));
        rules.sort_unstable();
        for (rule, step) in rules {
            let step = step.map(|it| format!("/{it}")).unwrap_or_default();
            let _ = writeln!(text, "{rule}{step}");
        }
        text
    }
}

/// Up to which step a case agrees, and whether it does so to its end.
fn agreeing(case: &Judged) -> (Option<&str>, bool) {
    let mut last = None;
    for step in &case.steps {
        if step.findings.iter().any(|it| it.first) {
            return (last, false);
        }
        last = Some(step.name.get(..2).unwrap_or_default());
    }
    (last, case.broken.is_none())
}

fn entry(line: usize, text: &str) -> anyhow::Result<Entry> {
    let parts: Vec<&str> = text.split(" | ").collect();
    let [rules, kind, path, reason] = parts.as_slice() else {
        bail!("not RULES | KINDS | PATHS | REASON [CITATION]")
    };
    let (steps, kind) = match kind.trim().split_once('/') {
        Some((steps, kind)) => (Some(steps.split(',').map(str::to_owned).collect()), kind),
        None => (None, kind.trim()),
    };
    if reason.trim().is_empty() {
        bail!("a difference has a reason");
    }
    Ok(Entry {
        line,
        text: text.to_owned(),
        rules: globs(rules)?,
        steps,
        kind: globs(kind)?,
        path: globs(path)?,
        cited: reason.contains(" [") && reason.trim().ends_with(']'),
        used: AtomicUsize::new(0),
    })
}

impl Entry {
    fn excuses(&self, rule: &str, step: &str, finding: &Finding) -> bool {
        self.rules.is_match(rule)
            && self.steps.as_ref().is_none_or(|it| it.iter().any(|it| it == step))
            && self.kind.is_match(&finding.kind)
            && self.path.is_match(&finding.path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::JudgedStep;
    use super::*;
    use serde_json::json;

    fn finding(path: &str) -> Finding {
        Finding {
            kind: "Subscription".to_owned(),
            object: "n/s".to_owned(),
            path: path.to_owned(),
            first: true,
            recorded: Some(json!(1)),
            ours: None,
        }
    }

    fn judged(rule: &str, steps: &[bool]) -> Judged {
        let steps = steps.iter().enumerate().map(|(at, good)| JudgedStep {
            name: format!("{at:02}-x"),
            findings: if *good { Vec::new() } else { vec![finding("status/state")] },
            ..JudgedStep::default()
        });
        Judged {
            id: "c001".to_owned(),
            rule: rule.to_owned(),
            steps: steps.collect(),
            ..Judged::default()
        }
    }

    #[test]
    fn wanted_differences_are_taken_away_and_needed() {
        let list = "a-* | 01/Subscription | status/conditions/* | ours says more [a-b]\n* | Role | rules | never\n";
        let lists = Lists::parse(list, "", "s *\n").unwrap();
        let mut found = vec![finding("status/conditions/type=A"), finding("status/state")];
        assert_eq!(lists.take("a-b", "01", &mut found), Count::default());
        assert_eq!(found.len(), 1);
        let mut again = vec![finding("status/conditions/type=A")];
        lists.take("a-b", "02", &mut again);
        assert_eq!(again.len(), 1, "another step");
        let faults = lists.faults(&[], 2, 100);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn an_entry_can_have_several_rules_steps_kinds_and_paths() {
        let list = "a-*,b | 01,03/Role,Subscription | .,status/state | why\n";
        let lists = Lists::parse(list, "", "").unwrap();
        for (rule, step, path, taken) in [
            ("a-b", "01", "status/state", true),
            ("b", "03", "", true),
            ("b", "02", "", false),
            ("c", "01", "", false),
            ("b", "01", "status", false),
        ] {
            let mut found = vec![finding(path)];
            lists.take(rule, step, &mut found);
            assert_eq!(found.is_empty(), taken, "{rule} {step} {path}");
        }
    }

    #[test]
    fn what_agrees_is_listed_and_what_is_listed_agrees() {
        let lists = Lists::parse("", "good\npart/01\nbad\n", "s *\n").unwrap();
        let all = [
            judged("good", &[true, true]),
            judged("part", &[true, true, false]),
            judged("bad", &[true, false]),
            judged("new", &[true]),
        ];
        assert_eq!(
            lists.faults(&all, 0, 1),
            [
                "bad (c001) agreed and does not any more",
                "olm/agreeing.txt: new (c001) agrees: add it",
            ]
        );
        assert_eq!(lists.agreeing(&all, "# why\nbad\n"), "# why\nbad/00\ngood\nnew\npart/01\n");
    }
}
