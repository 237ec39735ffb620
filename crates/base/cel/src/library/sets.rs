//! Lists as sets (cel-go's `ext.Sets`): `sets.contains(self.all, ["a", "b"])`.

use super::args::exactly;
use super::{Library, Overload, Strict};
use crate::types::Type;
use crate::value::{Error, List, Value};

/// `sets.contains`, `sets.equivalent`, `sets.intersects`.
pub static LIBRARY: Library =
    Library { name: "cel.lib.ext.sets", overloads, macros: &[], types: Vec::new };

fn overloads() -> Vec<Overload> {
    let function = |name, id, run: Strict| {
        let list = || Type::list(Type::param("T"));
        Overload::function(name, id, vec![list(), list()], Type::Bool, run)
    };
    vec![
        function("sets.contains", "list_sets_contains_list", |args| {
            let [list, part] = lists(args)?;
            contains(list, part).map(Value::Bool)
        }),
        function("sets.equivalent", "list_sets_equivalent_list", |args| {
            let [one, other] = lists(args)?;
            Ok(Value::Bool(contains(one, other)? && contains(other, one)?))
        }),
        function("sets.intersects", "list_sets_intersects_list", |args| {
            let [one, other] = lists(args)?;
            Ok(Value::Bool(one.iter().flatten().any(|value| other.contains(&value) == Ok(true))))
        }),
    ]
}

fn lists<'v, 'a>(args: &'v [Value<'a>]) -> Result<[&'v List<'a>; 2], Error> {
    match exactly(args)? {
        [Value::List(one), Value::List(other)] => Ok([one, other]),
        _ => Err(Error::NoSuchOverload),
    }
}

/// Whether all elements of a list are in another.
fn contains(list: &List<'_>, part: &List<'_>) -> Result<bool, Error> {
    for value in part.iter() {
        if !list.contains(&value?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
