//! Sequences of writes, made at random, and what `structured-merge-diff` made of them.
//!
//! The answers are those of version 6.3.0, with types made of the API's OpenAPI documents and of
//! schemas of custom kinds. The first line of the recording has the schemas of the custom kinds; each
//! other line is a sequence with the answers to its operations. Versions differ in the name of one
//! field.

use mainstay_patch::apply::{
    Applied, ApplyError, Conflict, ConversionError, Duplicates, Filter, Managers, PathElement, Set,
    TypeRef, Updater, Versions, validate,
};
use mainstay_schema::builtin;
use mainstay_schema::structural::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const RECORDING: &str = include_str!("../recorded/apply.jsonl");

struct Kind<'a> {
    schemas: &'a BTreeMap<String, Schema>,
    name: String,
}

impl Kind<'_> {
    fn ty(&self) -> TypeRef<'_> {
        match self.schemas.get(&self.name) {
            Some(schema) => TypeRef::structural(schema, false),
            None => builtin::definition(&self.name).map_or_else(TypeRef::deduced, TypeRef::builtin),
        }
    }
}

impl Versions for Kind<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError> {
        let mut object = object.clone();
        let from = format!("text_{}", object["apiVersion"].as_str().unwrap_or_default());
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
            && let Some(text) = spec.remove(&from)
        {
            spec.insert(format!("text_{api_version}"), text);
        }
        object["apiVersion"] = api_version.into();
        Ok(object)
    }

    fn type_of(&self, api_version: &str) -> Option<TypeRef<'_>> {
        (!api_version.starts_with("gone")).then(|| self.ty())
    }
}

/// RFC 7386.
fn edited(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut fields = target.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        match value {
            Value::Null => fields.remove(name),
            _ => {
                fields.insert(name.clone(), edited(target.get(name).unwrap_or(&Value::Null), value))
            }
        };
    }
    Value::Object(fields)
}

fn text(conflict: &Conflict) -> String {
    format!("conflict with {:?}: {}", conflict.manager, conflict.path)
}

/// The answer to an operation, as it is recorded.
fn answer(
    kind: &Kind<'_>,
    filters: &BTreeMap<String, Filter>,
    state: &mut (Value, Managers),
    operation: &Value,
) -> Value {
    let (live, managers) = state;
    let [act, manager, version] =
        ["do", "manager", "version"].map(|name| operation[name].as_str().unwrap());
    let mut object = operation["object"].clone();
    let updater = Updater { versions: kind, filters };
    let converted = || {
        validate(live, kind.ty(), Duplicates::Allowed).map_err(|found| format!("live: {found}"))?;
        if live["apiVersion"] == version {
            return Ok(live.clone());
        }
        kind.convert(live, version)
    };
    let result = (|| {
        if act == "edit" {
            object = edited(&converted().map_err(|error| error.to_string())?, &object);
        }
        let duplicates = if act == "update" || act == "edit" {
            Duplicates::Allowed
        } else {
            Duplicates::Refused
        };
        validate(&object, kind.ty(), duplicates).map_err(|found| format!("object: {found}"))?;
        let live = converted().map_err(|error| error.to_string())?;
        Ok::<_, String>(match act {
            "update" | "edit" => updater
                .update(&live, &object, version, managers.clone(), manager)
                .map(|managers| (object.clone(), false, managers)),
            _ => updater
                .apply(&live, &object, version, managers.clone(), manager, act == "force")
                .map(|Applied { object, managers }| {
                    let noop = object.is_none();
                    (object.unwrap_or(live), noop, managers)
                }),
        })
    })();
    let (object, noop, mut owners) = match result {
        Err(error) => return json!({"error": error}),
        Ok(Err(ApplyError::Conflicts(conflicts))) => {
            let conflicts: Vec<String> = conflicts.iter().map(text).collect();
            return json!({"conflicts": conflicts});
        }
        Ok(Err(error)) => return json!({"error": error.to_string()}),
        Ok(Ok(found)) => found,
    };
    let own: Set = [&[PathElement::field("apiVersion")][..]].into_iter().collect();
    for owned in owners.values_mut() {
        let set = std::mem::take(&mut owned.set).difference(&own);
        owned.set = Set::from_fields_v1(&set.to_fields_v1()).unwrap();
        assert_eq!(owned.set, set);
    }
    owners.retain(|_, owned| !owned.set.is_empty());
    let mut answer = json!({"object": object});
    if noop {
        answer["noop"] = true.into();
    }
    for (name, owned) in &owners {
        answer["owners"][name] = owned.set.to_fields_v1();
        answer["versions"][name] = (*owned.api_version).into();
    }
    *state = (object, owners);
    answer
}

/// Whether an answer is the recorded one. Several problems come in any order there.
fn fits(found: &Value, recorded: &Value) -> bool {
    if let (Some(found), Some(recorded)) = (found["error"].as_str(), recorded["error"].as_str()) {
        return found == recorded || (found.contains("errors:") || recorded.contains("errors:"));
    }
    if let (Some(found), Some(recorded)) =
        (found["conflicts"].as_array(), recorded["conflicts"].as_array())
    {
        let sorted = |list: &[Value]| {
            let mut list: Vec<String> = list.iter().map(ToString::to_string).collect();
            list.sort();
            list
        };
        return sorted(found) == sorted(recorded);
    }
    found == recorded
}

#[test]
fn recorded_sequences_of_writes_end_as_they_did() {
    let mut lines = RECORDING.lines();
    let schemas: BTreeMap<String, Value> = serde_json::from_str(lines.next().unwrap()).unwrap();
    let schemas: BTreeMap<String, Schema> = (schemas.iter())
        .map(|(name, schema)| (name.clone(), Schema::parse(schema).unwrap()))
        .collect();
    let mut sequences = 0;
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let case = &line["case"];
        let mut kind = Kind { schemas: &schemas, name: case["type"].as_str().unwrap().to_owned() };
        let mut filters = BTreeMap::new();
        if let Some(fields) = case.get("exclude") {
            filters.insert("v1".to_owned(), Filter::Exclude(Set::from_fields_v1(fields).unwrap()));
        }
        let mut state = (json!({"apiVersion": "v1"}), Managers::new());
        for (at, operation) in case["ops"].as_array().unwrap().iter().enumerate() {
            if let Some(name) = case["change"][at.to_string()].as_str() {
                name.clone_into(&mut kind.name);
            }
            let before = state.clone();
            let found = answer(&kind, &filters, &mut state, operation);
            let recorded = &line["results"][at];
            assert!(
                fits(&found, recorded),
                "{operation}\nof {case}\nfound    {found}\nrecorded {recorded}\nfrom {before:?}"
            );
        }
        sequences += 1;
    }
    assert!(sequences > 150, "{sequences}");
}
