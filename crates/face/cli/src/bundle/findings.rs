//! What was found in bundles, for people and for programs.

use crate::catalog::{count, plain, sarif::uri};
use mainstay_bundle::validate::Level;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    fmt::Write,
    hash::{DefaultHasher, Hash, Hasher},
    path::Path,
};

/// Something that is wrong, with the path that somebody can open.
pub(super) struct Finding {
    /// The validator that found it, or `unreadable`, `dropped` and `format`.
    pub(super) rule: String,
    pub(super) level: Level,
    /// The file, as seen from where the command was given.
    pub(super) file: String,
    pub(super) line: Option<usize>,
    pub(super) message: String,
    pub(super) remedy: String,
}

impl Finding {
    /// What it says, and where.
    fn said(&self) -> (&str, Option<usize>, &str, Level) {
        (&self.file, self.line, &self.message, self.level)
    }

    /// Whether two validators found one thing.
    fn says_the_same(&self, other: &Self) -> bool {
        self.said() == other.said()
    }

    fn hash(&self) -> u64 {
        let (file, line, message, _) = self.said();
        let mut hasher = DefaultHasher::new();
        (file, line, message).hash(&mut hasher);
        hasher.finish()
    }

    const fn severity(&self) -> &'static str {
        match self.level {
            Level::Error => "error",
            Level::Warning => "warning",
        }
    }
}

/// Everything that was found.
#[derive(Default)]
pub(super) struct Findings {
    list: Vec<Finding>,
    /// Hashes of what they say.
    said: HashSet<u64>,
    /// How many bundles were looked at.
    pub(super) bundles: usize,
}

impl Findings {
    /// Adds a finding.
    pub(super) fn add(&mut self, finding: Finding) {
        self.said.insert(finding.hash());
        self.list.push(finding);
    }

    /// Adds a finding unless there is one that says the same.
    pub(super) fn add_new(&mut self, finding: Finding) {
        let known = self.said.contains(&finding.hash())
            && self.list.iter().any(|known| known.says_the_same(&finding));
        if !known {
            self.add(finding);
        }
    }

    /// By file and line, as somebody goes through them.
    pub(super) fn sort(&mut self) {
        self.list.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    }

    /// How many errors and warnings there are.
    pub(super) fn counts(&self) -> [usize; 2] {
        [Level::Error, Level::Warning]
            .map(|level| self.list.iter().filter(|finding| finding.level == level).count())
    }

    /// Two lines for each, and a last one that sums up.
    pub(super) fn text(&self, colour: bool) -> String {
        let paint = |code: &str, text: &str| {
            if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
        };
        let mut out = String::new();
        for finding in &self.list {
            let mut place = plain(&finding.file);
            if let Some(line) = finding.line {
                let _ = write!(place, ":{line}");
            }
            let code = if finding.level == Level::Error { "1;31" } else { "1;33" };
            let _ = writeln!(
                out,
                "{}: {}: {} {}",
                paint("1", &place),
                paint(code, finding.severity()),
                plain(&finding.message.replace('\n', "; ")),
                paint("2", &format!("[{}]", finding.rule)),
            );
            if !finding.remedy.is_empty() {
                let _ = writeln!(out, "    {}", plain(&finding.remedy));
            }
        }
        let summary = match self.counts() {
            [0, 0] => format!("sound: {}", count(self.bundles, "bundle")),
            [errors, 0] => count(errors, "error"),
            [0, warnings] => count(warnings, "warning"),
            [errors, warnings] => {
                format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
            }
        };
        let _ = writeln!(out, "{summary}");
        out
    }

    /// All of it as one value. `passed` is the verdict.
    pub(super) fn value(&self, passed: bool) -> Value {
        let problem = |finding: &Finding| {
            let mut value = json!({
                "severity": finding.severity(),
                "rule": finding.rule,
                "file": finding.file,
                "message": finding.message,
                "remedy": finding.remedy,
            });
            if let Some(line) = finding.line {
                value["line"] = line.into();
            }
            value
        };
        let problems: Vec<Value> = self.list.iter().map(problem).collect();
        let [errors, warnings] = self.counts();
        json!({
            "passed": passed,
            "bundles": self.bundles,
            "errors": errors,
            "warnings": warnings,
            "problems": problems,
        })
    }

    /// The log of a run as SARIF 2.1.0. Paths are given as seen from `root`, the folder of the
    /// command.
    pub(super) fn sarif(&self, root: &Path) -> Value {
        let mut rules: Vec<&str> = self.list.iter().map(|finding| finding.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        let described: Vec<Value> = rules.iter().map(|rule| json!({ "id": rule })).collect();
        let result = |finding: &Finding| {
            let mut text = finding.message.clone();
            if !finding.remedy.is_empty() {
                let _ = write!(text, " ({})", finding.remedy);
            }
            json!({
                "ruleId": finding.rule,
                "ruleIndex": rules.iter().position(|rule| *rule == finding.rule),
                "level": finding.severity(),
                "message": { "text": text },
                "locations": [{
                    "physicalLocation": {
                        "artifactLocation": { "uri": uri(&finding.file, root) },
                        "region": { "startLine": finding.line.unwrap_or(1) },
                    },
                }],
            })
        };
        let results: Vec<Value> = self.list.iter().map(result).collect();
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": {
                    "driver": {
                        "name": "mainstay",
                        "version": env!("CARGO_PKG_VERSION"),
                        "rules": described,
                    },
                },
                "columnKind": "unicodeCodePoints",
                "results": results,
            }],
        })
    }
}
