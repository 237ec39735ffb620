//! The decoder against answers of upstream's (`sigs.k8s.io/yaml` 1.6), one document a line.

use mainstay_yaml::{EmptyDocuments, Options, YamlError, documents, libyaml};
use serde_json::Value;

/// Documents where this decoder differs on purpose, and what it says.
const DIFFERENT: &[(&str, &str)] = &[
    // A stream is split into sections before it is parsed, as kubectl and opm split it; the
    // recorded decoder was given one document.
    ("--- a", "invalid Yaml document separator: a"),
    ("%YAML 1.1\n---\na: 1", "did not find expected <document start>"),
    ("%TAG ! tag:x,2000:\n---\na: !foo 1", "did not find expected <document start>"),
    // Streams are read line by line, and each line has an end.
    ("a: |\n x\n  y\n z", "x\\n y\\nz\\n"),
    ("a: |\n\n\n  x", "\\n\\nx\\n"),
    ("a: >\n  x\n\n\n  y", "x\\n\\ny\\n"),
    ("a: |  # c\n  x", "x\\n"),
    ("a: >\n    x\n     y\n    z", "x\\n y\\nz\\n"),
    // Taken for JSON first, which is what is said.
    ("{: 1}", "key must be a string"),
    // Upstream drops the rest without a word.
    ("  a: b\nc: d", "did not find expected <document start>"),
];

fn read(document: &str) -> Result<Vec<Value>, YamlError> {
    let options = Options { empty: EmptyDocuments::Keep, ..Options::default() };
    documents(document.as_bytes(), &options).map(|document| document.map(|d| d.value)).collect()
}

#[test]
fn documents_mean_what_they_mean_to_kubectl() {
    // Awkward documents written by hand, and some that were damaged by chance.
    let tables = [include_str!("decoder.tsv"), include_str!("damaged.tsv")];
    let mut wrong = Vec::new();
    for line in tables.into_iter().flat_map(str::lines) {
        let (document, expected) = line.split_once('\t').unwrap();
        let document: String = serde_json::from_str(document).unwrap();
        let ours = read(&document);
        if let Some((_, expected)) = DIFFERENT.iter().find(|(text, _)| *text == document) {
            let ours = format!("{:?}", ours.as_ref().map_err(ToString::to_string));
            if !ours.contains(expected) {
                wrong.push(format!("{document:?}\n   declared {expected}\n   ours     {ours}"));
            }
            continue;
        }
        match (&ours, expected.strip_prefix("ERR ")) {
            // Keys that are none are told by the type that Go has for them.
            (Err(_), Some(theirs)) if theirs.contains(" map key") => {}
            (Err(ours), Some(theirs)) => {
                let fault = libyaml::fault(document.as_bytes()).map(|fault| fault.to_string());
                let words = fault.unwrap_or_else(|| ours.fault.to_string());
                if theirs.strip_prefix("yaml: ").unwrap_or(theirs) != words {
                    wrong.push(format!("{document:?}\n   theirs {theirs}\n   ours   {words}"));
                }
            }
            (Ok(ours), None) => {
                let expected: Value = serde_json::from_str(expected).unwrap();
                let ours = ours.first().cloned().unwrap_or_default();
                let same = ours == expected || same_number(&ours, &expected);
                if !same {
                    wrong.push(format!("{document:?}\n   theirs {expected}\n   ours   {ours}"));
                }
            }
            _ => wrong.push(format!("{document:?}\n   theirs {expected}\n   ours   {ours:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Go prints large floats in full, and zero with a sign.
fn same_number(ours: &Value, theirs: &Value) -> bool {
    match (ours.get("a").and_then(Value::as_f64), theirs.get("a").and_then(Value::as_f64)) {
        #[expect(clippy::float_cmp, reason = "the same number or not")]
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => false,
    }
}
