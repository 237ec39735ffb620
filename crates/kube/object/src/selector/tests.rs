//! Label and field selectors: matching, and upstream's messages for malformed selectors.

use super::*;
use serde_json::json;

fn matches(selector: &str, labels: &Value) -> bool {
    let object = Object::from_value(json!({"metadata": {"labels": labels}})).unwrap();
    LabelSelector::parse(selector).unwrap().matches(&object)
}

#[test]
fn each_operator_of_the_query_form_matches_labels() {
    let labels = json!({"a": "1", "b": "x", "g.io/c": "", "in": "notin"});
    for yes in [
        "",
        " ",
        "a=1",
        "a==1",
        "a!=2",
        "z!=1",
        "a",
        "!z",
        "! z",
        "a in (1,2)",
        "b notin (y, z)",
        "a>0",
        "a<2",
        "g.io/c=",
        "g.io/c in ()",
        "g.io/c in (,x)",
        "g.io/c in (x,)",
        "a=1,b=x",
        "a = 1 , b",
        "in in (in,notin)",
        "in=notin",
    ] {
        assert!(matches(yes, &labels), "{yes}");
    }
    for no in ["a=2", "a!=1", "z", "!a", "a in (2,3)", "b notin (x)", "a>1", "b>0", "a=1,b=y"] {
        assert!(!matches(no, &labels), "{no}");
    }
}

#[test]
fn the_error_of_a_label_selector_names_the_unexpected_token() {
    let rows = [
        ("a=1,", "found '', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("=x", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=1 b", "found 'b', expected: ',' or 'end of string'"),
        ("a!", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("!a=1", "found '=', expected: ',' or 'end of string'"),
        ("a=!", "unable to parse requirement: found '!', expected: identifier"),
        ("a==(", "unable to parse requirement: found '(', expected: identifier"),
        ("a in 1", "unable to parse requirement: found '1' expected: '('"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (1", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (1,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a in (1,=", "unable to parse requirement: found '=', expected: ',', or identifier"),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ];
    for (text, message) in rows {
        assert_eq!(LabelSelector::parse(text).unwrap_err().0, message, "{text}");
    }
}

#[test]
fn keys_and_values_must_be_valid_for_labels() {
    for (text, start) in [
        ("-a=1", "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must"),
        ("a=b/c", "unable to parse requirement: values[0][a]: Invalid value: \"b/c\": a valid"),
        ("a in (x,-)", "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid"),
    ] {
        let message = LabelSelector::parse(text).unwrap_err().0;
        assert!(message.starts_with(start), "{message}");
    }
}

#[test]
fn a_printed_selector_is_sorted_and_parses_again() {
    let selector = LabelSelector::parse("z, b in (2,1),a=1,d!=x,!c,e notin (x)").unwrap();
    assert_eq!(selector.to_string(), "a=1,b in (1,2),!c,d!=x,e notin (x),z");
    let again = LabelSelector::parse(&selector.to_string()).unwrap();
    assert_eq!(again.to_string(), selector.to_string());
}

#[test]
fn a_label_selector_parses_from_an_object() {
    let selector = LabelSelector::from_value(&json!({
        "matchLabels": {"b": "1"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["x"]}, {"key": "c", "operator": "DoesNotExist"}],
    }))
    .unwrap();
    assert_eq!(selector.to_string(), "a in (x),b=1,!c");
    let unknown = json!({"matchExpressions": [{"key": "b", "operator": "Near"}]});
    assert!(LabelSelector::from_value(&unknown).is_err());
    let why = "for 'in', 'notin' operators, values set can't be empty";
    let absent = json!({"matchExpressions": [{"key": "b", "operator": "In"}]});
    let error = LabelSelector::from_value(&absent).unwrap_err();
    assert_eq!(error.0, format!("values: Invalid value: null: {why}"));
    let empty = json!({"matchExpressions": [{"key": "b", "operator": "In", "values": []}]});
    let error = LabelSelector::from_value(&empty).unwrap_err();
    assert_eq!(error.0, format!("values: Invalid value: []: {why}"));
}

#[test]
fn values_of_field_selectors_are_unescaped() {
    let selector = FieldSelector::parse(r"metadata.name=a\,b,spec.x!=1").unwrap();
    assert_eq!(selector.required("metadata.name"), Some("a,b"));
    let with = |x: &str| {
        selector.matches_with(|path| if path == "spec.x" { x.into() } else { "a,b".into() })
    };
    assert!(with("2"));
    assert!(!with("1"));
}

#[test]
fn the_error_of_a_field_selector_is_that_of_upstream() {
    for (text, message) in [
        ("nonsense", "invalid selector: 'nonsense'; can't understand 'nonsense'"),
        ("b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        (r"a=x\", r"invalid field selector: invalid escape sequence: \"),
        ("a=!=b", "invalid field selector: unescaped character in value: 61"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ] {
        assert_eq!(FieldSelector::parse(text).unwrap_err().0, message, "{text}");
    }
    assert!(FieldSelector::parse(",,").unwrap().is_everything());
}

#[test]
fn many_values_are_found_by_binary_search_and_printed_in_order() {
    let values: Vec<String> = (0..100_000).rev().map(|at| format!("v{at:05}")).collect();
    let selector = |operator: &str| {
        let expression = json!({"key": "a", "operator": operator, "values": values});
        LabelSelector::from_value(&json!({"matchExpressions": [expression]})).unwrap()
    };
    let (within, without) = (selector("In"), selector("NotIn"));
    // A linear search would take ten thousand million comparisons.
    for value in values.iter().map(String::as_str).chain(["", "v", "v000000", "v99999x"]) {
        let expected = value.len() == 6;
        assert_eq!(within.matches_with(|_| Some(value)), expected, "{value}");
        assert_eq!(without.matches_with(|_| Some(value)), !expected, "{value}");
    }
    let printed = within.to_string();
    assert!(printed.starts_with("a in (v00000,v00001,") && printed.ends_with(",v99999)"));
}
