//! Lists without order: sets, and lists whose elements are told apart by keys.
//!
//! Kubernetes compares here what lies in the object, not what the language makes of it: a string
//! in a set is the same as a string, never as a timestamp, and the whole number 1 of a list of
//! doubles is not the double 1. Keys are looked up in objects under the names that they have in
//! rules (`__namespace__`), as Kubernetes does.

use super::{
    Error, ListElement, ListValue, MapValue, ObjectValue, StringValue, Value, ValueResult,
    WorkBudget,
};
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
    String(StringValue<'a>),
    Duration(i64),
    Time(i64, u32, i32),
}

impl<'a> Raw<'a> {
    /// What lies there; none of what is no scalar.
    fn of(json: &'a Json, work: &WorkBudget) -> Option<Self> {
        Some(match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(*bool),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Self::Int(int),
                None => Self::double(number.as_f64()?),
            },
            Json::String(text) => Self::text(StringValue::Borrowed(text), work),
            Json::Array(_) | Json::Object(_) => return None,
        })
    }

    fn of_value(value: &Value<'a>, work: &WorkBudget) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Added,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int(*int),
            Value::Uint(uint) => Self::Uint(*uint),
            Value::Double(double) => Self::double(*double),
            Value::String(text) => Self::text(text.clone(), work),
            Value::Duration(duration) => Self::Duration(*duration),
            Value::Timestamp(time) => Self::Time(time.seconds, time.nanos, time.offset),
            Value::Preserved(json) => return Self::of(json, work),
            _ => return None,
        })
    }

    fn of_element(element: &ListElement<'a>, work: &WorkBudget) -> Option<Self> {
        match element {
            ListElement::Original(json) => Self::of(json, work),
            ListElement::Added(value) => Self::of_value(value, work),
        }
    }

    /// A text will be hashed or compared. The evaluation checks later whether work remains.
    fn text(text: StringValue<'a>, work: &WorkBudget) -> Self {
        let _ = work.read_text(text.len());
        Self::String(text)
    }

    fn double(double: f64) -> Self {
        // Both zeros are one.
        Self::Double((double + 0.0).to_bits())
    }
}

/// The element of a list as it lies there.
fn raw<'a>(list: &ListValue<'a>, at: usize, work: &WorkBudget) -> Option<Raw<'a>> {
    match list {
        ListValue::Json { items, .. } => Raw::of(items.get(at)?, work),
        ListValue::Joined { elements, .. } => Raw::of_element(elements.get(at)?, work),
        ListValue::Values(values) => Raw::of_value(values.get(at)?, work),
    }
}

/// Whether a set has the elements of another list of the same length.
pub(super) fn same_set<'a>(set: &ListValue<'a>, other: &ListValue<'a>, work: &WorkBudget) -> bool {
    let wanted = |value: ValueResult<'a>| Raw::of_value(&value.ok()?, work);
    if set.len() <= FEW {
        return other.iter(work).all(|value| {
            wanted(value).is_some_and(|value| {
                (0..set.len()).any(|at| raw(set, at, work).as_ref() == Some(&value))
            })
        });
    }
    let known: HashSet<Raw<'a>> = (0..set.len()).filter_map(|at| raw(set, at, work)).collect();
    other.iter(work).all(|value| wanted(value).is_some_and(|value| known.contains(&value)))
}

/// Adds to a set what it does not have yet.
pub(super) fn join_set<'a>(
    set: &mut Vec<ListElement<'a>>,
    other: &ListValue<'a>,
    work: &WorkBudget,
) -> Result<(), Error> {
    let mut known: HashSet<Raw<'a>> =
        set.iter().filter_map(|element| Raw::of_element(element, work)).collect();
    for value in other.iter(work) {
        let value = value?;
        if Raw::of_value(&value, work).is_none_or(|raw| known.insert(raw)) {
            set.push(ListElement::Added(value));
        }
    }
    Ok(())
}

/// The fields of an element; none if it is no object.
fn fields_of<'a>(value: &Value<'a>) -> Option<&'a JsonMap<String, Json>> {
    match value {
        Value::Object(ObjectValue::Json { fields, .. })
        | Value::Map(MapValue::Json { entries: fields, .. }) => Some(fields),
        _ => None,
    }
}

fn fields_of_element<'a>(element: &ListElement<'a>) -> Option<&'a JsonMap<String, Json>> {
    match element {
        ListElement::Original(json) => json.as_object(),
        ListElement::Added(value) => fields_of(value),
    }
}

fn fields_at<'a>(list: &ListValue<'a>, at: usize) -> Option<&'a JsonMap<String, Json>> {
    match list {
        ListValue::Json { items, .. } => items.get(at)?.as_object(),
        ListValue::Joined { elements, .. } => fields_of_element(elements.get(at)?),
        ListValue::Values(values) => fields_of(values.get(at)?),
    }
}

/// What is in the fields by which elements are told apart; none if it is no scalar.
fn keys<'a>(
    properties: &[Box<str>],
    fields: &'a JsonMap<String, Json>,
    work: &WorkBudget,
) -> impl Iterator<Item = Option<Raw<'a>>> {
    properties.iter().map(move |property| {
        let name = names::escape(property);
        match fields.get(name.as_deref().unwrap_or(property)) {
            // What is not there is what is null.
            None => Some(Raw::Null),
            Some(json) => Raw::of(json, work),
        }
    })
}

/// All of [`keys`].
fn key<'a>(
    properties: &[Box<str>],
    fields: &'a JsonMap<String, Json>,
    work: &WorkBudget,
) -> Option<Vec<Raw<'a>>> {
    keys(properties, fields, work).collect()
}

/// Whether a list with keys has the elements of another list of the same length.
pub(super) fn same_by_keys<'a>(
    list: &ListValue<'a>,
    other: &ListValue<'a>,
    properties: &[Box<str>],
    work: &WorkBudget,
) -> Result<bool, Error> {
    let all = 0..list.len();
    // Of elements with the same keys the last one counts.
    let known: HashMap<Vec<Raw<'a>>, usize> = if list.len() <= FEW {
        HashMap::new()
    } else {
        all.clone()
            .filter_map(|at| Some((key(properties, fields_at(list, at)?, work)?, at)))
            .collect()
    };
    let place = |fields: &'a JsonMap<String, Json>| {
        if list.len() > FEW {
            return known.get(&key(properties, fields, work)?).copied();
        }
        all.clone().rev().find(|at| {
            fields_at(list, *at).is_some_and(|own| {
                keys(properties, own, work)
                    .zip(keys(properties, fields, work))
                    .all(|(one, other)| one.is_some() && one == other)
            })
        })
    };
    for element in other.iter(work) {
        let Ok(element) = element else { return Ok(false) };
        let found = fields_of(&element).and_then(place).and_then(|at| list.get(at, work));
        let Some(found) = found else { return Ok(false) };
        if !found?.raw_equals(&element, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts elements over those with the same keys, and the rest behind.
pub(super) fn join_by_keys<'a>(
    list: &mut Vec<ListElement<'a>>,
    other: &ListValue<'a>,
    properties: &[Box<str>],
    work: &WorkBudget,
) -> Result<(), Error> {
    let mut places = HashMap::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        if let Some(key) =
            fields_of_element(element).and_then(|fields| key(properties, fields, work))
        {
            places.insert(key, at);
        }
    }
    for element in other.iter(work) {
        let element = element?;
        let key = fields_of(&element).and_then(|fields| key(properties, fields, work));
        match key.and_then(|key| places.get(&key)) {
            Some(at) => list[*at] = ListElement::Added(element),
            None => list.push(ListElement::Added(element)),
        }
    }
    Ok(())
}
