//! The check of operator-controller: which upgrades it refuses, and in which words.

use super::fixture::{NAME, crd_of, crd_with, lines, read};
use mainstay_crdsafety::{condition_message, preflight};
use serde_json::{Value, json};

/// The base CRD: one version, whose root has `pollInterval`.
fn sample(change: impl FnOnce(&mut Value)) -> Value {
    let mut crd = crd_of(&[(
        "v1alpha1",
        true,
        json!({"type": "object", "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"},
            "metadata": {"type": "object"}, "spec": {"type": "object"},
            "status": {"type": "object"}, "pollInterval": {"type": "string"}}}),
    )]);
    change(&mut crd);
    crd
}

fn schema(crd: &mut Value) -> &mut Value {
    &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn changed_scope_is_refused() {
    let new = sample(|crd| crd["spec"]["scope"] = json!("Cluster"));
    // shows CRDS-19 CRDS-28
    assert_eq!(
        lines(&sample(|_| {}), &new),
        ["scope: scope changed : \"Namespaced\" -> \"Cluster\""]
    );
}

#[test]
fn removed_stored_version_is_refused() {
    let new = sample(|crd| crd["spec"]["versions"][0]["name"] = json!("v1alpha2"));
    // shows CRDS-20
    assert_eq!(
        lines(&sample(|_| {}), &new),
        ["storedVersionRemoval: stored versions removed : [v1alpha1]"]
    );
}

#[test]
fn removed_version_that_is_not_stored_passes() {
    let object = || json!({"type": "object"});
    let old = crd_of(&[("v1", true, object()), ("v1beta1", true, object())]);
    let new = crd_of(&[("v1", true, object())]);
    // shows CRDS-27
    assert!(lines(&old, &new).is_empty());
}

#[test]
fn removed_field_is_refused_by_two_lines_with_its_path() {
    let new = sample(|crd| {
        schema(crd)["properties"].as_object_mut().unwrap().remove("pollInterval");
    });
    // shows CRDS-09 CRDS-29
    assert_eq!(
        lines(&sample(|_| {}), &new),
        [
            "existingFieldRemoval: removed field : v1alpha1.^.pollInterval",
            "v1alpha1: ^.pollInterval: type: type changed : \"string\" -> \"\"",
        ]
    );
}

#[test]
fn new_required_field_is_refused() {
    let new = sample(|crd| schema(crd)["required"] = json!(["pollInterval"]));
    // shows CRDS-08
    assert_eq!(
        lines(&sample(|_| {}), &new),
        ["v1alpha1: ^: required: new required fields: [pollInterval]"]
    );
}

#[test]
fn all_forbidden_changes_are_reported() {
    let new = sample(|crd| {
        crd["spec"]["scope"] = json!("Cluster");
        schema(crd)["required"] = json!(["pollInterval"]);
        schema(crd)["properties"]["pollInterval"]["type"] = json!("integer");
    });
    // shows CRDS-02
    assert_eq!(lines(&sample(|_| {}), &new).len(), 3);
}

#[test]
fn unknown_change_is_refused() {
    let new = sample(|crd| schema(crd)["properties"]["pollInterval"]["format"] = json!("date"));
    // shows CRDS-03
    assert_eq!(
        lines(&sample(|_| {}), &new),
        ["v1alpha1: ^.pollInterval: unhandled: unhandled changes found (Format \"\" -> \"date\")"]
    );
}

/// The line for the property `x`.
fn line(check_and_text: &str) -> Vec<String> {
    vec![format!("v1alpha1: ^.spec.x: {check_and_text}")]
}

fn changes(old: &Value, new: &Value) -> Vec<String> {
    lines(&crd_with(old), &crd_with(new))
}

#[test]
fn changed_type_is_refused() {
    let found = changes(&json!({"type": "string"}), &json!({"type": "integer"}));
    // shows CRDS-10
    assert_eq!(found, line("type: type changed : \"string\" -> \"integer\""));
}

#[test]
fn changed_defaults_are_refused() {
    let (none, one, two) = (
        json!({"type": "string"}),
        json!({"type": "string", "default": "a"}),
        json!({"type": "string", "default": "b"}),
    );
    // shows CRDS-11
    assert_eq!(
        changes(&none, &one),
        line(r#"default: default added when there was none previously : "\"a\"""#)
    );
    // shows CRDS-12
    assert_eq!(changes(&one, &two), line(r#"default: default value changed : "\"a\"" -> "\"b\"""#));
    // shows CRDS-13
    assert_eq!(changes(&one, &none), line(r#"default: default value removed : "\"a\"""#));
}

#[test]
fn narrower_enums_are_refused_and_wider_ones_pass() {
    let (none, one, two) = (
        json!({"type": "string"}),
        json!({"type": "string", "enum": ["a"]}),
        json!({"type": "string", "enum": ["b", "a"]}),
    );
    // shows CRDS-14
    assert_eq!(
        changes(&none, &two),
        line(r#"enum: enum constraint added when there was none previously : ["a" "b"]"#)
    );
    // shows CRDS-15
    assert_eq!(changes(&two, &one), line(r#"enum: allowed enum values removed : ["b"]"#));
    // shows CRDS-22
    assert!(changes(&one, &two).is_empty());
}

#[test]
fn narrower_bounds_are_refused_and_wider_ones_pass() {
    let upper = ["maxItems", "maxLength", "maxProperties", "maximum"];
    let lower = ["minItems", "minLength", "minProperties", "minimum"];
    for (name, is_upper) in
        upper.map(|name| (name, true)).into_iter().chain(lower.map(|n| (n, false)))
    {
        let (none, two, three) = (json!({"type": "string"}), json!({name: 2}), json!({name: 3}));
        let with_type = |mut schema: Value| {
            schema["type"] = json!("string");
            schema
        };
        let (two, three) = (with_type(two), with_type(three));
        let word = if is_upper { "maximum" } else { "minimum" };
        // shows CRDS-18 CRDS-21
        assert_eq!(
            changes(&none, &two),
            line(&format!("{name}: {word} constraint added when there was none previously : 2"))
        );
        let (wide, narrow, moved) = if is_upper {
            (&three, &two, "decreased : 3 -> 2")
        } else {
            (&two, &three, "increased : 2 -> 3")
        };
        // shows CRDS-16 CRDS-17
        assert_eq!(changes(wide, narrow), line(&format!("{name}: {word} {moved}")));
        // shows CRDS-24 CRDS-25
        assert!(changes(narrow, wide).is_empty(), "{name} became wider");
        assert!(changes(&two, &none).is_empty(), "{name} was removed");
    }
}

#[test]
fn required_field_that_becomes_optional_passes() {
    let schema = |required: &[&str]| json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": required});
    // shows CRDS-23
    assert!(changes(&schema(&["a"]), &schema(&[])).is_empty());
}

#[test]
fn new_version_beside_unchanged_ones_passes() {
    let object = || json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let old = crd_of(&[("v1", true, object())]);
    let new = crd_of(&[("v1", true, object()), ("v2", true, object())]);
    // shows CRDS-26
    assert!(lines(&old, &new).is_empty());
}

#[test]
fn differences_of_served_versions_are_refused_unless_they_are_old_or_a_webhook_converts() {
    let version = |max: u64| json!({"type": "object", "properties": {"x": {"type": "string", "maxLength": max}}});
    let old = crd_of(&[("v1", true, version(9))]);
    let mut new = crd_of(&[("v1", true, version(9)), ("v2", true, version(5))]);
    let text = "v1 -> v2: ^.x: maxLength: maximum decreased : 9 -> 5";
    assert_eq!(lines(&old, &new), [text]);
    assert!(lines(&new, &new).is_empty(), "the old CRD has the difference, too");
    new["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert!(lines(&old, &new).is_empty(), "a webhook converts");
}

#[test]
fn change_in_a_map_is_reported_at_the_map_as_well() {
    let schema = |words: &str| {
        json!({"type": "object",
               "additionalProperties": {"type": "string", "description": words}})
    };
    assert_eq!(
        changes(&schema("a"), &schema("b")),
        line("unhandled: unhandled changes found (Description \"a\" -> \"b\")")
    );
}

#[test]
fn condition_message_has_the_prefix_once() {
    let lines = ["a".to_owned(), "b".to_owned()];
    let message = condition_message(NAME, &lines);
    assert_eq!(message.unwrap(), "validating upgrade for CRD \"samples.test.example.com\": a\nb");
    assert_eq!(condition_message(NAME, &[]), None);
}

#[test]
fn version_without_schema_is_an_error_that_names_it() {
    let (old, mut new) = (sample(|_| {}), sample(|_| {}));
    new["spec"]["versions"][0]["schema"] = Value::Null;
    for (old, new) in [(&old, &new), (&new, &old)] {
        let error = preflight(&read(old), &read(new)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "CustomResourceDefinition samples.test.example.com: version v1alpha1 has no schema, so \
             nothing can be compared"
        );
    }
}
