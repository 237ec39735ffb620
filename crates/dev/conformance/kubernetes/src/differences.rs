//! Differences that are wanted: `differences.txt`.
//!
//! A line is `AREA/NAME [AT] REASON…`, where `AREA/NAME` is a scenario with `*` for any letters, and
//! `AT` (which begins with `@`) is where the difference is, with `*` too; without it all of the
//! scenario's differences are meant. `#` begins a comment.
//!
//! The list is short by rule: an entry that nothing needs fails, as does one about [`STRICT`] areas
//! or watches, or a list that excuses more than one in a hundred scenarios.

use crate::compare::Difference;
use crate::scenario::Scenario;
use anyhow::{Context, bail};
use mainstay_conformance_harness::{self as harness, exceeds, glob};
use regex::Regex;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Areas in which no difference is wanted.
pub const STRICT: [&str; 3] = ["apply", "patches", "schemas"];

/// An entry.
#[derive(Debug)]
pub struct Entry {
    /// The line it is on.
    pub line: usize,
    /// What it says.
    pub text: String,
    scenario: Regex,
    at: Option<Regex>,
    used: AtomicBool,
}

/// The list.
#[derive(Debug, Default)]
pub struct Differences(Vec<Entry>);

impl Differences {
    /// Reads the list of a folder.
    ///
    /// # Errors
    ///
    /// A line that is no entry.
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
            entries.push(Entry {
                line: number,
                text: line.to_owned(),
                scenario: glob(pattern)?,
                at,
                used: AtomicBool::new(false),
            });
        }
        Ok(Self(entries))
    }

    /// Takes the wanted differences of a scenario away; how many there were.
    pub fn take(&self, scenario: &Scenario, found: &mut Vec<Difference>) -> usize {
        let before = found.len();
        let title = scenario.title();
        for entry in self.0.iter().filter(|entry| entry.scenario.is_match(&title)) {
            found.retain(|difference| {
                let meant = entry.at.as_ref().is_none_or(|at| at.is_match(&difference.at));
                if meant {
                    entry.used.store(true, Ordering::Relaxed);
                }
                !meant
            });
        }
        before - found.len()
    }

    /// What is wrong with the list, after every scenario was compared and `listed` of them needed it.
    pub fn verdict(&self, scenarios: &[Scenario], listed: usize) -> Vec<String> {
        let mut wrong = Vec::new();
        for entry in &self.0 {
            let Entry { line, text, .. } = entry;
            if !entry.used.load(Ordering::Relaxed) {
                wrong.push(format!("differences.txt:{line}: nothing needs it: {text}"));
            }
            for scenario in
                scenarios.iter().filter(|scenario| entry.scenario.is_match(&scenario.title()))
            {
                let title = scenario.title();
                if STRICT.contains(&scenario.area.as_str()) {
                    wrong.push(format!("differences.txt:{line}: {title} may not differ"));
                } else if scenario.watches() {
                    wrong.push(format!("differences.txt:{line}: {title} watches, may not differ"));
                }
            }
        }
        if exceeds(listed, scenarios.len()) {
            let all = scenarios.len();
            wrong.push(format!("differences.txt: {listed} of {all} scenarios are too many (1 %)"));
        }
        wrong
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

    fn difference(at: &str) -> Difference {
        Difference { at: at.to_owned(), theirs: Some(json!(1)), ours: None }
    }

    #[test]
    fn an_entry_takes_what_it_names_and_nothing_else() {
        let list = Differences::parse("# why\ndocuments/one-* @0/body/*/x it is wanted\n").unwrap();
        let mut found = vec![difference("0/body/a/x"), difference("0/body/a/y")];
        assert_eq!(list.take(&scenario("documents", "one-a", false), &mut found), 1);
        assert_eq!(found, [difference("0/body/a/y")]);
        assert_eq!(list.take(&scenario("documents", "two", false), &mut found), 0);
        assert!(Differences::parse("documents/one @0\n").is_err(), "no reason");
    }

    #[test]
    fn the_list_is_kept_short() {
        let list = Differences::parse("documents/w all\napply/a all\ndeletion/none all\n").unwrap();
        let mut all: Vec<Scenario> =
            (0..150).map(|n| scenario("deletion", &format!("n{n}"), false)).collect();
        all.push(scenario("documents", "w", true));
        all.push(scenario("apply", "a", false));
        for scenario in &all {
            list.take(scenario, &mut vec![difference("0")]);
        }
        let wrong = list.verdict(&all, 2);
        assert_eq!(
            wrong,
            [
                "differences.txt:1: documents/w watches, may not differ",
                "differences.txt:2: apply/a may not differ",
                "differences.txt:3: nothing needs it: deletion/none all",
                "differences.txt: 2 of 152 scenarios are too many (1 %)",
            ]
        );
    }
}
