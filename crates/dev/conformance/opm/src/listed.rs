//! Differences from opm: `differences.txt`.
//!
//! A line is `PATTERN REASON… [ROW]`, the pattern a case's folder with `*` for any letters, and the row
//! the one of our notes on upstream that says what it does; for one of the
//! calls or inputs that a case stands for, a colon and the call (`RPC{"request":…}`) or input follow.
//! Where the reason begins with `open:`, the difference is not wanted but known; those are counted
//! apart, and shall become none. An entry that nothing needs fails, as does a list that wants
//! differences in more than one case in a hundred.

use super::run::Judged;
use anyhow::{Context, bail};
use mainstay_conformance_harness as harness;
use regex::Regex;
use std::path::Path;

/// The list.
#[derive(Debug, Default)]
pub struct Listed(Vec<(Regex, String)>);

impl Listed {
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
            let Some((pattern, _)) = line.split_once(' ') else {
                bail!("line {number}: a difference has a reason");
            };
            let has_row = line.contains(" [") && line.ends_with(']');
            if !has_row && !line.contains(" open:") {
                bail!("line {number}: a wanted difference names the row that says so");
            }
            entries.push((harness::glob(pattern)?, line.to_owned()));
        }
        Ok(Self(entries))
    }

    /// Whether the differences of that case are wanted (or only known), if it is listed.
    pub fn has(&self, case: &str) -> Option<bool> {
        let entry = self.0.iter().find(|(pattern, _)| pattern.is_match(case));
        entry.map(|(_, entry)| !entry.contains(" open:"))
    }

    /// What is wrong with the list, when all cases were judged.
    pub fn faults(&self, judged: &[Judged]) -> Vec<String> {
        let excused: Vec<&str> = judged
            .iter()
            .filter(|judged| !judged.differences.is_empty() && self.has(&judged.name).is_some())
            .map(|judged| &*judged.name)
            .collect();
        let unused =
            self.0.iter().filter(|(pattern, _)| !excused.iter().any(|name| pattern.is_match(name)));
        let mut faults: Vec<String> =
            unused.map(|(_, entry)| format!("nothing needs the entry `{entry}`")).collect();
        // Commands and calls are held to it each by themselves.
        for (what, calls) in [("commands", false), ("calls and inputs", true)] {
            let all = judged.iter().filter(|judged| judged.name.contains(':') == calls).count();
            let wanted = excused.iter().filter(|name| name.contains(':') == calls);
            let wanted = wanted.filter(|name| self.has(name) == Some(true)).count();
            if harness::exceeds(wanted, all) {
                faults.push(format!("{wanted} of {all} {what} are excused, more than one in 100"));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_a_pattern_and_a_reason_and_are_needed() {
        for wrong in ["0001-x\n", "0001-x no row\n"] {
            assert!(Listed::parse(wrong).is_err(), "{wrong}");
        }
        let list = Listed::parse("# a comment\n*-list-x* because [1.2]\n").unwrap();
        assert!(list.has("0001-list-xy") == Some(true) && list.has("0001-list-y").is_none());
        let judged = |name: &str, differs: bool| Judged {
            name: name.to_owned(),
            area: "list".to_owned(),
            why: String::new(),
            differences: if differs { vec!["exit".to_owned()] } else { Vec::new() },
        };
        let mut all = vec![judged("1-list-x", true)];
        all.resize_with(100, || judged("2-list-y", false));
        assert!(list.faults(&all).is_empty());
        assert_eq!(list.faults(&all[1..]).len(), 1);
        assert_eq!(list.faults(&all[..50]).len(), 1);
    }
}
