//! Upstream's cases of the check: which changes pass, and which lines the refused ones give.

use super::fixture::{NAME, crd_of, crd_with, lines};
use mainstay_crdsafety::condition_message;
use serde_json::{Value, json};

/// An object with these properties.
fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

/// The lines for a change of the properties of the only version.
fn changes(old: &Value, new: &Value) -> Vec<String> {
    lines(&crd_of(&[("v1", true, object(old))]), &crd_of(&[("v1", true, object(new))]))
}

#[test]
fn every_check_reports_into_one_message() {
    let old = object(&json!({
        "removed": {"type": "string"},
        "enum": {"type": "string", "enum": ["a", "b"]},
        "default": {"type": "string", "default": "a"},
        "maximum": {"type": "integer", "maximum": 9},
        "maxItems": {"type": "array", "items": {"type": "string"}, "maxItems": 9},
        "maxLength": {"type": "string", "maxLength": 9},
        "maxProperties": {"type": "object", "maxProperties": 9},
        "minimum": {"type": "integer", "minimum": 1},
        "minItems": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "minLength": {"type": "string", "minLength": 1},
        "minProperties": {"type": "object", "minProperties": 1},
        "required": {"type": "object", "properties": {"a": {"type": "string"}}},
        "type": {"type": "string"},
    }));
    let new = object(&json!({
        "enum": {"type": "string", "enum": ["a"]},
        "default": {"type": "string", "default": "b"},
        "maximum": {"type": "integer", "maximum": 8},
        "maxItems": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
        "maxLength": {"type": "string", "maxLength": 8},
        "maxProperties": {"type": "object", "maxProperties": 8},
        "minimum": {"type": "integer", "minimum": 2},
        "minItems": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        "minLength": {"type": "string", "minLength": 2},
        "minProperties": {"type": "object", "minProperties": 2},
        "required": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        "type": {"type": "integer"},
    }));
    let old = crd_of(&[("v1", true, old)]);
    let mut new = crd_of(&[("v1", true, new)]);
    new["spec"]["scope"] = json!("Cluster");
    let message = condition_message(NAME, &lines(&old, &new)).unwrap();
    for check in [
        "scope:",
        "existingFieldRemoval:",
        "type:",
        "enum:",
        "required:",
        "default:",
        "maximum:",
        "maxItems:",
        "maxLength:",
        "maxProperties:",
        "minimum:",
        "minItems:",
        "minLength:",
        "minProperties:",
    ] {
        // shows OLMV1-98
        assert!(message.contains(check), "{check}: {message}");
    }
}

#[test]
fn removed_field_is_named() {
    let found = changes(
        &json!({"a": {"type": "string"}, "b": {"type": "string"}}),
        &json!({"a": {"type": "string"}}),
    );
    // shows OLMV1-99
    assert_eq!(found[0], "existingFieldRemoval: removed field : v1.^.b");
}

#[test]
fn descriptions_and_optional_fields_pass() {
    let old = json!({"a": {"type": "string", "description": "x"}});
    let new = json!({"a": {"type": "string", "description": "y"}, "b": {"type": "string"}});
    // shows OLMV1-100
    assert!(changes(&old, &new).is_empty());
}

#[test]
fn webhook_that_converts_permits_versions_to_differ() {
    let limited =
        |values: &[&str]| object(&json!({"foobarbaz": {"type": "string", "enum": values}}));
    let old = crd_of(&[("v1", true, limited(&["a", "b"]))]);
    let mut new = crd_of(&[("v1", true, limited(&["a", "b"])), ("v2", true, limited(&["a"]))]);
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    // shows OLMV1-101
    assert!(lines(&old, &new).is_empty());
    let mut converted = old;
    converted["spec"]["conversion"] = json!({"strategy": "Webhook"});
    new["spec"].as_object_mut().unwrap().remove("conversion");
    let message = condition_message(NAME, &lines(&converted, &new)).unwrap();
    // shows OLMV1-102
    assert_eq!(
        message,
        "validating upgrade for CRD \"samples.test.example.com\": v1 -> v2: ^.foobarbaz: enum: allowed enum values removed : [\"b\"]"
    );
}

#[test]
fn only_differences_of_versions_that_are_new_are_reported() {
    let version = |kind: &str, extra: &str| {
        object(&json!({"a": {"type": kind}, "extraField": {"type": extra}}))
    };
    let old = crd_of(&[
        ("v1", true, version("string", "boolean")),
        ("v2", true, version("integer", "boolean")),
    ]);
    // shows OLMV1-103
    assert!(lines(&old, &old).is_empty());
    let mut v3 = old.clone();
    v3["spec"]["versions"][1] =
        crd_of(&[("v2", true, version("integer", "string"))])["spec"]["versions"][0].clone();
    let found = lines(&old, &v3);
    // shows OLMV1-104
    assert!(
        found
            .iter()
            .all(|line| line
                .ends_with("^.extraField: type: type changed : \"boolean\" -> \"string\""))
            && !found.is_empty(),
        "{found:?}"
    );
}

#[test]
fn type_nullable_and_alternatives_are_checked() {
    let found = lines(
        &crd_with(&json!({"type": "object"})),
        &crd_with(&json!({"nullable": true, "oneOf": [{"type": "object"}]})),
    );
    for text in [
        "^.spec.x: type: type changed : \"object\" -> \"\"",
        "^.spec.x: nullable: nullable added : false -> true",
        "^.spec.x: oneOf: oneOf constraint added when there was none previously",
    ] {
        // shows OLMV1-105
        assert!(found.iter().any(|line| line.contains(text)), "{text}: {found:?}");
    }
    let one_of = |names: &[&str]| {
        let all: Vec<Value> = names.iter().map(|name| json!({"required": [name]})).collect();
        let mut schema = object(&json!({"a": {"type": "string"}, "b": {"type": "string"}}));
        if !all.is_empty() {
            schema["oneOf"] = json!(all);
        }
        crd_with(&schema)
    };
    for (old, new, text) in [
        (one_of(&["a", "b"]), one_of(&["a"]), "oneOf: allowed oneOf schemas removed"),
        (one_of(&[]), one_of(&["a"]), "oneOf: oneOf constraint added"),
    ] {
        let found = lines(&old, &new);
        // shows OLMV1-106
        assert!(found.iter().any(|line| line.contains(text)), "{found:?}");
        // shows OLMV1-106
        assert!(!found.iter().any(|line| line.contains("unhandled")), "{found:?}");
    }
}

#[test]
fn other_changes_are_named_without_the_whole_schema() {
    let old = json!({"a": {"type": "string"}});
    // shows OLMV1-107
    assert_eq!(
        changes(&old, &json!({"a": {"type": "string", "format": "email"}})),
        ["v1: ^.a: unhandled: unhandled changes found (Format \"\" -> \"email\")"]
    );
}
