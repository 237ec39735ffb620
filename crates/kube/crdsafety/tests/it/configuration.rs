//! The configuration of checks: what is refused in it, and what it changes.

use super::fixture::{crd_with, findings, read};
use mainstay_crdsafety::{
    Check, Configuration, CrdPathStep, Enforcement, FindingSeverity, Impact, compare,
    override_check,
};
use serde_json::{Value, json};

#[test]
fn invalid_configuration_is_refused_in_the_words_of_crdify() {
    let of = |name: &str, settings: Value| json!({"validations": [{"name": name, "enforcement": "Error", "configuration": settings}]});
    let cases = [
        (json!({"unhandledEnforcement": "Maybe"}), "unknown enforcement: \"Maybe\""),
        (json!({"conversion": "Sometimes"}), "unknown conversion policy: \"Sometimes\""),
        (json!({"validations": [{"name": "type"}]}), "enforcement is required"),
        (
            json!({"validations": [{"enforcement": "Warn"}]}),
            "validations[0] is invalid: name is required",
        ),
        (
            of("colour", json!({})),
            "configuring validations: configuring validation \"colour\": unknown validation : \"colour\"",
        ),
        (
            of("enum", json!({"additionPolicy": "Whatever"})),
            "configuring validations: configuring validation \"enum\": validating enum config: unknown \
             addition policy : \"Whatever\"",
        ),
        (
            of("pattern", json!({"removalPolicy": "Whatever"})),
            "configuring validations: configuring validation \"pattern\": validating pattern config: \
             unknown removal policy : \"Whatever\" (valid values: \"Allow\", \"Disallow\")",
        ),
        (
            json!({"validations": [{"name": "type"}], "conversion": "x"}),
            "enforcement is required\nunknown conversion policy: \"x\"",
        ),
    ];
    for (value, expected) in cases {
        let error = Configuration::from_value(&value).unwrap_err();
        assert_eq!(error.to_string(), expected, "{value}");
    }
    let unknown_setting = of("enum", json!({"colour": "red"}));
    assert_eq!(
        Configuration::from_value(&unknown_setting).unwrap().settings(Check::Enum).addition,
        Configuration::strict().settings(Check::Enum).addition
    );
}

/// The severities of the findings of a changed type.
fn severities(configuration: &Configuration) -> Vec<FindingSeverity> {
    let (old, new) = (crd_with(&json!({"type": "string"})), crd_with(&json!({"type": "integer"})));
    let found = compare(&read(&old), &read(&new), configuration).unwrap();
    found.iter().map(|finding| finding.severity).collect()
}

#[test]
fn enforcement_makes_an_error_a_warning_or_nothing() {
    let mut configuration = Configuration::strict();
    assert_eq!(severities(&configuration), [FindingSeverity::Error]);
    configuration.enforce(Check::Type, Enforcement::Warn);
    assert_eq!(severities(&configuration), [FindingSeverity::Warning]);
    configuration.enforce(Check::Type, Enforcement::None);
    assert!(severities(&configuration).is_empty());
}

#[test]
fn last_entry_of_a_check_counts() {
    let value = json!({"validations": [
        {"name": "type", "enforcement": "None"}, {"name": "type", "enforcement": "Error"}]});
    assert_eq!(severities(&Configuration::from_value(&value).unwrap()), [FindingSeverity::Error]);
}

#[test]
fn name_of_a_check_is_read_back() {
    for check in Check::ALL {
        assert_eq!(check.name().parse::<Check>().as_ref(), Ok(check));
    }
    let error = "typo".parse::<Check>().unwrap_err().to_string();
    assert!(error.contains("\"typo\"") && error.contains("unhandled"), "{error}");
}

#[test]
fn override_changes_severity_and_impact_of_one_check() {
    let (old, new) = (crd_with(&json!({"type": "string"})), crd_with(&json!({"type": "integer"})));
    let overridden = |check, enforcement| {
        let mut found = findings(&old, &new);
        override_check(&mut found, check, enforcement);
        found.iter().map(|finding| (finding.severity, finding.impact)).collect::<Vec<_>>()
    };
    let unchanged = [(FindingSeverity::Error, Impact::Breaking)];
    assert_eq!(overridden(Check::Type, Enforcement::None), []);
    assert_eq!(
        overridden(Check::Type, Enforcement::Warn),
        [(FindingSeverity::Warning, Impact::Warning)]
    );
    assert_eq!(overridden(Check::Type, Enforcement::Error), unchanged);
    assert_eq!(overridden(Check::Enum, Enforcement::None), unchanged);
}

#[test]
fn position_leads_to_the_schema_in_the_new_crd() {
    let list = |inner: Value| json!({"type": "array", "items": {"additionalProperties": inner}});
    let (old, new) =
        (crd_with(&list(json!({"type": "string"}))), crd_with(&list(json!({"type": "integer"}))));
    let found = findings(&old, &new);
    let finding = found.iter().find(|finding| finding.check == Check::Type).unwrap();
    let steps = finding.position(&read(&new));
    let steps = steps.iter().map(|step| match step {
        CrdPathStep::Field(name) => name.clone(),
        CrdPathStep::Item(at) => at.to_string(),
    });
    assert_eq!(
        steps.collect::<Vec<_>>().join("."),
        "spec.versions.0.schema.openAPIV3Schema.properties.spec.properties.x.items.additionalProperties"
    );
}
