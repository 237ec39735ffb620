//! CEL rules, compared with recorded results of upstream's code (`recorded/`), and with published
//! CRDs.

use mainstay_object::{FieldError, Object};
use mainstay_schema::crd::{self, CustomResourceDefinition};
use mainstay_testdata::{ran, unpack};
use mainstay_yaml::Options;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

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
fn rules_are_accepted_and_rejected_as_by_upstream() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("recorded/rules_schemas.json")).unwrap();
    assert!(cases.len() > 100);
    for case in cases {
        let found = rows(&crd::validate(&definition(&case["schema"])));
        assert_eq!(found, recorded(&case), "{}", case["schema"]);
    }
}

#[test]
fn rules_evaluate_with_the_results_and_costs_of_upstream() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("recorded/rules_objects.json")).unwrap();
    assert!(cases.len() > 90);
    for case in cases {
        let definition = CustomResourceDefinition::read(&definition(&case["schema"]));
        let version = &definition.versions[0];
        let rules = version.rules().unwrap();
        let object = case["object"].as_object().unwrap();
        let old = case.get("old").and_then(Value::as_object);
        let evaluation = rules.evaluate(&version.schema, object, old);
        assert_eq!(rows(&evaluation.errors), recorded(&case), "{case}");
        let mut warnings = evaluation.warnings;
        warnings.sort();
        let expected = case.get("warnings").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(json!(warnings), expected, "{case}");
        if let Some(cost) = case.get("cost") {
            assert_eq!(evaluation.cost, *cost, "{case}");
        }
    }
}

#[test]
fn rules_of_an_unchanged_schema_may_exceed_the_cost_limit() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {"l": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.l.all(x, x.contains('y'))"}],
    }}});
    let old = definition(&schema);
    let errors = rows(&crd::validate(&old));
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors.iter().any(|row| row[1].starts_with("Forbidden: estimated rule cost exceeds")));
    let same = rows(&crd::validate_update(&old, &old));
    assert_eq!(same.len(), 2, "{same:?}");
    let mut other = old.clone();
    let property = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/description";
    let mut value = std::mem::take(&mut other).into_value();
    let (parent, name) = property.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap()[name] = "new".into();
    let other = Object::from_value(value).unwrap();
    assert_eq!(rows(&crd::validate_update(&other, &old)), errors);
}

#[test]
fn rules_are_compiled_once_for_a_schema() {
    let schema =
        json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.kind != ''"}]});
    let object = definition(&schema);
    let mut value = object.to_value();
    let mut second = value["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    value["spec"]["versions"].as_array_mut().unwrap().push(second);
    let before = CustomResourceDefinition::read(&Object::from_value(value.clone()).unwrap());
    let rules = before.versions[0].rules().unwrap();
    assert!(std::ptr::eq(rules, before.versions[1].rules().unwrap()));
    let other = json!([{"rule": "true"}]);
    value["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = other;
    let after =
        CustomResourceDefinition::read(&Object::from_value(value).unwrap()).with_rules_of(&before);
    assert!(std::ptr::eq(rules, after.versions[0].rules().unwrap()));
    assert!(!std::ptr::eq(rules, after.versions[1].rules().unwrap()));
}

#[test]
fn the_size_of_violations_is_limited() {
    let long = "x".repeat(100_000);
    let schema = json!({"type": "object", "properties": {"l": {
        "type": "array",
        "items": {"type": "integer", "x-kubernetes-validations": [{"rule": "false", "message": long}]},
    }}});
    let definition = CustomResourceDefinition::read(&definition(&schema));
    let version = &definition.versions[0];
    let object = json!({"l": vec![1; 1_000]});
    let rules = version.rules().unwrap();
    let evaluation = rules.evaluate(&version.schema, object.as_object().unwrap(), None);
    assert!(matches!(evaluation.errors.len(), 10..50), "{}", evaluation.errors.len());
}

#[test]
fn deep_schemas_fit_into_a_small_stack() {
    let rules = json!([{"rule": "self == oldSelf || has(self.a)"}]);
    let (mut schema, mut object) = (json!({"type": "object"}), json!({}));
    for _ in 0..60 {
        schema = json!({
            "type": "object", "properties": {"a": schema, "b": {"type": "string"}},
            "x-kubernetes-validations": rules, "default": {},
        });
        object = json!({"a": object, "b": "c"});
    }
    let run = move || {
        let definition = definition(&schema);
        assert_ne!(crd::validate(&definition), []);
        let definition = CustomResourceDefinition::read(&definition);
        let version = &definition.versions[0];
        let object = object.as_object().unwrap();
        let evaluation = version.rules().unwrap().evaluate(&version.schema, object, Some(object));
        assert_eq!(evaluation.errors, []);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn count_rules(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::Array(rules) if name == "x-kubernetes-validations" => rules.len(),
                value => count_rules(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(count_rules).sum(),
        _ => 0,
    }
}

#[test]
fn published_crds_with_rules_are_valid() {
    for (archive, what) in [("crds", "definitions"), ("bundles-249", "bundles")] {
        let Some(folder) = unpack(archive, &format!("rules of published {what}")) else { continue };
        let mut all = Vec::new();
        files(folder.path(), &mut all);
        all.sort();
        let (mut definitions, mut rules) = (0, 0);
        for path in all {
            let bytes = std::fs::read(&path).unwrap();
            if !String::from_utf8_lossy(&bytes).contains("x-kubernetes-validations") {
                continue;
            }
            for document in mainstay_yaml::documents(&bytes, &Options::default()).flatten() {
                let count = count_rules(&document.value);
                if document.value["kind"] != "CustomResourceDefinition" || count == 0 {
                    continue;
                }
                let mut object = Object::from_value(document.value).unwrap();
                crd::default(&mut object);
                let errors = crd::validate(&object);
                let in_schema =
                    errors.iter().filter(|error| error.field.contains("openAPIV3Schema"));
                assert_eq!(in_schema.count(), 0, "{}: {errors:?}", path.display());
                let read = CustomResourceDefinition::read(&object);
                assert!(read.versions.iter().any(|version| version.rules().is_some()));
                definitions += 1;
                rules += count;
            }
        }
        assert!(definitions > 5 && rules > 20, "{definitions} definitions, {rules} rules");
        ran(&format!("{definitions} published definitions with {rules} rules ({archive})"));
    }
}
