//! Property tests for arbitrary schemas and values.

use mainstay_object::{FieldPath, Object};
use mainstay_schema::crd;
use mainstay_schema::structural::Schema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "kind", "metadata", "x.y"]).prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..9).prop_map(Value::from),
        (-2.0_f64..5.0).prop_map(Value::from),
        prop::sample::select(vec!["", "a", "v1", "X", "1.2.3.4", "a/b"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Keywords with values that mostly fit, and sometimes arbitrary ones.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!({"type": "string"}),
        json!({"type": "integer", "minimum": 1, "multipleOf": 2}),
        json!({"type": "number", "maximum": 2.5, "nullable": true}),
        json!({"x-kubernetes-int-or-string": true}),
        json!({"x-kubernetes-preserve-unknown-fields": true}),
        json!({"type": "string", "format": "ipv4", "pattern": "^[a-z(]+$", "maxLength": 1}),
    ]);
    leaf.prop_recursive(4, 32, 4, |inner| {
        let properties = prop::collection::btree_map(name(), inner.clone(), 0..4);
        let object = (properties, any::<[bool; 3]>()).prop_map(|(properties, flags)| {
            let properties: Map<String, Value> = properties.into_iter().collect();
            let mut schema = json!({"type": "object", "properties": properties});
            for (flag, keyword) in flags.into_iter().zip([
                "x-kubernetes-embedded-resource",
                "x-kubernetes-preserve-unknown-fields",
                "nullable",
            ]) {
                if flag {
                    schema[keyword] = json!(true);
                }
            }
            schema
        });
        let list = (inner.clone(), prop::sample::select(vec!["atomic", "set", "map", "extra"]))
            .prop_map(|(items, kind)| {
                json!({
                    "type": "array", "items": items, "x-kubernetes-list-type": kind,
                    "x-kubernetes-list-map-keys": ["a"],
                })
            });
        let with_default = (inner.clone(), value()).prop_map(|(mut schema, default)| {
            schema["default"] = default;
            schema
        });
        let with_rules = (inner.clone(), inner.clone()).prop_map(|(mut schema, rule)| {
            schema["anyOf"] = json!([rule, {"required": ["a"]}]);
            schema["not"] = json!({"maxProperties": 0});
            schema
        });
        let map = inner.prop_map(|inner| json!({"type": "object", "additionalProperties": inner}));
        prop_oneof![3 => object, 2 => list, 1 => map, 2 => with_default, 1 => with_rules]
    })
}

proptest! {
    /// Each CRD can be validated, and each stored CRD can be parsed.
    #[test]
    fn validation_accepts_arbitrary_crds(schema in schema(), extra in value()) {
        for schema in [schema, extra] {
            let mut definition = Object::from_value(json!({
                "metadata": {"name": "as.b.io"},
                "spec": {
                    "group": "b.io", "scope": "Cluster", "names": {"plural": "as", "kind": "A"},
                    "versions": [
                        {"name": "v1", "storage": true, "schema": {"openAPIV3Schema": schema}},
                        {"name": "v2", "schema": {"openAPIV3Schema": {"type": "object"}}},
                    ],
                },
            })).unwrap();
            crd::default(&mut definition);
            let errors = crd::validate(&definition);
            prop_assert_eq!(errors.len(), crd::validate(&definition).len());
            prop_assert_eq!(crd::CustomResourceDefinition::read(&definition).versions.len(), 2);
        }
    }

    /// Each value can be decoded and validated, new or changed.
    #[test]
    fn validation_accepts_arbitrary_values(schema in schema(), new in value(), old in value()) {
        let wrapped = json!({"type": "object", "properties": {"a": schema}});
        if let Ok(schema) = Schema::parse(&wrapped) {
            let root = FieldPath::root();
            let (mut new, old) = (json!({"a": new}), json!({"a": old}));
            let _ = schema.decode(&mut new);
            schema.validate(&new, &root);
            schema.validate_update(&new, &old, &root);
            // An unchanged value is valid, except for errors of the structure.
            let same = schema.validate_update(&new, &new, &root);
            let all = schema.validate(&new, &root);
            prop_assert!(same.len() <= all.len());
        }
    }

    /// Pruning and defaulting under a valid schema are idempotent.
    #[test]
    fn decoding_is_idempotent(schema in schema(), value in value()) {
        let wrapped = json!({"type": "object", "properties": {"a": schema}});
        let Ok(schema) = Schema::parse(&wrapped) else { return Ok(()) };
        if !schema.check(&FieldPath::root()).is_empty() {
            return Ok(());
        }
        let mut value = json!({"a": value});
        schema.reread(&mut value);
        let once = value.clone();
        schema.reread(&mut value);
        prop_assert_eq!(once, value);
    }
}
