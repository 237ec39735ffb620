//! Properties of any sequence of writes.

use super::kind::TestKind;
use mainstay_patch::apply::{
    ApplyError, ApplyResult, FieldSet, Managers, Updater, compare, field_set, merge, remove,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The names that a configuration may use for fields, elements and members.
#[derive(Clone, Copy)]
struct FieldNames {
    /// Keys of maps, list maps and sets.
    keys: &'static str,
    /// Declared fields with one value.
    fields: &'static [&'static str],
}

const ALL: FieldNames = FieldNames {
    keys: "[abxy]",
    fields: &["text", "number", "atomic", "whole", "either", "a", "b"],
};
const ONE: FieldNames = FieldNames { keys: "[ab]", fields: &["text", "atomic", "a"] };
const NONE: FieldNames = FieldNames { keys: "[mn]", fields: &[] };
const TWO: FieldNames = FieldNames { keys: "[xy]", fields: &["number", "whole", "either", "b"] };

fn scalar(field: &str) -> BoxedStrategy<Value> {
    match field {
        "number" => (0..3i64).prop_map(Value::from).boxed(),
        "atomic" => vec("[pq]", 0..3).prop_map(Value::from).boxed(),
        "whole" => btree_map("[ab]", "[pq]", 0..3).prop_map(|map| json!(map)).boxed(),
        "either" => {
            prop_oneof![(0..2i64).prop_map(Value::from), "[pq]".prop_map(Value::from)].boxed()
        }
        _ => "[pq]".prop_map(Value::from).boxed(),
    }
}

/// An object with some of the fields.
fn optional_fields(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    fields
        .into_iter()
        .map(|(name, value)| {
            option::of(value).prop_map(move |value| Some((name.to_owned(), value?)))
        })
        .collect::<Vec<_>>()
        .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>()))
        .boxed()
}

fn scalars(
    names: FieldNames,
    fields: &[&'static str],
) -> Vec<(&'static str, BoxedStrategy<Value>)> {
    (fields.iter().filter(|name| names.fields.contains(name)))
        .map(|name| (*name, scalar(name)))
        .collect()
}

/// A list map of elements with their keys.
fn elements(
    key: &'static str,
    names: FieldNames,
    element: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    btree_map(names.keys, element, 0..3)
        .prop_map(move |elements| {
            let list = elements.into_iter().map(|(name, mut element)| {
                element[key] = name.into();
                element
            });
            Value::Array(list.collect())
        })
        .prop_shuffle_list()
}

trait ShuffleList {
    fn prop_shuffle_list(self) -> BoxedStrategy<Value>;
}

impl<S: Strategy<Value = Value> + 'static> ShuffleList for S {
    /// The list in random order.
    fn prop_shuffle_list(self) -> BoxedStrategy<Value> {
        self.prop_map(|list| list.as_array().cloned().unwrap_or_default())
            .prop_shuffle()
            .prop_map(Value::Array)
            .boxed()
    }
}

fn spec(names: FieldNames) -> BoxedStrategy<Value> {
    let set = || btree_set(names.keys, 0..3).prop_map(|set| json!(set)).prop_shuffle_list();
    let map = |value: BoxedStrategy<Value>| {
        btree_map(names.keys, value, 0..3).prop_map(|map| json!(map)).boxed()
    };
    let structure = || optional_fields(scalars(names, &["a", "b"]));
    let value = || "[pq]".prop_map(Value::from).boxed();
    let item = optional_fields(vec![("tags", set()), ("sub", structure())]);
    let port = (1..3i64, btree_set(names.keys, 1..2)).prop_map(|(port, names)| {
        let name = names.first().cloned().unwrap_or_default();
        json!([{"port": port, "protocol": name, "name": "p"}])
    });
    let mut fields = scalars(names, &["text", "number", "atomic", "whole", "either"]);
    fields.extend([
        ("set", set()),
        ("items", elements("name", names, item)),
        ("ports", port.boxed()),
        ("labels", map(value())),
        ("maps", map(map(value()))),
        ("free", map(map(value()))),
        ("struct", structure()),
    ]);
    optional_fields(fields)
}

/// An object without empty values. If one manager owns an empty value, and another fills and
/// empties it, structured-merge-diff removes it. Some of these properties do not hold then.
fn object(names: FieldNames) -> BoxedStrategy<Value> {
    spec(names)
        .prop_map(|spec| match drop_empty(spec) {
            Some(spec) => json!({"apiVersion": "v1", "spec": spec}),
            None => json!({"apiVersion": "v1"}),
        })
        .boxed()
}

/// An operation of a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteOperation {
    Apply,
    Force,
    Update,
}

fn writes() -> impl Strategy<Value = Vec<(WriteOperation, &'static str, Value)>> {
    let operation = prop_oneof![
        Just(WriteOperation::Apply),
        Just(WriteOperation::Force),
        Just(WriteOperation::Update)
    ];
    vec((operation, prop_oneof![Just("one"), Just("two"), Just("three")], object(ALL)), 0..5)
}

/// An object and its field owners.
#[derive(Clone, Debug)]
struct OwnedObject {
    kind: &'static TestKind,
    object: Value,
    managers: Managers,
}

fn kind() -> &'static TestKind {
    static KIND: std::sync::LazyLock<TestKind> = std::sync::LazyLock::new(TestKind::new);
    &KIND
}

impl OwnedObject {
    fn of(object: Value) -> Self {
        Self { kind: kind(), object, managers: Managers::new() }
    }

    /// Performs an operation; returns whether the object changed.
    fn write(
        &mut self,
        operation: WriteOperation,
        manager: &str,
        object: &Value,
    ) -> Result<bool, ApplyError> {
        let filters = BTreeMap::new();
        let updater = Updater { versions: self.kind, filters: &filters };
        let managers = self.managers.clone();
        if operation == WriteOperation::Update {
            let manager = format!("updater {manager}");
            self.managers = updater.update(&self.object, object, "v1", managers, &manager)?;
            let changed = self.object != *object;
            self.object = object.clone();
            return Ok(changed);
        }
        let force = operation == WriteOperation::Force;
        let ApplyResult { object, managers } =
            updater.apply(&self.object, object, "v1", managers, manager, force)?;
        self.managers = managers;
        let changed = object.is_some();
        self.object = object.unwrap_or_else(|| self.object.clone());
        Ok(changed)
    }

    /// The object after some writes, without those that conflict.
    fn after(writes: &[(WriteOperation, &str, Value)]) -> Self {
        let mut state = Self::of(json!({"apiVersion": "v1"}));
        for (operation, manager, object) in writes {
            match state.write(*operation, manager, object) {
                Ok(_) | Err(ApplyError::Conflicts(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        state
    }
}

/// A value without empty objects and lists.
fn drop_empty(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let fields: Map<_, _> = (fields.into_iter())
                .filter_map(|(name, field)| Some((name, drop_empty(field)?)))
                .collect();
            (!fields.is_empty()).then(|| fields.into())
        }
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(drop_empty).collect();
            (!items.is_empty()).then(|| items.into())
        }
        other => Some(other),
    }
}

/// A value with sorted lists, except atomic ones, and without the nulls that apply leaves in place
/// of empty values.
fn normalize(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(name, field)| {
                let field = if name == "atomic" { field.clone() } else { normalize(field) };
                (name.clone(), field)
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(normalize).collect();
            items.sort_by_key(ToString::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

/// Checks that an object has a value at each path of a set.
fn check_has_paths(object: &Value, set: &FieldSet) -> Result<(), TestCaseError> {
    for path in set.paths() {
        let single: FieldSet = [path.elements()].into_iter().collect();
        let mut rest = object.clone();
        remove(&mut rest, &single, kind().ty());
        prop_assert_ne!(&rest, object, "no value at {}", path);
    }
    Ok(())
}

proptest! {
    #[test]
    fn repeated_apply_changes_nothing(writes in writes(), config in object(ALL)) {
        let mut state = OwnedObject::after(&writes);
        state.write(WriteOperation::Force, "one", &config).unwrap();
        let before = state.clone();
        prop_assert!(!state.write(WriteOperation::Apply, "one", &config).unwrap());
        prop_assert_eq!(state.managers, before.managers);
    }

    #[test]
    fn order_of_applies_of_different_fields_does_not_matter(
        live in object(NONE),
        configs in [object(ONE), object(TWO), object(ONE)],
    ) {
        let [one, two, later] = configs;
        let run = |applies: &[(&str, &Value)]| {
            // Existing fields have an owner: fields without one may be removed with an applied
            // field.
            let mut state = OwnedObject::of(json!({"apiVersion": "v1"}));
            state.write(WriteOperation::Update, "live", &live).unwrap();
            for (manager, config) in applies {
                state.write(WriteOperation::Apply, manager, config).unwrap();
            }
            state
        };
        let first = run(&[("one", &one), ("one", &later), ("two", &two)]);
        for other in [
            run(&[("two", &two), ("one", &one), ("one", &later)]),
            run(&[("one", &one), ("two", &two), ("one", &later)]),
        ] {
            prop_assert_eq!(normalize(&first.object), normalize(&other.object));
            prop_assert_eq!(&first.managers, &other.managers);
        }
    }

    #[test]
    fn apply_without_force_takes_no_field_from_other_appliers(
        applies in vec((prop_oneof![Just("one"), Just("two"), Just("three")], object(ALL)), 1..6)
    ) {
        let mut state = OwnedObject::of(json!({"apiVersion": "v1"}));
        for (manager, config) in &applies {
            let before = state.clone();
            match state.write(WriteOperation::Apply, manager, config) {
                Ok(_) => {}
                Err(ApplyError::Conflicts(conflicts)) => {
                    prop_assert!(!conflicts.is_empty());
                    continue;
                }
                Err(error) => panic!("{error}"),
            }
            let changes = compare(&before.object, &state.object, kind().ty()).unwrap();
            for (name, owned) in before.managers.iter().filter(|(name, _)| name != manager) {
                prop_assert_eq!(&state.managers[name].set, &owned.set);
                prop_assert!(owned.set.intersection(&changes.removed).is_empty());
                prop_assert!(owned.set.intersection(&changes.modified).is_empty());
            }
        }
    }

    #[test]
    fn owned_fields_exist(writes in writes()) {
        let state = OwnedObject::after(&writes);
        for owned in state.managers.values() {
            check_has_paths(&state.object, &owned.set)?;
        }
    }

    #[test]
    fn comparison_of_swapped_objects_is_swapped(one in object(ALL), two in object(ALL)) {
        let forward = compare(&one, &two, kind().ty()).unwrap();
        let backward = compare(&two, &one, kind().ty()).unwrap();
        prop_assert_eq!(&forward.added, &backward.removed);
        prop_assert_eq!(&forward.removed, &backward.added);
        prop_assert_eq!(&forward.modified, &backward.modified);
        prop_assert_eq!(forward.is_same(), normalize(&one) == normalize(&two));
        check_has_paths(&two, &forward.added)?;
        check_has_paths(&one, &forward.removed)?;
    }

    #[test]
    fn merge_loses_no_field_and_is_idempotent(one in object(ALL), two in object(ALL)) {
        let mut once = one.clone();
        merge(&mut once, &two, kind().ty()).unwrap();
        prop_assert!(compare(&one, &once, kind().ty()).unwrap().removed.is_empty());
        check_has_paths(&once, &field_set(&two, kind().ty()).unwrap())?;
        let mut twice = once.clone();
        merge(&mut twice, &two, kind().ty()).unwrap();
        prop_assert_eq!(twice, once);
    }
}
