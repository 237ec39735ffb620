//! The decoder compared with recorded results of upstream's (`sigs.k8s.io/yaml` 1.6), one document
//! a line.

use mainstay_yaml::{EmptyDocuments, Options, YamlError, documents, libyaml};
use serde_json::Value;

/// Documents on which this decoder differs deliberately, with its result.
const DELIBERATE_DIFFERENCES: &[(&str, &str)] = &[
    // A stream is split into sections before it is parsed, as in kubectl and opm. The recorded
    // decoder received one document.
    ("--- a", "invalid Yaml document separator: a"),
    ("%YAML 1.1\n---\na: 1", "did not find expected <document start>"),
    ("%TAG ! tag:x,2000:\n---\na: !foo 1", "did not find expected <document start>"),
    // Each line of a stream ends with a line break.
    ("a: |\n x\n  y\n z", "x\\n y\\nz\\n"),
    ("a: |\n\n\n  x", "\\n\\nx\\n"),
    ("a: >\n  x\n\n\n  y", "x\\n\\ny\\n"),
    ("a: |  # c\n  x", "x\\n"),
    ("a: >\n    x\n     y\n    z", "x\\n y\\nz\\n"),
    // The text is read as JSON first; the error is that of JSON.
    ("{: 1}", "key must be a string"),
    // Upstream silently drops the rest.
    ("  a: b\nc: d", "did not find expected <document start>"),
];

fn read(document: &str) -> Result<Vec<Value>, YamlError> {
    let options = Options { empty: EmptyDocuments::Keep, ..Options::default() };
    documents(document.as_bytes(), &options).map(|document| document.map(|d| d.value)).collect()
}

#[test]
fn documents_are_decoded_as_by_kubectl() {
    // Awkward documents: some written by hand, some damaged at random.
    let tables = [include_str!("decoder.tsv"), include_str!("damaged.tsv")];
    let mut differences = Vec::new();
    for line in tables.into_iter().flat_map(str::lines) {
        let (document, expected) = line.split_once('\t').unwrap();
        let document: String = serde_json::from_str(document).unwrap();
        let ours = read(&document);
        if let Some((_, expected)) =
            DELIBERATE_DIFFERENCES.iter().find(|(text, _)| *text == document)
        {
            let ours = format!("{:?}", ours.as_ref().map_err(ToString::to_string));
            if !ours.contains(expected) {
                differences
                    .push(format!("{document:?}\n   declared {expected}\n   ours     {ours}"));
            }
            continue;
        }
        match (&ours, expected.strip_prefix("ERR ")) {
            // Upstream's messages for invalid keys name Go types.
            (Err(_), Some(theirs)) if theirs.contains(" map key") => {}
            (Err(ours), Some(theirs)) => {
                let error = libyaml::find_error(document.as_bytes()).map(|error| error.to_string());
                let message = error.unwrap_or_else(|| ours.fault.to_string());
                if theirs.strip_prefix("yaml: ").unwrap_or(theirs) != message {
                    differences
                        .push(format!("{document:?}\n   theirs {theirs}\n   ours   {message}"));
                }
            }
            (Ok(ours), None) => {
                let expected: Value = serde_json::from_str(expected).unwrap();
                let ours = ours.first().cloned().unwrap_or_default();
                let same_value = ours == expected || same_number(&ours, &expected);
                if !same_value {
                    differences
                        .push(format!("{document:?}\n   theirs {expected}\n   ours   {ours}"));
                }
            }
            _ => {
                differences.push(format!("{document:?}\n   theirs {expected}\n   ours   {ours:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

/// Go prints large floats in full, and zero with a sign.
fn same_number(ours: &Value, theirs: &Value) -> bool {
    match (ours.get("a").and_then(Value::as_f64), theirs.get("a").and_then(Value::as_f64)) {
        #[expect(clippy::float_cmp, reason = "the same number or not")]
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => false,
    }
}
