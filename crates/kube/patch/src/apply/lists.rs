//! How elements of sets and list maps are known.

use super::path::Step;
use super::problems::Problems;
use super::types::ListType;
use serde_json::Value;

const NO_OBJECTS: &str = "associative list may not have non-map types";

/// The step to an element of a list that is not atomic.
///
/// A key that the element leaves out has its default; without one it is not part of the step, so
/// that elements with and without it are different.
pub(super) fn step<'a>(list: &ListType<'a>, item: &'a Value) -> Result<Step<'a>, String> {
    if list.atomic {
        return Err("invalid indexing of non-associative list".to_owned());
    }
    if list.keys.is_empty() {
        return set_step(item).map_err(str::to_owned);
    }
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        _ => return Err("associative list with keys may not have non-map elements".to_owned()),
    };
    let mut keys = Vec::with_capacity(list.keys.len());
    let mut element = None;
    for name in list.keys {
        let mut value = fields.get(&**name);
        if value.is_none() {
            let atom = element.get_or_insert_with(|| list.element.resolve());
            let map = atom
                .map
                .as_ref()
                .ok_or_else(|| format!("couldn't find default value for {name}: {NO_OBJECTS}"))?;
            value = map.default(name);
        }
        keys.extend(value.map(|value| (&**name, value)));
    }
    if keys.is_empty() {
        let names: Vec<String> = list.keys.iter().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
            names.join(" ")
        ));
    }
    if keys.len() > 1 {
        keys.sort_by_key(|key| key.0);
    }
    Ok(Step::Key(keys))
}

fn set_step(item: &Value) -> Result<Step<'_>, &'static str> {
    match item {
        Value::Object(_) => Err("associative list without keys has an element that's a map type"),
        Value::Array(_) => Err("not supported: associative list with lists as elements"),
        Value::Null => Err("associative list without keys has an element that's an explicit null"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Step::Value(item)),
    }
}

/// The steps to all elements and their positions, without those of which something is wrong.
pub(super) fn steps<'a>(
    list: &ListType<'a>,
    items: &'a [Value],
    problems: &mut Problems,
) -> Vec<(usize, Step<'a>)> {
    let mut steps = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        match step(list, item) {
            Ok(step) => steps.push((at, step)),
            Err(found) => problems.add(format!("element {at}: {found}")),
        }
    }
    steps
}
