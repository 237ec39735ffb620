//! Findings as SARIF 2.1.0, the format that code scanners read.

use super::Finding;
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt::Write, path::Path};

/// The log of one run. Paths are given as seen from `root`, the folder of the command, which in CI
/// is that of the repository.
pub(super) fn log(findings: &[Finding], root: &Path) -> Value {
    // Only rules that are broken: scanners list them all.
    let broken: BTreeMap<&str, &Finding> =
        findings.iter().map(|finding| (finding.rule.as_str(), finding)).collect();
    let described = broken.iter().map(|(rule, finding)| {
        let mut described = json!({ "id": rule });
        if !finding.about.is_empty() {
            described["shortDescription"] = json!({ "text": finding.about });
            described["defaultConfiguration"] = json!({ "level": finding.severity.as_str() });
        }
        described
    });
    let rules: Vec<&str> = broken.keys().copied().collect();
    let results = findings.iter().map(|finding| result(finding, &rules, root));
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "mainstay",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": described.collect::<Vec<_>>(),
                },
            },
            "columnKind": "unicodeCodePoints",
            "results": results.collect::<Vec<_>>(),
        }],
    })
}

fn result(finding: &Finding, rules: &[&str], root: &Path) -> Value {
    let mut region = json!({ "startLine": finding.line.unwrap_or(1) });
    if let Some(column) = finding.column {
        region["startColumn"] = column.into();
    }
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&finding.file, root) },
            "region": region,
        },
    });
    let mut text = finding.message.clone();
    if let Some(blob) = &finding.blob {
        location["logicalLocations"] =
            json!([{ "fullyQualifiedName": blob.to_string(), "kind": "object" }]);
        text = format!("{blob}: {text}");
    }
    if !finding.remedy.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(text, " ({})", finding.remedy);
    }
    json!({
        "ruleId": finding.rule,
        "ruleIndex": rules.iter().position(|rule| *rule == finding.rule),
        "level": finding.severity.as_str(),
        "message": { "text": text },
        "locations": [location],
    })
}

/// The reference of a file: relative where it lies below the root.
fn uri(file: &str, root: &Path) -> String {
    let path = Path::new(file);
    let relative = path.strip_prefix(root).unwrap_or(path);
    let mut out = String::new();
    if relative.is_absolute() {
        out.push_str("file://");
    }
    let relative = relative.to_string_lossy();
    let parts: Vec<&str> = relative.split('/').filter(|part| *part != ".").collect();
    for byte in parts.join("/").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::uri;
    use std::path::Path;

    #[test]
    fn files_are_relative_to_the_repository() {
        for (file, expected) in [
            ("catalog/a.yaml", "catalog/a.yaml"),
            ("./catalog/a.yaml", "catalog/a.yaml"),
            ("/repo/catalog/a b.yaml", "catalog/a%20b.yaml"),
            ("/other/é.yaml", "file:///other/%C3%A9.yaml"),
            ("a/c:d#e.yaml", "a/c%3Ad%23e.yaml"),
        ] {
            assert_eq!(uri(file, Path::new("/repo")), expected, "{file}");
        }
    }
}
