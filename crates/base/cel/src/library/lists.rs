//! List library (cel-go's `ext.Lists`): `slice`, `flatten`, `sort`, `distinct`, ….

use super::args::{exactly, int, new_list};
use super::{FunctionLibrary, Overload, StrictFunction};
use crate::syntax::ast::{Expr, ExprKind};
use crate::syntax::{Expansion, Macro, MacroError, NodeFactory, macros};
use crate::types::Type;
use crate::value::{Error, ListValue, MapKey, Value, ValueResult, WorkBudget};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::mem::discriminant;

/// The library of a version: 0 has `slice`; 1 adds `flatten`; 2 adds `sort`, `sortBy`,
/// `lists.range`, `reverse` and `distinct`; 3 has other costs. Later versions are the latest.
pub fn library(version: u32) -> &'static FunctionLibrary {
    const NAME: &str = "cel.lib.ext.lists";
    static VERSIONS: [FunctionLibrary; 3] = [
        FunctionLibrary { name: NAME, overloads: || overloads(0), macros: &[], types: Vec::new },
        FunctionLibrary { name: NAME, overloads: || overloads(1), macros: &[], types: Vec::new },
        FunctionLibrary {
            name: NAME,
            overloads: || overloads(2),
            macros: SORT_BY,
            types: Vec::new,
        },
    ];
    &VERSIONS[(version as usize).min(VERSIONS.len() - 1)]
}

/// The maximum number of elements that a function creates. A budget stops programs before, but the
/// cost of a result is charged only after its creation.
const MAX_ELEMENTS: usize = 1 << 20;

const SORT_BY: &[Macro] =
    &[Macro { name: "sortBy", receiver: true, args: Some(2), expand: sort_by }];

/// `list.sortBy(e, key)` becomes `@list.@sortByAssociatedKeys(@list.map(e, key))`.
fn sort_by(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    const INPUT: &str = "@__sortBy_input__";
    let Some(target) = target else { return Ok(Expansion::Unchanged(None, args)) };
    if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. }) {
        let message = "sortBy can only be applied to a list, identifier, comprehension, call or \
                       select expression";
        return Err(MacroError { at: target.at, message: message.to_owned() });
    }
    let input = factory.ident(INPUT);
    let keys = match macros::map(factory, Some(input), args)? {
        Expansion::Replacement(keys) => keys,
        Expansion::Unchanged(_, args) => return Ok(Expansion::Unchanged(Some(target), args)),
    };
    let input = factory.ident(INPUT);
    let sorted = factory.method(input, "@sortByAssociatedKeys", vec![keys]);
    let name = factory.name(INPUT);
    Ok(Expansion::Replacement(factory.bind(name, target, sorted)))
}

/// The overloads for each type of sort keys, with its name in ids.
macro_rules! sort_overloads {
    ($all:ident, $($type:ident $name:literal),*) => {
        $($all.push(Overload::method(
            "sort",
            concat!("list_", $name, "_sort"),
            vec![Type::list(Type::$type)],
            Type::list(Type::$type),
            sort,
        ));
        $all.push(Overload::method(
            "@sortByAssociatedKeys",
            concat!("list_", $name, "_sortByAssociatedKeys"),
            vec![Type::list(Type::param("T")), Type::list(Type::$type)],
            Type::list(Type::param("T")),
            sort_by_keys,
        ));)*
    };
}

fn overloads(version: u32) -> Vec<Overload> {
    let list = || Type::list(Type::param("T"));
    let same =
        |name, id, run: StrictFunction| Overload::method(name, id, vec![list()], list(), run);
    let mut all = vec![Overload::method(
        "slice",
        "list_slice",
        vec![list(), Type::Int, Type::Int],
        list(),
        slice,
    )];
    if version >= 1 {
        let dynamic = || Type::list(Type::Dyn);
        all.push(Overload::method(
            "flatten",
            "list_flatten",
            vec![Type::list(list())],
            list(),
            flatten,
        ));
        all.push(Overload::method(
            "flatten",
            "list_flatten_int",
            vec![dynamic(), Type::Int],
            dynamic(),
            flatten,
        ));
    }
    if version >= 2 {
        sort_overloads!(
            all,
            Int "int",
            Uint "uint",
            Double "double",
            Bool "bool",
            Duration "google.protobuf.Duration",
            Timestamp "google.protobuf.Timestamp",
            String "string",
            Bytes "bytes"
        );
        all.push(Overload::function(
            "lists.range",
            "lists_range",
            vec![Type::Int],
            Type::list(Type::Int),
            range,
        ));
        all.push(same("reverse", "list_reverse", |args, work| {
            let [list] = exactly(args)?;
            Ok(new_list(elements(list)?.iter(work).rev().collect::<Result<_, _>>()?))
        }));
        all.push(same("distinct", "list_distinct", distinct));
    }
    all
}

fn elements<'v, 'a>(value: &'v Value<'a>) -> Result<&'v ListValue<'a>, Error> {
    match value {
        Value::List(list) => Ok(list),
        _ => Err(Error::NoSuchOverload),
    }
}

fn slice<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [list, start, end] = exactly(args)?;
    let (list, start, end) = (elements(list)?, int(start)?, int(end)?);
    let slice_error = |why| Err(Error::text(format!("cannot slice({start}, {end}), {why}"), work));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return slice_error("negative indexes not supported".to_owned());
    };
    if from > to {
        return slice_error("start index must be less than or equal to end index".to_owned());
    }
    if to > list.len() {
        return slice_error(format!("list is length {}", list.len()));
    }
    Ok(new_list(list.iter(work).skip(from).take(to - from).collect::<Result<_, _>>()?))
}

/// Lists without nested lists are accepted too, whatever their type. Other values have their own
/// error message.
fn flatten<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let (list, depth) = match args {
        [Value::List(list)] => (list, 1),
        [Value::List(list), Value::Int(depth)] => (list, *depth),
        [value, rest @ ..] => {
            let type_text = |value: &Value<'a>| match value.type_of() {
                cel_type @ (Type::List(_) | Type::Map(_)) => cel_type.to_string(),
                cel_type => cel_type.name().to_owned(),
            };
            let depth = rest.first().map(type_text).unwrap_or_default();
            let value = type_text(value);
            return Err(Error::text(format!("no such overload: {value}.flatten({depth})"), work));
        }
        [] => return Err(Error::NoSuchOverload),
    };
    if depth < 0 {
        return Err(Error::fixed("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(list, depth, &mut flat, work)?;
    Ok(new_list(flat))
}

/// Lists are no deeper than the expressions and objects that they come from, whose depth is
/// limited.
fn flatten_into<'a>(
    list: &ListValue<'a>,
    depth: i64,
    flat: &mut Vec<Value<'a>>,
    work: &WorkBudget,
) -> Result<(), Error> {
    work.take(list.len())?;
    for value in list.iter(work) {
        match value? {
            Value::List(inner) if depth > 0 => flatten_into(&inner, depth - 1, flat, work)?,
            value => flat.push(value),
        }
        if flat.len() > MAX_ELEMENTS {
            return Err(Error::CostLimit);
        }
    }
    Ok(())
}

fn range<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [end] = exactly(args)?;
    let end = int(end)?;
    if usize::try_from(end).is_ok_and(|end| end > MAX_ELEMENTS) {
        return Err(Error::CostLimit);
    }
    Ok(new_list((0..end).map(Value::Int).collect()))
}

fn sort<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [list] = exactly(args)?;
    let list = elements(list)?;
    sort_list_by(list, list, work)
}

fn sort_by_keys<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [list, keys] = exactly(args)?;
    sort_list_by(elements(list)?, elements(keys)?, work)
}

/// The elements of a list in the order of keys; the sort is stable.
///
/// Upstream does not define the order of equal keys and of `NaN`.
fn sort_list_by<'a>(
    list: &ListValue<'a>,
    keys: &ListValue<'a>,
    work: &WorkBudget,
) -> ValueResult<'a> {
    if list.len() != keys.len() {
        return Err(Error::text(
            format!(
                "@sortByAssociatedKeys() expected a list of the same size as the associated keys \
                 list, but got {} and {} elements respectively",
                list.len(),
                keys.len()
            ),
            work,
        ));
    }
    let keys: Vec<Value<'a>> = keys.iter(work).collect::<Result<_, _>>()?;
    let Some(first) = keys.first() else { return Ok(Value::List(list.clone())) };
    if first.compare(first) == Err(Error::NoSuchOverload) {
        return Err(Error::fixed("list elements must be comparable"));
    }
    if keys.iter().any(|key| discriminant(key) != discriminant(first)) {
        return Err(Error::fixed("list elements must have the same type"));
    }
    let mut pairs: Vec<(&Value<'a>, Value<'a>)> = Vec::with_capacity(keys.len());
    for (key, value) in keys.iter().zip(list.iter(work)) {
        pairs.push((key, value?));
    }
    pairs.sort_by(|(one, _), (other, _)| compare_keys(one, other));
    Ok(new_list(pairs.into_iter().map(|(_, value)| value).collect()))
}

/// `NaN` sorts after all other numbers, so the order is total.
fn compare_keys(one: &Value<'_>, other: &Value<'_>) -> Ordering {
    let is_nan = |value: &Value<'_>| matches!(value, Value::Double(number) if number.is_nan());
    one.compare(other).unwrap_or_else(|_| is_nan(one).cmp(&is_nan(other)))
}

/// The elements without duplicates.
fn distinct<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [list] = exactly(args)?;
    let values: Vec<Value<'a>> = elements(list)?.iter(work).collect::<Result<_, _>>()?;
    // Nearly all lists have strings or whole numbers, which need no pairwise comparison.
    let keys: Option<Vec<MapKey<'a>>> = values.iter().map(MapKey::of).collect();
    if let Some(keys) = keys {
        let mut previous_keys = BTreeSet::new();
        let first = keys.into_iter().map(|key| previous_keys.insert(key));
        let distinct_values = first.zip(values).filter(|(first, _)| *first).map(|(_, value)| value);
        return Ok(new_list(distinct_values.collect()));
    }
    let mut distinct_values: Vec<Value<'a>> = Vec::new();
    for value in values {
        work.take(distinct_values.len())?;
        if !distinct_values.iter().any(|previous| value.equals(previous, work) == Ok(true)) {
            distinct_values.push(value);
        }
    }
    Ok(new_list(distinct_values))
}
