//! Evidence from stored objects.

use super::fixture::{crd_with, findings, read};
use mainstay_crdsafety::{Check, Evidence, Impact, Usage};
use serde_json::{Value, json};

/// The usage for the finding of a check, from objects with the given values of `spec.x`.
fn usage(check: Check, old: &Value, new: &Value, values: &[Value]) -> Usage {
    let (old, new) = (crd_with(old), crd_with(new));
    let findings = findings(&old, &new);
    let at = findings.iter().position(|finding| finding.check == check).unwrap();
    let mut evidence = Evidence::new(&findings, "v1alpha1", &read(&new));
    for (number, value) in values.iter().enumerate() {
        evidence.add(&json!({
            "metadata": {"name": format!("s{number}"), "namespace": "east"},
            "spec": if value.is_null() { json!({}) } else { json!({"x": value}) },
        }));
    }
    evidence.usage(at).unwrap()
}

#[test]
fn objects_that_a_change_concerns_are_counted() {
    let string = || json!({"type": "string"});
    let object = |fields: Value, required: Value| json!({"type": "object", "properties": fields, "required": required});
    let cases = [
        (
            Check::ExistingFieldRemoval,
            object(json!({"a": string(), "b": string()}), json!([])),
            object(json!({"a": string()}), json!([])),
            vec![json!({"a": "1"}), json!({"b": "1"}), json!(null)],
            "1 of 3 stored objects use the removed field",
        ),
        (
            Check::Required,
            object(json!({"a": string()}), json!([])),
            object(json!({"a": string()}), json!(["a"])),
            vec![json!({"a": "1"}), json!({}), json!({}), json!(null)],
            "2 of 4 stored objects lack a field that is required now",
        ),
        (
            Check::MaxLength,
            json!({"type": "string"}),
            json!({"type": "string", "maxLength": 3}),
            vec![json!("abc"), json!("abcd")],
            "1 of 2 stored objects have a value outside of the new bound",
        ),
        (
            Check::Enum,
            json!({"type": "string", "enum": ["a", "b"]}),
            json!({"type": "string", "enum": ["a"]}),
            vec![json!("a")],
            "0 of 1 stored object have a value that is refused now",
        ),
        (
            Check::Type,
            json!({"type": "string"}),
            json!({"type": "integer"}),
            vec![json!("a"), json!(1), json!(null)],
            "1 of 3 stored objects have a value that is refused now",
        ),
        (
            Check::Unhandled,
            json!({"type": "array", "items": string()}),
            json!({"type": "array", "items": string(), "x-kubernetes-list-type": "set"}),
            vec![json!(["a", "b"]), json!(["a", "a"])],
            "1 of 2 stored objects do not fit the new schema",
        ),
    ];
    for (check, old, new, values, expected) in cases {
        assert_eq!(usage(check, &old, &new, &values).sentence(), expected, "{check}");
    }
}

#[test]
fn values_in_lists_and_maps_are_found() {
    let nested = |inner: Value| json!({"type": "array", "items": {"type": "object", "additionalProperties": inner}});
    let found = usage(
        Check::MaxLength,
        &nested(json!({"type": "string"})),
        &nested(json!({"type": "string", "maxLength": 1})),
        &[json!([{"k": "a"}, {"l": "ab"}]), json!([]), json!([{"k": "a"}])],
    );
    assert_eq!((found.affected, found.names), (1, vec!["east/s0".to_owned()]));
}

#[test]
fn few_names_are_kept_however_many_objects_there_are() {
    let values = vec![json!("long"); 1000];
    let (old, new) = (json!({"type": "string"}), json!({"type": "string", "maxLength": 1}));
    let found = usage(Check::MaxLength, &old, &new, &values);
    assert_eq!((found.objects, found.affected, found.names.len()), (1000, 1000, 5));
}

#[test]
fn other_versions_and_changes_of_the_whole_crd_need_no_objects() {
    let (old, mut new) = (crd_with(&json!({})), crd_with(&json!({"maxLength": 1})));
    new["spec"]["scope"] = json!("Cluster");
    let findings = findings(&old, &new);
    let evidence = Evidence::new(&findings, "v1alpha1", &read(&new));
    let scope = findings.iter().position(|finding| finding.check == Check::Scope).unwrap();
    assert!(!evidence.is_empty() && evidence.usage(scope).is_none());
    assert!(Evidence::new(&findings, "v2", &read(&new)).is_empty());
}

#[test]
fn what_no_object_uses_is_a_warning() {
    let (old, new) = (crd_with(&json!({"type": "string"})), crd_with(&json!({"type": "integer"})));
    let mut findings = findings(&old, &new);
    let usage = |affected| Usage { objects: 3, affected, ..Usage::default() };
    findings[0].weigh(&usage(1));
    assert_eq!(findings[0].impact, Impact::Breaking);
    findings[0].weigh(&usage(0));
    assert_eq!(findings[0].impact, Impact::Warning);
}
