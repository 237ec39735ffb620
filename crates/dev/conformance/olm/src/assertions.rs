//! What recorded cases show of the rows of the specification: `olm/ids.txt`, one assertion a line.
//!
//! `IDS = RULE STEPS KIND OBJECT: PATHS` says that these fields, as recorded in these steps, show these
//! rows. `cargo xtask coverage` reads the ids; here each line is held: the field is recorded, it was
//! compared, and ours neither differs in it nor in what it is a part of, as wanted or not. The patterns
//! are those of `differences.txt` ([`super::listed`]).

use super::case::{Case, Step};
use super::compare::{self, Finding};
use super::listed::{self, Pattern};
use super::normal;
use super::run::Judged;
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

const FORM: &str = "not IDS = RULE STEPS KIND OBJECT: PATHS";

/// A line.
#[derive(Debug)]
struct Assertion {
    line: usize,
    rule: String,
    steps: Vec<String>,
    kind: String,
    object: Pattern,
    /// None: that the object is there.
    paths: Vec<Pattern>,
}

/// All lines.
#[derive(Debug, Default)]
pub struct Assertions(Vec<Assertion>);

impl Assertions {
    /// Reads the lines of a folder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a line that is no assertion.
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

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lines that do not hold, of those whose cases were judged.
    pub fn faults(&self, cases: &[Case], judged: &[Judged]) -> Vec<String> {
        let mut faults = Vec::new();
        for assertion in &self.0 {
            let case = cases.iter().find(|case| case.rule == assertion.rule);
            let judged = judged.iter().find(|case| case.rule == assertion.rule);
            let (Some(case), Some(judged)) = (case, judged) else { continue };
            let wrong = assertion.steps.iter().filter_map(|step| {
                let why = assertion.fault(case, judged, step)?;
                Some(format!("olm/ids.txt:{}: step {step}: {why}", assertion.line))
            });
            faults.extend(wrong);
        }
        faults
    }
}

fn assertion(line: usize, text: &str) -> anyhow::Result<Assertion> {
    let (_, text) = text.split_once(" = ").context(FORM)?;
    let (head, paths) = text.split_once(": ").unwrap_or((text, ""));
    let words: Vec<&str> = head.split_whitespace().collect();
    let [rule, steps, kind, object] = words.as_slice() else { anyhow::bail!(FORM) };
    let paths = paths.split_whitespace().map(|path| Pattern::read(path, true));
    Ok(Assertion {
        line,
        rule: (*rule).to_owned(),
        steps: listed::steps(steps)?,
        kind: (*kind).to_owned(),
        object: Pattern::read(object, false)?,
        paths: paths.collect::<Result<_, _>>()?,
    })
}

/// What a step recorded of a kind: each object with the paths of its fields.
fn recorded(step: &Step, kind: &str) -> Vec<(String, Vec<String>)> {
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
            normal::level_all(&mut objects);
            let of_kind = objects.iter().filter(|object| object["kind"] == kind);
            of_kind.map(|object: &Value| (compare::key(object).1, compare::paths(object))).collect()
        }
    }
}

impl Assertion {
    /// Why the line does not hold in a step.
    fn fault(&self, case: &Case, judged: &Judged, number: &str) -> Option<String> {
        let step = case.steps.iter().find(|step| step.number() == number);
        let compared = judged.steps.iter().find(|step| step.number() == number);
        let (Some(step), Some(compared)) = (step, compared) else {
            return Some("there is no such step".to_owned());
        };
        let fits = |pattern: &Pattern, text: &str| pattern.is_match(text, &case.id);
        let mut objects = recorded(step, &self.kind);
        objects.retain(|(object, _)| fits(&self.object, object));
        if objects.is_empty() {
            return Some(format!("no {} {} is recorded", self.kind, self.object.text()));
        }
        let findings = || compared.wanted.iter().chain(&compared.open);
        let differs = |object: &str, path: &str| {
            let below = |part: &str, whole: &str| {
                whole.is_empty()
                    || part == whole
                    || part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('/'))
            };
            let of_object =
                |finding: &&Finding| finding.kind == self.kind && finding.object == object;
            findings().filter(of_object).any(|finding| {
                // The object as a whole differs only where one side lacks it.
                let theirs = finding.path.as_str();
                if path.is_empty() {
                    theirs.is_empty()
                } else {
                    below(theirs, path) || below(path, theirs)
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
    use super::super::compare::Compared;
    use super::super::run::JudgedStep;
    use super::*;
    use serde_json::json;

    fn case() -> Case {
        let object = json!({"kind": "Subscription", "metadata": {"namespace": "c001", "name": "anvil-c001"},
            "status": {"state": "AtLatestKnown", "conditions": [{"type": "A", "status": "True"}]}});
        let event = json!({"kind": "Subscription", "name": "anvil-c001", "reason": "Done"});
        let step = Step {
            name: "02-x".to_owned(),
            objects: vec![object],
            events: vec![event],
            ..Step::default()
        };
        Case { id: "c001".to_owned(), rule: "a".to_owned(), steps: vec![step], ..Case::default() }
    }

    fn faults(line: &str, differs: &[&str]) -> Vec<String> {
        let findings = differs.iter().map(|path| Finding {
            kind: "Subscription".to_owned(),
            object: "c001/anvil-c001".to_owned(),
            path: (*path).to_owned(),
            fields: 1,
            recorded: None,
            ours: None,
        });
        let step = JudgedStep {
            name: "02-x".to_owned(),
            wanted: findings.collect(),
            compared: Compared::default(),
            ..JudgedStep::default()
        };
        let judged = Judged { rule: "a".to_owned(), steps: vec![step], ..Judged::default() };
        Assertions::parse(line).unwrap().faults(&[case()], &[judged])
    }

    #[test]
    fn an_assertion_holds_if_its_field_is_recorded_and_agrees() {
        let line = "A1 = a 02 Subscription {case}/{name}-{case}: status/state status/conditions/type=A/status\n";
        assert_eq!(faults(line, &[]), Vec::<String>::new());
        assert_eq!(faults(line, &["status/currentCSV"]), Vec::<String>::new(), "another field");
        for differs in ["status/state", "status", ""] {
            assert_eq!(faults(line, &[differs]).len(), 1, "{differs}");
        }
        let whole = "A1 = a 02 Subscription {case}/{name}-{case}\n";
        assert_eq!(faults(whole, &["status/state"]), Vec::<String>::new());
        assert_eq!(faults(whole, &[""]).len(), 1);
        assert_eq!(
            faults("A1 = a 02 Event Subscription/{name}-{case}: Done\n", &[]),
            Vec::<String>::new()
        );
        for line in [
            "A1 = a 02 Subscription {case}/other: status/state\n",
            "A1 = a 02 Subscription {case}/{name}-{case}: status/nothing\n",
            "A1 = a 03 Subscription {case}/{name}-{case}: status/state\n",
            "A1 = a 02 Event Subscription/{name}-{case}: Undone\n",
        ] {
            assert_eq!(faults(line, &[]).len(), 1, "{line}");
        }
        assert!(Assertions::parse("A1 = a 02 Subscription\n").is_err());
    }
}
