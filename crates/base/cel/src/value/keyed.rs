//! Lists without order: sets, and lists whose elements are told apart by keys.
//!
//! Kubernetes compares here what lies in the object, not what the language makes of it: a string
//! in a set is the same as a string, never as a timestamp, and the whole number 1 of a list of
//! doubles is not the double 1. Keys are looked up in objects under the names that they have in
//! rules (`__namespace__`), as Kubernetes does.

use super::{Element, Error, List, Map, Object, Outcome, Text, Value, work};
use crate::kubernetes::names;
use serde_json::{Map as JsonMap, Value as Json};
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
            Json::String(text) => Self::text(Text::Borrowed(text)),
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
            Value::String(text) => Self::text(text.clone()),
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

    /// Texts are hashed or compared. Whoever asks for that looks at what is left of the measure.
    fn text(text: Text<'a>) -> Self {
        let _ = work::take(work::through_text(text.len()));
        Self::String(text)
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

/// The fields of an element; none if it is no object.
fn fields_of<'a>(value: &Value<'a>) -> Option<&'a JsonMap<String, Json>> {
    match value {
        Value::Object(Object::Json { fields, .. })
        | Value::Map(Map::Json { entries: fields, .. }) => Some(fields),
        _ => None,
    }
}

fn fields_of_element<'a>(element: &Element<'a>) -> Option<&'a JsonMap<String, Json>> {
    match element {
        Element::Lying(json) => json.as_object(),
        Element::Added(value) => fields_of(value),
    }
}

fn fields_at<'a>(list: &List<'a>, at: usize) -> Option<&'a JsonMap<String, Json>> {
    match list {
        List::Json { items, .. } => items.get(at)?.as_object(),
        List::Joined { elements, .. } => fields_of_element(elements.get(at)?),
        List::Values(values) => fields_of(values.get(at)?),
    }
}

/// What is in the fields by which elements are told apart; none if it is no scalar.
fn keys<'a>(
    properties: &[Box<str>],
    fields: &'a JsonMap<String, Json>,
) -> impl Iterator<Item = Option<Raw<'a>>> {
    properties.iter().map(|property| {
        let name = names::escape(property);
        match fields.get(name.as_deref().unwrap_or(property)) {
            // What is not there is what is null.
            None => Some(Raw::Null),
            Some(json) => Raw::of(json),
        }
    })
}

/// All of [`keys`].
fn key<'a>(properties: &[Box<str>], fields: &'a JsonMap<String, Json>) -> Option<Vec<Raw<'a>>> {
    keys(properties, fields).collect()
}

/// Whether a list with keys has the elements of another list of the same length.
pub(super) fn same_by_keys<'a>(
    list: &List<'a>,
    other: &List<'a>,
    properties: &[Box<str>],
) -> Result<bool, Error> {
    let all = 0..list.len();
    // Of elements with the same keys the last one counts.
    let known: HashMap<Vec<Raw<'a>>, usize> = if list.len() <= FEW {
        HashMap::new()
    } else {
        all.clone().filter_map(|at| Some((key(properties, fields_at(list, at)?)?, at))).collect()
    };
    let place = |fields: &'a JsonMap<String, Json>| {
        if list.len() > FEW {
            return known.get(&key(properties, fields)?).copied();
        }
        all.clone().rev().find(|at| {
            fields_at(list, *at).is_some_and(|own| {
                keys(properties, own)
                    .zip(keys(properties, fields))
                    .all(|(one, other)| one.is_some() && one == other)
            })
        })
    };
    for element in other.iter() {
        let Ok(element) = element else { return Ok(false) };
        let found = fields_of(&element).and_then(place).and_then(|at| list.get(at));
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
    let mut places = HashMap::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        if let Some(key) = fields_of_element(element).and_then(|fields| key(properties, fields)) {
            places.insert(key, at);
        }
    }
    for element in other.iter() {
        let element = element?;
        let key = fields_of(&element).and_then(|fields| key(properties, fields));
        match key.and_then(|key| places.get(&key)) {
            Some(at) => list[*at] = Element::Added(element),
            None => list.push(Element::Added(element)),
        }
    }
    Ok(())
}
