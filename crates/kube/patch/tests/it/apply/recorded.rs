//! Random sequences of writes, and the results of `structured-merge-diff` for them.
//!
//! The results are those of version 6.3.0, with types from the API's OpenAPI documents and from
//! schemas of custom kinds. The first line of the recording has the schemas of the custom kinds.
//! Each other line is a sequence with the results of its operations. Versions differ in the name of
//! one field.

use mainstay_patch::apply::{
    ApplyError, ApplyResult, ConversionError, Duplicates, FieldConflict, FieldFilter, FieldSet,
    Managers, PathElement, TypeRef, Updater, VersionConverter, validate,
};
use mainstay_schema::builtin;
use mainstay_schema::structural::Schema;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const RECORDING: &str = include_str!("../recorded/apply.jsonl");

struct RecordedKind<'a> {
    schemas: &'a BTreeMap<String, Schema>,
    name: String,
}

impl RecordedKind<'_> {
    fn ty(&self) -> TypeRef<'_> {
        match self.schemas.get(&self.name) {
            Some(schema) => TypeRef::structural(schema, false),
            None => builtin::definition(&self.name).map_or_else(TypeRef::deduced, TypeRef::builtin),
        }
    }
}

impl VersionConverter for RecordedKind<'_> {
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

/// Applies a merge patch (RFC 7386).
fn merge_patch(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut fields = target.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        match value {
            Value::Null => fields.remove(name),
            _ => fields
                .insert(name.clone(), merge_patch(target.get(name).unwrap_or(&Value::Null), value)),
        };
    }
    Value::Object(fields)
}

fn conflict_text(conflict: &FieldConflict) -> String {
    format!("conflict with {:?}: {}", conflict.manager, conflict.path)
}

/// Performs an operation and returns its result in the form of the recording.
fn run_operation(
    kind: &RecordedKind<'_>,
    filters: &BTreeMap<String, FieldFilter>,
    state: &mut (Value, Managers),
    operation: &Value,
) -> Value {
    let (live, managers) = state;
    let [verb, manager, version] =
        ["do", "manager", "version"].map(|name| operation[name].as_str().unwrap());
    let mut object = operation["object"].clone();
    let updater = Updater { versions: kind, filters };
    let converted = || {
        validate(live, kind.ty(), Duplicates::Allowed).map_err(|error| format!("live: {error}"))?;
        if live["apiVersion"] == version {
            return Ok(live.clone());
        }
        kind.convert(live, version)
    };
    let result = (|| {
        if verb == "edit" {
            object = merge_patch(&converted().map_err(|error| error.to_string())?, &object);
        }
        let duplicates = if verb == "update" || verb == "edit" {
            Duplicates::Allowed
        } else {
            Duplicates::Rejected
        };
        validate(&object, kind.ty(), duplicates).map_err(|error| format!("object: {error}"))?;
        let live = converted().map_err(|error| error.to_string())?;
        Ok::<_, String>(match verb {
            "update" | "edit" => updater
                .update(&live, &object, version, managers.clone(), manager)
                .map(|managers| (object.clone(), false, managers)),
            _ => updater
                .apply(&live, &object, version, managers.clone(), manager, verb == "force")
                .map(|ApplyResult { object, managers }| {
                    let noop = object.is_none();
                    (object.unwrap_or(live), noop, managers)
                }),
        })
    })();
    let (object, noop, mut owners) = match result {
        Err(error) => return json!({"error": error}),
        Ok(Err(ApplyError::Conflicts(conflicts))) => {
            let conflicts: Vec<String> = conflicts.iter().map(conflict_text).collect();
            return json!({"conflicts": conflicts});
        }
        Ok(Err(error)) => return json!({"error": error.to_string()}),
        Ok(Ok(found)) => found,
    };
    let own: FieldSet = [&[PathElement::field("apiVersion")][..]].into_iter().collect();
    for owned in owners.values_mut() {
        let set = std::mem::take(&mut owned.set).difference(&own);
        owned.set = FieldSet::from_fields_v1(&set.to_fields_v1()).unwrap();
        assert_eq!(owned.set, set);
    }
    owners.retain(|_, owned| !owned.set.is_empty());
    let mut result = json!({"object": object});
    if noop {
        result["noop"] = true.into();
    }
    for (name, owned) in &owners {
        result["owners"][name] = owned.set.to_fields_v1();
        result["versions"][name] = (*owned.api_version).into();
    }
    *state = (object, owners);
    result
}

/// Whether a result is the recorded one. Several problems have no fixed order there.
fn matches_recording(found: &Value, recorded: &Value) -> bool {
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
fn recorded_sequences_of_writes_have_the_recorded_results() {
    let mut lines = RECORDING.lines();
    let schemas: BTreeMap<String, Value> = serde_json::from_str(lines.next().unwrap()).unwrap();
    let schemas: BTreeMap<String, Schema> = (schemas.iter())
        .map(|(name, schema)| (name.clone(), Schema::parse(schema).unwrap()))
        .collect();
    let mut sequences = 0;
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let case = &line["case"];
        let mut kind =
            RecordedKind { schemas: &schemas, name: case["type"].as_str().unwrap().to_owned() };
        let mut filters = BTreeMap::new();
        if let Some(fields) = case.get("exclude") {
            filters.insert(
                "v1".to_owned(),
                FieldFilter::Exclude(FieldSet::from_fields_v1(fields).unwrap()),
            );
        }
        let mut state = (json!({"apiVersion": "v1"}), Managers::new());
        for (index, operation) in case["ops"].as_array().unwrap().iter().enumerate() {
            if let Some(name) = case["change"][index.to_string()].as_str() {
                name.clone_into(&mut kind.name);
            }
            let before = state.clone();
            let found = run_operation(&kind, &filters, &mut state, operation);
            let recorded = &line["results"][index];
            assert!(
                matches_recording(&found, recorded),
                "{operation}\nof {case}\nfound    {found}\nrecorded {recorded}\nfrom {before:?}"
            );
        }
        sequences += 1;
    }
    assert!(sequences > 150, "{sequences}");
}
