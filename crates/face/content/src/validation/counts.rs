//! Counts of findings by rule and by package.

use super::Finding;
use mainstay_catalog::Severity;
use mainstay_command::text::{columns, escape_controls};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A name with its numbers of errors and warnings.
struct Count<'f> {
    name: &'f str,
    errors: usize,
    warnings: usize,
}

/// Counts findings by the name that `key` returns, most errors first.
fn counts<'f>(findings: &'f [Finding], key: fn(&'f Finding) -> &'f str) -> Vec<Count<'f>> {
    let mut by_name: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for finding in findings {
        let [errors, warnings] = by_name.entry(key(finding)).or_default();
        *(if finding.severity == Severity::Error { errors } else { warnings }) += 1;
    }
    let mut counts: Vec<Count<'_>> = by_name
        .into_iter()
        .map(|(name, [errors, warnings])| Count { name, errors, warnings })
        .collect();
    counts.sort_by_key(|count| std::cmp::Reverse((count.errors, count.warnings)));
    counts
}

fn by_rule(findings: &[Finding]) -> Vec<Count<'_>> {
    counts(findings, |finding| &finding.rule)
}

fn by_package(findings: &[Finding]) -> Vec<Count<'_>> {
    counts(findings, |finding| &finding.package)
}

/// Two tables: rules, and packages.
pub(super) fn tables(findings: &[Finding]) -> String {
    let table = |head: &str, counts: Vec<Count<'_>>| {
        let row = |count: Count<'_>| {
            let name = if count.name.is_empty() { "<none>" } else { count.name };
            vec![escape_controls(name), count.errors.to_string(), count.warnings.to_string()]
        };
        let rows: Vec<Vec<String>> = counts.into_iter().map(row).collect();
        columns(&[head, "ERRORS", "WARNINGS"], &rows)
    };
    format!("{}\n{}", table("RULE", by_rule(findings)), table("PACKAGE", by_package(findings)))
}

/// The counts as JSON.
pub(super) fn value(findings: &[Finding]) -> Value {
    let list = |field: &str, counts: Vec<Count<'_>>| -> Value {
        let one = |count: Count<'_>| json!({ field: count.name, "errors": count.errors, "warnings": count.warnings });
        counts.into_iter().map(one).collect()
    };
    json!({
        "rules": list("rule", by_rule(findings)),
        "packages": list("package", by_package(findings)),
    })
}
