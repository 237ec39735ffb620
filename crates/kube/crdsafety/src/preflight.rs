//! The check that operator-controller runs before it installs or upgrades an extension.
//!
//! ```text
//! compare with operator-controller's configuration ─► errors ─► lines ── joined ─► condition message
//!                                                      └ dumps of differences become short lists
//! ```

use crate::checks::UNHANDLED_PREFIX;
use crate::compare::compare;
use crate::config::{Check, Configuration};
use crate::crd::{Crd, CrdError};
use crate::finding::{Finding, FindingScope, FindingSeverity};
use mainstay_gocompat::quote;

/// The lines with which operator-controller refuses an upgrade, sorted. None: the upgrade passes.
///
/// # Errors
/// A version has no schema. Upstream crashes there.
pub fn preflight(old: &Crd, new: &Crd) -> Result<Vec<String>, CrdError> {
    let findings = compare(old, &new.converted(), &Configuration::operator_controller())?;
    Ok(preflight_lines(&findings))
}

/// The lines of findings: those that are errors, sorted.
pub fn preflight_lines(findings: &[Finding]) -> Vec<String> {
    let errors = findings.iter().filter(|finding| finding.severity == FindingSeverity::Error);
    let mut lines: Vec<String> = errors.map(line).collect();
    lines.sort();
    lines
}

/// The message of the condition that holds the lines; none if there are none.
pub fn condition_message(crd: &str, lines: &[String]) -> Option<String> {
    let prefix = format!("validating upgrade for CRD {}: ", quote(crd));
    (!lines.is_empty()).then(|| prefix + &lines.join("\n"))
}

fn line(finding: &Finding) -> String {
    let check = finding.check;
    let path = finding.path.as_deref().unwrap_or_default();
    match &finding.scope {
        FindingScope::Crd => format!("{check}: {}", finding.text),
        FindingScope::SameVersion(version) => {
            format!("{version}: {path}: {check}: {}", finding.summary())
        }
        FindingScope::ServedVersions { older, newer } => {
            format!("{older} -> {newer}: {path}: {check}: {}", finding.summary())
        }
    }
}

impl Finding {
    /// The text as operator-controller shows it: without the dump of a difference.
    pub fn summary(&self) -> String {
        match self.check {
            Check::Unhandled => shorten(&self.text),
            _ => self.text.clone(),
        }
    }
}

/// A changed line of the dump, named by what precedes its first colon.
#[derive(Default)]
struct Change<'t> {
    name: &'t str,
    before: &'t str,
    after: &'t str,
}

/// `unhandled changes found (Format "" -> "date"; …)`: the added and removed lines of the dump that
/// have a colon. Lines of one name are one change, even where they are about different places; the
/// last one counts.
fn shorten(text: &str) -> String {
    let mut changes: Vec<Change<'_>> = Vec::new();
    for line in text.lines().map(str::trim) {
        let Some(content) = line.strip_prefix(['-', '+']) else { continue };
        let content = content.trim();
        let content = content.strip_suffix(',').unwrap_or(content);
        let Some((name, value)) = content.split_once(':') else { continue };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() {
            continue;
        }
        let at = changes.iter().position(|change| change.name == name).unwrap_or_else(|| {
            changes.push(Change { name, ..Change::default() });
            changes.len() - 1
        });
        let change = &mut changes[at];
        let side = if line.starts_with('-') { &mut change.before } else { &mut change.after };
        // An empty value is a value, too.
        *side = if value.is_empty() { EMPTY } else { value };
    }
    let details: Vec<String> = changes.iter().filter_map(Change::describe).collect();
    if details.is_empty() {
        return UNHANDLED_PREFIX.to_owned();
    }
    format!("{UNHANDLED_PREFIX} ({})", details.join("; "))
}

/// What stands for a missing value.
const EMPTY: &str = "<empty>";

impl Change<'_> {
    fn describe(&self) -> Option<String> {
        if self.before == self.after {
            return None;
        }
        let (before, after) = (displayed_value(self.before), displayed_value(self.after));
        let note = if before == after { " (changed)" } else { "" };
        let or_empty = |text: String| if text.is_empty() { EMPTY.to_owned() } else { text };
        Some(format!("{} {} -> {}{note}", self.name, or_empty(before), or_empty(after)))
    }
}

/// A value without package names; whole schemas are not shown.
fn displayed_value(value: &str) -> String {
    if value.contains("JSONSchemaProps") {
        return "<complex value>".to_owned();
    }
    value.strip_suffix(',').unwrap_or(value).trim().replace("v1.", "")
}

#[cfg(test)]
mod tests {
    use super::shorten;

    #[test]
    fn dump_becomes_a_list_of_changes() {
        let cases = [
            ("- Format: \"\",\n+ Format: \"date\",", " (Format \"\" -> \"date\")"),
            ("  ... // 5 identical fields", ""),
            ("+ \t\t\"l\",", ""),
            (
                "- \tAnyOf: nil,\n+ \tAnyOf: []v1.JSONSchemaProps{{}},",
                " (AnyOf nil -> <complex value>)",
            ),
            ("+ \tRules: v1.ValidationRules{", " (Rules <empty> -> ValidationRules{)"),
            ("- a: v1.x\n+ a: x", " (a x -> x (changed))"),
            ("- a: 1\n+ a: 1", ""),
        ];
        for (dump, expected) in cases {
            let text = format!("unhandled changes found :\n{dump}\n");
            assert_eq!(shorten(&text), format!("unhandled changes found{expected}"), "{dump}");
        }
    }
}
