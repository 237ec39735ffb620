//! The list of expected differences.
//!
//! A line is `CASE; STEP; PLACE; REASON`: the id or rule of a case, the number of a step, the place as
//! [`compare`](super::compare) writes it, and why ours differs. `*` stands for any characters in the
//! first three. No line may be about a whole object, each has to be used, and the steps that need one
//! are at most 1 % of all, or one.

use super::compare::{Difference, Part};
use super::facts::Facts;
use super::run::CaseResult;
use anyhow::{Context, bail};
use mainstay_conformance_harness::{entries, exceeds, glob};
use regex::Regex;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The name of the list.
pub const LIST: &str = "cases-differences.txt";

#[derive(Debug)]
struct Entry {
    line: usize,
    case: Regex,
    step: Regex,
    place: Regex,
}

impl Entry {
    fn is_about(&self, id: &str, rule: &str) -> bool {
        self.case.is_match(id) || self.case.is_match(rule)
    }
}

/// Which cases ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseSelection {
    /// All that the replay supports.
    All,
    /// A part of them, as every test runs it. The list may have more than 1 % of these steps.
    Short,
    /// Those with given names.
    Named,
}

/// The expected differences.
#[derive(Debug, Default)]
pub struct ExpectedDifferences {
    entries: Vec<Entry>,
    pub(super) facts: Facts,
}

impl ExpectedDifferences {
    /// Reads the list in a folder.
    ///
    /// # Errors
    /// The list cannot be read, or a line has not four fields.
    pub fn read(home: &Path) -> anyhow::Result<Self> {
        let path = home.join(LIST);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok(Self { facts: Facts::read(home)?, ..Self::parse(&text)? })
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut all = Vec::new();
        for (line, text) in entries(text) {
            let fields: Vec<&str> = text.splitn(4, ';').map(str::trim).collect();
            let [case, step, place, reason] = fields.as_slice() else {
                bail!("{LIST}:{line}: a line is CASE; STEP; PLACE; REASON");
            };
            if reason.is_empty() {
                bail!("{LIST}:{line}: the reason is missing");
            }
            if place.starts_with(Part::Objects.as_str()) || place.starts_with('*') {
                bail!("{LIST}:{line}: whole objects cannot be listed");
            }
            all.push(Entry { line, case: glob(case)?, step: glob(step)?, place: glob(place)? });
        }
        Ok(Self { entries: all, facts: Facts::default() })
    }

    /// The line that lists a difference.
    pub(super) fn find(
        &self,
        id: &str,
        rule: &str,
        step: &str,
        difference: &Difference,
    ) -> Option<usize> {
        let place = difference.full_place();
        let fits = |entry: &&Entry| {
            difference.part != Part::Objects
                && entry.is_about(id, rule)
                && entry.step.is_match(step)
                && entry.place.is_match(&place)
        };
        self.entries.iter().find(fits).map(|entry| entry.line)
    }

    /// What is wrong with the results: differences that are not listed, and the list itself unless
    /// cases were selected by name.
    pub fn problems(&self, results: &[CaseResult], selection: CaseSelection) -> Vec<String> {
        let mut problems = Vec::new();
        let mut used = BTreeSet::new();
        let (mut excused, mut steps) = (0, 0);
        for case in results {
            if let Some(error) = &case.error {
                problems.push(format!("{} was not run to its end: {error}", case.name()));
            }
            for step in &case.steps {
                steps += 1;
                excused += usize::from(!step.expected.is_empty());
                used.extend(step.expected.iter().map(|(line, _)| *line));
                for difference in &step.unexpected {
                    let place = difference.full_place();
                    problems.push(format!("{} {}: {place}", case.name(), step.number()));
                }
            }
        }
        if selection != CaseSelection::Named {
            let ran =
                |entry: &Entry| results.iter().any(|case| entry.is_about(&case.id, &case.rule));
            let unused = self.entries.iter().filter(|entry| {
                !used.contains(&entry.line) && (selection == CaseSelection::All || ran(entry))
            });
            problems.extend(unused.map(|entry| format!("{LIST}:{}: not needed", entry.line)));
            problems.extend(self.facts.unused(results, selection == CaseSelection::All));
            let all = selection == CaseSelection::All;
            if all && excused > 1 && exceeds(excused, steps) {
                problems.push(format!("{LIST}: {excused} of {steps} steps need it, more than 1 %"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::run::ReplayedStep;

    fn difference(part: Part, place: &str) -> Difference {
        Difference::new(part, place, None, None)
    }

    #[test]
    fn an_entry_names_case_step_and_place() {
        let text = "# why\ncatalog-x; 0*; output: error; other words\n";
        let list = ExpectedDifferences::parse(text).unwrap();
        let find = |rule: &str, step: &str, place: &str| {
            list.find("c001", rule, step, &difference(Part::Output, place))
        };
        assert_eq!(find("catalog-x", "03", "error"), Some(2));
        assert_eq!(find("catalog-y", "03", "error"), None);
        assert_eq!(find("catalog-x", "11", "error"), None);
        assert_eq!(find("catalog-x", "03", "out"), None);
    }

    #[test]
    fn whole_objects_and_lines_without_reason_are_refused() {
        for line in [
            "c001; 00; objects: +A//b; why",
            "c001; 00; *; why",
            "c001; 00; output: error;",
            "c001",
        ] {
            assert!(ExpectedDifferences::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn unused_entries_and_too_many_excused_steps_are_problems() {
        let list =
            ExpectedDifferences::parse("c1; 00; output: error; why\nc2; 00; output: out; why");
        let list = list.unwrap();
        let expected = vec![(1, difference(Part::Output, "error"))];
        let step = ReplayedStep { name: "00-a".to_owned(), expected, ..ReplayedStep::default() };
        let problems = |steps: Vec<ReplayedStep>, selection| {
            let id = "c1".to_owned();
            list.problems(&[CaseResult { id, steps, ..CaseResult::default() }], selection)
        };
        let unused = "cases-differences.txt:2: not needed";
        let too_many = "cases-differences.txt: 2 of 2 steps need it, more than 1 %";
        assert_eq!(problems(vec![step.clone()], CaseSelection::All), [unused]);
        assert!(problems(vec![step.clone()], CaseSelection::Short).is_empty());
        let two = vec![step.clone(), step];
        assert_eq!(problems(two.clone(), CaseSelection::All), [unused, too_many]);
        assert!(problems(two, CaseSelection::Named).is_empty());
    }
}
