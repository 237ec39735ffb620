//! CRDs of the tests.

use mainstay_crdsafety::{Configuration, Crd, Finding, compare};
use serde_json::{Value, json};

/// The name of all CRDs here.
pub(super) const NAME: &str = "samples.test.example.com";

/// A CRD with versions: name, served, schema.
pub(super) fn crd_of(versions: &[(&str, bool, Value)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, served, schema))| {
            json!({"name": name, "served": served, "storage": at == 0,
                   "schema": {"openAPIV3Schema": schema}})
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "test.example.com",
            "names": {"kind": "Sample", "plural": "samples", "singular": "sample"},
            "scope": "Namespaced",
            "versions": versions,
        },
        "status": {"storedVersions": [versions[0]["name"]]},
    })
}

/// A CRD with the version `v1alpha1`, whose spec has the property `x`.
pub(super) fn crd_with(property: &Value) -> Value {
    let spec = json!({"type": "object", "properties": {"x": property}});
    crd_of(&[("v1alpha1", true, json!({"type": "object", "properties": {"spec": spec}}))])
}

pub(super) fn read(crd: &Value) -> Crd {
    Crd::from_value(crd).unwrap()
}

/// The findings of the strictest configuration.
pub(super) fn findings(old: &Value, new: &Value) -> Vec<Finding> {
    compare(&read(old), &read(new), &Configuration::strict()).unwrap()
}

/// The lines of operator-controller.
pub(super) fn lines(old: &Value, new: &Value) -> Vec<String> {
    mainstay_crdsafety::preflight(&read(old), &read(new)).unwrap()
}
