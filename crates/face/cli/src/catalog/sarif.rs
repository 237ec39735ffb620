//! Findings as SARIF 2.1.0, the format that code scanners read.

use super::findings::Finding;
use mainstay_catalog::{Problem, Rule};
use serde_json::{Value, json};
use std::{fmt::Write, path::Path};

/// The log of one run. Paths are given as seen from `root`, the folder of the command, which in CI
/// is that of the repository.
pub(super) fn log(findings: &[Finding], root: &Path) -> Value {
    // Only rules that are broken: scanners list them all.
    let rules: Vec<Rule> = Rule::ALL
        .iter()
        .copied()
        .filter(|rule| findings.iter().any(|finding| finding.problem.rule == *rule))
        .collect();
    let described = rules.iter().map(|rule| {
        json!({
            "id": rule.id(),
            "shortDescription": { "text": rule.about() },
            "defaultConfiguration": { "level": rule.severity().as_str() },
        })
    });
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

fn result(finding: &Finding, rules: &[Rule], root: &Path) -> Value {
    let Problem { rule, blob, line, column, message, remedy, .. } = &finding.problem;
    let mut region = json!({ "startLine": line.unwrap_or(1) });
    if let Some(column) = column {
        region["startColumn"] = (*column).into();
    }
    let mut location = json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&finding.file, root) },
            "region": region,
        },
    });
    let mut text = message.clone();
    if let Some(blob) = blob {
        location["logicalLocations"] =
            json!([{ "fullyQualifiedName": blob.to_string(), "kind": "object" }]);
        text = format!("{blob}: {text}");
    }
    if !remedy.is_empty() {
        let _ = write!(text, " ({remedy})");
    }
    json!({
        "ruleId": rule.id(),
        "ruleIndex": rules.iter().position(|known| known == rule),
        "level": rule.severity().as_str(),
        "message": { "text": text },
        "locations": [location],
    })
}

/// The reference of a file: relative where it lies below the root.
pub(crate) fn uri(file: &str, root: &Path) -> String {
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
    fn files_are_named_as_seen_from_the_repository() {
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
