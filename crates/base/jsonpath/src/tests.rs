use super::*;
use serde_json::json;

fn pod() -> Value {
    json!({
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a.b/c": "x", "plain": "y"}, "none": null},
        "spec": {"replicas": 3, "ratio": 0.5, "on": true,
            "containers": [{"name": "one", "image": "i1", "ports": [80, 443]},
                           {"name": "two", "image": "i2"}]},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1},
            {"type": "Init)", "status": "False", "n": 2}]},
    })
}

#[test]
fn templates_print_the_same_as_kubectl() {
    let cases = [
        ("hello", "hello"),
        ("{.kind}", "Pod"),
        ("{$.kind}", "Pod"),
        ("{@.kind}", "Pod"),
        ("a {.kind} b", "a Pod b"),
        ("{.spec.containers[0].name}", "one"),
        ("{.spec.containers[-1].name}", "two"),
        ("{.spec.containers[*].name}", "one two"),
        ("{.spec.containers[0:1].name}", "one"),
        ("{.spec.containers[-2:].name}", "one two"),
        ("{.spec.containers[::2].name}", "one"),
        ("{.spec.containers[0,1].name}", "one two"),
        ("{.spec.containers[0]['name','image']}", "one i1"),
        ("{['metadata.name', 'kind']}", "p Pod"),
        ("{.metadata['name']}", "p"),
        ("{.metadata.labels.a\\.b/c}", "x"),
        ("{.metadata.labels['a\\.b/c']}", "x"),
        ("{.metadata.labels.*}", "x y"),
        ("{.metadata.labels}", "{\"a.b/c\":\"x\",\"plain\":\"y\"}"),
        ("{.metadata.none}", "null"),
        ("{..image}", "i1 i2"),
        ("{.spec..name}", "one two"),
        ("{.status.conditions[?(@.type==\"Ready\")].status}", "True"),
        ("{.status.conditions[?(@.type == 'Ready')].status}", "True"),
        ("{.status.conditions[?(@.type==\"Init)\")].status}", "False"),
        ("{.status.conditions[?(@.type!=\"Ready\")].n}", "2"),
        ("{.status.conditions[?(@.n>1)].type}", "Init)"),
        ("{.status.conditions[?(@.n<=1)].type}", "Ready"),
        ("{.spec.containers[?(@.ports)].name}", "one"),
        ("{.spec.containers[?(@.ports[0]==80)].name}", "one"),
        ("{range .spec.containers[*]}{.name}={.image}{\"\\n\"}{end}", "one=i1\ntwo=i2\n"),
        ("{range .spec.containers[*]}{range .ports[*]}{@},{end};{end}", "80,443,;;"),
        ("{.spec.replicas} {.spec.ratio} {.spec.on}", "3 0.5 true"),
        ("{\"a\"}{'b'}{\"\\u00e9\\t\"}", "abé\t"),
        ("{1}{-2.5}{true}", "1-2.5true"),
    ];
    let pod = pod();
    for (template, expected) in cases {
        let compiled = JsonPath::parse(template)
            .unwrap_or_else(|e| panic!("{template}: {e}"))
            .with_missing_keys(MissingKeys::Allowed);
        assert_eq!(compiled.render(&pod).as_deref(), Ok(expected), "{template}");
    }
}

#[test]
fn parse_errors_have_the_position_of_the_mistake() {
    let cases = [
        ("{.a", 3, "unclosed action"),
        ("x{.a[0}", 4, "unterminated array"),
        ("{.a[x]}", 4, "invalid array index x"),
        ("{.a[-]}", 4, "array index - is not a number"),
        ("{.a[1:2:3:4]}", 4, "invalid array index 1:2:3:4"),
        ("{.a[?(@.b==1]}", 3, "unterminated filter"),
        ("{.a[?(@.b==1)}", 13, "unclosed array expect ]"),
        ("{.a[?(@.b=~1)]}", 9, "unrecognized filter operator ="),
        ("{.a[?(@.b==)]}", 11, "the comparison has no right side"),
        ("{.a[?(@.b==c)]}", 11, "unrecognized identifier c"),
        ("{.a[0,x]}", 6, "invalid array index x"),
        ("{'x}", 1, "unterminated quoted string"),
        ("{'\\q'}", 2, "unknown escape in a quoted string"),
        ("{..a....b}", 6, "invalid multiple recursive descent"),
        ("{foo}", 1, "unrecognized identifier foo"),
        ("{end}", 1, "not in range, nothing to end"),
        ("{range .a[*]}{.b}", 1, "the range has no end"),
        ("{#}", 1, "unrecognized character '#' in action"),
        ("{1.2.3}", 1, "cannot parse number 1.2.3"),
    ];
    for (template, position, message) in cases {
        let expected = ParseJsonPathError { position, message: message.to_owned() };
        assert_eq!(JsonPath::parse(template), Err(expected), "{template}");
    }
}

#[test]
fn evaluation_fails_for_values_of_another_shape() {
    let cases = [
        ("{.missing}", EvalError::MissingField("missing".to_owned())),
        ("{.spec[0]}", EvalError::NotAnArray("map[string]interface {}")),
        ("{.spec.containers[2]}", EvalError::OutOfBounds { index: 2, length: 2 }),
        ("{.spec.containers[0:3]}", EvalError::OutOfBounds { index: 2, length: 2 }),
        ("{.spec.containers[1:-2]}", EvalError::Reversed { start: 1, end: 0 }),
        ("{.spec.containers[0:2:0]}", EvalError::Step),
        ("{.spec[?(@.x)]}", EvalError::NotAnArray("map[string]interface {}")),
        ("{.status.conditions[?(@.n==\"1\")]}", EvalError::Incompatible),
        ("{.status.conditions[?(@.n==1.0)]}", EvalError::Incompatible),
        ("{.status.conditions[?(@==1)]}", EvalError::Incomparable),
        ("{.status.conditions[?(@.*==1)]}", EvalError::SeveralOperands),
    ];
    let pod = pod();
    for (template, expected) in cases {
        assert_eq!(JsonPath::parse(template).unwrap().render(&pod), Err(expected), "{template}");
    }
}

#[test]
fn printer_columns_use_the_first_value_and_allow_missing_fields() {
    let pod = pod();
    let first = |path: &str| JsonPath::parse_column(path).unwrap().first(&pod).unwrap().cloned();
    assert_eq!(first(".spec.containers[*].name"), Some(json!("one")));
    assert_eq!(first(".spec.nothing.here"), None);
    assert_eq!(first(".metadata.none"), Some(Value::Null));
    assert_eq!(first(".status.conditions[?(@.type==\"Gone\")].status"), None);
    assert_eq!(JsonPath::parse_column(".a[").unwrap_err().position, 2);
}

#[test]
fn a_relaxed_path_needs_no_braces_and_no_dot() {
    let pod = pod();
    for path in ["spec.replicas", ".spec.replicas", "{.spec.replicas}", "{spec.replicas}"] {
        assert_eq!(JsonPath::parse_relaxed(path).unwrap().render(&pod).unwrap(), "3", "{path}");
    }
    for invalid in ["", "{.a", "{.a}{.b}", "{}", "."] {
        assert!(JsonPath::parse_relaxed(invalid).is_err(), "{invalid}");
    }
}

#[test]
fn floats_print_as_in_go() {
    for (value, text) in [
        (1.0, "1"),
        (0.1, "0.1"),
        (1e-5, "1e-05"),
        (1.5e21, "1.5e+21"),
        (1e20, "1e+20"),
        (1_500_000.5, "1.5000005e+06"),
        (999_999.5, "999999.5"),
    ] {
        assert_eq!(format_value(&json!(value)), text);
    }
}
