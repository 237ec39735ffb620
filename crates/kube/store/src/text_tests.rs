use super::*;
use crate::draft::Draft;
use crate::{Key, Stored};
use mainstay_object::Object;
use proptest::prelude::*;
use serde_json::json;

fn long(letter: &str) -> String {
    letter.repeat(MIN_SHARED_BYTES)
}

/// A copy of a ClusterServiceVersion in a namespace.
fn copy(namespace: &str) -> Object {
    Object::from_value(json!({
        "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
        "metadata": {
            "name": "tool.v1", "namespace": namespace, "uid": namespace,
            "annotations": {"alm-examples": long("é\"\\")},
            "managedFields": [{"manager": "one", "fieldsV1": {"f:spec": {long("f"): {}}}}],
        },
        "spec": {"description": long("d")},
        "status": {"reason": "Copied"},
    }))
    .unwrap()
}

fn stored(object: &Object, revision: u64, previous: Option<&Stored>, pool: &mut Pool) -> Stored {
    Draft::of(object).unwrap().stored(Key::cluster("things", "a"), revision, previous, pool)
}

fn expected(object: &Object, revision: u64) -> String {
    let mut value = object.to_value();
    value["metadata"]["resourceVersion"] = revision.to_string().into();
    value.to_string()
}

/// Which values of two texts are the same allocation.
fn shared(a: &Stored, b: &Stored) -> Vec<bool> {
    let pairs = a.text.values().iter().zip(b.text.values());
    pairs.map(|(a, b)| Arc::ptr_eq(&a.text, &b.text)).collect()
}

#[test]
fn copies_share_long_values_and_read_back_unchanged() {
    let mut pool = Pool::default();
    let [one, two] = [copy("one"), copy("two")];
    let a = stored(&one, 9, None, &mut pool);
    let b = stored(&two, 10, None, &mut pool);
    assert_eq!(shared(&a, &b), [true, true, true]);
    for (copy, object, revision) in [(&a, &one, 9), (&b, &two, 10)] {
        assert_eq!(copy.bytes(), expected(object, revision));
        assert_eq!(copy.size(), copy.bytes().len());
        assert!(copy.start().starts_with(br#"{"apiVersion":"operators.coreos.com/v1alpha1","#));
        let slot = copy.slot();
        assert!(copy.bytes()[slot..].starts_with(revision.to_string().as_bytes()));
    }
    // Each counts as half: the values have two owners.
    assert!(b.text.weight() < b.size() / 2 + 1000, "{} of {}", b.text.weight(), b.size());
}

#[test]
fn a_change_shares_unchanged_long_values() {
    let mut pool = Pool::default();
    let before = stored(&copy("one"), 9, None, &mut pool);
    let mut changed = copy("one");
    changed.set(&["spec", "description"], long("e").into());
    // Without the pool: the previous object has the values.
    let after = stored(&changed, 1000, Some(&before), &mut Pool::default());
    assert_eq!(shared(&before, &after), [true, true, false]);
    assert_eq!(after.bytes(), expected(&changed, 1000));
    assert!(Draft::of(&copy("one")).unwrap().is_text_of(&before));
    assert!(!Draft::of(&changed).unwrap().is_text_of(&before));
    assert_eq!(before.bytes_at(12345), expected(&copy("one"), 12345));
    assert_eq!(before.deleted_at(12345).bytes(), expected(&copy("one"), 12345));
}

#[test]
fn a_loaded_text_is_cut_like_a_new_one() {
    let mut pool = Pool::default();
    let new = stored(&copy("one"), 77, None, &mut pool);
    let (parts, slot) = Parts::of(new.bytes().to_vec(), new.slot());
    let text = parts.complete(&mut pool);
    assert_eq!(slot, new.slot);
    assert_eq!(text.bytes(), new.bytes());
    assert_eq!(text.values().len(), 3);
    for (old, new) in text.values().iter().zip(new.text.values()) {
        assert!(Arc::ptr_eq(&old.text, &new.text) && old.at == new.at);
    }
}

#[test]
fn short_texts_and_texts_without_long_values_stay_in_one_piece() {
    let many = (0..MIN_SHARED_BYTES).map(|at| (format!("key-{at}"), json!(at)));
    let rows = [
        json!({"spec": {"a": "b"}}),
        serde_json::Value::Object(many.collect()),
        json!({"metadata": {"labels": {"a": "b"}, "name": "x"}, "a": long("a").split_at(MIN_SHARED_BYTES - 3).0}),
    ];
    for value in rows {
        let object = Object::from_value(value).unwrap();
        let stored = stored(&object, 5, None, &mut Pool::default());
        assert!(stored.text.is_whole(), "{stored:?}");
        assert_eq!(stored.start(), stored.bytes());
    }
}

#[test]
fn unused_values_are_dropped_and_hash_collisions_are_not_shared() {
    let mut pool = Pool::default();
    let keep: Arc<[u8]> = b"kept".as_slice().into();
    assert!(Arc::ptr_eq(&pool.get(&keep, 0), &keep));
    for hash in 1..3 * MAX_UNUSED_VALUES as u64 {
        drop(pool.get(&b"dropped".as_slice().into(), hash));
    }
    assert!(pool.values.len() <= MAX_UNUSED_VALUES + 1);
    let same: Arc<[u8]> = b"kept".as_slice().into();
    assert!(Arc::ptr_eq(&pool.get(&same, 0), &keep));
    let other: Arc<[u8]> = b"another".as_slice().into();
    assert!(Arc::ptr_eq(&pool.get(&other, 0), &other));
}

#[test]
fn a_text_that_is_not_an_object_stays_in_one_piece() {
    let rows = [
        "",
        "{",
        "[1]",
        "\"a",
        r#"{"spec":"#,
        r#"{"spec":]}"#,
        r#"{"metadata":{"managedFields":[{"#,
    ];
    for row in rows {
        assert!(long_values(row.as_bytes()).is_empty(), "{row}");
        let cut = format!("{row}{}", long("a"));
        assert!(long_values(cut.as_bytes()).is_empty(), "{row}");
    }
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof!["\\PC{0,6}".boxed(), "[\"\\\\{}:,\\[\\]a]{0,6}".boxed()];
    let letters = prop_oneof![Just(1_usize), Just(MIN_SHARED_BYTES / 3), Just(MIN_SHARED_BYTES)];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|flag| json!(flag)),
        any::<f32>().prop_map(|number| json!(number)),
        (text, letters).prop_map(|(text, times)| json!(text.repeat(times))),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("managedFields".to_owned()),
            Just("resourceVersion".to_owned()),
            Just("spec".to_owned()),
            "\\PC{0,4}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(serde_json::Value::Array),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_assembled_text_equals_the_object(
        values in prop::collection::btree_map("metadata|spec|[a-z]{1,3}", any_value(), 0..6),
        revision in 1_u64..100_000,
        later in 1_u64..10_000_000,
    ) {
        let mut pool = Pool::default();
        let object = Object::from_value(serde_json::to_value(values).unwrap()).unwrap();
        let first = stored(&object, revision, None, &mut pool);
        prop_assert_eq!(first.bytes().len(), first.size());
        let mut whole = object.to_value();
        if !whole["metadata"].is_object() {
            whole["metadata"] = json!({});
        }
        whole["metadata"]["resourceVersion"] = revision.to_string().into();
        prop_assert_eq!(first.bytes(), whole.to_string());
        whole["metadata"]["resourceVersion"] = later.to_string().into();
        prop_assert_eq!(first.bytes_at(later), whole.to_string());
        prop_assert!(Draft::of(&object).unwrap().is_text_of(&first));
        let (parts, slot) = Parts::of(first.bytes().to_vec(), first.slot());
        prop_assert_eq!(slot, first.slot);
        prop_assert_eq!(parts.complete(&mut pool).bytes(), first.bytes());
    }
}
