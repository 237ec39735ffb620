//! Texts of the findings: dumps of Go structs and of their differences.

use super::fixture::{crd_with, findings, lines};
use mainstay_crdsafety::Check;
use serde_json::{Value, json};

/// The text of the `unhandled` finding of the property `x`.
fn difference(old: &Value, new: &Value) -> String {
    let found = findings(&crd_with(old), &crd_with(new));
    let found = found.iter().find(|finding| finding.check == Check::Unhandled);
    found.unwrap().text.clone()
}

#[test]
fn difference_shows_the_changed_fields_and_two_fields_beside_them() {
    let text = difference(
        &json!({"type": "string", "format": "date"}),
        &json!({"type": "string", "x-kubernetes-list-type": "set"}),
    );
    let expected = "unhandled changes found :
  &v1.JSONSchemaProps{
  \t... // 3 identical fields
  \tDescription: \"\",
  \tType:        \"\",
- \tFormat:      \"date\",
+ \tFormat:      \"\",
  \tTitle:       \"\",
  \tDefault:     nil,
  \t... // 31 identical fields
  \tXIntOrString: false,
  \tXListMapKeys: nil,
- \tXListType:    nil,
+ \tXListType:    &\"set\",
  \tXMapType:     nil,
  \tXValidations: nil,
  }
";
    assert_eq!(text, expected);
}

#[test]
fn summary_lists_changes_in_the_order_of_the_fields() {
    let cases = [
        (json!({}), json!({"multipleOf": 5}), "(MultipleOf nil -> &5)"),
        (json!({}), json!({"example": "e"}), "(Example nil -> s\"&JSON{Raw:*[34 101 34],}\")"),
        (json!({}), json!({"not": {"type": "string"}}), "(Not nil -> <complex value>)"),
        (
            json!({"x-kubernetes-list-type": "atomic"}),
            json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}),
            "(XListMapKeys nil -> []string{\"k\"}; XListType &\"atomic\" -> &\"map\")",
        ),
        (
            json!({"x-kubernetes-validations": [{"rule": "self != \"\"", "message": "m"}]}),
            json!({}),
            "(XValidations ValidationRules{{Rule: `self != \"\"`, Message: \"m\"}} -> nil)",
        ),
        (
            json!({"x-kubernetes-validations": [{"rule": "a"}]}),
            json!({"x-kubernetes-validations": [{"rule": "a"}, {"rule": "b"}]}),
            "({Rule <empty> -> \"b\"})",
        ),
        (
            json!({"x-kubernetes-list-map-keys": ["k"]}),
            json!({"x-kubernetes-list-map-keys": ["k", "l"]}),
            "",
        ),
    ];
    for (old, new, expected) in cases {
        let found = lines(&crd_with(&old), &crd_with(&new));
        let blank = if expected.is_empty() { "" } else { " " };
        let expected =
            format!("v1alpha1: ^.spec.x: unhandled: unhandled changes found{blank}{expected}");
        assert_eq!(found.last(), Some(&expected), "{old} to {new}");
    }
}

#[test]
fn long_texts_are_shown_in_parts() {
    let schema = |words: &str| json!({"type": "object", "additionalProperties": {"type": "string", "description": words}});
    let text = difference(
        &schema("the name of the node on which the server runs"),
        &schema("the name of the node on which each server runs"),
    );
    for part in ["strings.Join({", "- \t\t\t\t\"the\",", "+ \t\t\t\t\"each\",", "}, \"\")"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let lines = |last: &str| format!("one\ntwo\nthree\nfour\nfive\n{last}\n");
    let text = difference(&schema(&lines("six")), &schema(&lines("seven")));
    for part in ["\"\"\"", "- \t\t\t\tsix", "+ \t\t\t\tseven"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn one_of_texts_dump_whole_schemas() {
    let branches = |names: &[&str]| {
        let branches: Vec<Value> = names.iter().map(|name| json!({"required": [name]})).collect();
        json!({"type": "object", "oneOf": branches})
    };
    let found = lines(&crd_with(&branches(&["b", "a"])), &crd_with(&branches(&["b", "a", "c"])));
    let [line] = found.as_slice() else { panic!("one line, not {found:?}") };
    let start =
        "v1alpha1: ^.spec.x: oneOf: allowed oneOf schemas added: [&JSONSchemaProps{ID:,Schema:,";
    assert!(line.starts_with(start), "{line}");
    assert!(line.contains("Required:[c],") && line.ends_with("XValidations:[]ValidationRule{},}]"));
    let reordered = lines(&crd_with(&branches(&["b", "a"])), &crd_with(&branches(&["a", "b"])));
    assert_eq!(
        reordered,
        [
            "v1alpha1: ^.spec.x.oneOf[0]: required: new required fields: [a]",
            "v1alpha1: ^.spec.x.oneOf[1]: required: new required fields: [b]",
        ]
    );
}
