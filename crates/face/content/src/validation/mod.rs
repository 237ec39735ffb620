//! Findings of `validate` for bundles and catalogs: counted, silenced by a baseline, and printed.
//!
//! ```text
//! findings of bundles  ─┐                            ┌─► text: findings, counts, a summary
//! problems of catalogs ─┴─► baseline ─► new findings ┼─► JSON, YAML: the same as one value
//!                                                    └─► SARIF
//! ```

mod baseline;
mod counts;
mod sarif;

use baseline::Baseline;
use clap::{Args, ValueEnum};
use mainstay_catalog::{BlobName, Severity};
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::{count, escape_controls};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A finding, with a path that the user can open.
#[derive(Debug)]
pub(crate) struct Finding {
    /// The name of the broken rule, such as `unknown-field`.
    pub(crate) rule: String,
    /// The requirement of the rule in one sentence; empty where its name tells it.
    pub(crate) about: &'static str,
    pub(crate) severity: Severity,
    /// The affected package; empty if unknown.
    pub(crate) package: String,
    /// The affected document of a catalog.
    pub(crate) blob: Option<BlobName>,
    /// The file, relative to the current folder.
    pub(crate) file: String,
    /// From 1.
    pub(crate) line: Option<usize>,
    /// From 1.
    pub(crate) column: Option<usize>,
    pub(crate) message: String,
    /// The remedy; may be empty.
    pub(crate) remedy: String,
}

impl Finding {
    /// `FILE:LINE:COLUMN`, as far as they are known.
    fn place(&self) -> String {
        let mut place = escape_controls(&self.file);
        for number in [self.line, self.column].into_iter().flatten() {
            place.push(':');
            place.push_str(&number.to_string());
        }
        place
    }

    fn value(&self) -> Value {
        let mut value = json!({
            "severity": self.severity.as_str(),
            "rule": self.rule,
            "file": self.file,
            "message": self.message,
            "remedy": self.remedy,
        });
        for (name, number) in [("line", self.line), ("column", self.column)] {
            if let Some(number) = number {
                value[name] = number.into();
            }
        }
        if let Some(blob) = &self.blob {
            let parts =
                [("schema", &blob.schema), ("package", &blob.package), ("name", &blob.name)];
            let parts = parts.into_iter().filter(|(_, text)| !text.is_empty());
            let blob = parts.map(|(name, text)| (name.to_owned(), Value::from(&**text)));
            value["blob"] = Value::Object(blob.collect());
        }
        value
    }
}

/// Findings as a SARIF log. Paths are given as seen from `root`.
pub(crate) fn sarif_log(findings: &[Finding], root: &std::path::Path) -> Value {
    sarif::log(findings, root)
}

/// The numbers of errors and warnings.
pub(crate) fn totals(findings: &[Finding]) -> [usize; 2] {
    [Severity::Error, Severity::Warning]
        .map(|wanted| findings.iter().filter(|finding| finding.severity == wanted).count())
}

/// How findings are written, and which ones count.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Output format; SARIF 2.1.0 is for code scanners.
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Output::Text)]
    output: Output,
    /// Fail for warnings, too.
    #[arg(long)]
    strict: bool,
    /// Suppress the findings that this file lists. An entry that no longer matches is a warning.
    #[arg(long, value_name = "FILE", conflicts_with = "write_baseline")]
    baseline: Option<String>,
    /// Write all findings to this file, for `--baseline`. Entries about other folders are kept, and so
    /// are the reasons of entries.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<String>,
}

/// Formats of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
    Sarif,
}

/// The validated folders.
pub(crate) struct Validated<'v> {
    /// The folders that were read completely, as typed. A baseline entry about another folder is not
    /// stale.
    pub(crate) folders: &'v [String],
    /// Whether a rule was checked; entries of unchecked rules are not stale.
    pub(crate) is_rule_enabled: &'v dyn Fn(&str) -> bool,
    /// The content of valid folders, such as `1 bundle`; empty if there is none.
    pub(crate) contents: String,
    /// An addition to the last line.
    pub(crate) note: &'static str,
    /// Further fields of the JSON value.
    pub(crate) fields: Map<String, Value>,
}

impl Options {
    /// Prints what was found, and says whether that is a failure.
    ///
    /// # Errors
    /// If the baseline cannot be read or written.
    pub(crate) fn report(
        &self,
        mut findings: Vec<Finding>,
        validated: &Validated<'_>,
        io: &mut CommandIo<'_>,
    ) -> Result<ExitStatus, CommandFailure> {
        let mut known = None;
        if let Some(file) = &self.write_baseline {
            let count = findings.len();
            Baseline::write(file, &findings, validated, io)?;
            findings.clear();
            known = Some(Known { file, count });
        } else if let Some(file) = &self.baseline {
            let baseline = Baseline::read(file, io)?;
            let count = baseline.silence(&mut findings, validated, io);
            known = Some(Known { file, count });
        }
        let [errors, warnings] = totals(&findings);
        let passed = errors == 0 && (warnings == 0 || !self.strict);
        let report = Report { findings: &findings, known, validated };
        let text = match self.output {
            Output::Text => report.text(io.colour),
            Output::Json => format!("{:#}\n", report.value(passed)),
            Output::Yaml => mainstay_yaml::to_string(&report.value(passed)),
            Output::Sarif => format!("{:#}\n", sarif::log(&findings, &io.folder)),
        };
        io.print(&text);
        Ok(if passed { ExitStatus::Done } else { ExitStatus::Failed })
    }
}

/// What a baseline silenced.
struct Known<'k> {
    file: &'k str,
    count: usize,
}

/// Findings, and what they were found in.
struct Report<'r> {
    findings: &'r [Finding],
    known: Option<Known<'r>>,
    validated: &'r Validated<'r>,
}

/// The findings as text, for commands that validate before they do something else.
pub(crate) fn text(findings: &[Finding]) -> String {
    let validated = Validated {
        folders: &[],
        is_rule_enabled: &|_| true,
        contents: String::new(),
        note: "",
        fields: Map::new(),
    };
    Report { findings, known: None, validated: &validated }.text(false)
}

impl Report<'_> {
    /// Two lines for each finding, the counts for rules and packages, and a last line that sums up.
    fn text(&self, colour: bool) -> String {
        let paint = |code: &str, text: &str| {
            if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
        };
        let mut out = String::new();
        for finding in self.findings {
            let code = if finding.severity == Severity::Error { "1;31" } else { "1;33" };
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{}: {}: {} {}",
                paint("1", &finding.place()),
                paint(code, finding.severity.as_str()),
                escape_controls(&finding.message.replace('\n', "; ")),
                paint("2", &format!("[{}]", finding.rule)),
            );
            let blob = finding.blob.as_ref().map(|blob| escape_controls(&blob.to_string()));
            let remedy = Some(escape_controls(&finding.remedy)).filter(|remedy| !remedy.is_empty());
            let parts: Vec<String> = blob.into_iter().chain(remedy).collect();
            if !parts.is_empty() {
                let _ = writeln!(out, "    {}", parts.join(": "));
            }
        }
        if !self.findings.is_empty() {
            let _ = write!(out, "\n{}\n", counts::tables(self.findings));
        }
        let _ = writeln!(out, "{}{}", self.summary(), self.validated.note);
        out
    }

    fn summary(&self) -> String {
        let contents = &self.validated.contents;
        let known = self.known.as_ref().filter(|known| known.count > 0);
        let silenced = known.map_or_else(String::new, |known| {
            format!("; {} in {}", count(known.count, "known finding"), escape_controls(known.file))
        });
        let found = match totals(self.findings) {
            [0, 0] if known.is_some() && contents.is_empty() => "no new findings".to_owned(),
            [0, 0] if known.is_some() => format!("no new findings in {contents}"),
            [0, 0] if contents.is_empty() => "sound, and empty".to_owned(),
            [0, 0] => format!("sound: {contents}"),
            [errors, 0] => count(errors, "error"),
            [0, warnings] => count(warnings, "warning"),
            [errors, warnings] => {
                format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
            }
        };
        format!("{found}{silenced}")
    }

    /// All of it as one value. `passed` is the verdict.
    fn value(&self, passed: bool) -> Value {
        let [errors, warnings] = totals(self.findings);
        let mut value = json!({
            "passed": passed,
            "errors": errors,
            "warnings": warnings,
            "problems": self.findings.iter().map(Finding::value).collect::<Vec<_>>(),
            "counts": counts::value(self.findings),
        });
        for (name, field) in &self.validated.fields {
            value[name] = field.clone();
        }
        if let Some(known) = &self.known {
            value["baseline"] = json!({ "file": known.file, "known": known.count });
        }
        value
    }
}
