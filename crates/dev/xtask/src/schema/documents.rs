//! Facts about built-in types that only the OpenAPI documents of a real server have:
//! `documents.txt`.
//!
//! It has two kinds of entries. An enumeration begins with the line `enum`; its values with their
//! meaning follow, then a line `of` for each field that holds one (with `[]` or `{}`: the field is
//! a list or a map of them; `undescribed`: the field's description does not list them). Every other
//! line is a type or a field, and a JSON merge patch of its OpenAPI v3 schema.

use super::Definition;
use anyhow::{Context, bail};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const FACTS: &str = include_str!("documents.txt");

/// Adds the facts to the definitions.
pub(super) fn add(definitions: &mut BTreeMap<String, Definition>) -> anyhow::Result<()> {
    let mut values: Vec<(String, &str)> = Vec::new();
    let mut last_was_value = false;
    for (at, line) in FACTS.lines().enumerate() {
        let place = || format!("documents.txt line {}", at + 1);
        if line.is_empty() || line.starts_with('#') || line == "enum" {
            continue;
        }
        if let Some(value) = line.strip_prefix("  ") {
            if !std::mem::replace(&mut last_was_value, true) {
                values.clear();
            }
            let (value, text) = quoted(value).with_context(place)?;
            values.push((value, text));
            continue;
        }
        last_was_value = false;
        if let Some(owner) = line.strip_prefix("of ") {
            enumerate(definitions, owner, &values).with_context(place)?;
        } else {
            let (name, patch) = line.split_once(' ').with_context(place)?;
            let patch: Map<String, Value> = serde_json::from_str(patch).with_context(place)?;
            change(definitions, name, patch).with_context(place)?;
        }
    }
    Ok(())
}

/// Splits a quoted text from the rest of the line.
fn quoted(line: &str) -> Option<(String, &str)> {
    let rest = line.strip_prefix('"')?;
    let (value, text) = rest.split_once('"')?;
    Some((value.to_owned(), text.trim_start()))
}

type DescriptionAndPatch<'a> = (&'a mut String, &'a mut Map<String, Value>);

/// Description and patch of a type or a field.
fn find<'a>(
    definitions: &'a mut BTreeMap<String, Definition>,
    name: &str,
) -> anyhow::Result<DescriptionAndPatch<'a>> {
    if definitions.contains_key(name) {
        let definition = definitions.get_mut(name).context("a type of this name")?;
        return Ok((&mut definition.description, &mut definition.patch));
    }
    let (owner, field) = name.rsplit_once('.').context("a type and a field")?;
    let definition = definitions.get_mut(owner).with_context(|| format!("no type {owner}"))?;
    let field = definition.fields.get_mut(field).with_context(|| format!("no field {name}"))?;
    Ok((&mut field.description, &mut field.patch))
}

fn enumerate(
    definitions: &mut BTreeMap<String, Definition>,
    owner: &str,
    values: &[(String, &str)],
) -> anyhow::Result<()> {
    let bare = owner.strip_suffix(" undescribed");
    let owner = bare.unwrap_or(owner);
    let (name, part) = match owner.strip_suffix("[]") {
        Some(name) => (name, Some("items")),
        None => match owner.strip_suffix("{}") {
            Some(name) => (name, Some("additionalProperties")),
            None => (owner, None),
        },
    };
    let (description, patch) = find(definitions, name)?;
    let list: Vec<&String> = values.iter().map(|(value, _)| value).collect();
    if list.is_empty() {
        bail!("an enumeration without values");
    }
    match part {
        Some(part) => patch.insert(part.to_owned(), json!({"enum": list})),
        None => patch.insert("enum".to_owned(), json!(list)),
    };
    if bare.is_none() {
        if !description.is_empty() {
            description.push_str("\n\n");
        }
        description.push_str("Possible enum values:");
        for (value, text) in values {
            description.push_str("\n - `\"");
            description.push_str(value);
            description.push_str("\"`");
            if !text.is_empty() {
                description.push(' ');
                description.push_str(text);
            }
        }
    }
    Ok(())
}

fn change(
    definitions: &mut BTreeMap<String, Definition>,
    name: &str,
    changes: Map<String, Value>,
) -> anyhow::Result<()> {
    let (description, patch) = find(definitions, name)?;
    for (key, value) in changes {
        if key == "description" {
            value.as_str().unwrap_or_default().clone_into(description);
        } else {
            patch.insert(key, value);
        }
    }
    Ok(())
}
