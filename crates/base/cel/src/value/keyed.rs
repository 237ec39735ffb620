//! Lists without order: sets, and lists whose elements are told apart by keys.
//!
//! Kubernetes compares here what lies in the object, not what the language makes of it: a string
//! in a set is the same as a string, never as a timestamp, and the whole number 1 of a list of
//! doubles is not the double 1. Keys are looked up in objects under the names that they have in
//! rules (`__namespace__`), as Kubernetes does.

use super::{Element, Error, List, Map, Object, Outcome, Text, Value};
use crate::kubernetes::names;
use serde_json::{Map as JsonMap, Value as Json};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Up to this length everything is compared with everything; no memory is taken.
const FEW: usize = 8;

/// A scalar as it lies in an object, or as Go has it of a value that was added.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Raw<'a> {
    Null,
    /// The `null` of the language is another one than that of data.
    Added,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(Text<'a>),
    Duration(i64),
    Time(i64, u32, i32),
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

    fn of_value(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Added,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int(*int),
            Value::Uint(uint) => Self::Uint(*uint),
            Value::Double(double) => Self::double(*double),
            Value::String(text) => Self::String(text.clone()),
            Value::Duration(duration) => Self::Duration(*duration),
            Value::Timestamp(time) => Self::Time(time.seconds, time.nanos, time.offset),
            Value::Preserved(json) => return Self::of(json),
            _ => return None,
        })
    }

    fn of_element(element: &Element<'a>) -> Option<Self> {
        match element {
            Element::Lying(json) => Self::of(json),
            Element::Added(value) => Self::of_value(value),
        }
    }

    fn double(double: f64) -> Self {
        // Both zeros are one.
        Self::Double((double + 0.0).to_bits())
    }
}

/// The element of a list as it lies there.
fn raw<'a>(list: &List<'a>, at: usize) -> Option<Raw<'a>> {
    match list {
        List::Json { items, .. } => Raw::of(items.get(at)?),
        List::Joined { elements, .. } => Raw::of_element(elements.get(at)?),
        List::Values(values) => Raw::of_value(values.get(at)?),
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
pub(super) fn join_set<'a>(set: &mut Vec<Element<'a>>, other: &List<'a>) -> Result<(), Error> {
    let mut known: HashSet<Raw<'a>> = set.iter().filter_map(Raw::of_element).collect();
    for value in other.iter() {
        let value = value?;
        if Raw::of_value(&value).is_none_or(|raw| known.insert(raw)) {
            set.push(Element::Added(value));
        }
    }
    Ok(())
}

/// The fields by which elements are told apart.
struct Keys<'k>(Vec<Cow<'k, str>>);

impl<'k> Keys<'k> {
    fn of(properties: &'k [Box<str>]) -> Self {
        let name = |name: &'k str| names::escape(name).unwrap_or(name.into());
        Self(properties.iter().map(|property| name(property)).collect())
    }

    /// What an element has in them; none if it is no object.
    fn read<'a>(&self, fields: &'a JsonMap<String, Json>) -> Option<Vec<Raw<'a>>> {
        let read = |name: &str| match fields.get(name) {
            // What is not there is what is null.
            None => Some(Raw::Null),
            Some(json) => Raw::of(json),
        };
        self.0.iter().map(|name| read(name)).collect()
    }

    fn read_value<'a>(&self, element: &Value<'a>) -> Option<Vec<Raw<'a>>> {
        match element {
            Value::Object(Object::Json { fields, .. })
            | Value::Map(Map::Json { entries: fields, .. }) => self.read(fields),
            _ => None,
        }
    }

    fn read_element<'a>(&self, element: &Element<'a>) -> Option<Vec<Raw<'a>>> {
        match element {
            Element::Lying(json) => self.read(json.as_object()?),
            Element::Added(value) => self.read_value(value),
        }
    }

    fn read_at<'a>(&self, list: &List<'a>, at: usize) -> Option<Vec<Raw<'a>>> {
        match list {
            List::Json { items, .. } => self.read(items.get(at)?.as_object()?),
            List::Joined { elements, .. } => self.read_element(elements.get(at)?),
            List::Values(values) => self.read_value(values.get(at)?),
        }
    }
}

/// Whether a list with keys has the elements of another list of the same length.
pub(super) fn same_by_keys<'a>(
    list: &List<'a>,
    other: &List<'a>,
    properties: &[Box<str>],
) -> Result<bool, Error> {
    let keys = Keys::of(properties);
    // Of elements with the same keys the last one counts.
    let known: HashMap<_, _> =
        (0..list.len()).filter_map(|at| keys.read_at(list, at).map(|key| (key, at))).collect();
    for element in other.iter() {
        let Ok(element) = element else { return Ok(false) };
        let found = keys.read_value(&element).and_then(|key| list.get(*known.get(&key)?));
        let Some(found) = found else { return Ok(false) };
        if !found?.raw_equals(&element)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts elements over those with the same keys, and the rest behind.
pub(super) fn join_by_keys<'a>(
    list: &mut Vec<Element<'a>>,
    other: &List<'a>,
    properties: &[Box<str>],
) -> Result<(), Error> {
    let keys = Keys::of(properties);
    let mut places = HashMap::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        if let Some(key) = keys.read_element(element) {
            places.insert(key, at);
        }
    }
    for element in other.iter() {
        let element = element?;
        let place = keys.read_value(&element).and_then(|key| places.get(&key));
        match place {
            Some(at) => list[*at] = Element::Added(element),
            None => list.push(Element::Added(element)),
        }
    }
    Ok(())
}
