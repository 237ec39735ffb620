//! Rules that are expressions, against what the original's own code answered (`recorded/`).

use mainstay_object::{FieldError, Object};
use mainstay_schema::crd::{self, Definition};
use serde_json::{Value, json};

fn definition(schema: &Value) -> Object {
    let mut object = Object::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }))
    .unwrap();
    crd::default(&mut object);
    object
}

fn rows(errors: &[FieldError]) -> Vec<[String; 2]> {
    let mut rows: Vec<[String; 2]> =
        errors.iter().map(|error| [error.field.clone(), error.body()]).collect();
    rows.sort();
    rows
}

fn recorded(case: &Value) -> Vec<[String; 2]> {
    serde_json::from_value(case["errors"].clone()).unwrap()
}

#[test]
fn rules_are_accepted_and_refused_as_the_original_does() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("recorded/rules_schemas.json")).unwrap();
    assert!(cases.len() > 100);
    for case in cases {
        let found = rows(&crd::validate(&definition(&case["schema"])));
        assert_eq!(found, recorded(&case), "{}", case["schema"]);
    }
}

#[test]
fn objects_are_held_to_rules_as_the_original_does_at_the_same_cost() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("recorded/rules_objects.json")).unwrap();
    assert!(cases.len() > 90);
    for case in cases {
        let definition = Definition::read(&definition(&case["schema"]));
        let version = &definition.versions[0];
        let rules = version.rules().unwrap();
        let object = case["object"].as_object().unwrap();
        let old = case.get("old").and_then(Value::as_object);
        let verdict = rules.evaluate(&version.schema, object, old);
        assert_eq!(rows(&verdict.errors), recorded(&case), "{case}");
        let mut warnings = verdict.warnings;
        warnings.sort();
        let expected = case.get("warnings").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(json!(warnings), expected, "{case}");
        if let Some(cost) = case.get("cost") {
            assert_eq!(verdict.spent, *cost, "{case}");
        }
    }
}

#[test]
fn rules_of_an_unchanged_schema_may_cost_what_they_did() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.l.all(x, x.contains('y'))"}],
    }}});
    let old = definition(&schema);
    let wrong = rows(&crd::validate(&old));
    assert_eq!(wrong.len(), 3, "{wrong:?}");
    assert!(wrong.iter().any(|row| row[1].starts_with("Forbidden: estimated rule cost exceeds")));
    let same = rows(&crd::validate_update(&old, &old));
    assert_eq!(same.len(), 2, "{same:?}");
    let mut other = old.clone();
    let property = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/description";
    let mut value = std::mem::take(&mut other).into_value();
    let (parent, name) = property.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap()[name] = "new".into();
    let other = Object::from_value(value).unwrap();
    assert_eq!(rows(&crd::validate_update(&other, &old)), wrong);
}
