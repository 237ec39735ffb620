//! Field sets: their operations, and their stored form.

use super::kind::TestKind;
use super::scenario::sorted_paths;
use mainstay_patch::apply::{FieldSet, ObjectPath, PathElement};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The set of a `fieldsV1` value.
fn set(fields: &Value) -> FieldSet {
    FieldSet::from_fields_v1(fields).unwrap()
}

#[test]
fn stored_sets_have_the_form_of_structured_merge_diff() {
    for (fields, paths) in [
        (json!({"f:a": {}}), &[".a"][..]),
        (json!({"f:a": {"f:b": {}}}), &[".a.b"]),
        (json!({"f:a": {".": {}, "f:b": {}}}), &[".a", ".a.b"]),
        (json!({"f:a.b/c": {}}), &[".a.b/c"]),
        (json!({"f:": {}}), &["."]),
        (json!({"k:{\"a\":1,\"b\":\"x\"}": {}}), &["[a=1,b=\"x\"]"]),
        (json!({"k:{\"a\":null,\"b\":true}": {}}), &["[a=null,b=true]"]),
        (json!({"v:\"a b\"": {}}), &["[=\"a b\"]"]),
        (json!({"v:1.5": {}, "v:-2": {}}), &["[=-2]", "[=1.5]"]),
        (json!({"i:7": {}, "i:-1": {}}), &["[-1]", "[7]"]),
        (json!({"v:\"\\u003ca\\u0026\\n\\\"ü\\u2028\"": {}}), &["[=\"<a&\\n\\\"ü\\u2028\"]"]),
        (json!({"v:1e+21": {}}), &["[=1e+21]"]),
        (json!({"v:1e-07": {}}), &["[=1e-07]"]),
        (json!({"k:{}": {}}), &["[]"]),
        (json!({"v:1234567": {}}), &["[=1.234567e+06]"]),
        (json!({}), &[]),
    ] {
        let set = set(&fields);
        assert_eq!(sorted_paths(&set), paths, "{fields}");
        assert_eq!(set.to_fields_v1(), fields);
        assert_eq!(set.len(), paths.len());
    }
}

#[test]
fn other_forms_of_stored_sets_are_accepted() {
    for (fields, stored) in [
        // Path elements of a newer server are ignored, with the paths below them.
        (json!({"f:a": {}, "x:b": {"f:c": {}}}), json!({"f:a": {}})),
        (json!({"f:a": {"x:b": {}}}), json!({"f:a": {}})),
        (json!({"f:a": null}), json!({"f:a": {}})),
        (json!({"f:a": {".": {}}}), json!({"f:a": {}})),
        (json!({".": {}, "f:a": {}}), json!({"f:a": {}})),
        (json!({"k:{\"b\": 1, \"a\":  2}": {}}), json!({"k:{\"a\":2,\"b\":1}": {}})),
        (json!({"v: 1": {}, "v:1.0": {"f:a": {}}}), json!({"v:1": {".": {}, "f:a": {}}})),
        (json!(null), json!({})),
    ] {
        assert_eq!(set(&fields).to_fields_v1(), stored, "{fields}");
    }
}

#[test]
fn malformed_field_sets_are_errors() {
    for fields in [
        json!([]),
        json!("f:a"),
        json!({"f:a": 1}),
        json!({"": {}}),
        json!({"f": {}}),
        json!({"no-colon": {}}),
        json!({"i:x": {}}),
        json!({"i:1.5": {}}),
        json!({"i:": {}}),
        json!({"v:": {}}),
        json!({"v:x": {}}),
        json!({"k:x": {}}),
        json!({"k:{\"a\":}": {}}),
        json!({"k:[]": {}}),
    ] {
        assert!(FieldSet::from_fields_v1(&fields).is_err(), "{fields}");
    }
}

#[test]
fn paths_are_ordered_by_level_and_kind_of_element() {
    let set = set(&json!({
        "f:b": {},
        "f:a": {".": {}, "f:z": {}, "f:b": {"f:c": {}}},
        "v:\"x\"": {}, "v:10": {}, "v:9": {}, "v:true": {},
        "k:{\"p\":443}": {}, "k:{\"p\":80}": {}, "k:{\"o\":1,\"p\":80}": {},
        "i:2": {}, "i:10": {},
    }));
    let paths: Vec<String> = set.paths().iter().map(ToString::to_string).collect();
    assert_eq!(
        paths,
        [
            ".a",
            ".b",
            "[o=1,p=80]",
            "[p=80]",
            "[p=443]",
            "[=9]",
            "[=10]",
            "[=\"x\"]",
            "[=true]",
            "[2]",
            "[10]",
            ".a.z",
            ".a.b.c",
        ]
    );
}

#[test]
fn difference_keeps_paths_below_and_recursive_difference_removes_them() {
    let whole = set(&json!({"f:a": {".": {}, "f:b": {".": {}, "f:c": {}}, "f:d": {}}, "f:e": {}}));
    let other = set(&json!({"f:a": {"f:b": {}}, "f:e": {"f:x": {}}}));
    assert_eq!(sorted_paths(&whole.clone().difference(&other)), [".a", ".a.b.c", ".a.d", ".e"]);
    assert_eq!(sorted_paths(&whole.clone().recursive_difference(&other)), [".a", ".a.d", ".e"]);
    assert_eq!(sorted_paths(&whole.intersection(&other)), [".a.b"]);
    assert_eq!(sorted_paths(&whole.clone().leaves()), [".a.b.c", ".a.d", ".e"]);
    assert!(!whole.is_subset(&other));
    assert!(set(&json!({"f:a": {"f:d": {}}})).is_subset(&whole));
}

#[test]
fn declared_fields_above_members_can_be_added() {
    let kind = TestKind::new();
    let owned = set(&json!({"f:spec": {
        "f:struct": {"f:deep": {"f:x": {}}},
        "f:maps": {"f:any": {"f:x": {}}},
        "f:items": {"k:{\"name\":\"a\"}": {"f:sub": {"f:a": {}}}},
        "f:free": {"f:a": {"f:b": {}}},
    }, "f:metadata": {"f:labels": {"f:a": {}}}}));
    let with_declared = owned.clone().with_declared_fields(kind.ty());
    let added = sorted_paths(&with_declared.difference(&owned));
    assert_eq!(
        added,
        [
            ".metadata",
            ".metadata.labels",
            ".spec",
            ".spec.free",
            ".spec.items",
            ".spec.items[name=\"a\"].sub",
            ".spec.maps",
            ".spec.struct",
            ".spec.struct.deep",
        ]
    );
}

fn element() -> impl Strategy<Value = PathElement> {
    let scalar = prop_oneof![
        (-2i64..3).prop_map(Value::from),
        "[ab<\"]{0,2}".prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!(1.5)),
    ];
    prop_oneof![
        6 => "[abc]".prop_map(|name| PathElement::field(&name)),
        1 => vec(("[ab]", scalar.clone()), 1..3).prop_map(|mut keys| {
            keys.sort_by(|one, two| one.0.cmp(&two.0));
            keys.dedup_by(|one, two| one.0 == two.0);
            PathElement::key(keys.iter().map(|(name, value)| (&**name, value.clone())))
        }),
        1 => scalar.prop_map(PathElement::value),
        1 => (0i64..3).prop_map(PathElement::Index),
    ]
}

fn any_set() -> impl Strategy<Value = FieldSet> {
    vec(vec(element(), 1..4), 0..12).prop_map(|paths| paths.iter().map(Vec::as_slice).collect())
}

fn has_all(set: &FieldSet, other: &FieldSet) -> bool {
    other.paths().iter().all(|path| set.contains(path.elements()))
}

proptest! {
    #[test]
    fn stored_set_is_read_back(set in any_set()) {
        let fields = set.to_fields_v1();
        prop_assert_eq!(&FieldSet::from_fields_v1(&fields).unwrap(), &set);
        prop_assert_eq!(set.paths().len(), set.len());
        let again: Vec<_> = set.paths();
        prop_assert_eq!(&again.iter().map(ObjectPath::elements).collect::<FieldSet>(), &set);
    }

    #[test]
    fn union_has_the_members_of_both(a in any_set(), b in any_set(), c in any_set()) {
        let both = a.clone().union(b.clone());
        prop_assert!(has_all(&both, &a) && has_all(&both, &b));
        for path in both.paths() {
            prop_assert!(a.contains(path.elements()) || b.contains(path.elements()));
        }
        prop_assert_eq!(&both, &b.clone().union(a.clone()));
        prop_assert_eq!(both.clone().union(c.clone()), a.clone().union(b.union(c)));
        prop_assert_eq!(a.clone().union(a.clone()), a.clone());
        prop_assert!(a.is_subset(&both));
    }

    #[test]
    fn intersection_and_difference_split_a_set(a in any_set(), b in any_set()) {
        let (both, rest) = (a.intersection(&b), a.clone().difference(&b));
        prop_assert_eq!(&both, &b.intersection(&a));
        prop_assert!(both.intersection(&rest).is_empty());
        prop_assert_eq!(&both.clone().union(rest.clone()), &a);
        prop_assert!(has_all(&b, &both));
        prop_assert!(rest.paths().iter().all(|path| !b.contains(path.elements())));
        prop_assert_eq!(a.is_subset(&b), rest.is_empty());
        prop_assert_eq!(a.clone().difference(&a), FieldSet::new());
    }

    #[test]
    fn recursive_difference_has_no_member_at_or_below_the_other_set(a in any_set(), b in any_set()) {
        let rest = a.clone().recursive_difference(&b);
        for path in a.paths() {
            let taken = (1..=path.elements().len()).any(|end| b.contains(&path.elements()[..end]));
            prop_assert_eq!(rest.contains(path.elements()), !taken);
        }
        prop_assert!(rest.is_subset(&a));
    }

    #[test]
    fn leaves_have_no_members_below_them(a in any_set()) {
        let leaves = a.clone().leaves();
        for path in a.paths() {
            let below = a.paths().iter().any(|other| {
                other.elements().len() > path.elements().len()
                    && other.elements().starts_with(path.elements())
            });
            prop_assert_eq!(leaves.contains(path.elements()), !below);
        }
    }
}

#[test]
fn nodes_of_the_same_element_are_merged() {
    let one = set(
        &json!({"k:{\"a\":1}": {"f:x": {}}, "k:{\"a\": 1}": {"f:y": {}}, "k:{ \"a\":1}": {"f:x": {"f:z": {}}}}),
    );
    let other = set(&json!({"k:{\"a\":1}": {"f:x": {".": {}, "f:z": {}}, "f:y": {}}}));
    assert_eq!(one, other);
    let sets: Vec<FieldSet> =
        (0..20_000).map(|index| set(&json!({"f:spec": {format!("f:{index}"): {}}}))).collect();
    let union = FieldSet::union_of(sets.clone());
    assert_eq!(union.len(), 20_000);
    assert!(sets.iter().all(|set| set.is_subset(&union)), "a set is missing in the union");
    let rest = sets.iter().take(100).fold(union, FieldSet::difference);
    assert_eq!(rest.len(), 19_900);
}
