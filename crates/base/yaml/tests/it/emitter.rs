//! The emitter compared with upstream's (`sigs.k8s.io/yaml` 1.6) byte for byte, one value a line.

use mainstay_yaml::{Options, one, to_string};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn values_are_written_as_kubectl_writes_them() {
    for line in include_str!("emitter.tsv").lines() {
        let (any_value, expected) = line.split_once('\t').unwrap();
        let any_value: Value = serde_json::from_str(any_value).unwrap();
        let expected: String = serde_json::from_str(expected).unwrap();
        assert_eq!(to_string(&any_value), expected, "{any_value}");
    }
}

#[test]
fn line_breaks_that_readers_disagree_about_are_escaped() {
    for any_text in ["a\u{2028}\nb", "a\r\nb", "a\u{85}\nb"] {
        let written = to_string(&json!([any_text]));
        assert!(written.starts_with("- \""), "{written}");
    }
}

#[test]
fn a_key_that_would_merge_is_quoted() {
    assert_eq!(to_string(&json!({"<<": 1})), "\"<<\": 1\n");
}

#[test]
fn a_config_map_is_written_in_block_style() {
    let any_value = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {}, "creationTimestamp": "2026-01-02T03:04:05Z"},
        "data": {"empty": "", "script": "#!/bin/sh\necho hi\n", "flag": "yes"},
        "list": [{"a": 1, "b": [1, 2]}, [], "x"],
    });
    insta::assert_snapshot!(to_string(&any_value), @r##"
    apiVersion: v1
    data:
      empty: ""
      flag: "yes"
      script: |
        #!/bin/sh
        echo hi
    kind: ConfigMap
    list:
    - a: 1
      b:
      - 1
      - 2
    - []
    - x
    metadata:
      creationTimestamp: "2026-01-02T03:04:05Z"
      labels: {}
      name: a
    "##);
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ \\n\\ta-c:#'\"\\-|>{}\\[\\],&*!?%@`0-9.eE+_~<=]{0,30}",
        "([a-z]{1,9} ){0,40}",
        Just("\u{feff}".to_owned()),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e15..1e15f64).prop_filter("fractions", |n| n.fract() != 0.0).prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(any_text(), inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn an_emitted_value_reads_back_the_same(any_value in any_value()) {
        let written = to_string(&any_value);
        let read = one(written.as_bytes(), &Options::default());
        prop_assert_eq!(read, Ok(any_value), "{}", written);
    }
}
