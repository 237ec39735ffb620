//! Merge patches that give an object the wanted fields.

use mainstay_object::Object;
use serde_json::{Map, Value};

/// Fields of `metadata` that only the server writes.
const SERVER_METADATA: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// The part of an object that a client can apply.
pub(crate) fn applicable(object: &Object) -> Value {
    let mut object = object.clone();
    object.remove(&["status"]);
    for field in SERVER_METADATA {
        object.remove(&["metadata", field]);
    }
    object.into_value()
}

/// The value without object fields that are `null`, at any depth outside of lists.
pub(crate) fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect(),
        ),
        other => other.clone(),
    }
}

/// The merge patch that brings `live` to the wanted fields, with the revision of `live` as
/// precondition; none if nothing differs.
pub(crate) fn patch(live: &Object, wanted: &Value) -> Option<Value> {
    let mut wanted = wanted.clone();
    union(&mut wanted, live, "ownerReferences", |entry| entry.get("uid").cloned());
    union(&mut wanted, live, "finalizers", |entry| Some(entry.clone()));
    let live_value = Value::Object(live.fields().clone());
    let mut patch = difference(&live_value, &wanted)?;
    patch["metadata"]["resourceVersion"] = live.resource_version().into();
    Some(patch)
}

/// Prepends the live entries of a list in `metadata` that the wanted list lacks.
fn union(
    wanted: &mut Value,
    live: &Object,
    field: &str,
    identity: impl Fn(&Value) -> Option<Value>,
) {
    let Some(list) = wanted
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut(field))
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    let live = live.array(&["metadata", field]);
    let mut merged: Vec<Value> = Vec::with_capacity(live.len() + list.len());
    for entry in live {
        let same = list.iter().position(|wanted| identity(wanted) == identity(entry));
        merged.push(same.map_or_else(|| entry.clone(), |at| list.remove(at)));
    }
    merged.append(list);
    *list = merged;
}

/// The merge patch (RFC 7396) that gives `live` every field of `wanted`; none if it has them all.
///
/// Objects are compared field by field, and fields that are only in `live` are left alone. A list
/// is equal if it has the same number of entries and each has every field of its counterpart;
/// otherwise the patch contains the whole list. A wanted `null` removes the field.
pub fn difference(live: &Value, wanted: &Value) -> Option<Value> {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            let mut patch = Map::new();
            for (key, wanted) in wanted {
                match live.get(key) {
                    None | Some(Value::Null) if wanted.is_null() => {}
                    None => {
                        patch.insert(key.clone(), wanted.clone());
                    }
                    Some(live) => {
                        if let Some(inner) = difference(live, wanted) {
                            patch.insert(key.clone(), inner);
                        }
                    }
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (live, wanted) => (!covers(live, wanted)).then(|| wanted.clone()),
    }
}

/// Whether `live` has every field of `wanted`.
fn covers(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| match live.get(key) {
                Some(live) => covers(live, wanted),
                None => wanted.is_null(),
            })
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live.iter().zip(wanted).all(|(live, wanted)| covers(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_patch_contains_only_differences() {
        let live = json!({
            "spec": {"replicas": 1, "kept": true, "gone": 1, "list": [{"a": 1, "default": 2}]},
        });
        for (name, wanted, patch) in [
            ("equal", json!({"spec": {"replicas": 1}}), None),
            ("defaults in entries are equal", json!({"spec": {"list": [{"a": 1}]}}), None),
            ("null that is absent", json!({"spec": {"other": null}}), None),
            (
                "changed scalar",
                json!({"spec": {"replicas": 2}}),
                Some(json!({"spec": {"replicas": 2}})),
            ),
            (
                "changed entry replaces the list",
                json!({"spec": {"list": [{"a": 3}]}}),
                Some(json!({"spec": {"list": [{"a": 3}]}})),
            ),
            (
                "longer list",
                json!({"spec": {"list": [{"a": 1}, {"b": 1}]}}),
                Some(json!({"spec": {"list": [{"a": 1}, {"b": 1}]}})),
            ),
            (
                "null removes",
                json!({"spec": {"gone": null}}),
                Some(json!({"spec": {"gone": null}})),
            ),
            ("new field", json!({"data": {"a": "b"}}), Some(json!({"data": {"a": "b"}}))),
        ] {
            assert_eq!(difference(&live, &wanted), patch, "{name}");
        }
    }

    #[test]
    fn owners_and_finalizers_of_others_are_kept() {
        let live = Object::from_value(json!({"metadata": {
            "name": "x", "uid": "u", "resourceVersion": "7",
            "ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}],
            "finalizers": ["theirs"],
        }}))
        .unwrap();
        let mine = |owners: Value| {
            applicable(
                &Object::from_value(json!({"metadata": {
                    "resourceVersion": "3", "ownerReferences": owners, "finalizers": ["theirs"],
                }, "status": {"x": 1}}))
                .unwrap(),
            )
        };
        assert_eq!(patch(&live, &mine(json!([{"uid": "2", "name": "b"}]))), None);
        assert_eq!(
            patch(&live, &mine(json!([{"uid": "3", "name": "c"}]))),
            Some(json!({"metadata": {
                "resourceVersion": "7",
                "ownerReferences": [
                    {"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}, {"uid": "3", "name": "c"},
                ],
            }}))
        );
    }

    #[test]
    fn a_creation_carries_no_nulls() {
        assert_eq!(
            without_nulls(&json!({"a": null, "b": {"c": null, "d": 1}})),
            json!({"b": {"d": 1}})
        );
    }
}
