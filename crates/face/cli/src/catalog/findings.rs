//! What was found in folders, for people and for programs.

use super::{count, plain};
use mainstay_catalog::{Problem, Rule, Severity};
use serde_json::{Value, json};
use std::fmt::Write;

/// Something that is wrong, with the path that somebody can open.
pub(super) struct Finding {
    /// The file, as seen from where the command was given.
    pub(super) file: String,
    pub(super) problem: Problem,
}

impl Finding {
    /// `FILE:LINE:COLUMN`, as far as they are known.
    fn place(&self) -> String {
        let mut place = plain(&self.file);
        for number in [self.problem.line, self.problem.column].into_iter().flatten() {
            place.push(':');
            place.push_str(&number.to_string());
        }
        place
    }
}

/// What a folder holds.
pub(super) struct Contents {
    pub(super) packages: usize,
    pub(super) channels: usize,
    pub(super) bundles: usize,
}

/// Everything that was found.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) list: Vec<Finding>,
    /// What sound folders hold, by the path as it was typed.
    pub(super) contents: Vec<(String, Contents)>,
    /// Documents could not be read, so that nobody knows what is missing.
    pub(super) unread: bool,
}

impl Findings {
    /// How many errors and warnings there are.
    pub(super) fn counts(&self) -> [usize; 2] {
        [Severity::Error, Severity::Warning].map(|wanted| {
            self.list.iter().filter(|finding| finding.problem.severity() == wanted).count()
        })
    }

    /// Two lines for each, and a last one that sums up.
    pub(super) fn text(&self, colour: bool) -> String {
        let paint = |code: &str, text: &str| {
            if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
        };
        let mut out = String::new();
        for finding in &self.list {
            let problem = &finding.problem;
            let severity = problem.severity();
            let code = if severity == Severity::Error { "1;31" } else { "1;33" };
            let _ = writeln!(
                out,
                "{}: {}: {} {}",
                paint("1", &finding.place()),
                paint(code, severity.as_str()),
                plain(&problem.message.replace('\n', "; ")),
                paint("2", &format!("[{}]", problem.rule.id())),
            );
            let blob = problem.blob.as_ref().map(|blob| plain(&blob.to_string()));
            let remedy = Some(plain(&problem.remedy)).filter(|remedy| !remedy.is_empty());
            let parts: Vec<String> = blob.into_iter().chain(remedy).collect();
            if !parts.is_empty() {
                let _ = writeln!(out, "    {}", parts.join(": "));
            }
        }
        let unread = "; what is missing shows when all files can be read";
        let unread = if self.unread { unread } else { "" };
        let _ = writeln!(out, "{}{unread}", self.summary());
        out
    }

    fn summary(&self) -> String {
        match self.counts() {
            [0, 0] => {
                let all = |of: fn(&Contents) -> usize| {
                    self.contents.iter().map(|(_, contents)| of(contents)).sum::<usize>()
                };
                let parts: Vec<String> = [
                    (all(|it| it.packages), "package"),
                    (all(|it| it.channels), "channel"),
                    (all(|it| it.bundles), "bundle"),
                ]
                .into_iter()
                .filter(|(number, _)| *number > 0)
                .map(|(number, what)| count(number, what))
                .collect();
                match &parts[..] {
                    [] => "sound, and empty".to_owned(),
                    parts => format!("sound: {}", parts.join(", ")),
                }
            }
            [errors, 0] => count(errors, "error"),
            [0, warnings] => count(warnings, "warning"),
            [errors, warnings] => {
                format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
            }
        }
    }

    /// All of it as one value. `passed` is the verdict.
    pub(super) fn value(&self, passed: bool) -> Value {
        let problems: Vec<Value> = self.list.iter().map(problem_value).collect();
        let [errors, warnings] = self.counts();
        let contents = self.contents.iter().map(|(path, contents)| {
            json!({
                "path": path,
                "packages": contents.packages,
                "channels": contents.channels,
                "bundles": contents.bundles,
            })
        });
        json!({
            "passed": passed,
            "complete": !self.unread,
            "errors": errors,
            "warnings": warnings,
            "contents": contents.collect::<Vec<_>>(),
            "problems": problems,
        })
    }
}

fn problem_value(finding: &Finding) -> Value {
    let problem = &finding.problem;
    let mut value = json!({
        "severity": problem.severity().as_str(),
        "rule": problem.rule.id(),
        "file": finding.file,
        "message": problem.message,
        "remedy": problem.remedy,
    });
    let Value::Object(fields) = &mut value else { return value };
    for (name, number) in [("line", problem.line), ("column", problem.column)] {
        if let Some(number) = number {
            fields.insert(name.to_owned(), number.into());
        }
    }
    if let Some(blob) = &problem.blob {
        let parts = [("schema", &blob.schema), ("package", &blob.package), ("name", &blob.name)];
        let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
        let blob = parts.map(|(name, text)| (name.to_owned(), Value::from(&**text))).collect();
        fields.insert("blob".to_owned(), Value::Object(blob));
    }
    value
}

/// The problem of a bundle folder as one of a catalog.
pub(super) fn of_bundle(rule: Rule, problem: &mainstay_bundle::Problem) -> Problem {
    let loss = match rule {
        Rule::PassedOver => "; other tools drop it without a word",
        _ => "",
    };
    Problem {
        rule,
        blob: None,
        file: problem.file.as_str().into(),
        line: problem.line,
        column: None,
        message: format!("{}{loss}", problem.message),
        remedy: problem.remedy.clone(),
    }
}
