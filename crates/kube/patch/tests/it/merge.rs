//! Merge patch.

use mainstay_patch::{MAX_DEPTH, merge_patch};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn objects_merge_and_other_values_replace() {
    for (target, patch, merged) in [
        (json!({"a": 1}), json!({"b": 2}), json!({"a": 1, "b": 2})),
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": null}}), json!({"a": {"c": 2}})),
        (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
        (json!({"a": {"b": 1}}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"a": [1]}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}})),
        (json!({}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}})),
        (json!({}), json!({"a": [null, {"b": null}]}), json!({"a": [null, {}]})),
        (json!({"a": {"b": 1}}), json!({"a": [{"b": null}]}), json!({"a": [{"b": null}]})),
        (json!({"a": null}), json!({"a": {"b": null}}), json!({"a": {}})),
    ] {
        let mut value = target.clone();
        merge_patch(&mut value, &patch).unwrap();
        assert_eq!(value, merged, "{target} with {patch}");
    }
}

#[test]
fn patch_must_be_an_object() {
    let status = merge_patch(&mut json!({}), &json!([])).unwrap_err().to_status();
    assert_eq!(status.code, 400);
    assert_eq!(
        status.message,
        "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
    );
}

#[test]
fn too_deep_patch_is_an_error() {
    let nested = |levels: usize| (1..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    let mut value = nested(MAX_DEPTH);
    merge_patch(&mut value, &nested(MAX_DEPTH)).unwrap();
    assert_eq!(value, nested(MAX_DEPTH));
    let status = merge_patch(&mut value, &nested(MAX_DEPTH + 1)).unwrap_err().to_status();
    assert_eq!(status.code, 400);
    assert_eq!(status.message, "the object would be nested deeper than 127 levels");
}

/// Random values. Lists have no objects, because the fate of a null there depends on the replaced
/// value.
fn value() -> impl Strategy<Value = Value> {
    let scalar = || prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from)];
    let list = proptest::collection::vec(scalar(), 0..3).prop_map(Value::Array);
    prop_oneof![scalar(), list].prop_recursive(3, 16, 3, |inner| {
        proptest::collection::btree_map("[a-c]", inner, 0..3)
            .prop_map(|fields| Value::Object(fields.into_iter().collect()))
    })
}

fn object() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-c]", value(), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// Objects of two levels: fields of the first level are objects, those of the second are none. So
/// patches agree on which fields are objects.
fn level(leaf: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = Value> {
    let inner = proptest::collection::btree_map("[a-c]", leaf, 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()));
    proptest::collection::btree_map("[ab]", inner, 0..3)
        .prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

fn leaf() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![any::<bool>().prop_map(Value::from), Just(json!([1])), Just(json!("x"))]
}

/// The composition of two patches: the fields of the second win, and nulls stay.
fn compose(first: &Value, second: &Value) -> Value {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            let mut fields = first.clone();
            for (name, change) in second {
                let before = first.get(name).filter(|before| before.is_object());
                let change =
                    before.map_or_else(|| change.clone(), |earlier| compose(earlier, change));
                fields.insert(name.clone(), change);
            }
            Value::Object(fields)
        }
        (_, second) => second.clone(),
    }
}

proptest! {
    #[test]
    fn patches_with_the_same_objects_compose(
        target in level(leaf()),
        first in level(prop_oneof![leaf(), Just(Value::Null)]),
        second in level(prop_oneof![leaf(), Just(Value::Null)]),
    ) {
        let mut one_by_one = target.clone();
        merge_patch(&mut one_by_one, &first).unwrap();
        merge_patch(&mut one_by_one, &second).unwrap();
        let mut at_once = target;
        merge_patch(&mut at_once, &compose(&first, &second)).unwrap();
        prop_assert_eq!(one_by_one, at_once, "{} {}", first, second);
    }

    #[test]
    fn merge_patch_is_idempotent(target in object(), patch in object()) {
        let mut once = target;
        merge_patch(&mut once, &patch).unwrap();
        let mut twice = once.clone();
        merge_patch(&mut twice, &patch).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn empty_patch_changes_nothing(target in object()) {
        let mut same = target.clone();
        merge_patch(&mut same, &json!({})).unwrap();
        prop_assert_eq!(same, target);
    }
}
