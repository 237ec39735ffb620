//! The list of steps in which ours is meant to do something else than the original, and what it does.
//!
//! The page of the recordings has a table of facts that are better avoided. A line of the list is `CASE;
//! STEP; EXPECTED; REASON`: the rule of a case, the numbers of steps, what must hold of our objects then
//! (`KIND/NAME PATH=VALUE`, or `KIND/NAME TYPE=REASON` for a condition, separated by commas), and the fact.
//! Of the objects of such a step, only ClusterCatalogs are compared with the recording: those of the extension
//! follow from another version or state. Each line has to be used.

use super::case::Case;
use super::compare::{Difference, Part};
use super::run::CaseResult;
use anyhow::{Context, bail};
use mainstay_conformance_harness::{entries, glob};
use regex::Regex;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The name of the list.
pub const LIST: &str = "cases-facts.txt";

#[derive(Debug)]
struct Fact {
    line: usize,
    rule: String,
    step: Regex,
    expected: Vec<Expectation>,
}

/// What must hold of an object.
#[derive(Debug, PartialEq, Eq)]
struct Expectation {
    kind: String,
    name: String,
    /// The type of a condition, or a path with dots.
    place: String,
    /// The reason of the condition, or the value.
    value: String,
}

/// The facts.
#[derive(Debug, Default)]
pub struct Facts(Vec<Fact>);

impl Facts {
    /// Reads the list in a folder.
    ///
    /// # Errors
    /// The list cannot be read, or a line is not in its form.
    pub fn read(home: &Path) -> anyhow::Result<Self> {
        let path = home.join(LIST);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        for (line, text) in entries(text) {
            let fields: Vec<&str> = text.splitn(4, ';').map(str::trim).collect();
            let [rule, step, expected, reason] = fields.as_slice() else {
                bail!("{LIST}:{line}: a line is CASE; STEP; EXPECTED; REASON");
            };
            if reason.is_empty() {
                bail!("{LIST}:{line}: the reason is missing");
            }
            let expected = expected.split(',').map(Expectation::parse).collect::<Option<_>>();
            let expected = expected.with_context(|| format!("{LIST}:{line}: what is expected"))?;
            all.push(Fact { line, rule: (*rule).to_owned(), step: glob(step)?, expected });
        }
        Ok(Self(all))
    }

    /// Replaces the differences of objects by those from what is expected, if the step has a fact. Returns
    /// its line.
    pub(super) fn apply(
        &self,
        case: &Case,
        step: &str,
        ours: &[Value],
        found: &mut Vec<Difference>,
    ) -> Option<usize> {
        let fact = self.0.iter().find(|fact| fact.rule == case.rule && fact.step.is_match(step))?;
        let follows = |difference: &Difference| {
            let objects = [Part::Conditions, Part::Objects, Part::Contents, Part::Step];
            objects.contains(&difference.part)
                && !difference.full_place().contains("ClusterCatalog/")
        };
        found.retain(|difference| !follows(difference));
        found.extend(fact.expected.iter().filter_map(|expected| expected.check(&case.id, ours)));
        Some(fact.line)
    }

    /// The lines that no case used: of all, or of the cases that ran.
    pub(super) fn unused(&self, results: &[CaseResult], all: bool) -> Vec<String> {
        let is_used = |fact: &&Fact| {
            let steps = results.iter().flat_map(|case| &case.steps);
            steps.filter_map(|step| step.fact).any(|line| line == fact.line)
        };
        let ran = |fact: &Fact| all || results.iter().any(|case| case.rule == fact.rule);
        let unused = self.0.iter().filter(|fact| !is_used(fact) && ran(fact));
        unused.map(|fact| format!("{LIST}:{}: not needed", fact.line)).collect()
    }
}

impl Expectation {
    fn parse(text: &str) -> Option<Self> {
        let (object, condition) = text.trim().split_once(' ')?;
        let (kind, name) = object.split_once('/')?;
        let (place, value) = condition.split_once('=')?;
        let own = str::to_owned;
        Some(Self { kind: own(kind), name: own(name), place: own(place), value: own(value) })
    }

    /// The difference, if it does not hold. `CASE` in the name stands for the id of the case.
    fn check(&self, case: &str, objects: &[Value]) -> Option<Difference> {
        let name = self.name.replace("CASE", case);
        let object = objects
            .iter()
            .find(|object| object["kind"] == *self.kind && object["metadata"]["name"] == *name);
        let found = object.and_then(|object| {
            let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
            let condition = conditions.into_iter().find(|one| one["type"] == *self.place);
            condition
                .map(|condition| condition["reason"].clone())
                .or_else(|| object.pointer(&format!("/{}", self.place.replace('.', "/"))).cloned())
        });
        let wanted = Value::from(&*self.value);
        (found.as_ref() != Some(&wanted)).then(|| {
            let place = format!("{}//{name} {}", self.kind, self.place);
            Difference::new(Part::Conditions, place, Some(wanted), found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fact_replaces_the_comparison_of_objects() {
        let facts = Facts::parse("a; 0*; A/x-CASE Ready=Good, A/x-CASE spec.b=c; why\n").unwrap();
        let case = Case { id: "c1".to_owned(), rule: "a".to_owned(), ..Case::default() };
        let object = |reason: &str| {
            json!({
                "kind": "A", "metadata": {"name": "x-c1"}, "spec": {"b": "c"},
                "status": {"conditions": [{"type": "Ready", "reason": reason}]},
            })
        };
        let differences = |reason: &str, step: &str| {
            let mut found = vec![
                Difference::new(Part::Objects, "-A//x-c1", None, None),
                Difference::new(Part::Output, "out", None, None),
                Difference::new(Part::Conditions, "ClusterCatalog//y Serving", None, None),
            ];
            let line = facts.apply(&case, step, &[object(reason)], &mut found);
            (line, found.iter().map(Difference::full_place).collect::<Vec<_>>())
        };
        let kept = ["output: out", "conditions: ClusterCatalog//y Serving"].map(str::to_owned);
        assert_eq!(differences("Good", "01"), (Some(1), kept.to_vec()));
        let wrong = [&kept[..], &["conditions: A//x-c1 Ready".to_owned()]].concat();
        assert_eq!(differences("Bad", "01"), (Some(1), wrong));
        assert_eq!(differences("Good", "11").0, None);
    }

    #[test]
    fn lines_without_expectation_or_reason_are_refused() {
        for line in ["a; 00; ; why", "a; 00; A/x Ready=Good;", "a; 00; A Ready; why", "a"] {
            assert!(Facts::parse(line).is_err(), "{line}");
        }
    }
}
