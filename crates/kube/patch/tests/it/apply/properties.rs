//! What holds for every sequence of writes.

use super::kind::Kind;
use mainstay_patch::apply::{
    Applied, ApplyError, Managers, Set, Updater, compare, merge, remove, set_of,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The names that a configuration may use for fields, elements and members.
#[derive(Clone, Copy)]
struct Names {
    /// Of maps, list maps and sets.
    keys: &'static str,
    /// Of the named fields with one value.
    fields: &'static [&'static str],
}

const ALL: Names =
    Names { keys: "[abxy]", fields: &["text", "number", "atomic", "whole", "either", "a", "b"] };
const ONE: Names = Names { keys: "[ab]", fields: &["text", "atomic", "a"] };
const NONE: Names = Names { keys: "[mn]", fields: &[] };
const TWO: Names = Names { keys: "[xy]", fields: &["number", "whole", "either", "b"] };

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

/// Some of the fields that have strategies.
fn some(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    fields
        .into_iter()
        .map(|(name, value)| {
            option::of(value).prop_map(move |value| Some((name.to_owned(), value?)))
        })
        .collect::<Vec<_>>()
        .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>()))
        .boxed()
}

fn scalars(names: Names, which: &[&'static str]) -> Vec<(&'static str, BoxedStrategy<Value>)> {
    (which.iter().filter(|name| names.fields.contains(name)))
        .map(|name| (*name, scalar(name)))
        .collect()
}

/// Elements of a list map, each with its key.
fn elements(
    key: &'static str,
    names: Names,
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

trait Shuffled {
    fn prop_shuffle_list(self) -> BoxedStrategy<Value>;
}

impl<S: Strategy<Value = Value> + 'static> Shuffled for S {
    /// The list in any order.
    fn prop_shuffle_list(self) -> BoxedStrategy<Value> {
        self.prop_map(|list| list.as_array().cloned().unwrap_or_default())
            .prop_shuffle()
            .prop_map(Value::Array)
            .boxed()
    }
}

fn spec(names: Names) -> BoxedStrategy<Value> {
    let set = || btree_set(names.keys, 0..3).prop_map(|set| json!(set)).prop_shuffle_list();
    let map = |value: BoxedStrategy<Value>| {
        btree_map(names.keys, value, 0..3).prop_map(|map| json!(map)).boxed()
    };
    let structure = || some(scalars(names, &["a", "b"]));
    let value = || "[pq]".prop_map(Value::from).boxed();
    let item = some(vec![("tags", set()), ("sub", structure())]);
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
    some(fields)
}

/// An object. Nothing in it is empty: what one owns as empty, and another fills and empties again, is
/// gone in the original, and then some of these properties do not hold.
fn object(names: Names) -> BoxedStrategy<Value> {
    spec(names)
        .prop_map(|spec| match filled(spec) {
            Some(spec) => json!({"apiVersion": "v1", "spec": spec}),
            None => json!({"apiVersion": "v1"}),
        })
        .boxed()
}

/// What one manager does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Apply,
    Force,
    Update,
}

fn acts() -> impl Strategy<Value = Vec<(Act, &'static str, Value)>> {
    let act = prop_oneof![Just(Act::Apply), Just(Act::Force), Just(Act::Update)];
    vec((act, prop_oneof![Just("one"), Just("two"), Just("three")], object(ALL)), 0..5)
}

/// An object and its owners.
#[derive(Clone, Debug)]
struct State {
    kind: &'static Kind,
    object: Value,
    managers: Managers,
}

fn kind() -> &'static Kind {
    static KIND: std::sync::LazyLock<Kind> = std::sync::LazyLock::new(Kind::new);
    &KIND
}

impl State {
    fn of(object: Value) -> Self {
        Self { kind: kind(), object, managers: Managers::new() }
    }

    /// The state after an act; what changed if nothing stands against it.
    fn act(&mut self, act: Act, manager: &str, object: &Value) -> Result<bool, ApplyError> {
        let filters = BTreeMap::new();
        let updater = Updater { versions: self.kind, filters: &filters };
        let managers = self.managers.clone();
        if act == Act::Update {
            let manager = format!("updater {manager}");
            self.managers = updater.update(&self.object, object, "v1", managers, &manager)?;
            let changed = self.object != *object;
            self.object = object.clone();
            return Ok(changed);
        }
        let force = act == Act::Force;
        let Applied { object, managers } =
            updater.apply(&self.object, object, "v1", managers, manager, force)?;
        self.managers = managers;
        let changed = object.is_some();
        self.object = object.unwrap_or_else(|| self.object.clone());
        Ok(changed)
    }

    /// The state after acts, without those that conflict.
    fn after(acts: &[(Act, &str, Value)]) -> Self {
        let mut state = Self::of(json!({"apiVersion": "v1"}));
        for (act, manager, object) in acts {
            match state.act(*act, manager, object) {
                Ok(_) | Err(ApplyError::Conflicts(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        state
    }
}

/// The value without objects and lists that have nothing in them.
fn filled(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) => {
            let fields: Map<_, _> = (fields.into_iter())
                .filter_map(|(name, field)| Some((name, filled(field)?)))
                .collect();
            (!fields.is_empty()).then(|| fields.into())
        }
        Value::Array(items) => {
            let items: Vec<Value> = items.into_iter().filter_map(filled).collect();
            (!items.is_empty()).then(|| items.into())
        }
        other => Some(other),
    }
}

/// The value with its lists sorted, but for atomic ones, and without the nulls that apply leaves of
/// what has nothing in it any more.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, field)| !field.is_null())
            .map(|(name, field)| {
                let field = if name == "atomic" { field.clone() } else { sorted(field) };
                (name.clone(), field)
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(ToString::to_string);
            items.into()
        }
        other => other.clone(),
    }
}

/// Whether an object has something at each path of a set.
fn has_all(object: &Value, set: &Set) -> Result<(), TestCaseError> {
    for path in set.paths() {
        let one: Set = [path.elements()].into_iter().collect();
        let mut rest = object.clone();
        remove(&mut rest, &one, kind().ty());
        prop_assert_ne!(&rest, object, "nothing at {}", path);
    }
    Ok(())
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(acts in acts(), config in object(ALL)) {
        let mut state = State::after(&acts);
        state.act(Act::Force, "one", &config).unwrap();
        let before = state.clone();
        prop_assert!(!state.act(Act::Apply, "one", &config).unwrap());
        prop_assert_eq!(state.managers, before.managers);
    }

    #[test]
    fn appliers_of_different_fields_may_come_in_any_order(
        live in object(NONE),
        configs in [object(ONE), object(TWO), object(ONE)],
    ) {
        let [one, two, later] = configs;
        let run = |acts: &[(&str, &Value)]| {
            // What is there has an owner: what has none may go with the last field that was applied.
            let mut state = State::of(json!({"apiVersion": "v1"}));
            state.act(Act::Update, "live", &live).unwrap();
            for (manager, config) in acts {
                state.act(Act::Apply, manager, config).unwrap();
            }
            state
        };
        let first = run(&[("one", &one), ("one", &later), ("two", &two)]);
        for other in [
            run(&[("two", &two), ("one", &one), ("one", &later)]),
            run(&[("one", &one), ("two", &two), ("one", &later)]),
        ] {
            prop_assert_eq!(sorted(&first.object), sorted(&other.object));
            prop_assert_eq!(&first.managers, &other.managers);
        }
    }

    #[test]
    fn who_applies_without_force_takes_no_field_from_other_appliers(
        acts in vec((prop_oneof![Just("one"), Just("two"), Just("three")], object(ALL)), 1..6)
    ) {
        let mut state = State::of(json!({"apiVersion": "v1"}));
        for (manager, config) in &acts {
            let before = state.clone();
            match state.act(Act::Apply, manager, config) {
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
    fn what_is_owned_is_there(acts in acts()) {
        let state = State::after(&acts);
        for owned in state.managers.values() {
            has_all(&state.object, &owned.set)?;
        }
    }

    #[test]
    fn comparisons_of_swapped_objects_are_swapped(one in object(ALL), two in object(ALL)) {
        let there = compare(&one, &two, kind().ty()).unwrap();
        let back = compare(&two, &one, kind().ty()).unwrap();
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.removed, &back.added);
        prop_assert_eq!(&there.modified, &back.modified);
        prop_assert_eq!(there.is_same(), sorted(&one) == sorted(&two));
        has_all(&two, &there.added)?;
        has_all(&one, &there.removed)?;
    }

    #[test]
    fn merging_loses_nothing_and_twice_is_once(one in object(ALL), two in object(ALL)) {
        let mut once = one.clone();
        merge(&mut once, &two, kind().ty()).unwrap();
        prop_assert!(compare(&one, &once, kind().ty()).unwrap().removed.is_empty());
        has_all(&once, &set_of(&two, kind().ty()).unwrap())?;
        let mut twice = once.clone();
        merge(&mut twice, &two, kind().ty()).unwrap();
        prop_assert_eq!(twice, once);
    }
}
