//! Validation of CRDs, compared with recorded responses of a Kubernetes 1.35 API server (`recorded/`).
//! The recording has no values that upstream prints in its internal form.

use mainstay_object::{FieldError, Object, Scope};
use mainstay_schema::crd::{self, CustomResourceDefinition};
use serde_json::{Value, json};

fn object(value: &Value) -> Object {
    let mut object = Object::from_value(value.clone()).unwrap();
    crd::default(&mut object);
    object
}

fn errors(object: &Object) -> Vec<FieldError> {
    CustomResourceDefinition::parse(object).err().unwrap_or_default()
}

/// `[field, message]` of each error, sorted, without large values.
fn rows(errors: &[FieldError]) -> Vec<[String; 2]> {
    let mut rows: Vec<[String; 2]> = errors
        .iter()
        .map(|error| {
            let body = error.body();
            let large =
                body.starts_with("Invalid value: {") || body.starts_with("Invalid value: [");
            let body = match body.rsplit_once(": ") {
                Some((_, rule)) if large => format!("Invalid value: …: {rule}"),
                _ => body,
            };
            [error.field.clone(), body]
        })
        .collect();
    rows.sort();
    rows
}

#[test]
fn crds_are_accepted_and_rejected_as_by_upstream() {
    let cases: Vec<Value> =
        serde_json::from_str(include_str!("recorded/definitions.json")).unwrap();
    assert!(cases.len() > 80);
    for case in cases {
        let found = rows(&errors(&object(&case["object"])));
        let mut expected: Vec<[String; 2]> = match case.get("causes") {
            Some(causes) => serde_json::from_value(causes.clone()).unwrap(),
            None => Vec::new(),
        };
        expected.sort();
        assert_eq!(found, expected, "{}", case["object"]);
    }
}

fn two_versions() -> Value {
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "deprecated": !storage,
            "schema": {"openAPIV3Schema": {"type": "object"}},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}},
            "additionalPrinterColumns": [{"name": "R", "type": "integer", "jsonPath": ".spec.r"}],
        })
    };
    json!({
        "metadata": {"name": "cs.c.io"},
        "spec": {
            "group": "c.io", "scope": "Cluster",
            "names": {"plural": "cs", "kind": "Cee", "shortNames": ["c"]},
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    })
}

#[test]
fn a_crd_is_defaulted_and_parsed() {
    let crd = CustomResourceDefinition::parse(&object(&two_versions())).unwrap();
    assert_eq!((crd.singular.as_str(), crd.list_kind.as_str()), ("cee", "CeeList"));
    assert_eq!(crd.scope, Scope::Cluster);
    assert_eq!(crd.conversion, json!({"strategy": "None"}));
    assert_eq!(crd.storage_version().unwrap().name, "v1");
    let beta = crd.version("v1beta1").unwrap();
    assert_eq!(
        beta.deprecation.as_deref(),
        Some("c.io/v1beta1 Cee is deprecated; use c.io/v1 Cee")
    );
    assert!(beta.status && beta.scale.is_some());
    assert_eq!(beta.columns[0].json_path, ".spec.r");
    assert!(std::sync::Arc::ptr_eq(&beta.schema, &crd.versions[1].schema));
}

#[test]
fn changes_of_immutable_fields_are_rejected() {
    let old = object(&two_versions());
    let mut new = old.clone();
    new.set(&["spec", "scope"], "Namespaced".into());
    new.set(&["spec", "group"], "d.io".into());
    let texts = |new: &Object, old: &Object| -> Vec<String> {
        crd::validate_update(new, old).iter().map(ToString::to_string).collect()
    };
    assert_eq!(texts(&new, &old), ["spec.group: Invalid value: \"d.io\": field is immutable"]);
    let mut established = old;
    established.set(&["status", "conditions"], json!([{"type": "Established", "status": "True"}]));
    assert_eq!(
        texts(&new, &established),
        [
            "spec.scope: Invalid value: \"Namespaced\": field is immutable",
            "spec.group: Invalid value: \"d.io\": field is immutable",
        ]
    );
}

#[test]
fn a_stored_version_cannot_be_removed() {
    let old = object(&two_versions());
    let mut new = old.clone();
    let stored_version = old.array(&["spec", "versions"])[0].clone();
    new.set(&["spec", "versions"], json!([stored_version]));
    let errors = crd::validate_update(&new, &old);
    // The remaining version is no storage version either; that error comes first.
    assert_eq!(errors[0].field, "spec.versions");
    assert_eq!(errors[1].field, "status.storedVersions[0]");
    assert!(
        errors[1].detail.starts_with("missing from spec.versions; v1 was previously"),
        "{:?}",
        errors[1].detail
    );
}

#[test]
fn metadata_has_no_embedded_resources_and_no_defaults_of_map_values() {
    let mut value = two_versions();
    let metadata = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "additionalProperties": {"type": "string", "default": "x"},
    });
    for version in value["spec"]["versions"].as_array_mut().unwrap() {
        version["schema"]["openAPIV3Schema"]["properties"]["metadata"] = metadata.clone();
    }
    let found: Vec<String> =
        crd::validate(&object(&value)).iter().map(|error| error.detail.clone()).collect();
    for expected in [
        "must not be used inside of resource meta",
        "must not be set inside additionalProperties applying to object metadata",
    ] {
        assert!(found.iter().any(|detail| detail == expected), "{expected}: {found:?}");
    }
}
