//! Comparison of a pair: our lines and findings with the recorded ones.

use super::AREA;
use super::pair::{CheckResult, RecordedFindings, RecordedPair};
use crate::CaseResult;
use mainstay_crdsafety::{
    Check, Configuration, Crd, CrdError, Finding, FindingScope, FindingSeverity, compare,
    condition_message, preflight,
};
use regex::Regex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

/// Addresses of memory in printed Go structs.
#[expect(clippy::expect_used, reason = "the expression is constant and tested")]
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("0x[0-9a-f]{8,}").expect("a valid expression"));

/// Blanks and addresses as the recordings have them.
fn normalize(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    ADDRESS.replace_all(&words.join(" "), "{address}").into_owned()
}

/// Compares one pair.
pub(super) fn replay(pair: &RecordedPair, bundles: &Path) -> anyhow::Result<CaseResult> {
    let (old, new) = pair.crds(bundles)?;
    let mut differences = Vec::new();
    let crds = read(&old).and_then(|old| Ok((old, read(&new)?)));
    compare_preflight(pair, &crds, &mut differences);
    compare_findings(pair, &crds, &mut differences);
    Ok(CaseResult {
        name: format!("{AREA}/{}", pair.id),
        title: format!("{}: {}", pair.group, pair.title),
        differences,
    })
}

/// The CRDs; the old one is none if there is none.
type Crds = Result<(Option<Crd>, Option<Crd>), CrdError>;

fn read(crd: &Value) -> Result<Option<Crd>, CrdError> {
    if crd.is_null() { Ok(None) } else { Crd::from_value(crd).map(Some) }
}

fn compare_preflight(pair: &RecordedPair, crds: &Crds, differences: &mut Vec<String>) {
    let ours = match crds {
        // Without an old CRD there is nothing to break.
        Ok((None, _) | (_, None)) => Ok(Vec::new()),
        Ok((Some(old), Some(new))) => preflight(old, new).map(|lines| {
            // operator-controller looks for the CRD by the name of the new one.
            if old.name() != new.name() {
                return Vec::new();
            }
            let message = condition_message(new.name(), &lines);
            message.iter().flat_map(|message| message.lines()).map(normalize).collect()
        }),
        Err(error) => Err(error.clone()),
    };
    let recorded: Vec<String> = pair.preflight.iter().map(|line| normalize(line)).collect();
    match ours {
        Err(error) => compare_error(pair, &error, differences),
        Ok(_) if pair.error.is_some() => {
            differences.push(format!("error: recorded {:?}, ours none", pair.error));
        }
        Ok(lines) => {
            if lines.is_empty() != recorded.is_empty() {
                let word = |is_empty| if is_empty { "passed" } else { "refused" };
                let (recorded, ours) = (word(recorded.is_empty()), word(lines.is_empty()));
                differences.push(format!("recorded {recorded}, ours {ours}"));
            }
            differences.extend(set_differences("line", &sorted(&recorded), &sorted(&lines)));
        }
    }
}

fn sorted(lines: &[String]) -> BTreeSet<String> {
    // The prefix is before the first line, whichever that is.
    let prefix = |line: &String| match line.split_once("\": ") {
        Some((start, rest)) if start.starts_with("validating upgrade for CRD") => {
            (rest.to_owned(), Some(format!("{start}\": ")))
        }
        _ => (line.clone(), None),
    };
    let (lines, prefixes): (Vec<_>, Vec<_>) = lines.iter().map(prefix).unzip();
    lines.into_iter().chain(prefixes.into_iter().flatten()).collect()
}

fn compare_error(pair: &RecordedPair, error: &CrdError, differences: &mut Vec<String>) {
    let ours = error.to_string();
    if pair.error.as_ref() != Some(&ours) {
        differences.push(format!("error: recorded {:?}, ours {ours}", pair.error));
    }
}

fn compare_findings(pair: &RecordedPair, crds: &Crds, differences: &mut Vec<String>) {
    let configuration = match &pair.config {
        None => Ok(Configuration::strict()),
        Some(value) => Configuration::from_value(value),
    };
    let configuration = match (configuration, &pair.config_error) {
        (Ok(configuration), None) => configuration,
        (Err(error), Some(recorded)) if error.to_string() == *recorded => return,
        (ours, recorded) => {
            let ours = ours.err().map(|error| error.to_string());
            differences.push(format!("configError: recorded {recorded:?}, ours {ours:?}"));
            return;
        }
    };
    let Ok((Some(old), Some(new))) = crds else { return };
    // An error is reported with the lines.
    let Ok(findings) = compare(old, new, &configuration) else { return };
    let ours: BTreeSet<String> = findings.iter().map(finding_line).collect();
    let recorded = recorded_lines(&pair.findings);
    differences.extend(set_differences("finding", &recorded, &ours));
}

fn set_differences<'s>(
    what: &'s str,
    recorded: &'s BTreeSet<String>,
    ours: &'s BTreeSet<String>,
) -> impl Iterator<Item = String> {
    let missing = recorded.difference(ours).map(move |line| format!("{what} missing: {line}"));
    missing.chain(ours.difference(recorded).map(move |line| format!("{what} of ours only: {line}")))
}

/// `same v1 | ^.spec.x | type | error | type changed : …`.
fn finding_line(finding: &Finding) -> String {
    let scope = match &finding.scope {
        FindingScope::Crd => "crd".to_owned(),
        FindingScope::SameVersion(version) => format!("same {version}"),
        FindingScope::ServedVersions { older, newer } => format!("served {older} -> {newer}"),
    };
    let path = match finding.scope {
        FindingScope::Crd => "",
        _ => finding.path.as_deref().unwrap_or_default(),
    };
    let severity = match finding.severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning => "warning",
    };
    let text = match finding.check {
        Check::Unhandled => mask_difference(&finding.text),
        _ => finding.text.clone(),
    };
    format!("{scope} | {path} | {} | {severity} | {}", finding.check, normalize(&text))
}

/// The recordings do not have the dump of a difference.
fn mask_difference(text: &str) -> String {
    let head = text.split_once('\n').map(|(head, _)| head);
    head.map_or_else(|| text.to_owned(), |head| format!("{head} {{diff}}"))
}

fn recorded_lines(findings: &RecordedFindings) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    let mut add = |scope: &str, path: &str, results: &[CheckResult]| {
        for result in results {
            let errors = result.errors.iter().map(|text| ("error", text));
            let warnings = result.warnings.iter().map(|text| ("warning", text));
            for (severity, text) in errors.chain(warnings) {
                let (name, text) = (&result.name, normalize(text));
                lines.insert(format!("{scope} | {path} | {name} | {severity} | {text}"));
            }
        }
    };
    add("crd", "", &findings.crd);
    for version in &findings.same_version {
        for property in &version.property_comparisons {
            let scope = format!("same {}", version.version);
            add(&scope, &property.property, &property.comparison_results);
        }
    }
    for version in &findings.served_version {
        for property in &version.property_comparisons {
            let scope = format!("served {}", version.version);
            add(&scope, &property.property, &property.comparison_results);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_addresses_are_made_equal() {
        assert_eq!(normalize("a \u{a0}\tb 0x2cc25bcfea68 0x22"), "a b {address} 0x22");
    }

    #[test]
    fn dump_of_a_difference_is_masked() {
        assert_eq!(mask_difference("found :\n- a\n+ b\n"), "found : {diff}");
    }
}
