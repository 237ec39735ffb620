//! Reports of comparisons: text for people, one value for programs, SARIF for code scanners.

use super::{Comparisons, CrdComparison, ReportedFinding};
use crate::validation;
use mainstay_catalog::Severity as ScannerSeverity;
use mainstay_command::text::{count, escape_controls};
use mainstay_crdsafety::{
    Finding, FindingScope, FindingSeverity, Impact, Usage, condition_message,
};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;

/// The longest text of a finding in a report for people. Dumps of schemas have thousands of characters.
const MAX_TEXT: usize = 240;

/// Findings about one property of one version.
struct Group<'f> {
    place: String,
    line: usize,
    impact: Impact,
    findings: Vec<ReportedFinding<'f>>,
}

/// The findings of a CRD, those with the highest impact first.
fn groups<'f>(comparison: &'f CrdComparison<'_>) -> Vec<Group<'f>> {
    let mut groups: Vec<Group<'f>> = Vec::new();
    let mut positions: HashMap<String, usize> = HashMap::new();
    for reported in comparison.reported() {
        let place = finding_place(reported.finding);
        let impact = reported.finding.impact;
        if let Some(group) = positions.get(&place).and_then(|at| groups.get_mut(*at)) {
            group.impact = group.impact.max(impact);
            group.findings.push(reported);
        } else {
            positions.insert(place.clone(), groups.len());
            groups.push(Group { place, line: reported.line, impact, findings: vec![reported] });
        }
    }
    groups.sort_by(|left, right| (right.impact, &left.place).cmp(&(left.impact, &right.place)));
    groups
}

/// The place of a finding in its CRD: `v1 ^.spec.x`.
pub(crate) fn finding_place(finding: &Finding) -> String {
    let path = finding.path.as_deref().unwrap_or_default();
    match (&finding.scope, &finding.version) {
        (FindingScope::Crd, None) => "whole definition".to_owned(),
        (FindingScope::Crd, Some(version)) | (FindingScope::SameVersion(version), _) => {
            format!("{version} {path}")
        }
        (FindingScope::ServedVersions { older, newer }, _) => format!("{older} -> {newer} {path}"),
    }
}

/// The report for people.
pub(super) fn text(all: &Comparisons<'_>, colour: bool) -> String {
    let mut out = String::new();
    for comparison in &all.compared {
        crd_text(comparison, colour, &mut out);
    }
    for (names, what) in [(&all.only_old, "is not among the new ones"), (&all.only_new, "is new")] {
        for name in names {
            let _ = writeln!(out, "CustomResourceDefinition {} {what}", escape_controls(name));
        }
    }
    let _ = writeln!(out, "{}", summary(all));
    out
}

fn summary(all: &Comparisons<'_>) -> String {
    let compared = count(all.compared.len(), "CustomResourceDefinition");
    let counts = count_impacts(|impact| all.count(impact));
    format!("{compared} compared: {counts}")
}

/// The number of changes by impact: `1 breaking change, 2 warnings, 3 safe changes`.
pub(crate) fn count_impacts(of: impl Fn(Impact) -> usize) -> String {
    let parts = [
        (Impact::Breaking, "breaking change"),
        (Impact::Warning, "warning"),
        (Impact::Safe, "safe change"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(impact, what)| (of(impact), what))
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| count(number, what))
        .collect();
    if parts.is_empty() { "no change to report".to_owned() } else { parts.join(", ") }
}

fn crd_text(comparison: &CrdComparison<'_>, colour: bool, out: &mut String) {
    let paint = |impact: Impact| {
        let code = match impact {
            Impact::Breaking => "1;31",
            Impact::Warning => "1;33",
            Impact::Safe => "32",
        };
        let name = impact.name();
        if colour { format!("\x1b[{code}m{name}\x1b[0m") } else { name.to_owned() }
    };
    let file = escape_controls(&comparison.new.file);
    let name = escape_controls(comparison.new.crd.name());
    let counts = count_impacts(|impact| comparison.count(impact));
    let _ = writeln!(out, "CustomResourceDefinition {name} ({file}): {counts}");
    for group in groups(comparison) {
        let (impact, place) = (paint(group.impact), escape_controls(&group.place));
        let _ = writeln!(out, "  {impact}: {place} ({file}:{})", group.line);
        let mut said: Vec<String> = Vec::new();
        let mut say = |label: &str, text: &str| {
            if !text.is_empty() {
                let line = format!("    {label}: {}", escape_controls(text));
                if !said.contains(&line) {
                    said.push(line);
                }
            }
        };
        for ReportedFinding { finding, .. } in &group.findings {
            say(finding.check.name(), &shorten(&finding.summary()));
        }
        for ReportedFinding { finding, usage, .. } in &group.findings {
            if finding.impact == group.impact {
                say("why", &finding.reason);
            }
            if let Some(usage) = usage {
                say("objects", &usage_text(usage));
            }
        }
        for ReportedFinding { finding, .. } in &group.findings {
            if finding.impact == group.impact {
                say("remedy", &finding.remedy);
            }
        }
        for line in said {
            let _ = writeln!(out, "{line}");
        }
    }
    if let Some(note) = &comparison.note {
        let _ =
            writeln!(out, "  note: stored objects cannot be counted: {}", escape_controls(note));
    }
    if !comparison.refusal.is_empty() {
        let reasons = count(comparison.refusal.len(), "reason");
        let _ = writeln!(out, "  note: operator-controller refuses this upgrade, for {reasons}");
    }
}

fn usage_text(usage: &Usage) -> String {
    let mut text = usage.sentence();
    if !usage.names.is_empty() {
        let more = if usage.affected > usage.names.len() as u64 { ", …" } else { "" };
        let _ = write!(text, ": {}{more}", usage.names.join(", "));
    }
    text
}

/// A text for people, without what follows its first [`MAX_TEXT`] characters.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= MAX_TEXT {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_TEXT).collect();
    format!("{start}… (-o json shows all)")
}

/// The report for programs.
pub(super) fn value(all: &Comparisons<'_>) -> Value {
    let crds: Vec<Value> = all.compared.iter().map(crd_value).collect();
    json!({
        "customResourceDefinitions": crds,
        "onlyOld": all.only_old,
        "onlyNew": all.only_new,
        "breaking": all.count(Impact::Breaking),
        "warnings": all.count(Impact::Warning),
        "safe": all.count(Impact::Safe),
    })
}

fn crd_value(comparison: &CrdComparison<'_>) -> Value {
    let name = comparison.new.crd.name();
    let findings: Vec<Value> =
        comparison.reported().map(|reported| reported_value(comparison, reported)).collect();
    let mut value = json!({
        "name": name,
        "file": comparison.new.file,
        "findings": findings,
        "preflight": {
            "refused": !comparison.refusal.is_empty(),
            "message": condition_message(name, &comparison.refusal),
        },
    });
    if let Some(note) = &comparison.note {
        value["note"] = json!(format!("stored objects cannot be counted: {note}"));
    }
    value
}

fn reported_value(comparison: &CrdComparison<'_>, reported: ReportedFinding<'_>) -> Value {
    let ReportedFinding { finding, line, usage } = reported;
    let mut value = finding_value(finding);
    value["file"] = json!(comparison.new.file);
    value["line"] = json!(line);
    if let Some(usage) = usage {
        value["objects"] = json!({
            "all": usage.objects,
            "affected": usage.affected,
            "examples": usage.names,
            "text": usage.sentence(),
        });
    }
    value
}

/// A finding for programs, without the file that it is in.
pub(crate) fn finding_value(finding: &Finding) -> Value {
    let severity = match finding.severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning => "warning",
    };
    let mut value = json!({
        "check": finding.check.name(),
        "impact": finding.impact.name(),
        "severity": severity,
        "text": finding.text,
        "summary": finding.summary(),
        "why": finding.reason,
        "remedy": finding.remedy,
    });
    let mut set = |key: &str, text: &Option<String>| {
        if let Some(text) = text {
            value[key] = json!(text);
        }
    };
    set("path", &finding.path);
    set("version", &finding.version);
    match &finding.scope {
        FindingScope::Crd => value["scope"] = json!("whole"),
        FindingScope::SameVersion(version) => {
            value["scope"] = json!("sameVersion");
            value["version"] = json!(version);
        }
        FindingScope::ServedVersions { older, newer } => {
            value["scope"] = json!("servedVersions");
            value["version"] = json!(older);
            value["newerVersion"] = json!(newer);
        }
    }
    value
}

/// The report for code scanners: breaking changes are errors, and safe changes are left out.
pub(super) fn sarif(all: &Comparisons<'_>, folder: &Path) -> Value {
    let mut findings = Vec::new();
    for comparison in &all.compared {
        let reported = comparison.reported();
        let relevant = reported.filter(|reported| reported.finding.impact != Impact::Safe);
        for ReportedFinding { finding, line, usage } in relevant {
            let severity = match finding.impact {
                Impact::Breaking => ScannerSeverity::Error,
                _ => ScannerSeverity::Warning,
            };
            let (name, place) = (comparison.new.crd.name(), finding_place(finding));
            let (text, why) = (shorten(&finding.summary()), &finding.reason);
            let usage = usage.map(|usage| format!("; {}", usage.sentence()));
            let usage = usage.unwrap_or_default();
            findings.push(validation::Finding {
                rule: finding.check.name().to_owned(),
                about: finding.check.summary(),
                severity,
                package: String::new(),
                blob: None,
                file: comparison.new.file.clone(),
                line: Some(line),
                column: None,
                message: format!("{name}: {place}: {text}: {why}{usage}"),
                remedy: finding.remedy.clone(),
            });
        }
    }
    validation::sarif_log(&findings, folder)
}
