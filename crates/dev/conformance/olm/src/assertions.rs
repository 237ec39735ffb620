//! Requirement assertions: the recorded fields that prove rows of the specification (`olm/ids.txt`,
//! one assertion per line).
//!
//! `IDS = RULE STEPS KIND OBJECT: PATHS` says that these fields, as recorded in these steps, prove
//! these rows. `cargo xtask coverage` reads the ids. This module checks each line: the field is
//! recorded and was compared, and neither it nor a value that contains it differs, expected or not.
//! The patterns are those of `differences.txt` ([`super::differences`]).

use super::case::{Case, CaseStep};
use super::compare::{self, FieldDifference};
use super::differences::{self, Pattern};
use super::normalize;
use super::run::CaseResult;
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

const SYNTAX: &str = "not IDS = RULE STEPS KIND OBJECT: PATHS";

/// One line.
#[derive(Debug)]
struct Assertion {
    line: usize,
    rule: String,
    steps: Vec<String>,
    kind: String,
    object: Pattern,
    /// Empty: the existence of the object.
    paths: Vec<Pattern>,
}

/// All assertions.
#[derive(Debug, Default)]
pub struct Assertions(Vec<Assertion>);

impl Assertions {
    /// Reads `ids.txt` of a folder.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is no assertion.
    pub fn read(home: &Path) -> anyhow::Result<Self> {
        let path = home.join("ids.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = mainstay_conformance_harness::entries(text);
        let all = lines.map(|(line, text)| {
            assertion(line, text).with_context(|| format!("olm/ids.txt:{line}"))
        });
        Ok(Self(all.collect::<Result<_, _>>()?))
    }

    /// The number of assertions.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The assertions that fail, among those whose cases were run.
    pub fn problems(&self, cases: &[Case], results: &[CaseResult]) -> Vec<String> {
        let mut problems = Vec::new();
        for assertion in &self.0 {
            let case = cases.iter().find(|case| case.rule == assertion.rule);
            let results = results.iter().find(|case| case.rule == assertion.rule);
            let (Some(case), Some(results)) = (case, results) else { continue };
            let found = assertion.steps.iter().filter_map(|step| {
                let why = assertion.problem(case, results, step)?;
                Some(format!("olm/ids.txt:{}: step {step}: {why}", assertion.line))
            });
            problems.extend(found);
        }
        problems
    }
}

fn assertion(line: usize, text: &str) -> anyhow::Result<Assertion> {
    let (_, text) = text.split_once(" = ").context(SYNTAX)?;
    let (head, paths) = text.split_once(": ").unwrap_or((text, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let [rule, steps, kind, object] = words.as_slice() else { anyhow::bail!(SYNTAX) };
    let paths = paths.split_whitespace().map(|path| Pattern::read(path, true));
    Ok(Assertion {
        line,
        rule: (*rule).to_owned(),
        steps: differences::steps(steps)?,
        kind: (*kind).to_owned(),
        object: Pattern::read(object, false)?,
        paths: paths.collect::<Result<_, _>>()?,
    })
}

/// The recorded objects of a kind in a step, with the paths of their fields.
fn recorded(step: &CaseStep, kind: &str) -> Vec<(String, Vec<String>)> {
    match kind {
        "Event" => step
            .events
            .iter()
            .map(|event| {
                let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
                (format!("{}/{}", text("kind"), text("name")), vec![text("reason")])
            })
            .collect(),
        "Command" => {
            let paths = ["exit", "printed/out", "printed/error", "printed/exit"];
            vec![(step.number().to_owned(), paths.map(str::to_owned).to_vec())]
        }
        _ => {
            let mut objects = step.objects.clone();
            normalize::canonicalize_all(&mut objects);
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.map(|object: &Value| (compare::key(object).1, compare::paths(object))).collect()
        }
    }
}

impl Assertion {
    /// Why the assertion fails in a step.
    fn problem(&self, case: &Case, results: &CaseResult, number: &str) -> Option<String> {
        let step = case.steps.iter().find(|step| step.number() == number);
        let compared = results.steps.iter().find(|step| step.number() == number);
        let (Some(step), Some(compared)) = (step, compared) else {
            return Some("there is no such step".to_owned());
        };
        let fits = |pattern: &Pattern, text: &str| pattern.is_match(text, &case.id);
        let mut objects = recorded(step, &self.kind);
        objects.retain(|(object, _)| fits(&self.object, object));
        if objects.is_empty() {
            return Some(format!("no {} {} is recorded", self.kind, self.object.text()));
        }
        let findings = || compared.expected.iter().chain(&compared.unexpected);
        let differs = |object: &str, path: &str| {
            let contains = |part: &str, whole: &str| {
                whole.is_empty()
                    || part == whole
                    || part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/'))
            };
            let of_object =
                |finding: &&FieldDifference| finding.kind == self.kind && finding.object == object;
            findings().filter(of_object).any(|finding| {
                // A finding without a path means that one side lacks the object.
                let theirs = finding.path.as_str();
                if path.is_empty() {
                    theirs.is_empty()
                } else {
                    contains(theirs, path) || contains(path, theirs)
                }
            })
        };
        if self.paths.is_empty() {
            let (object, _) = objects.iter().find(|(object, _)| differs(object, ""))?;
            return Some(format!("{} {object} differs", self.kind));
        }
        for pattern in &self.paths {
            let mut found = false;
            for (object, paths) in &objects {
                let path = paths.iter().find(|path| fits(pattern, path));
                let Some(path) = path else { continue };
                found = true;
                if differs(object, path) {
                    return Some(format!("{} {object}: {path} differs", self.kind));
                }
            }
            if !found {
                return Some(format!(
                    "no {} {} with {} is recorded",
                    self.kind,
                    self.object.text(),
                    pattern.text()
                ));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::compare::FieldCounts;
    use super::super::run::StepResult;
    use super::*;
    use serde_json::json;

    fn case() -> Case {
        let object = json!({"kind": "Subscription", "metadata": {"namespace": "c001", "name": "anvil-c001"},
            "status": {"state": "AtLatestKnown", "conditions": [{"type": "A", "status": "True"}]}});
        let event = json!({"kind": "Subscription", "name": "anvil-c001", "reason": "Done"});
        let step = CaseStep {
            name: "02-x".to_owned(),
            objects: vec![object],
            events: vec![event],
            ..CaseStep::default()
        };
        Case { id: "c001".to_owned(), rule: "a".to_owned(), steps: vec![step], ..Case::default() }
    }

    fn problems(line: &str, differs: &[&str]) -> Vec<String> {
        let findings = differs.iter().map(|path| FieldDifference {
            kind: "Subscription".to_owned(),
            object: "c001/anvil-c001".to_owned(),
            path: (*path).to_owned(),
            fields: 1,
            recorded: None,
            ours: None,
        });
        let step = StepResult {
            name: "02-x".to_owned(),
            expected: findings.collect(),
            compared: FieldCounts::default(),
            ..StepResult::default()
        };
        let results =
            CaseResult { rule: "a".to_owned(), steps: vec![step], ..CaseResult::default() };
        Assertions::parse(line).unwrap().problems(&[case()], &[results])
    }

    #[test]
    fn an_assertion_holds_if_its_field_is_recorded_and_agrees() {
        let line = "A1 = a 02 Subscription {case}/{name}-{case}: status/state status/conditions/type=A/status\n";
        assert_eq!(problems(line, &[]), Vec::<String>::new());
        assert_eq!(problems(line, &["status/currentCSV"]), Vec::<String>::new(), "another field");
        for differs in ["status/state", "status", ""] {
            assert_eq!(problems(line, &[differs]).len(), 1, "{differs}");
        }
        let whole = "A1 = a 02 Subscription {case}/{name}-{case}\n";
        assert_eq!(problems(whole, &["status/state"]), Vec::<String>::new());
        assert_eq!(problems(whole, &[""]).len(), 1);
        assert_eq!(
            problems("A1 = a 02 Event Subscription/{name}-{case}: Done\n", &[]),
            Vec::<String>::new()
        );
        for line in [
            "A1 = a 02 Subscription {case}/other: status/state\n",
            "A1 = a 02 Subscription {case}/{name}-{case}: status/nothing\n",
            "A1 = a 03 Subscription {case}/{name}-{case}: status/state\n",
            "A1 = a 02 Event Subscription/{name}-{case}: Undone\n",
        ] {
            assert_eq!(problems(line, &[]).len(), 1, "{line}");
        }
        assert!(Assertions::parse("A1 = a 02 Subscription\n").is_err());
    }
}
