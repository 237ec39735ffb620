//! Merge of version 2 documents: ours, and the parts of aggregated API servers about their groups.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The sections of a document that operations refer to.
const SECTIONS: [&str; 2] = ["definitions", "parameters"];
/// The extension with the kinds of a definition.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// The part of a version 2 document with the paths that have a prefix, and their definitions and
/// parameters.
pub fn part(mut document: Value, prefix: &str) -> Value {
    let mut paths = take_section(&mut document, "paths");
    paths.retain(|path, _| path.starts_with(prefix));
    let mut all = SECTIONS.map(|section| take_section(&mut document, section));
    let mut needed = SECTIONS.map(|_| Map::new());
    let mut open: BTreeSet<String> = BTreeSet::new();
    paths.values().for_each(|item| references(item, &mut open));
    while let Some(reference) = open.pop_first() {
        let Some((section, name)) = target(&reference) else { continue };
        let at = usize::from(section == SECTIONS[1]);
        if let Some(value) = all[at].remove(name) {
            references(&value, &mut open);
            needed[at].insert(name.to_owned(), value);
        }
    }
    let mut out = Map::new();
    out.insert("paths".to_owned(), paths.into());
    for (section, values) in SECTIONS.into_iter().zip(needed) {
        out.insert(section.to_owned(), values.into());
    }
    out.into()
}

/// Adds a [`part`] to a document. Existing paths stay. A definition or parameter whose name is taken by
/// a different one gets another name (`Thing_v2`).
pub fn add(document: &mut Value, mut part: Value) {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut sections: Vec<(&str, Map<String, Value>)> = Vec::new();
    for section in SECTIONS {
        let values = take_section(&mut part, section);
        let present = document.get(section).and_then(Value::as_object);
        for (name, value) in &values {
            let existing = |name: &str| present.and_then(|present| present.get(name));
            if existing(name).is_none_or(|other| is_equal(other, value)) {
                continue;
            }
            let mut number = 2_u32;
            let new_name = loop {
                let new_name = format!("{name}_v{number}");
                let is_free = !values.contains_key(&new_name)
                    && existing(&new_name).is_none_or(|other| is_equal(other, value));
                if is_free {
                    break new_name;
                }
                number += 1;
            };
            names.insert(format!("#/{section}/{name}"), new_name);
        }
        sections.push((section, values));
    }
    for (section, values) in sections {
        let mut present = take_section(document, section);
        for (name, mut value) in values {
            let name = names.get(&format!("#/{section}/{name}")).cloned().unwrap_or(name);
            rename(&mut value, &names);
            match present.get_mut(&name) {
                Some(other) => merge_kinds(other, &value),
                None => {
                    present.insert(name, value);
                }
            }
        }
        put_section(document, section, present);
    }
    let mut paths = take_section(&mut part, "paths");
    paths.values_mut().for_each(|item| rename(item, &names));
    let mut present = take_section(document, "paths");
    for (path, item) in paths {
        present.entry(path).or_insert(item);
    }
    put_section(document, "paths", present);
}

fn take_section(document: &mut Value, section: &str) -> Map<String, Value> {
    match document.get_mut(section).map(Value::take) {
        Some(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

fn put_section(document: &mut Value, section: &str, values: Map<String, Value>) {
    if let Some(document) = document.as_object_mut() {
        document.insert(section.to_owned(), values.into());
    }
}

/// Section and name of a reference.
fn target(reference: &str) -> Option<(&str, &str)> {
    let (section, name) = reference.strip_prefix("#/")?.split_once('/')?;
    SECTIONS.contains(&section).then_some((section, name))
}

fn references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                into.insert(reference.clone());
            }
            map.values().for_each(|value| references(value, into));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, into)),
        _ => {}
    }
}

fn rename(value: &mut Value, names: &BTreeMap<String, String>) {
    if names.is_empty() {
        return;
    }
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref")
                && let Some(new_name) = names.get(reference.as_str())
                && let Some((section, _)) = target(reference)
            {
                *reference = format!("#/{section}/{new_name}");
            }
            map.values_mut().for_each(|value| rename(value, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, names)),
        _ => {}
    }
}

/// Whether two definitions are equal except for their kinds.
fn is_equal(a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else { return a == b };
    let count = |map: &Map<String, Value>| map.keys().filter(|key| *key != KINDS).count();
    count(a) == count(b)
        && a.iter().filter(|(key, _)| *key != KINDS).all(|(key, value)| b.get(key) == Some(value))
}

/// Adds the kinds of another definition.
fn merge_kinds(into: &mut Value, other: &Value) {
    let Some(more) = other.get(KINDS).and_then(Value::as_array) else { return };
    let Some(into) = into.as_object_mut() else { return };
    let present = into.entry(KINDS).or_insert_with(|| Value::Array(Vec::new()));
    if let Some(present) = present.as_array_mut() {
        for kind in more {
            if !present.contains(kind) {
                present.push(kind.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn aggregated_document() -> Value {
        json!({
            "paths": {
                "/apis/g/v1/": {"get": {"schema": {"$ref": "#/definitions/List"}}},
                "/apis/g/v1/things": {
                    "get": {"schema": {"$ref": "#/definitions/Thing"}},
                    "parameters": [{"$ref": "#/parameters/pretty"}],
                },
                "/apis/g/v10/things": {"get": {"schema": {"$ref": "#/definitions/Other"}}},
                "/version": {},
            },
            "definitions": {
                "Thing": {"properties": {"metadata": {"$ref": "#/definitions/Meta"}}},
                "Meta": {"description": "theirs", "items": {"$ref": "#/definitions/Meta"}},
                "List": {"description": "a list", "x-kubernetes-group-version-kind": ["theirs", "both"]},
                "Other": {}, "Unused": {},
            },
            "parameters": {"pretty": {"name": "pretty"}, "unused": {}},
        })
    }

    #[test]
    fn a_part_has_its_paths_and_their_definitions() {
        let part = part(aggregated_document(), "/apis/g/v1/");
        let names = |section: &str| -> Vec<String> {
            part[section].as_object().unwrap().keys().cloned().collect()
        };
        assert_eq!(names("paths"), ["/apis/g/v1/", "/apis/g/v1/things"]);
        assert_eq!(names("definitions"), ["List", "Meta", "Thing"]);
        assert_eq!(names("parameters"), ["pretty"]);
    }

    #[test]
    fn a_conflicting_definition_gets_another_name() {
        let mut ours = json!({
            "paths": {"/apis/g/v1/": "ours"},
            "definitions": {
                "Meta": {"description": "ours"}, "Meta_v2": {"description": "another"},
                "List": {"description": "a list", "x-kubernetes-group-version-kind": ["ours", "both"]},
            },
        });
        add(&mut ours, part(aggregated_document(), "/apis/g/v1/"));
        assert_eq!(
            ours,
            json!({
                "paths": {
                    "/apis/g/v1/": "ours",
                    "/apis/g/v1/things": {
                        "get": {"schema": {"$ref": "#/definitions/Thing"}},
                        "parameters": [{"$ref": "#/parameters/pretty"}],
                    },
                },
                "definitions": {
                    "Meta": {"description": "ours"}, "Meta_v2": {"description": "another"},
                    "Meta_v3": {"description": "theirs", "items": {"$ref": "#/definitions/Meta_v3"}},
                    "Thing": {"properties": {"metadata": {"$ref": "#/definitions/Meta_v3"}}},
                    "List": {"description": "a list", "x-kubernetes-group-version-kind": ["ours", "both", "theirs"]},
                },
                "parameters": {"pretty": {"name": "pretty"}},
            })
        );
    }

    #[test]
    fn a_malformed_document_adds_nothing() {
        let ours = json!({"paths": {}, "definitions": {}, "parameters": {}});
        for theirs in [json!(null), json!([1]), json!({"paths": 1, "definitions": []})] {
            let mut document = ours.clone();
            add(&mut document, part(theirs, "/apis/g/v1/"));
            assert_eq!(document, ours);
        }
    }
}
