//! CEL rules of published CustomResourceDefinitions, each with the schema at its path.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A rule of a CustomResourceDefinition.
pub(super) struct Rule {
    /// The kind and the path in it.
    pub(super) place: String,
    /// Its text.
    pub(super) text: String,
    /// A schema whose property `value` has the schema at the path and this rule alone.
    pub(super) schema: Value,
}

const RULES: &str = "x-kubernetes-validations";

/// Reads all rules without `oldSelf` in the CustomResourceDefinitions of a folder, each distinct
/// text once, sorted by file and path.
pub(super) fn read(folder: &Path) -> Result<Vec<Rule>> {
    let mut files = Vec::new();
    list(folder, &mut files)?;
    files.sort();
    let mut known = BTreeSet::new();
    let mut rules = Vec::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("{} is there", file.display()))?;
        for document in mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default()) {
            let document = document.with_context(|| format!("{} is YAML", file.display()))?;
            let document = document.value;
            let kind = document["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
            for version in document["spec"]["versions"].as_array().into_iter().flatten() {
                gather(&version["schema"]["openAPIV3Schema"], &kind, &mut known, &mut rules);
            }
        }
    }
    Ok(rules)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            files.push(path);
        }
    }
    Ok(())
}

fn gather(schema: &Value, place: &str, known: &mut BTreeSet<String>, rules: &mut Vec<Rule>) {
    for rule in schema[RULES].as_array().into_iter().flatten() {
        let Some(text) = rule["rule"].as_str() else { continue };
        if text.contains("oldSelf") || !known.insert(text.to_owned()) {
            continue;
        }
        let mut value = schema.clone();
        strip(&mut value);
        if let Some(value) = value.as_object_mut() {
            value.insert(RULES.to_owned(), json!([rule]));
        }
        rules.push(Rule {
            place: place.to_owned(),
            text: text.to_owned(),
            schema: json!({ "type": "object", "properties": { "value": value } }),
        });
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        gather(property, &format!("{place}.{name}"), known, rules);
    }
    for (key, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if schema[key].is_object() {
            gather(&schema[key], &format!("{place}{mark}"), known, rules);
        }
    }
}

/// Removes all rules, and defaults, which nothing here applies.
fn strip(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.remove(RULES);
    schema.remove("default");
    for property in schema
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::values_mut)
    {
        strip(property);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(key) {
            strip(inner);
        }
    }
}
