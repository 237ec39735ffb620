//! Structural schemas, compared with recorded responses of a Kubernetes 1.35 API server (`recorded/`):
//! for each spec of a custom object the unknown fields, and the errors or the stored object.

use mainstay_object::{FieldPath, Status};
use mainstay_schema::structural::{Schema, whole_numbers};
use serde_json::{Value, json};

fn schema() -> Schema {
    let crd: Value = serde_json::from_str(include_str!("recorded/thing.json")).unwrap();
    Schema::parse(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).unwrap()
}

/// `[field, reason, message]` of each cause, sorted, because upstream's order is random.
fn causes(status: &Status) -> Value {
    let mut rows: Vec<[String; 3]> = status
        .details
        .causes
        .iter()
        .map(|cause| [cause.field.clone(), cause.reason.clone(), cause.message.clone()])
        .collect();
    rows.sort();
    json!(rows)
}

#[test]
fn objects_are_decoded_and_rejected_as_by_upstream() {
    let schema = schema();
    let cases: Vec<Value> = serde_json::from_str(include_str!("recorded/structural.json")).unwrap();
    assert!(cases.len() > 70);
    for case in cases {
        let spec = &case["spec"];
        let mut object = json!({
            "apiVersion": "t.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec,
        });
        let unknown = match schema.decode(&mut object) {
            Ok(unknown) => unknown,
            Err(why) => {
                let why = mainstay_schema::strict::cannot_be_handled("v1", "Thing", why);
                assert_eq!(case["message"], why, "{spec}");
                continue;
            }
        };
        assert_eq!(json!(unknown), *case.get("unknown").unwrap_or(&json!([])), "{spec}");
        let errors = schema.validate(&object, &FieldPath::root());
        if let Some(expected) = case.get("causes") {
            let mut expected: Vec<Vec<String>> = serde_json::from_value(expected.clone()).unwrap();
            expected.sort();
            let status = Status::invalid("t.io", "Thing", "t", &errors);
            assert_eq!(causes(&status), json!(expected), "{spec}");
        } else {
            assert!(errors.is_empty(), "{spec}: {errors:?}");
            whole_numbers(object.as_object_mut().unwrap());
            assert_eq!(object["spec"], *case.get("result").unwrap_or(spec), "{spec}");
        }
    }
}

#[test]
fn metadata_is_decoded_as_object_meta() {
    let schema = schema();
    for (metadata, words) in [
        (
            json!({"labels": {"a": 5}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string",
        ),
        (
            json!({"labels": []}),
            "json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string",
        ),
        (json!("x"), "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
    ] {
        let mut object = json!({"metadata": metadata, "spec": {"size": 1}});
        assert_eq!(schema.decode(&mut object).unwrap_err().to_string(), words);
    }
    let mut object = json!({"metadata": {"name": "t", "zz": 1, "labels": null}, "foo": 1});
    assert_eq!(schema.decode(&mut object).unwrap(), ["metadata.zz", "foo"]);
    assert_eq!(object, json!({"metadata": {"name": "t"}}));
}

#[test]
fn errors_of_a_part_are_below_its_path() {
    let schema = schema();
    let status = json!({"phase": "long", "conditions": [{}]});
    let errors = schema.property("status").unwrap().validate(&status, &FieldPath::new("status"));
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "status.conditions[0].type: Required value",
            "status.phase: Too long: may not be more than 3 bytes",
        ]
    );
}

#[test]
fn errors_of_unchanged_parts_are_ignored() {
    let schema = schema();
    let root = FieldPath::root();
    let old = json!({"spec": {"size": 9, "map": [{"k": "a", "v": "x"}, {"k": "b"}]}});
    let new =
        json!({"spec": {"size": 9, "color": "red", "map": [{"k": "b"}, {"k": "a", "v": "x"}]}});
    assert_eq!(schema.validate(&new, &root).len(), 2);
    assert!(schema.validate_update(&new, &old, &root).is_empty());
    let worse = json!({"spec": {"size": 8, "map": [{"k": "a", "v": 1}]}});
    assert_eq!(schema.validate_update(&worse, &old, &root).len(), 1);
    let was_double = json!({"spec": {"size": 1, "set": ["a", "a"]}});
    assert!(schema.validate_update(&was_double, &was_double, &root).is_empty());
    assert_eq!(schema.validate(&was_double, &root).len(), 1);
}

#[test]
fn a_schema_that_is_not_structural_is_rejected_with_all_errors() {
    for (value, words) in [
        (json!({}), "type: Required value: must not be empty at the root"),
        (
            json!({"type": "array"}),
            "items: Required value: must be specified; type: Invalid value: \"array\": must be object at the root",
        ),
        (
            json!({"type": "object", "additionalProperties": true}),
            "additionalProperties: Forbidden: must not be used at the root",
        ),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            "properties[a].type: Required value: must not be empty for specified object fields",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}),
            "properties[a].items.type: Required value: must not be empty for specified array items",
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object", "properties": {"a": {"description": "x"}}}]}),
            "anyOf[0].properties[a].description: Forbidden: must be empty to be structural; anyOf[0].type: Forbidden: must be empty to be structural; properties[a]: Required value: because it is defined in anyOf[0].properties[a]",
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            "properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
        ),
        (
            json!({"type": "object", "properties": {"e": {"type": "string", "x-kubernetes-embedded-resource": true}}}),
            "properties[e].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields; properties[e].type: Invalid value: \"string\": must be object if x-kubernetes-embedded-resource is true",
        ),
    ] {
        let errors = Schema::parse(&value).unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts.join("; "), words);
    }
}

#[test]
fn parsing_checks_patterns_but_not_defaults() {
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "a": {"type": "string", "pattern": "^x", "default": "y"},
        "b": {"type": "object", "default": {"zz": 1}, "properties": {"c": {"type": "integer"}}},
        "d": {"type": "integer", "default": "x"},
        "e": {"type": "integer", "default": 5, "maximum": 6},
    }}))
    .unwrap();
    let texts: Vec<String> =
        schema.check(&FieldPath::root()).iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "properties[a].default: Invalid value: \"y\":  in body should match '^x'",
            "properties[b].default: Invalid value: {\"zz\":1}: must not have unknown fields",
            "properties[d].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
        ]
    );
}

#[test]
fn a_schema_with_an_invalid_pattern_is_not_structural() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(x"}}});
    let errors = Schema::parse(&schema).unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "properties[a].pattern: Invalid value: \"(x\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(x`"
    );
}

#[test]
fn bounds_of_integers_are_printed_as_integers() {
    let bounded = json!({"type": "number", "maximum": 1_000_000.5});
    let schema = json!({"type": "object", "properties": {"a": bounded}});
    let schema = Schema::parse(&schema).unwrap();
    for (value, told) in [
        (json!(1_000_001), "1000001: a in body should be less than or equal to 1000000"),
        (
            json!(1_000_001.5),
            "1.0000015e+06: a in body should be less than or equal to 1.0000005e+06",
        ),
    ] {
        let errors = schema.validate(&json!({"a": value}), &FieldPath::root());
        assert_eq!(errors[0].body(), format!("Invalid value: {told}"));
    }
}

proptest::proptest! {
    /// Pruning and defaulting are idempotent.
    #[test]
    fn pruning_and_defaulting_are_idempotent(
        size in 0_i64..9,
        extra in "[a-d]{1,2}",
        keep in proptest::bool::ANY,
        null in proptest::bool::ANY,
    ) {
        let schema = schema();
        let mut object = json!({"metadata": {"name": "t"}, "spec": {"size": size}});
        object["spec"][&extra] = json!([1, {"x": null}]);
        if keep { object["spec"]["keep"] = json!({&*extra: 1, "strict": {&*extra: 2}}); }
        if null { object["spec"]["def"] = Value::Null; }
        schema.decode(&mut object).unwrap();
        let once = object.clone();
        proptest::prop_assert!(schema.decode(&mut object).unwrap().is_empty());
        proptest::prop_assert_eq!(once, object);
    }
}

#[test]
fn validation_beyond_the_step_budget_is_rejected() {
    let names: Vec<String> = (0..30_000).map(|at| format!("n{at}")).collect();
    let with_enum = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "string", "enum": names}},
    }});
    let alternatives: Vec<Value> = (0..10_000).map(|at| json!({"minimum": 10 + at})).collect();
    let with_alternatives = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "integer", "anyOf": alternatives}},
    }});
    let required: Vec<String> = (0..30_000).map(|at| format!("r{at}")).collect();
    let with_required = json!({"type": "object", "properties": {
        "l": {"type": "array", "items": {"type": "object", "required": required}},
    }});
    for (schema, element) in
        [(with_enum, json!("x")), (with_alternatives, json!(1)), (with_required, json!({}))]
    {
        let schema = Schema::parse(&schema).unwrap();
        let value = json!({"l": vec![element; 100_000]});
        let errors = schema.validate(&value, &FieldPath::root());
        let [error] = &errors[..] else { panic!("{} errors", errors.len()) };
        let text = error.to_string();
        assert!(text.contains("takes more than 16000000 steps; make the value smaller"), "{text}");
    }
}

/// A schema of a list of strings.
fn texts(items: &Value) -> Result<Schema, Vec<mainstay_object::FieldError>> {
    let list = json!({"type": "array", "items": items});
    Schema::parse(&json!({"type": "object", "properties": {"l": list}}))
}

#[test]
fn patterns_beyond_the_step_budget_are_rejected() {
    let pattern = |pattern: &str| json!({"type": "string", "pattern": pattern});
    // These texts would match quickly, but the budget assumes the worst case.
    let schema = texts(&pattern("^[a-z]{900}$")).unwrap();
    let errors = schema.validate(&json!({"l": vec!["-".repeat(100); 10_000]}), &FieldPath::root());
    let [error] = &errors[..] else { panic!("{} errors", errors.len()) };
    let text = error.to_string();
    assert!(text.contains("takes more than 16000000 steps; make the value smaller"), "{text}");
    // The largest size of a stored object.
    let name =
        pattern(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$");
    let words = pattern(r"^[\p{L}\p{N} _-]{1,255}$");
    for (items, value) in [
        (name, json!({"l": vec!["some.names-of.example.com"; 60_000]})),
        (words, json!({"l": vec!["Grüße aus Köln"; 10_000]})),
    ] {
        assert_eq!(texts(&items).unwrap().validate(&value, &FieldPath::root()), []);
    }
}

#[test]
fn patterns_that_are_too_large_are_rejected_with_the_error_of_go() {
    for pattern in [r"(\pL{30}){30}", r"((a{1000}b){1}[^x]{999}){1,9}"] {
        let errors = texts(&json!({"type": "string", "pattern": pattern})).unwrap_err();
        let [error] = &errors[..] else { panic!("{} errors", errors.len()) };
        let why = "must be a valid regular expression, but isn't: error parsing regexp:";
        assert!(error.detail.starts_with(why), "{error}");
    }
}

#[test]
fn all_defaults_of_a_crd_share_a_step_budget() {
    let default = "-".repeat(1000);
    let field = json!({"type": "string", "pattern": "^(-*|[a-z]{900})$", "default": default});
    let fields: serde_json::Map<String, Value> =
        (0..1000).map(|at| (format!("f{at}"), field.clone())).collect();
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": fields},
    }}));
    let errors = schema.unwrap().check(&FieldPath::root());
    let [.., last] = &errors[..] else { panic!("no errors") };
    assert!(last.detail.contains("takes more than 16000000 steps"), "{last}");
    assert_eq!(errors.len(), 1);
}

#[test]
fn the_total_size_of_errors_below_long_names_is_limited() {
    let map = json!({"type": "object", "additionalProperties": {
        "type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }});
    let schema = Schema::parse(&json!({"type": "object", "properties": {"m": map}})).unwrap();
    let name = "n".repeat(100_000);
    let value = json!({"m": {name: vec![json!({"a": "x", "b": 1}); 20_000]}});
    let mut pruned = value.clone();
    let unknown: usize = schema.prune(&mut pruned).iter().map(String::len).sum();
    assert!(unknown < 1 << 20, "{unknown}");
    let errors = schema.validate(&pruned, &FieldPath::root());
    let bytes: usize = errors.iter().map(|error| error.to_string().len()).sum();
    assert!(!errors.is_empty() && bytes < 4 << 20, "{} errors, {bytes} bytes", errors.len());
}

#[test]
fn defaulting_stops_at_the_size_limit_of_stores() {
    let default = "x".repeat(10_000);
    let schema = json!({"type": "object", "properties": {"l": {"type": "array", "items": {
        "type": "object", "properties": {"a": {"type": "string", "default": default}},
    }}}});
    let schema = Schema::parse(&schema).unwrap();
    let mut value = json!({"l": vec![json!({}); 100_000]});
    schema.default(&mut value);
    let filled = value["l"].as_array().unwrap().iter().filter(|item| item["a"].is_string()).count();
    let limit = mainstay_object::size::defaults_limit();
    assert!(filled * 10_000 >= limit && filled * 10_000 < limit + 20_000, "{filled}");
}
