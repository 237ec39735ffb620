//! `kubectl describe` of custom resources.

use super::{LAST_APPLIED, Target};
use mainstay_client::Cluster;
use mainstay_object::Object;
use serde_json::Value;
use std::fmt::Write as _;

/// The fields that are printed apart, or not at all.
const SKIPPED: &[&str] = &[
    ".metadata.managedFields",
    ".metadata.name",
    ".metadata.namespace",
    ".metadata.labels",
    ".metadata.annotations",
];
/// Words that stay in capitals.
const ACRONYMS: &[&str] = &["API", "URL", "UID", "OSB", "GUID"];
/// The blanks between two columns.
const PADDING: usize = 2;

/// The output and the standard error.
pub(super) async fn objects(
    cluster: &Cluster,
    target: &Target,
) -> anyhow::Result<(String, String)> {
    let mut texts = Vec::new();
    for name in &target.names {
        let object = cluster.get(&target.resource, target.namespace(), name).await?;
        texts.push(describe(&object));
    }
    Ok((texts.join("\n\n"), String::new()))
}

/// The description of an object without events.
fn describe(object: &Object) -> String {
    // A line is its cells: a tab ends each but the last.
    let mut lines = vec![
        vec!["Name:".to_owned(), object.name().to_owned()],
        vec!["Namespace:".to_owned(), object.namespace().to_owned()],
    ];
    let labels = object.labels().map(|(key, value)| format!("{key}={value}")).collect();
    pairs("Labels:", labels, &mut lines);
    let value = object.to_value();
    let annotations = value["metadata"]["annotations"].as_object().into_iter().flatten();
    let annotations = annotations.filter(|(key, _)| key.as_str() != LAST_APPLIED);
    let annotations = annotations.map(|(key, value)| format!("{key}: {}", text(value))).collect();
    pairs("Annotations:", annotations, &mut lines);
    content(&value, 0, "", &mut lines);
    lines.push(vec!["Events:".to_owned(), "<none>".to_owned()]);
    align(&lines)
}

/// A list of texts, sorted, one a line.
fn pairs(title: &str, mut all: Vec<String>, lines: &mut Vec<Vec<String>>) {
    all.sort_unstable();
    if all.is_empty() {
        all.push("<none>".to_owned());
    }
    for (at, text) in all.into_iter().enumerate() {
        let title = if at == 0 { title } else { "" };
        lines.push(vec![title.to_owned(), text]);
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn content(value: &Value, level: usize, path: &str, lines: &mut Vec<Vec<String>>) {
    let mut fields: Vec<_> = value.as_object().into_iter().flatten().collect();
    fields.sort_by(|left, right| left.0.cmp(right.0));
    for (key, value) in fields {
        let path = format!("{path}.{key}");
        if SKIPPED.contains(&path.as_str()) {
            continue;
        }
        let label = format!("{}{}:", "  ".repeat(level), label(key));
        match value {
            Value::Object(_) => {
                lines.push(vec![label]);
                content(value, level + 1, &path, lines);
            }
            Value::Array(items) => {
                lines.push(vec![label]);
                for item in items {
                    if item.is_object() {
                        content(item, level + 1, &path, lines);
                    } else {
                        lines.push(vec![format!("{}{}", "  ".repeat(level + 1), text(item))]);
                    }
                }
            }
            _ => {
                let text = text(value);
                let mut parts = text.split('\n');
                let first = parts.next().unwrap_or_default().to_owned();
                lines.push(vec![label, first]);
                lines.extend(parts.map(|part| vec![part.to_owned()]));
            }
        }
    }
}

/// The words of a field's name: `lastTransitionTime` becomes `Last Transition Time`. A name with other
/// characters stays as it is: it is the key of a label.
fn label(field: &str) -> String {
    if !field.chars().all(|letter| letter.is_alphabetic() || letter == '-') {
        return field.to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let letters: Vec<char> = field.chars().collect();
    for (at, letter) in letters.iter().copied().enumerate() {
        let after = letters.get(at + 1).copied().unwrap_or(' ');
        let starts = !letter.is_alphanumeric()
            || !before.is_alphanumeric()
            || (letter.is_uppercase() && (!before.is_uppercase() || after.is_lowercase()))
            || (letter.is_numeric() != before.is_numeric());
        match words.last_mut() {
            Some(word) if !starts => word.push(letter),
            _ => words.push(letter.to_string()),
        }
        before = letter;
    }
    words.retain(|word| word.chars().all(char::is_alphanumeric));
    let title = |word: String| {
        let upper = word.to_uppercase();
        if ACRONYMS.contains(&upper.as_str()) {
            return upper;
        }
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| {
            first.to_uppercase().chain(letters).collect::<String>()
        })
    };
    words.into_iter().map(title).collect::<Vec<_>>().join(" ")
}

/// Aligns second cells: consecutive lines that have one form a block with a common width.
fn align(lines: &[Vec<String>]) -> String {
    let mut out = String::new();
    for block in lines.chunk_by(|left, right| left.len() == right.len()) {
        let width = block.iter().map(|line| line[0].chars().count()).max().unwrap_or_default();
        for line in block {
            match line.as_slice() {
                [first, second] => {
                    let width = width + PADDING;
                    let _ = writeln!(out, "{first:width$}{second}");
                }
                _ => {
                    let _ = writeln!(out, "{}", line.concat());
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn custom_resources_are_described_field_by_field() {
        let object = Object::from_value(json!({
            "apiVersion": "x.io/v1", "kind": "Thing",
            "metadata": {
                "name": "a", "uid": "u", "labels": {"b": "c", "a": "x"},
                "annotations": {LAST_APPLIED: "{}"}, "finalizers": ["f"],
            },
            "status": {"conditions": [{"type": "Ready", "lastTransitionTime": "t"}], "urls": {"base": "u"}},
        }));
        let wanted = "Name:         a
Namespace:    
Labels:       a=x
              b=c
Annotations:  <none>
API Version:  x.io/v1
Kind:         Thing
Metadata:
  Finalizers:
    f
  UID:  u
Status:
  Conditions:
    Last Transition Time:  t
    Type:                  Ready
  Urls:
    Base:  u
Events:    <none>
";
        assert_eq!(describe(&object.unwrap()), wanted);
    }
}
