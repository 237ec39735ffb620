//! Functions accept arguments of every type without a panic, and limit the size of their results.

use super::{OVERLOADS, call};
use mainstay_cel::library::{FunctionLibrary, Implementation, kubernetes, lists, strings};
use mainstay_cel::types::Type;
use mainstay_cel::value::{Error, MapKey, MapValue, Timestamp, Value, WorkBudget};
use mainstay_cel::{CostBudget, Env, Program};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn too_large_results_are_errors() {
    let long = || Value::text("x".repeat(1 << 16));
    // Shared lists: as a tree it would have 2^40 leaves.
    let mut nested = Value::list(vec![long()]);
    let mut shared = nested.clone();
    for _ in 0..40 {
        nested = Value::list(vec![nested.clone(), nested]);
        let entry = |key| (MapKey::Int(key), shared.clone());
        shared = Value::Map(MapValue::of(BTreeMap::from([entry(1), entry(2)])));
    }
    for (id, args) in [
        ("string_replace_string_string", vec![long(), Value::text(""), long()]),
        ("lists_range", vec![Value::Int(i64::MAX)]),
        ("list_flatten_int", vec![nested.clone(), Value::Int(i64::MAX)]),
        ("list_join_string", vec![Value::list(vec![long(); 5_000]), long()]),
        ("list_join", vec![Value::list(vec![long(), nested.clone()])]),
        ("string_format", vec![Value::text("%s"), Value::list(vec![nested.clone()])]),
        ("2:string_format", vec![Value::text("%s"), Value::list(vec![nested])]),
        ("string_format", vec![Value::text("%s"), Value::list(vec![shared.clone()])]),
        ("2:string_format", vec![Value::text("%s"), Value::list(vec![shared])]),
        ("string_format", vec![Value::text("%.99999999f"), Value::list(vec![Value::Int(1)])]),
    ] {
        let error = call(id, &args).unwrap_err();
        assert!(error.to_string().len() < 1 << 17, "{id}");
    }
}

#[test]
fn arguments_of_other_types_do_not_panic() {
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::Int(i64::MIN),
        Value::Uint(u64::MAX),
        Value::Double(f64::NAN),
        Value::text("日本"),
        Value::text(""),
        Value::Bytes(vec![0xff].into()),
        Value::Duration(i64::MIN),
        Value::Timestamp(Timestamp::parse("9999-12-31T23:59:59Z").unwrap()),
        Value::from_type(Type::Int),
        Value::list(vec![Value::Double(f64::NAN), Value::Null, Value::text("a")]),
        Value::list(Vec::new()),
        Value::Map(MapValue::of(BTreeMap::new())),
        Value::Optional(None),
        call("string_to_quantity", &[Value::text("1")]).unwrap(),
    ];
    let mut successes = 0;
    for overload in OVERLOADS.values() {
        let Implementation::Strict(run) = overload.run else { continue };
        for one in &values {
            for other in &values {
                for args in [
                    &[][..],
                    std::slice::from_ref(one),
                    &[one.clone(), other.clone()],
                    &[one.clone(), other.clone(), Value::Int(-1)],
                    &[one.clone(), other.clone(), one.clone(), Value::Int(1)],
                ] {
                    // Any value or error is fine.
                    successes += usize::from(run(args, &WorkBudget::unlimited()).is_ok());
                }
            }
        }
    }
    assert!(successes > 1_000);
}

/// The overload ids that a library adds to an older version.
fn added_ids(older: &FunctionLibrary, newer: &FunctionLibrary) -> BTreeSet<&'static str> {
    let ids = |library: &FunctionLibrary| -> BTreeSet<&str> {
        (library.overloads)().iter().map(|overload| overload.id).collect()
    };
    ids(newer).difference(&ids(older)).copied().collect()
}

#[test]
fn versions_add_functions() {
    let strings = |version| strings::library(version);
    assert_eq!(
        added_ids(strings(0), strings(1)),
        BTreeSet::from(["string_format", "strings_quote"])
    );
    assert_eq!(added_ids(strings(1), strings(2)), BTreeSet::new());
    assert_eq!(added_ids(strings(2), strings(3)), BTreeSet::from(["string_reverse"]));
    assert_eq!(added_ids(lists::library(0), lists::library(1)).len(), 2);
    assert_eq!(added_ids(lists::library(1), lists::library(2)).len(), 19);
    let semver = kubernetes::semver::library;
    assert_eq!(
        added_ids(semver(0), semver(1)),
        BTreeSet::from(["is_semver_string_bool", "string_bool_to_semver"])
    );
}

#[test]
fn json_patch_operations_have_their_fields() {
    use mainstay_cel::library::kubernetes::json_patch::{TYPE_NAME, patch_type};
    let env = Env::new_expressions().with_type(TYPE_NAME, patch_type());
    let answer = |text: &str| {
        let checked = env.compile(text).map_err(|issues| issues.to_string())?;
        let program = Program::new(&checked).map_err(|error| error.to_string())?;
        program
            .eval(&(), &mut CostBudget::unlimited())
            .map(|value| value.to_string())
            .map_err(|error: Error| error.to_string())
    };
    let operation = r#"JSONPatch{op: "add", path: "/a", value: 1}"#;
    assert_eq!(answer(&format!("{operation}.path")).as_deref(), Ok("/a"));
    assert_eq!(answer(&format!("has({operation}.from)")).as_deref(), Ok("false"));
    assert_eq!(answer(&format!("{operation}.value == 1")).as_deref(), Ok("true"));
    assert!(answer("JSONPatch{op: 1}").unwrap_err().contains("expected type"));
    assert!(answer("JSONPatch{other: 1}").unwrap_err().contains("undefined field"));
}
