//! Set library: lists as sets (cel-go's `ext.Sets`): `sets.contains(self.all, ["a", "b"])`.

use super::args::exactly;
use super::{FunctionLibrary, Overload, StrictFunction};
use crate::types::Type;
use crate::value::{Error, ListValue, MapKey, Value, WorkBudget};
use std::collections::BTreeSet;

/// `sets.contains`, `sets.equivalent`, `sets.intersects`.
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "cel.lib.ext.sets", overloads, macros: &[], types: Vec::new };

fn overloads() -> Vec<Overload> {
    let function = |name, id, run: StrictFunction| {
        let list = || Type::list(Type::param("T"));
        Overload::function(name, id, vec![list(), list()], Type::Bool, run)
    };
    vec![
        function("sets.contains", "list_sets_contains_list", |args, work| {
            let [list, part] = two_lists(args)?;
            contains(list, part, work).map(Value::Bool)
        }),
        function("sets.equivalent", "list_sets_equivalent_list", |args, work| {
            let [one, other] = two_lists(args)?;
            Ok(Value::Bool(contains(one, other, work)? && contains(other, one, work)?))
        }),
        function("sets.intersects", "list_sets_intersects_list", |args, work| {
            let [one, other] = two_lists(args)?;
            let other = Members::of(other, work);
            Ok(Value::Bool(
                one.iter(work).flatten().any(|value| other.contains(&value, work) == Ok(true)),
            ))
        }),
    ]
}

fn two_lists<'v, 'a>(args: &'v [Value<'a>]) -> Result<[&'v ListValue<'a>; 2], Error> {
    match exactly(args)? {
        [Value::List(one), Value::List(other)] => Ok([one, other]),
        _ => Err(Error::NoSuchOverload),
    }
}

/// Whether all elements of a list are in another.
fn contains<'a>(
    list: &ListValue<'a>,
    part: &ListValue<'a>,
    work: &WorkBudget,
) -> Result<bool, Error> {
    let members = Members::of(list, work);
    for value in part.iter(work) {
        if !members.contains(&value?, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The elements of a list, for many lookups.
enum Members<'v, 'a> {
    /// The strings, booleans and whole numbers of a long list.
    Keys(BTreeSet<MapKey<'a>>, &'v ListValue<'a>),
    /// Any other list.
    List(&'v ListValue<'a>),
}

/// Shorter lists are searched linearly.
const MAX_LINEAR: usize = 16;

impl<'v, 'a> Members<'v, 'a> {
    fn of(list: &'v ListValue<'a>, work: &WorkBudget) -> Self {
        let keys =
            |list: &ListValue<'a>| list.iter(work).map(|value| MapKey::of(&value.ok()?)).collect();
        match (list.len() > MAX_LINEAR).then(|| keys(list)).flatten() {
            Some(keys) => Self::Keys(keys, list),
            None => Self::List(list),
        }
    }

    fn contains(&self, value: &Value<'a>, work: &WorkBudget) -> Result<bool, Error> {
        match (self, MapKey::of(value)) {
            (Self::Keys(keys, _), Some(key)) => Ok(keys.contains(&key)),
            (Self::Keys(_, list) | Self::List(list), _) => list.contains(value, work),
        }
    }
}
