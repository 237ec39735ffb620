//! Expected differences from OLM v1: `differences.txt`.
//!
//! A line is `PATTERN REASON… [SOURCE]`. The pattern matches the name of a case with its area
//! (`crd-safety/p0493`), with `*` for any characters. The source names the notes on upstream that
//! describe its behaviour. Unused entries fail, and so does a list that excuses more than one case in a
//! hundred of an area.

use crate::CaseResult;
use anyhow::{Context, bail};
use mainstay_conformance_harness as harness;
use regex::Regex;
use std::fmt::Write;
use std::path::Path;

/// The entries of `differences.txt`.
#[derive(Debug, Default)]
pub struct ExpectedDifferences(Vec<(Regex, String)>);

impl ExpectedDifferences {
    /// Reads `differences.txt` of a folder.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no entry.
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
            if !line.contains(" [") || !line.ends_with(']') {
                bail!("line {number}: a difference names its source");
            }
            entries.push((harness::glob(pattern)?, line.to_owned()));
        }
        Ok(Self(entries))
    }

    /// Whether the differences of a case are expected.
    pub fn is_expected(&self, case: &str) -> bool {
        self.0.iter().any(|(pattern, _)| pattern.is_match(case))
    }

    /// What is wrong with the entries of an area, after all of its cases were run.
    pub fn problems(&self, area: &str, results: &[CaseResult]) -> Vec<String> {
        let excused: Vec<&str> = results
            .iter()
            .filter(|result| !result.differences.is_empty() && self.is_expected(&result.name))
            .map(|result| &*result.name)
            .collect();
        let prefix = format!("{area}/");
        let of_area = self.0.iter().filter(|(_, entry)| entry.starts_with(&prefix));
        let unused =
            of_area.filter(|(pattern, _)| !excused.iter().any(|name| pattern.is_match(name)));
        let mut problems: Vec<String> =
            unused.map(|(_, entry)| format!("nothing needs the entry `{entry}`")).collect();
        if harness::exceeds(excused.len(), results.len()) {
            let (listed, all) = (excused.len(), results.len());
            problems
                .push(format!("{listed} of {all} {area} cases are excused, more than one in 100"));
        }
        problems
    }
}

/// Numbers of cases, and the text of unexpected differences.
#[derive(Debug, Default)]
pub struct Report {
    /// Cases without difference.
    pub agreeing: usize,
    /// Cases whose differences are expected.
    pub listed: usize,
    /// All cases.
    pub all: usize,
    /// The unexpected differences, up to the limit of [`report`].
    pub text: String,
}

impl Report {
    /// Whether there are only expected differences.
    pub const fn is_good(&self) -> bool {
        self.agreeing + self.listed == self.all
    }
}

/// Counts results, and describes at most `limit` cases with unexpected differences.
pub fn report(results: &[CaseResult], expected: &ExpectedDifferences, limit: usize) -> Report {
    let mut report = Report { all: results.len(), ..Report::default() };
    let mut unexpected = 0;
    for CaseResult { name, title, differences } in results {
        if differences.is_empty() {
            report.agreeing += 1;
        } else if expected.is_expected(name) {
            report.listed += 1;
        } else {
            unexpected += 1;
            if unexpected <= limit {
                let differences = differences.join("\n  ");
                let _ = writeln!(report.text, "{name} ({title})\n  {differences}");
            }
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(name: &str, differs: bool) -> CaseResult {
        let differences = if differs { vec!["x".to_owned()] } else { Vec::new() };
        CaseResult { name: name.to_owned(), title: String::new(), differences }
    }

    #[test]
    fn entry_has_a_pattern_a_reason_and_a_source() {
        for wrong in ["crd-safety/p1\n", "crd-safety/p1 no source\n"] {
            assert!(ExpectedDifferences::parse(wrong).is_err(), "{wrong}");
        }
        assert!(ExpectedDifferences::parse("# a comment\ncrd-safety/p1 because [notes]\n").is_ok());
    }

    #[test]
    fn unused_entries_and_long_lists_fail() {
        let list = ExpectedDifferences::parse("crd-safety/p1 because [notes]\n").unwrap();
        let mut results = vec![result("crd-safety/p1", true)];
        results.resize_with(100, || result("crd-safety/p2", false));
        assert_eq!(list.problems("crd-safety", &results), Vec::<String>::new());
        assert_eq!(list.problems("crd-safety", &results[1..]).len(), 1, "the entry is unused");
        assert_eq!(list.problems("crd-safety", &results[..50]).len(), 1, "one in fifty is excused");
        assert_eq!(list.problems("cases", &results[1..]), Vec::<String>::new(), "another area");
    }

    #[test]
    fn report_counts_agreeing_and_listed_cases() {
        let list = ExpectedDifferences::parse("crd-safety/p1 because [notes]\n").unwrap();
        let results = [result("crd-safety/p1", true), result("crd-safety/p2", false)];
        let found = report(&results, &list, 10);
        assert_eq!((found.agreeing, found.listed, found.all), (1, 1, 2));
        assert!(found.is_good() && !report(&[result("crd-safety/p3", true)], &list, 10).is_good());
    }
}
