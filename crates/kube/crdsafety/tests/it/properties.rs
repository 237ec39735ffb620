//! Properties that hold for any schemas.

use super::fixture::{crd_with, findings};
use mainstay_crdsafety::Impact;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A schema with some fields, and schemas inside.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = (
        prop::sample::select(vec!["string", "integer", "boolean"]),
        prop::option::of(0_u64..5),
        prop::option::of(5_u64..9),
        prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 0..3),
        prop::option::of(prop::sample::select(vec!["^a", "b$"])),
        any::<bool>(),
    );
    let leaf = leaf.prop_map(|(kind, min, max, values, pattern, nullable)| {
        let mut schema = json!({"type": kind});
        let mut set = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                schema[key] = value;
            }
        };
        set("minLength", min.map(Value::from));
        set("maxLength", max.map(Value::from));
        set("enum", (!values.is_empty()).then(|| json!(values)));
        set("pattern", pattern.map(Value::from));
        set("nullable", nullable.then_some(json!(true)));
        schema
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        let fields = prop::collection::btree_map("[a-d]", inner.clone(), 0..4);
        let object = fields.prop_map(|fields| {
            let fields: Map<String, Value> = fields.into_iter().collect();
            json!({"type": "object", "properties": fields})
        });
        prop_oneof![
            object,
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            prop::collection::vec(inner, 1..3)
                .prop_map(|branches| json!({"type": "object", "anyOf": branches})),
        ]
    })
}

/// A schema that allows all that the given one allows: one thing is loosened, chosen by `step`.
fn wider(schema: &Value, step: usize) -> Value {
    let mut schema = schema.clone();
    let Some(fields) = schema.as_object_mut() else { return schema };
    for key in ["properties", "items", "additionalProperties"] {
        match fields.get_mut(key) {
            Some(Value::Object(inner)) if key == "properties" => {
                for property in inner.values_mut() {
                    *property = wider(property, step);
                }
            }
            Some(inner) => *inner = wider(inner, step),
            None => {}
        }
    }
    if let Some(Value::Array(branches)) = fields.get_mut("anyOf") {
        branches.insert(0, json!({"type": "number"}));
    }
    match step % 5 {
        0 => drop(fields.remove("pattern")),
        1 => drop(fields.remove("enum")),
        2 => drop(fields.insert("nullable".to_owned(), json!(true))),
        3 => drop(fields.remove("minLength")),
        _ => {
            if let Some(max) = fields.get_mut("maxLength") {
                *max = json!(max.as_u64().unwrap_or(0) + 1);
            }
        }
    }
    schema
}

/// The same value with the entries of objects inserted in another order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(entries) => {
            entries.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect()
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn crd_compared_with_itself_has_no_finding(schema in schema()) {
        let crd = crd_with(&schema);
        prop_assert!(findings(&crd, &crd).is_empty());
    }

    #[test]
    fn wider_schema_breaks_nothing(schema in schema(), step in 0_usize..5) {
        let found = findings(&crd_with(&schema), &crd_with(&wider(&schema, step)));
        for finding in found {
            prop_assert!(finding.impact != Impact::Breaking, "{finding:?}");
        }
    }

    #[test]
    fn order_of_findings_does_not_depend_on_the_order_of_fields(old in schema(), new in schema()) {
        let texts = |old: &Value, new: &Value| -> Vec<(Option<String>, String)> {
            let found = findings(&crd_with(old), &crd_with(new));
            found.into_iter().map(|finding| (finding.path, finding.text)).collect()
        };
        let found = texts(&old, &new);
        prop_assert_eq!(&found, &texts(&reversed(&old), &reversed(&new)));
        let mut sorted = findings(&crd_with(&old), &crd_with(&new));
        sorted.sort_by(|a, b| (&a.scope, &a.path, a.check, &a.text).cmp(&(&b.scope, &b.path, b.check, &b.text)));
        let sorted: Vec<_> = sorted.into_iter().map(|finding| (finding.path, finding.text)).collect();
        prop_assert_eq!(found, sorted);
    }
}
