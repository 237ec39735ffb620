//! What changes do: a table of changes of a property, with their impact.

use super::fixture::{crd_with, findings};
use mainstay_crdsafety::Impact;
use serde_json::{Value, json};

/// The impact of the worst finding; none if there is no finding.
fn impact(old: &Value, new: &Value) -> Option<Impact> {
    let found = findings(&crd_with(old), &crd_with(new));
    for finding in &found {
        assert!(!finding.reason.is_empty(), "{finding:?} has a reason");
        let has_remedy = !finding.remedy.is_empty();
        assert_eq!(
            has_remedy,
            finding.impact != Impact::Safe,
            "{finding:?} has a remedy if needed"
        );
    }
    found.iter().map(|finding| finding.impact).max()
}

#[test]
fn change_that_allows_more_is_safe_and_the_opposite_breaks() {
    let object = |mut fields: Value| {
        fields["type"] = json!("object");
        fields
    };
    let any_of = |names: &[&str]| {
        let branches: Vec<Value> = names.iter().map(|name| json!({"required": [name]})).collect();
        object(json!({"anyOf": branches}))
    };
    let rules = |rules: &[&str]| {
        let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
        object(json!({"x-kubernetes-validations": rules}))
    };
    let map = |values: Value| object(json!({"additionalProperties": values}));
    // The narrower schema first.
    let cases = [
        ("null", json!({"type": "string"}), json!({"type": "string", "nullable": true})),
        ("pattern", json!({"type": "string", "pattern": "^a"}), json!({"type": "string"})),
        ("enum", json!({"enum": ["a"]}), json!({"enum": ["a", "b"]})),
        ("whole enum", json!({"enum": ["a"]}), json!({})),
        ("bound", json!({"maxLength": 3}), json!({"maxLength": 4})),
        ("no bound", json!({"minimum": 3}), json!({})),
        ("format", json!({"type": "string", "format": "date"}), json!({"type": "string"})),
        ("number format", json!({"format": "int32"}), json!({"format": "int64"})),
        ("multiple", json!({"multipleOf": 10}), json!({"multipleOf": 5})),
        ("exclusive", json!({"minimum": 1, "exclusiveMinimum": true}), json!({"minimum": 1})),
        ("anyOf branch", any_of(&["a"]), any_of(&["b", "a"])),
        ("anyOf", any_of(&["a"]), object(json!({}))),
        (
            "oneOf branch",
            object(json!({"oneOf": [{"required": ["a"]}]})),
            object(json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})),
        ),
        (
            "allOf branch",
            object(json!({"allOf": [{"required": ["a"]}, {"required": ["b"]}]})),
            object(json!({"allOf": [{"required": ["b"]}]})),
        ),
        (
            "not",
            object(json!({"not": {"required": ["a"]}})),
            object(json!({"not": {"required": ["a", "b"]}})),
        ),
        ("rule", rules(&["a", "b"]), rules(&["b"])),
        ("int-or-string", json!({"type": "integer"}), json!({"x-kubernetes-int-or-string": true})),
        (
            "any type",
            json!({"type": "string"}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
        ),
        (
            "unknown fields",
            object(json!({})),
            object(json!({"x-kubernetes-preserve-unknown-fields": true})),
        ),
        (
            "field in a map",
            map(object(json!({}))),
            map(object(json!({"properties": {"a": {"type": "string"}}}))),
        ),
        (
            "bound in a map",
            map(json!({"type": "string", "maxLength": 3})),
            map(json!({"type": "string", "maxLength": 4})),
        ),
        (
            "embedded resource",
            object(json!({"x-kubernetes-embedded-resource": true})),
            object(json!({})),
        ),
    ];
    for (what, narrow, wide) in cases {
        let wider = impact(&narrow, &wide);
        assert!(wider.is_none_or(|impact| impact == Impact::Safe), "{what} is safe, not {wider:?}");
        assert_eq!(impact(&wide, &narrow), Some(Impact::Breaking), "{what} breaks backwards");
    }
}

#[test]
fn change_of_words_or_order_is_safe() {
    let map = |values: Value| json!({"type": "object", "additionalProperties": values});
    let rule =
        |message: &str| json!({"x-kubernetes-validations": [{"rule": "a", "message": message}]});
    let branches = |index: &str, names: [&str; 2]| json!({"type": "object", index: names.map(|name| json!({"required": [name]}))});
    let cases = [
        (json!({"title": "a"}), json!({"title": "b"})),
        (json!({"externalDocs": {"url": "a"}}), json!({"externalDocs": {"url": "b"}})),
        (map(json!({"description": "a"})), map(json!({"description": "b"}))),
        (rule("a"), rule("b")),
        (branches("anyOf", ["a", "b"]), branches("anyOf", ["b", "a"])),
        (branches("oneOf", ["a", "b"]), branches("oneOf", ["b", "a"])),
        (branches("allOf", ["a", "b"]), branches("allOf", ["b", "a"])),
        (json!({"format": "unheard-of"}), json!({"format": "another"})),
    ];
    for (old, new) in cases {
        assert_eq!(impact(&old, &new), Some(Impact::Safe), "{old} to {new}");
    }
}

#[test]
fn change_of_behaviour_is_a_warning() {
    let cases = [
        (json!({"type": "integer"}), json!({"type": "number"})),
        (json!({"type": "string"}), json!({"type": "string", "default": "a"})),
        (json!({"default": "a"}), json!({"default": "b"})),
        (json!({"x-kubernetes-list-type": "set"}), json!({"x-kubernetes-list-type": "atomic"})),
        (json!({"x-kubernetes-map-type": "granular"}), json!({"x-kubernetes-map-type": "atomic"})),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": true}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        ),
    ];
    for (old, new) in cases {
        assert_eq!(impact(&old, &new), Some(Impact::Warning), "{old} to {new}");
    }
}

#[test]
fn new_required_field_breaks_unless_a_default_fills_it() {
    let object = |field: Value, required: &[&str]| json!({"type": "object", "properties": {"a": field}, "required": required});
    let old = object(json!({"type": "string", "default": "x"}), &[]);
    let with_default = object(json!({"type": "string", "default": "x"}), &["a"]);
    assert_eq!(impact(&old, &with_default), Some(Impact::Safe));
    let old = object(json!({"type": "string"}), &[]);
    let without = object(json!({"type": "string"}), &["a"]);
    assert_eq!(impact(&old, &without), Some(Impact::Breaking));
}

#[test]
fn thousands_of_alternatives_are_not_compared_one_by_one() {
    let any_of = |names: &mut dyn Iterator<Item = usize>| {
        let branches: Vec<Value> =
            names.map(|name| json!({"required": [name.to_string()]})).collect();
        json!({"type": "object", "anyOf": branches})
    };
    let (old, new) = (any_of(&mut (0..2000)), any_of(&mut (1..2001)));
    assert_eq!(impact(&old, &new), Some(Impact::Breaking));
}
