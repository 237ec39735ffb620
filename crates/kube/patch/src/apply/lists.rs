//! How elements of sets and list maps are known.

use super::path::Step;
use super::problems::Problems;
use super::types::ListType;
use serde_json::Value;

/// An element has no step to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    /// Its list is atomic.
    #[error("invalid indexing of non-associative list")]
    Atomic,
    /// It is null, and its list has keys.
    #[error("associative list with keys may not have a null element")]
    NullWithKeys,
    /// It is no object, and its list has keys.
    #[error("associative list with keys may not have non-map elements")]
    NoObject,
    /// It leaves a key out, and the elements of its list are no objects.
    #[error("couldn't find default value for {key}: associative list may not have non-map types")]
    NoDefault {
        /// The key.
        key: String,
    },
    /// It leaves all keys out.
    #[error(
        "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
        quoted(keys)
    )]
    NoKeys {
        /// The keys.
        keys: Vec<String>,
    },
    /// It is an object, and its list has no keys.
    #[error("associative list without keys has an element that's a map type")]
    ObjectInSet,
    /// It is a list, and its list has no keys.
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    /// It is null, and its list has no keys.
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
}

fn quoted(keys: &[String]) -> String {
    keys.iter().map(|key| format!("{key:?}")).collect::<Vec<_>>().join(" ")
}

/// The step to an element of a list that is not atomic.
///
/// A key that the element leaves out has its default; without one it is not part of the step, so
/// that elements with and without it are different.
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
        _ => return Err(StepError::NoObject),
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
