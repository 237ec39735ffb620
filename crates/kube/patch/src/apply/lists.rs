//! Path elements of list elements in sets and list maps.

use super::path::Step;
use super::problems::TypeProblems;
use super::types::ListType;
use serde_json::Value;

/// A list element has no path element. Messages are those of structured-merge-diff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    /// The list is atomic.
    #[error("invalid indexing of non-associative list")]
    Atomic,
    /// The element is null, and the list has keys.
    #[error("associative list with keys may not have a null element")]
    NullWithKeys,
    /// The element is no object, and the list has keys.
    #[error("associative list with keys may not have non-map elements")]
    NotAnObject,
    /// The element omits a key, and the type of the elements is no object.
    #[error("couldn't find default value for {key}: associative list may not have non-map types")]
    NoDefault {
        /// The key.
        key: String,
    },
    /// The element omits all keys.
    #[error(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
        quoted(keys)
    )]
    NoKeys {
        /// The keys.
        keys: Vec<String>,
    },
    /// The element is an object, and the list has no keys.
    #[error("associative list without keys has an element that's a map type")]
    ObjectInSet,
    /// The element is a list, and the list has no keys.
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    /// The element is null, and the list has no keys.
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
}

fn quoted(keys: &[String]) -> String {
    keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" ")
}

/// The path element of an element of a list.
///
/// An omitted key has its default. Without a default, the path element omits the key too, so that
/// elements with and without it differ.
pub(super) fn step<'a>(list: &ListType<'a>, item: &'a Value) -> Result<Step<'a>, StepError> {
    if list.atomic {
        return Err(StepError::Atomic);
    }
    if list.keys.is_empty() {
        return set_step(item);
    }
    let fields = match item {
        Value::Object(fields) => fields,
        Value::Null => return Err(StepError::NullWithKeys),
        _ => return Err(StepError::NotAnObject),
    };
    let mut keys = Vec::with_capacity(list.keys.len());
    let mut element = None;
    for name in list.keys {
        let mut value = fields.get(&**name);
        if value.is_none() {
            let atom = element.get_or_insert_with(|| list.element.resolve());
            let map =
                atom.map.as_ref().ok_or_else(|| StepError::NoDefault { key: name.to_string() })?;
            value = map.default(name);
        }
        keys.extend(value.map(|value| (&**name, value)));
    }
    if keys.is_empty() {
        let keys = list.keys.iter().map(ToString::to_string).collect();
        return Err(StepError::NoKeys { keys });
    }
    if keys.len() > 1 {
        keys.sort_by_key(|key| key.0);
    }
    Ok(Step::Key(keys))
}

fn set_step(item: &Value) -> Result<Step<'_>, StepError> {
    match item {
        Value::Object(_) => Err(StepError::ObjectInSet),
        Value::Array(_) => Err(StepError::ListInSet),
        Value::Null => Err(StepError::NullInSet),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(Step::Value(item)),
    }
}

/// The path elements of all elements with their indices, without those of invalid elements.
pub(super) fn steps<'a>(
    list: &ListType<'a>,
    items: &'a [Value],
    problems: &mut TypeProblems,
) -> Vec<(usize, Step<'a>)> {
    let mut steps = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match step(list, item) {
            Ok(step) => steps.push((index, step)),
            Err(error) => problems.add(format!("element {index}: {error}")),
        }
    }
    steps
}
