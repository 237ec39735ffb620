//! The policy in the labels of namespaces.

use mainstay_object::{FieldError, Object};
use mainstay_security::NamespacePolicy;
use serde_json::json;

fn policy(labels: &[(&str, &str)]) -> (String, String) {
    let mut namespace = Object::from_value(json!({"metadata": {"name": "a"}})).expect("an object");
    for (label, value) in labels {
        namespace.set_label(&format!("pod-security.kubernetes.io/{label}"), *value);
    }
    let (NamespacePolicy { enforce, audit, warn }, errors) =
        NamespacePolicy::from_labels(&namespace);
    let errors = if errors.is_empty() { String::new() } else { FieldError::join(&errors) };
    (format!("{enforce} {audit} {warn}"), errors)
}

#[test]
fn each_mode_has_a_level_and_a_version() {
    for (labels, expected) in [
        (&[][..], "privileged:latest privileged:latest privileged:latest"),
        (&[("audit", "baseline")], "privileged:latest baseline:latest privileged:latest"),
        (
            &[("warn", "restricted"), ("warn-version", "v1.24")],
            "privileged:latest privileged:latest restricted:v1.24",
        ),
        // The enforced level is also the level of warnings.
        (&[("enforce", "baseline")], "baseline:latest privileged:latest baseline:latest"),
        (
            &[("enforce", "restricted"), ("enforce-version", "v1.9")],
            "restricted:v1.9 privileged:latest restricted:v1.9",
        ),
        (
            &[("enforce", "restricted"), ("enforce-version", "v1.9"), ("warn-version", "v1.99")],
            "restricted:v1.9 privileged:latest restricted:v1.99",
        ),
        (
            &[("enforce", "restricted"), ("warn", "privileged")],
            "restricted:latest privileged:latest privileged:latest",
        ),
    ] {
        assert_eq!(policy(labels), (expected.to_owned(), String::new()), "{labels:?}");
    }
}

#[test]
fn an_invalid_enforce_label_means_restricted() {
    let (policy, errors) = policy(&[
        ("enforce", "Baseline"),
        ("enforce-version", "1.24"),
        ("audit", ""),
        ("audit-version", "v1.01"),
        ("warn", "all"),
        ("warn-version", "v2.1"),
    ]);
    assert_eq!(policy, "restricted:latest privileged:latest privileged:latest");
    insta::assert_snapshot!(errors, @r#"[metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "Baseline": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "1.24": must be "latest" or "v1.x", metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: "v1.01": must be "latest" or "v1.x", metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "all": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "v2.1": must be "latest" or "v1.x"]"#);
}
