//! Cases out of scope, because they test commands that are not implemented: `scope.txt`.
//!
//! A line is `KIND VALUE | REASON`. It excludes the cases of an `area`, of a `command` (its words
//! without flags, including subcommands), or those that need something (`needs`). `begun` is like
//! `command`, but excludes only cases in which upstream started the command's actual work. The
//! first matching line gives the reason. Unused lines fail.

use super::case::Case;
use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::path::Path;

/// The rules of `scope.txt`.
#[derive(Debug, Default)]
pub struct ComparisonScope(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    kind: Kind,
    value: String,
    reason: String,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Area,
    Started,
    Command,
    Needs,
}

impl ComparisonScope {
    /// Reads `scope.txt` of a folder.
    ///
    /// # Errors
    ///
    /// A line is no rule.
    pub fn read(home: &Path) -> anyhow::Result<Self> {
        let path = home.join("scope.txt");
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let lines = mainstay_conformance_harness::entries(text);
        let rule = |line: &str| -> anyhow::Result<Rule> {
            let (what, reason) = line.split_once(" | ").context("a rule has a reason")?;
            let (kind, value) = what.split_once(' ').context("a rule has a kind and a value")?;
            let kind = match kind {
                "area" => Kind::Area,
                "begun" => Kind::Started,
                "command" => Kind::Command,
                "needs" => Kind::Needs,
                other => bail!("there is no kind of rule `{other}`"),
            };
            Ok(Rule { kind, value: value.trim().to_owned(), reason: reason.trim().to_owned() })
        };
        lines
            .map(|(number, line)| rule(line).with_context(|| format!("line {number}")))
            .collect::<anyhow::Result<_>>()
            .map(Self)
    }

    /// Why a case is excluded; none if it is in scope.
    pub fn reason(&self, case: &Case) -> Option<&str> {
        self.rule(case).map(|rule| &*rule.reason)
    }

    fn rule(&self, case: &Case) -> Option<&Rule> {
        let words = case.arguments.iter().filter(|word| !word.starts_with('-'));
        let words: Vec<&str> = words.map(String::as_str).collect();
        self.0.iter().find(|rule| match rule.kind {
            Kind::Area => case.area == rule.value,
            Kind::Needs => case.needs.as_ref() == Some(&rule.value),
            // Recorded calls test the served catalog, not the command that serves it.
            Kind::Started | Kind::Command => {
                let command: Vec<&str> = rule.value.split(' ').collect();
                let counts = matches!(rule.kind, Kind::Command) || case.started;
                counts && case.calls.is_none() && words.starts_with(&command)
            }
        })
    }

    /// Counts the excluded cases.
    pub fn count_excluded<'a>(&self, all: impl IntoIterator<Item = &'a Case>) -> Exclusions<'_> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        let mut used = Vec::new();
        for rule in all.into_iter().filter_map(|case| self.rule(case)) {
            *reasons.entry(&rule.reason).or_default() += 1;
            used.push(std::ptr::from_ref(rule));
        }
        let unused = self.0.iter().filter(|&rule| !used.contains(&std::ptr::from_ref(rule)));
        let unused = unused.map(|rule| format!("no case needs the rule `{}`", rule.value));
        Exclusions { unused: unused.collect(), reasons }
    }
}

/// The excluded cases.
#[derive(Debug)]
pub struct Exclusions<'a> {
    /// The number of cases, by reason.
    pub reasons: BTreeMap<&'a str, usize>,
    /// Rules that exclude no case.
    pub unused: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(area: &str, arguments: &[&str], needs: Option<&str>) -> Case {
        Case {
            area: area.to_owned(),
            arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
            needs: needs.map(str::to_owned),
            ..Case::default()
        }
    }

    #[test]
    fn scope_rules_exclude_areas_commands_and_needs() {
        let rules = "# why\narea sqlite | a\ncommand alpha bundle | b\nneeds registry | c\n";
        let scope = ComparisonScope::parse(rules).unwrap();
        for (area, arguments, needs, reason) in [
            ("sqlite", &["render", "x.db"][..], None, Some("a")),
            ("cli", &["--use-http=false", "alpha", "bundle", "build"], None, Some("b")),
            ("cli", &["alpha", "list", "bundle"], None, None),
            ("cli", &["alpha"], None, None),
            ("render", &["render", "x"], Some("registry"), Some("c")),
            ("real", &["render", "x"], Some("a.tar.xz"), None),
        ] {
            assert_eq!(scope.reason(&case(area, arguments, needs)), reason, "{arguments:?}");
        }
        let scope = ComparisonScope::parse("begun index | a").unwrap();
        for (started, reason) in [(false, None), (true, Some("a"))] {
            let case = Case { started, ..case("cli", &["index", "add"], None) };
            assert_eq!(scope.reason(&case), reason);
        }
        let scope = ComparisonScope::parse(rules).unwrap();
        let out = scope.count_excluded([&case("sqlite", &[], None)]);
        assert_eq!((out.reasons.len(), out.unused.len()), (1, 2));
        for wrong in ["area x", "thing x | y", "area | y"] {
            assert!(ComparisonScope::parse(wrong).is_err(), "{wrong}");
        }
    }
}
