//! Lists without order: sets, and lists whose elements are told apart by keys.
//!
//! Kubernetes compares here what lies in the object, not what the language makes of it: a string
//! in a set is the same as a string, never as a timestamp, and the whole number 1 of a list of
//! doubles is not the double 1. Keys are looked up in objects under the names that they have in
//! rules (`__namespace__`), as Kubernetes does.

use super::{Error, List, Map, Object, Outcome, Text, Value};
use crate::kubernetes::names;
use serde_json::Value as Json;
use std::collections::{HashMap, HashSet};

/// Up to this length everything is compared with everything; no memory is taken.
const FEW: usize = 8;

/// A scalar as it lies in an object.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Raw<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(u64),
    String(Text<'a>),
}

impl<'a> Raw<'a> {
    /// What lies there; none of what is no scalar.
    fn of(json: &'a Json) -> Option<Self> {
        Some(match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(*bool),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::double(number.as_f64()?),
            },
            Json::String(text) => Self::String(Text::Borrowed(text)),
            Json::Array(_) | Json::Object(_) => return None,
        })
    }

    /// What would lie there for a value; none of what could not.
    fn of_value(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int(*int),
            Value::Double(double) => Self::double(*double),
            Value::String(text) => Self::String(text.clone()),
            Value::Preserved(json) => return Self::of(json),
            _ => return None,
        })
    }

    fn double(double: f64) -> Self {
        // Both zeros are one.
        Self::Double((double + 0.0).to_bits())
    }
}

fn raw<'a>(list: &List<'a>, at: usize) -> Option<Raw<'a>> {
    match list {
        List::Json { items, .. } => Raw::of(items.get(at)?),
        List::Values(values) | List::Joined { values, .. } => Raw::of_value(values.get(at)?),
    }
}

/// Whether a set has the elements of another list of the same length.
pub(super) fn same_set<'a>(set: &List<'a>, other: &List<'a>) -> bool {
    let wanted = |value: Outcome<'a>| value.ok().as_ref().and_then(Raw::of_value);
    if set.len() <= FEW {
        return other.iter().all(|value| {
            wanted(value)
                .is_some_and(|value| (0..set.len()).any(|at| raw(set, at).as_ref() == Some(&value)))
        });
    }
    let known: HashSet<Raw<'a>> = (0..set.len()).filter_map(|at| raw(set, at)).collect();
    other.iter().all(|value| wanted(value).is_some_and(|value| known.contains(&value)))
}

/// Adds to a set what it does not have yet.
pub(super) fn join_set<'a>(set: &mut Vec<Value<'a>>, other: &List<'a>) -> Result<(), Error> {
    let mut known: HashSet<Raw<'a>> = set.iter().filter_map(Raw::of_value).collect();
    for value in other.iter() {
        let value = value?;
        if Raw::of_value(&value).is_none_or(|raw| known.insert(raw)) {
            set.push(value);
        }
    }
    Ok(())
}

/// The fields by which elements are told apart.
struct Keys<'k>(Vec<std::borrow::Cow<'k, str>>);

impl<'k> Keys<'k> {
    fn of(properties: &'k [Box<str>]) -> Self {
        let name = |name: &'k str| names::escape(name).unwrap_or(name.into());
        Self(properties.iter().map(|property| name(property)).collect())
    }

    /// What an element has in them; none if it is no object.
    fn read<'a>(&self, element: &Value<'a>) -> Option<Vec<Raw<'a>>> {
        let fields = match element {
            Value::Object(Object::Json { fields, .. })
            | Value::Map(Map::Json { entries: fields, .. }) => *fields,
            _ => return None,
        };
        let read = |name: &str| match fields.get(name) {
            // What is not there is what is null.
            None => Some(Raw::Null),
            Some(json) => Raw::of(json),
        };
        self.0.iter().map(|name| read(name)).collect()
    }
}

/// Whether a list with keys has the elements of another list of the same length.
pub(super) fn same_by_keys<'a>(
    list: &List<'a>,
    other: &List<'a>,
    properties: &[Box<str>],
) -> Result<bool, Error> {
    let keys = Keys::of(properties);
    let mut known = HashMap::with_capacity(list.len());
    for element in list.iter() {
        let element = element?;
        // Of elements with the same keys the last one counts.
        if let Some(key) = keys.read(&element) {
            known.insert(key, element);
        }
    }
    for element in other.iter() {
        let Ok(element) = element else { return Ok(false) };
        let found = keys.read(&element).and_then(|key| known.get(&key));
        match found.map(|found| found.raw_equals(&element)) {
            Some(Ok(true)) => {}
            None => return Ok(false),
            Some(unequal) => return unequal,
        }
    }
    Ok(true)
}

/// Puts elements over those with the same keys, and the rest behind.
pub(super) fn join_by_keys<'a>(
    list: &mut Vec<Value<'a>>,
    other: &List<'a>,
    properties: &[Box<str>],
) -> Result<(), Error> {
    let keys = Keys::of(properties);
    let mut places = HashMap::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        if let Some(key) = keys.read(element) {
            places.insert(key, at);
        }
    }
    for element in other.iter() {
        let element = element?;
        match keys.read(&element).and_then(|key| places.get(&key)) {
            Some(at) => list[*at] = element,
            None => list.push(element),
        }
    }
    Ok(())
}
