//! Listed differences: `catalog-http-differences.txt`.
//!
//! A line is `ID REASON`. The id is the name of a recorded request, `metas:h001` or `standard:h001`, and
//! may have `*` for any characters. An entry that no difference needs fails, and so does a list that
//! excuses more than one request in a hundred. Requests to GraphQL are a class of their own
//! ([`super::replay()`]) and do not count. Nor does an entry whose reason begins with `recording:`, which
//! says that the recording contradicts its own input.

use super::replay::Outcome;
use anyhow::Context;
use mainstay_conformance_harness as harness;
use regex::Regex;
use std::path::Path;

/// The entries of the list.
#[derive(Debug, Default)]
pub struct ListedDifferences(Vec<(Regex, String)>);

impl ListedDifferences {
    /// Reads the list of this crate.
    ///
    /// # Errors
    /// A line is no entry.
    pub fn read() -> anyhow::Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("catalog-http-differences.txt");
        let text = std::fs::read_to_string(&path).context(path.display().to_string())?;
        Self::parse(&text).context(path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let parse = |(number, line): (usize, &str)| {
            let (pattern, _) = line
                .split_once(' ')
                .with_context(|| format!("line {number}: a difference has a reason"))?;
            Ok((harness::glob(pattern)?, line.to_owned()))
        };
        harness::entries(text).map(parse).collect::<anyhow::Result<_>>().map(Self)
    }

    /// Whether the differences of a request are listed.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(pattern, _)| pattern.is_match(name))
    }

    /// What is wrong: requests that differ and are not listed, entries that nothing needs, too many
    /// entries.
    pub fn problems(&self, outcomes: &[Outcome]) -> Vec<String> {
        let differing: Vec<&Outcome> =
            outcomes.iter().filter(|outcome| !outcome.differences.is_empty()).collect();
        let (listed, unlisted): (Vec<_>, Vec<_>) =
            differing.into_iter().partition(|outcome| self.has(&outcome.name));
        let mut problems: Vec<String> = unlisted
            .iter()
            .map(|outcome| format!("{}: {}", outcome.name, outcome.differences.join("; ")))
            .collect();
        let needs = |pattern: &Regex| listed.iter().any(|outcome| pattern.is_match(&outcome.name));
        let unused = self.0.iter().filter(|(pattern, _)| !needs(pattern));
        problems.extend(unused.map(|(_, entry)| format!("nothing needs the entry `{entry}`")));
        let excused = listed.iter().filter(|outcome| {
            let entry = self.0.iter().find(|(pattern, _)| pattern.is_match(&outcome.name));
            !entry.is_some_and(|(_, entry)| entry.contains(" recording: "))
        });
        let (listed, all) = (excused.count(), outcomes.len());
        if harness::exceeds(listed, all) {
            problems.push(format!("{listed} of {all} requests are excused, more than one in 100"));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_a_reason_and_must_be_needed() {
        assert!(ListedDifferences::parse("metas:h001\n").is_err());
        let list = ListedDifferences::parse("# why\nmetas:h0*1 because\n").unwrap();
        assert!(list.has("metas:h011") && !list.has("standard:h011"));
        let outcome = |name: &str, differs: bool| Outcome {
            name: name.to_owned(),
            is_graphql: false,
            differences: differs.then(|| "status".to_owned()).into_iter().collect(),
        };
        let mut all = vec![outcome("metas:h001", true)];
        all.resize_with(100, || outcome("metas:h002", false));
        assert!(list.problems(&all).is_empty());
        assert_eq!(list.problems(&all[1..]).len(), 1, "nothing needs the entry");
        assert_eq!(list.problems(&all[..50]).len(), 1, "too many");
        let list = ListedDifferences::parse("metas:h001 recording: of another input\n").unwrap();
        assert!(list.problems(&all[..50]).is_empty(), "the recording is wrong");
        all[3] = outcome("metas:h003", true);
        assert_eq!(list.problems(&all).len(), 1, "not listed");
    }
}
