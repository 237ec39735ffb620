//! Lists of `x-kubernetes-list-type` `set` and `map`: comparison and concatenation.
//!
//! Kubernetes compares the data here, not the CEL values. A string in a set equals only a string,
//! not a timestamp, and the whole number 1 of a list of doubles is not the double 1. As in
//! Kubernetes, keys are looked up in objects under their escaped names (`__namespace__`).

use super::{
    Error, ListElement, ListValue, MapValue, ObjectValue, StringValue, Value, ValueResult,
    WorkBudget,
};
use crate::kubernetes::names;
use serde_json::{Map as JsonMap, Value as Json};
use std::collections::{HashMap, HashSet};

/// Up to this length elements are compared in pairs, without allocation.
const MAX_LINEAR: usize = 8;

/// A scalar of an object's data, or the Go value of an added element.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Scalar<'a> {
    Null,
    /// CEL's `null`, which differs from that of data.
    CelNull,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(StringValue<'a>),
    Duration(i64),
    Time(i64, u32, i32),
}

impl<'a> Scalar<'a> {
    /// The scalar of data; none for arrays and objects.
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
            Value::Null => Self::CelNull,
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

    /// Takes the work of hashing or comparing a text. The evaluation checks later whether work
    /// remains.
    fn text(text: StringValue<'a>, work: &WorkBudget) -> Self {
        let _ = work.read_text(text.len());
        Self::String(text)
    }

    fn double(double: f64) -> Self {
        // Both zeros are equal.
        Self::Double((double + 0.0).to_bits())
    }
}

/// The scalar of a list element.
fn scalar<'a>(list: &ListValue<'a>, at: usize, work: &WorkBudget) -> Option<Scalar<'a>> {
    match list {
        ListValue::Json { items, .. } => Scalar::of(items.get(at)?, work),
        ListValue::Joined { elements, .. } => Scalar::of_element(elements.get(at)?, work),
        ListValue::Values(values) => Scalar::of_value(values.get(at)?, work),
    }
}

/// Whether a set has the elements of another list of the same length.
pub(super) fn same_set<'a>(set: &ListValue<'a>, other: &ListValue<'a>, work: &WorkBudget) -> bool {
    let scalar_of = |value: ValueResult<'a>| Scalar::of_value(&value.ok()?, work);
    if set.len() <= MAX_LINEAR {
        return other.iter(work).all(|value| {
            scalar_of(value).is_some_and(|value| {
                (0..set.len()).any(|at| scalar(set, at, work).as_ref() == Some(&value))
            })
        });
    }
    let existing: HashSet<Scalar<'a>> =
        (0..set.len()).filter_map(|at| scalar(set, at, work)).collect();
    other.iter(work).all(|value| scalar_of(value).is_some_and(|value| existing.contains(&value)))
}

/// Adds the elements that a set lacks.
pub(super) fn add_to_set<'a>(
    set: &mut Vec<ListElement<'a>>,
    other: &ListValue<'a>,
    work: &WorkBudget,
) -> Result<(), Error> {
    let mut existing: HashSet<Scalar<'a>> =
        set.iter().filter_map(|element| Scalar::of_element(element, work)).collect();
    for value in other.iter(work) {
        let value = value?;
        if Scalar::of_value(&value, work).is_none_or(|scalar| existing.insert(scalar)) {
            set.push(ListElement::Added(value));
        }
    }
    Ok(())
}

/// The fields of an element; none for other kinds.
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

/// The values of an element's key fields; none for a field that is no scalar.
fn key_fields<'a>(
    properties: &[Box<str>],
    fields: &'a JsonMap<String, Json>,
    work: &WorkBudget,
) -> impl Iterator<Item = Option<Scalar<'a>>> {
    properties.iter().map(move |property| {
        let name = names::escape(property);
        match fields.get(name.as_deref().unwrap_or(property)) {
            // A missing field counts as null.
            None => Some(Scalar::Null),
            Some(json) => Scalar::of(json, work),
        }
    })
}

/// The key of an element; none if a key field is no scalar.
fn element_key<'a>(
    properties: &[Box<str>],
    fields: &'a JsonMap<String, Json>,
    work: &WorkBudget,
) -> Option<Vec<Scalar<'a>>> {
    key_fields(properties, fields, work).collect()
}

/// Whether a list with keys has the elements of another list of the same length.
pub(super) fn same_by_keys<'a>(
    list: &ListValue<'a>,
    other: &ListValue<'a>,
    properties: &[Box<str>],
    work: &WorkBudget,
) -> Result<bool, Error> {
    let all = 0..list.len();
    // Of elements with the same key, the last one counts.
    let existing: HashMap<Vec<Scalar<'a>>, usize> = if list.len() <= MAX_LINEAR {
        HashMap::new()
    } else {
        all.clone()
            .filter_map(|at| Some((element_key(properties, fields_at(list, at)?, work)?, at)))
            .collect()
    };
    let find_position = |fields: &'a JsonMap<String, Json>| {
        if list.len() > MAX_LINEAR {
            return existing.get(&element_key(properties, fields, work)?).copied();
        }
        all.clone().rev().find(|at| {
            fields_at(list, *at).is_some_and(|own| {
                key_fields(properties, own, work)
                    .zip(key_fields(properties, fields, work))
                    .all(|(one, other)| one.is_some() && one == other)
            })
        })
    };
    for element in other.iter(work) {
        let Ok(element) = element else { return Ok(false) };
        let found = fields_of(&element).and_then(find_position).and_then(|at| list.get(at, work));
        let Some(found) = found else { return Ok(false) };
        if !found?.raw_equals(&element, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Replaces elements of the same key and appends the others.
pub(super) fn merge_by_keys<'a>(
    list: &mut Vec<ListElement<'a>>,
    other: &ListValue<'a>,
    properties: &[Box<str>],
    work: &WorkBudget,
) -> Result<(), Error> {
    let mut positions = HashMap::with_capacity(list.len());
    for (at, element) in list.iter().enumerate() {
        if let Some(key) =
            fields_of_element(element).and_then(|fields| element_key(properties, fields, work))
        {
            positions.insert(key, at);
        }
    }
    for element in other.iter(work) {
        let element = element?;
        let key = fields_of(&element).and_then(|fields| element_key(properties, fields, work));
        match key.and_then(|key| positions.get(&key)) {
            Some(at) => list[*at] = ListElement::Added(element),
            None => list.push(ListElement::Added(element)),
        }
    }
    Ok(())
}
