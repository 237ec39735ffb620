//! Library of comprehensions with two variables (cel-go's `ext.TwoVarComprehensions`).
//!
//! The macros are in [`crate::syntax::macros`]. Those that create maps call a function of this
//! module.

use super::args::exactly;
use super::{FunctionLibrary, Overload};
use crate::syntax::macros;
use crate::types::Type;
use crate::value::{Error, MapKey, MapValue, Value, ValueResult, WorkBudget};
use std::collections::BTreeMap;

/// The macros, and `cel.@mapInsert`, which only they call.
pub static LIBRARY: FunctionLibrary = FunctionLibrary {
    name: "cel.lib.ext.comprev2",
    overloads,
    macros: macros::TWO_VARIABLES,
    types: Vec::new,
};

fn overloads() -> Vec<Overload> {
    let [key, value] = ["K", "V"].map(Type::param);
    let map = || Type::map(key.clone(), value.clone());
    vec![
        Overload::function(
            "cel.@mapInsert",
            "@mapInsert_map_key_value",
            vec![map(), key.clone(), value.clone()],
            map(),
            |args, work| {
                let [map, key, value] = exactly(args)?;
                let mut entries = entries_of(map, work)?;
                insert(&mut entries, key, value.clone(), work)?;
                Ok(Value::Map(MapValue::of(entries)))
            },
        ),
        Overload::function(
            "cel.@mapInsert",
            "@mapInsert_map_map",
            vec![map(), map()],
            map(),
            merge,
        ),
    ]
}

fn entries_of<'a>(
    map: &Value<'a>,
    work: &WorkBudget,
) -> Result<BTreeMap<MapKey<'a>, Value<'a>>, Error> {
    let Value::Map(map) = map else { return Err(Error::NoSuchOverload) };
    let mut entries = BTreeMap::new();
    for (key, value) in map.iter(work) {
        let Some(key) = MapKey::of(&key) else { return Err(Error::NoSuchOverload) };
        entries.insert(key, value?);
    }
    Ok(entries)
}

/// Inserts an entry with a new key; an existing key is an error.
fn insert<'a>(
    entries: &mut BTreeMap<MapKey<'a>, Value<'a>>,
    key: &Value<'a>,
    value: Value<'a>,
    work: &WorkBudget,
) -> Result<(), Error> {
    let Some(map_key) = MapKey::of(key) else { return Err(Error::fixed("unsupported key type")) };
    match entries.entry(map_key) {
        std::collections::btree_map::Entry::Vacant(vacant) => {
            vacant.insert(value);
            Ok(())
        }
        std::collections::btree_map::Entry::Occupied(_) => Err(Error::text(
            format!("insert failed: key {} already exists", key.display(work)),
            work,
        )),
    }
}

fn merge<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [map, more] = exactly(args)?;
    let mut entries = entries_of(map, work)?;
    let Value::Map(more) = more else { return Err(Error::NoSuchOverload) };
    for (key, value) in more.iter(work) {
        insert(&mut entries, &key, value?, work)?;
    }
    Ok(Value::Map(MapValue::of(entries)))
}
