//! Expected differences from upstream's opm: `differences.txt`.
//!
//! A line is `PATTERN REASON… [ROW]`. The pattern matches the folder of a case, with `*` for any
//! characters; for a call or an input of a case, a colon and the call (`RPC{"request":…}`) or input
//! follow. The row is the one of our notes on upstream that describes its behaviour.
//!
//! A reason that begins with `open:` marks a known difference that shall be removed; these are
//! counted separately. Unused entries fail, and so does a list that expects differences in more
//! than one case in a hundred.

use super::run::CaseResult;
use anyhow::{Context, bail};
use mainstay_conformance_harness as harness;
use regex::Regex;
use std::path::Path;

/// The entries of `differences.txt`.
#[derive(Debug, Default)]
pub struct ExpectedDifferences(Vec<(Regex, String)>);

impl ExpectedDifferences {
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

    /// Whether the differences of a case are expected (or only known); none if the case is not
    /// listed.
    pub fn is_expected(&self, case: &str) -> Option<bool> {
        let entry = self.0.iter().find(|(pattern, _)| pattern.is_match(case));
        entry.map(|(_, entry)| !entry.contains(" open:"))
    }

    /// Checks the list after all cases were run.
    pub fn problems(&self, results: &[CaseResult]) -> Vec<String> {
        let excused: Vec<&str> = results
            .iter()
            .filter(|results| {
                !results.differences.is_empty() && self.is_expected(&results.name).is_some()
            })
            .map(|results| &*results.name)
            .collect();
        let unused =
            self.0.iter().filter(|(pattern, _)| !excused.iter().any(|name| pattern.is_match(name)));
        let mut problems: Vec<String> =
            unused.map(|(_, entry)| format!("nothing needs the entry `{entry}`")).collect();
        // The limit applies to commands and to calls separately.
        for (what, calls) in [("commands", false), ("calls and inputs", true)] {
            let all = results.iter().filter(|result| result.name.contains(':') == calls).count();
            let wanted = excused.iter().filter(|name| name.contains(':') == calls);
            let wanted = wanted.filter(|name| self.is_expected(name) == Some(true)).count();
            if harness::exceeds(wanted, all) {
                problems
                    .push(format!("{wanted} of {all} {what} are excused, more than one in 100"));
            }
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_has_a_pattern_and_a_reason_and_must_be_used() {
        for wrong in ["0001-x\n", "0001-x no row\n"] {
            assert!(ExpectedDifferences::parse(wrong).is_err(), "{wrong}");
        }
        let list = ExpectedDifferences::parse("# a comment\n*-list-x* because [1.2]\n").unwrap();
        assert!(
            list.is_expected("0001-list-xy") == Some(true)
                && list.is_expected("0001-list-y").is_none()
        );
        let results = |name: &str, differs: bool| CaseResult {
            name: name.to_owned(),
            area: "list".to_owned(),
            rule: String::new(),
            differences: if differs { vec!["exit".to_owned()] } else { Vec::new() },
        };
        let mut all = vec![results("1-list-x", true)];
        all.resize_with(100, || results("2-list-y", false));
        assert!(list.problems(&all).is_empty());
        assert_eq!(list.problems(&all[1..]).len(), 1);
        assert_eq!(list.problems(&all[..50]).len(), 1);
    }
}
