//! The report: attempts as figures, and breaches as findings.

use anyhow::{Context as _, bail};
use std::fmt::Write as _;
use std::path::Path;

/// The markers around the figures of a page.
const BEGIN_MARKER: &str = "<!-- attack: figures -->";
const END_MARKER: &str = "<!-- attack: end -->";
/// The number of printed findings per row; the others are counted.
const MAX_PRINTED_FINDINGS: usize = 12;

/// The figures and findings of a run.
#[derive(Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

/// One kind of attack.
pub(crate) struct Row {
    part: &'static str,
    name: &'static str,
    /// The least number of attempts.
    minimum: usize,
    count: usize,
    findings: Vec<String>,
    /// Further figures, as text.
    note: String,
}

impl Report {
    /// Adds a row. Fewer attempts than `minimum` are a finding.
    pub(crate) fn row(
        &mut self,
        part: &'static str,
        name: &'static str,
        minimum: usize,
    ) -> &mut Row {
        self.rows.push(Row {
            part,
            name,
            minimum,
            count: 0,
            findings: Vec::new(),
            note: String::new(),
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    /// Writes the table between the markers of a page.
    pub(crate) fn record(&self, page: &Path) -> anyhow::Result<()> {
        let text = std::fs::read_to_string(page).context("read the page")?;
        let (before, rest) =
            text.split_once(BEGIN_MARKER).context("the page has no begin marker")?;
        let (_, after) = rest.split_once(END_MARKER).context("the page has no end marker")?;
        let mut table = String::from(
            "\n\n| Part | Attack | Attempts | Findings | Figures |\n|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            let Row { part, name, count, findings, note, .. } = row;
            writeln!(
                table,
                "| {part} | {name} | {} | {} | {note} |",
                grouped(*count),
                findings.len()
            )?;
        }
        std::fs::write(page, format!("{before}{BEGIN_MARKER}{table}\n{END_MARKER}{after}"))
            .context("write the page")
    }

    /// Prints the totals.
    ///
    /// # Errors
    /// There is a finding.
    pub(crate) fn finish(&self) -> anyhow::Result<()> {
        let findings: usize = self.rows.iter().map(|row| row.findings.len()).sum();
        let attempts: usize = self.rows.iter().map(|row| row.count).sum();
        println!(
            "ran: attack: {attempts} attempts in {} rows, {findings} findings",
            self.rows.len()
        );
        if findings > 0 {
            bail!("{findings} findings");
        }
        Ok(())
    }
}

impl Row {
    /// Counts an attempt.
    pub(crate) fn tried(&mut self) {
        self.count += 1;
    }

    /// Counts an attempt; unless it `passed`, adds a finding.
    pub(crate) fn check(&mut self, passed: bool, finding: impl FnOnce() -> String) {
        self.count += 1;
        if !passed {
            self.finding(finding());
        }
    }

    /// Adds a finding.
    pub(crate) fn finding(&mut self, text: String) {
        self.findings.push(text);
    }

    /// Adds a figure.
    pub(crate) fn note(&mut self, text: &str) {
        if !self.note.is_empty() {
            self.note.push_str("; ");
        }
        self.note.push_str(text);
    }

    /// Prints the complete row.
    pub(crate) fn done(&mut self) {
        if self.count < self.minimum {
            let text = format!("only {} attempts of at least {}", self.count, self.minimum);
            self.findings.push(text);
        }
        let Self { name, count, note, findings, .. } = self;
        println!(
            "{name:<46} {:>8} attempts {:>3} findings  {note}",
            grouped(*count),
            findings.len()
        );
        for finding in findings.iter().take(MAX_PRINTED_FINDINGS) {
            println!("  FINDING {}", finding.escape_debug());
        }
        if findings.len() > MAX_PRINTED_FINDINGS {
            println!("  … and {} more", findings.len() - MAX_PRINTED_FINDINGS);
        }
    }
}

/// A number with thousands separators.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_attempts_than_the_minimum_are_a_finding() {
        let mut report = Report::default();
        let row = report.row("access", "forged tokens", 2);
        row.check(true, || unreachable!());
        row.done();
        assert_eq!(report.finish().unwrap_err().to_string(), "1 findings");
        let mut report = Report::default();
        let row = report.row("access", "forged tokens", 1);
        row.check(true, || unreachable!());
        row.done();
        assert!(report.finish().is_ok());
    }

    #[test]
    fn figures_replace_those_between_the_markers_of_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        std::fs::write(&page, format!("before\n{BEGIN_MARKER}\nold\n{END_MARKER}\nafter\n"))
            .unwrap();
        let mut report = Report::default();
        let row = report.row("faults", "kills", 1);
        for _ in 0..1234 {
            row.tried();
        }
        row.note("none lost");
        report.record(&page).unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("| faults | kills | 1,234 | 0 | none lost |"), "{text}");
        assert!(text.starts_with("before\n") && text.ends_with("after\n") && !text.contains("old"));
        std::fs::write(&page, "no markers").unwrap();
        assert!(report.record(&page).is_err());
    }
}
