//! Expected differences from the real server: `differences.txt`.
//!
//! A line is `AREA/NAME [AT] REASON…`. `AREA/NAME` is a scenario, with `*` for any characters. `AT`
//! begins with `@` and is the path of the difference, with `*` too; without it the entry covers all
//! differences of the scenario. `#` begins a comment.
//!
//! The list stays short: unused entries fail, and so do entries about [`STRICT_AREAS`] or watches,
//! and a list that excuses more than one scenario in a hundred.

use crate::compare::ResponseDifference;
use crate::scenario::Scenario;
use anyhow::{Context, bail};
use mainstay_conformance_harness::{self as harness, exceeds, glob};
use regex::Regex;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Areas in which differences are never expected.
pub const STRICT_AREAS: [&str; 3] = ["apply", "patches", "schemas"];

/// An entry.
#[derive(Debug)]
pub struct ListedDifference {
    /// The line number.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    scenario: Regex,
    at: Option<Regex>,
    used: AtomicBool,
}

/// The entries of `differences.txt`.
#[derive(Debug, Default)]
pub struct Differences(Vec<ListedDifference>);

impl Differences {
    /// Reads `differences.txt` of a folder.
    ///
    /// # Errors
    ///
    /// A line is no entry.
    pub fn read(home: &Path) -> anyhow::Result<Self> {
        let path = home.join("differences.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut entries = Vec::new();
        for (number, line) in harness::entries(text) {
            let (pattern, rest) = line.split_once(' ').unwrap_or((line, ""));
            let rest = rest.trim();
            let (at, reason) = match rest.strip_prefix('@') {
                Some(rest) => {
                    let (at, reason) = rest.split_once(' ').unwrap_or((rest, ""));
                    (Some(glob(at)?), reason)
                }
                None => (None, rest),
            };
            if reason.trim().is_empty() {
                bail!("line {number}: a difference has a reason");
            }
            entries.push(ListedDifference {
                line: number,
                text: line.to_owned(),
                scenario: glob(pattern)?,
                at,
                used: AtomicBool::new(false),
            });
        }
        Ok(Self(entries))
    }

    /// Removes the expected differences of a scenario; returns their number.
    pub fn remove_expected(
        &self,
        scenario: &Scenario,
        found: &mut Vec<ResponseDifference>,
    ) -> usize {
        let before = found.len();
        let title = scenario.title();
        for entry in self.0.iter().filter(|entry| entry.scenario.is_match(&title)) {
            found.retain(|difference| {
                let matches = entry.at.as_ref().is_none_or(|at| at.is_match(&difference.at));
                if matches {
                    entry.used.store(true, Ordering::Relaxed);
                }
                !matches
            });
        }
        before - found.len()
    }

    /// Checks the list after all scenarios were compared; `expected` of them needed it.
    pub fn problems(&self, scenarios: &[Scenario], expected: usize) -> Vec<String> {
        let mut problems = Vec::new();
        for entry in &self.0 {
            let ListedDifference { line, text, .. } = entry;
            if !entry.used.load(Ordering::Relaxed) {
                problems.push(format!("differences.txt:{line}: nothing needs it: {text}"));
            }
            for scenario in
                scenarios.iter().filter(|scenario| entry.scenario.is_match(&scenario.title()))
            {
                let title = scenario.title();
                if STRICT_AREAS.contains(&scenario.area.as_str()) {
                    problems.push(format!("differences.txt:{line}: {title} may not differ"));
                } else if scenario.watches() {
                    problems
                        .push(format!("differences.txt:{line}: {title} watches, may not differ"));
                }
            }
        }
        if exceeds(expected, scenarios.len()) {
            let all = scenarios.len();
            problems
                .push(format!("differences.txt: {expected} of {all} scenarios are too many (1 %)"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn scenario(area: &str, name: &str, watches: bool) -> Scenario {
        let step = if watches { "watch: /api\n    events: 1" } else { "GET: /api" };
        let text = format!("- name: {name}\n  steps:\n  - {step}\n");
        crate::parse::file(area, "f", &text).unwrap().remove(0)
    }

    fn difference(at: &str) -> ResponseDifference {
        ResponseDifference { at: at.to_owned(), theirs: Some(json!(1)), ours: None }
    }

    #[test]
    fn entry_removes_only_the_differences_that_it_names() {
        let list = Differences::parse("# why\ndocuments/one-* @0/body/*/x it is wanted\n").unwrap();
        let mut found = vec![difference("0/body/a/x"), difference("0/body/a/y")];
        assert_eq!(list.remove_expected(&scenario("documents", "one-a", false), &mut found), 1);
        assert_eq!(found, [difference("0/body/a/y")]);
        assert_eq!(list.remove_expected(&scenario("documents", "two", false), &mut found), 0);
        assert!(Differences::parse("documents/one @0\n").is_err(), "no reason");
    }

    #[test]
    fn unused_strict_and_excessive_entries_are_problems() {
        let list = Differences::parse("documents/w all\napply/a all\ndeletion/none all\n").unwrap();
        let mut all: Vec<Scenario> =
            (0..150).map(|n| scenario("deletion", &format!("n{n}"), false)).collect();
        all.push(scenario("documents", "w", true));
        all.push(scenario("apply", "a", false));
        for scenario in &all {
            list.remove_expected(scenario, &mut vec![difference("0")]);
        }
        let problems = list.problems(&all, 2);
        assert_eq!(
            problems,
            [
                "differences.txt:1: documents/w watches, may not differ",
                "differences.txt:2: apply/a may not differ",
                "differences.txt:3: nothing needs it: deletion/none all",
                "differences.txt: 2 of 152 scenarios are too many (1 %)",
            ]
        );
    }
}
