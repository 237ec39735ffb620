//! Reports of comparisons: text for people, one value for programs, SARIF for code scanners.

use super::{Comparisons, CrdComparison};
use crate::catalog::{count, escape_controls};
use crate::validation;
use mainstay_catalog::Severity as ScannerSeverity;
use mainstay_crdsafety::{
    Finding, FindingScope, FindingSeverity, Impact, Usage, condition_message,
};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// The longest text of a finding in a report for people. Dumps of schemas have thousands of characters.
const MAX_TEXT: usize = 240;

/// Findings about one property of one version.
struct Group<'f> {
    place: String,
    line: usize,
    impact: Impact,
    findings: Vec<(&'f Finding, Option<&'f Usage>)>,
}

/// The findings of a CRD, those with the highest impact first.
fn groups<'f>(comparison: &'f CrdComparison<'_>) -> Vec<Group<'f>> {
    let mut groups: Vec<Group<'f>> = Vec::new();
    for (finding, usage) in comparison.findings.iter().zip(&comparison.usages) {
        let place = place_of(finding);
        let usage = usage.as_ref();
        if let Some(group) = groups.iter_mut().find(|group| group.place == place) {
            group.impact = group.impact.max(finding.impact);
            group.findings.push((finding, usage));
        } else {
            groups.push(Group {
                place,
                line: comparison.new.line_of(finding),
                impact: finding.impact,
                findings: vec![(finding, usage)],
            });
        }
    }
    groups.sort_by(|left, right| (right.impact, &left.place).cmp(&(left.impact, &right.place)));
    groups
}

/// `v1 ^.spec.x`.
fn place_of(finding: &Finding) -> String {
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
    let counts = counts(|impact| all.count(impact));
    format!("{compared} compared: {counts}")
}

/// `1 breaking change, 2 warnings, 3 safe changes`.
fn counts(of: impl Fn(Impact) -> usize) -> String {
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
    let counts = counts(|impact| comparison.count(impact));
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
        for (finding, _) in &group.findings {
            say(finding.check.name(), &shorten(&finding.summary()));
        }
        for (finding, usage) in &group.findings {
            if finding.impact == group.impact {
                say("why", &finding.reason);
            }
            if let Some(usage) = usage {
                say("objects", &usage_text(usage));
            }
        }
        for (finding, _) in &group.findings {
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

fn shorten(text: &str) -> String {
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
    let findings = comparison.findings.iter().zip(&comparison.usages);
    let findings: Vec<Value> = findings
        .map(|(finding, usage)| finding_value(comparison, finding, usage.as_ref()))
        .collect();
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

fn finding_value(
    comparison: &CrdComparison<'_>,
    finding: &Finding,
    usage: Option<&Usage>,
) -> Value {
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
        "file": comparison.new.file,
        "line": comparison.new.line_of(finding),
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

/// The report for code scanners: breaking changes are errors, and safe changes are left out.
pub(super) fn sarif(all: &Comparisons<'_>, folder: &Path) -> Value {
    let mut findings = Vec::new();
    for comparison in &all.compared {
        let reported = comparison.findings.iter().zip(&comparison.usages);
        for (finding, usage) in reported.filter(|(finding, _)| finding.impact != Impact::Safe) {
            let severity = match finding.impact {
                Impact::Breaking => ScannerSeverity::Error,
                _ => ScannerSeverity::Warning,
            };
            let (name, place) = (comparison.new.crd.name(), place_of(finding));
            let (text, why) = (shorten(&finding.summary()), &finding.reason);
            let usage = usage.as_ref().map(|usage| format!("; {}", usage.sentence()));
            let usage = usage.unwrap_or_default();
            findings.push(validation::Finding {
                rule: finding.check.name().to_owned(),
                about: finding.check.summary(),
                severity,
                package: String::new(),
                blob: None,
                file: comparison.new.file.clone(),
                line: Some(comparison.new.line_of(finding)),
                column: None,
                message: format!("{name}: {place}: {text}: {why}{usage}"),
                remedy: finding.remedy.clone(),
            });
        }
    }
    validation::sarif_log(&findings, folder)
}
