//! Merging an applied configuration into an object.

use super::lists;
use super::problems::TypeProblems;
use super::types::{ListType, MapType, TypeRef, TypeShape};
use super::validate::scalar_problem;
use serde_json::{Map, Value};

/// Merges all fields of a configuration into an object. No field is removed.
///
/// Fields and elements of both are merged; leaves have the value of the configuration. Common list
/// elements have the order of the configuration, and its new elements stand between them. The
/// remaining elements of the object keep their neighbours where that order permits.
///
/// # Errors
/// Neither value has its type, or elements of a list are not distinguishable. The object may be
/// partly changed then.
pub fn merge(object: &mut Value, config: &Value, ty: TypeRef<'_>) -> Result<(), TypeProblems> {
    let mut problems = TypeProblems::default();
    visit(object, config, ty, &mut problems);
    problems.result()
}

fn visit(target: &mut Value, config: &Value, ty: TypeRef<'_>, problems: &mut TypeProblems) {
    let Some(shape) = ty.resolve().shape(config) else {
        problems.add("schema error: invalid atom: inlined");
        return;
    };
    match shape {
        TypeShape::Scalar(scalar) => {
            if let (Some(left), Some(right)) =
                (scalar_problem(scalar, target), scalar_problem(scalar, config))
            {
                problems.add(format!("lhs: {left}"));
                problems.add(format!("rhs: {right}"));
                return;
            }
            target.clone_from(config);
        }
        // A value of another shape counts as empty. An empty value leaves the other one as it is.
        TypeShape::List(list) => match (&mut *target, config) {
            (Value::Array(_), Value::Array(_)) if list.atomic => target.clone_from(config),
            (Value::Array(items), Value::Array(config))
                if !items.is_empty() && !config.is_empty() =>
            {
                merge_items(items, config, &list, problems);
            }
            (Value::Array(items), other)
                if !list.atomic && !items.is_empty() && is_empty_list(other) => {}
            _ => target.clone_from(config),
        },
        TypeShape::Map(map) => match (&mut *target, config) {
            (Value::Object(_), Value::Object(_)) if map.atomic => target.clone_from(config),
            (Value::Object(fields), Value::Object(config))
                if !fields.is_empty() && !config.is_empty() =>
            {
                merge_fields(fields, config, &map, problems);
            }
            (Value::Object(fields), other)
                if !map.atomic && !fields.is_empty() && is_empty_object(other) => {}
            _ => target.clone_from(config),
        },
    }
}

fn is_empty_list(value: &Value) -> bool {
    value.as_array().is_none_or(Vec::is_empty)
}

fn is_empty_object(value: &Value) -> bool {
    value.as_object().is_none_or(Map::is_empty)
}

fn merge_fields(
    fields: &mut Map<String, Value>,
    config: &Map<String, Value>,
    map: &MapType<'_>,
    problems: &mut TypeProblems,
) {
    for (name, value) in config {
        match fields.get_mut(name) {
            Some(field) => {
                let ty = map.field(name).unwrap_or(map.element);
                problems.field(name, |problems| visit(field, value, ty, problems));
            }
            None => {
                fields.insert(name.clone(), value.clone());
            }
        }
    }
}

/// The origin of an element of a merged list.
#[derive(Clone, Copy, Debug)]
enum ElementOrigin {
    /// The object alone, at this index.
    Object(usize),
    /// The configuration at this index, and the object at the other one if it has the element once.
    Config(usize, Option<usize>),
}

/// The matching elements of two lists.
#[derive(Debug)]
struct ElementPairs {
    /// For each element of the object, the index of the same one in the configuration.
    objects: Vec<Option<usize>>,
    /// For each element of the configuration, the same one in the object.
    configs: Vec<Counterpart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counterpart {
    None,
    One(usize),
    /// The object has duplicates of the element; they are replaced instead of merged.
    Several,
}

fn merge_items(
    items: &mut Vec<Value>,
    config: &[Value],
    list: &ListType<'_>,
    problems: &mut TypeProblems,
) {
    let Some(pairs) = pair_elements(items, config, list, problems) else { return };
    let mut objects = std::mem::take(items);
    items.reserve(objects.len().max(config.len()));
    for origin in interleave(&pairs) {
        items.push(match origin {
            ElementOrigin::Object(index) => objects[index].take(),
            ElementOrigin::Config(index, None) => config[index].clone(),
            ElementOrigin::Config(index, Some(other)) => {
                let mut item = objects[other].take();
                // Kubernetes drops problems of elements here; configurations were validated before.
                visit(&mut item, &config[index], list.element, &mut TypeProblems::default());
                item
            }
        });
    }
}

/// Matches the elements of both lists. None if elements are not distinguishable.
fn pair_elements(
    items: &[Value],
    config: &[Value],
    list: &ListType<'_>,
    problems: &mut TypeProblems,
) -> Option<ElementPairs> {
    let before = problems.all().len();
    let mut configs = lists::steps(list, config, problems);
    configs.sort_by(|one, two| one.1.order(&two.1));
    for pair in configs.windows(2) {
        if pair[0].1.order(&pair[1].1).is_eq() {
            problems.add(format!("duplicate entries for key {}", pair[1].1));
        }
    }
    let objects = lists::steps(list, items, problems);
    if problems.all().len() > before {
        return None;
    }
    let mut pairs = ElementPairs {
        objects: Vec::with_capacity(items.len()),
        configs: vec![Counterpart::None; config.len()],
    };
    for (index, step) in &objects {
        let same = configs.binary_search_by(|(_, other)| other.order(step)).ok();
        let same = same.map(|found| configs[found].0);
        if let Some(same) = same {
            pairs.configs[same] = match pairs.configs[same] {
                Counterpart::None => Counterpart::One(*index),
                _ => Counterpart::Several,
            };
        }
        pairs.objects.push(same);
    }
    Some(pairs)
}

/// The order of a merged list. The function walks both lists. It takes an element that only the
/// object has. It skips a common element of the object while another common one comes first in the
/// configuration. Otherwise it takes the next element of the configuration.
fn interleave(pairs: &ElementPairs) -> Vec<ElementOrigin> {
    let (objects, configs) = (&pairs.objects, &pairs.configs);
    let mut order = Vec::with_capacity(objects.len() + configs.len());
    let mut taken = vec![false; configs.len()];
    let mut common = (0..configs.len()).filter(|index| configs[*index] != Counterpart::None);
    let mut next = common.next();
    let (mut left, mut right) = (0, 0);
    while left < objects.len() || right < configs.len() {
        match objects.get(left) {
            Some(None) => {
                order.push(ElementOrigin::Object(left));
                left += 1;
                continue;
            }
            Some(Some(same)) if right < configs.len() && *same == right => left += 1,
            Some(same) if right < configs.len() && next.is_some() && next != *same => {
                left += 1;
                continue;
            }
            Some(Some(same)) if taken[*same] => left += 1,
            Some(Some(_)) | None => {}
        }
        if let Some(counterpart) = configs.get(right) {
            let object = match counterpart {
                Counterpart::One(index) => Some(*index),
                Counterpart::None | Counterpart::Several => None,
            };
            order.push(ElementOrigin::Config(right, object));
            taken[right] = true;
            if next == Some(right) {
                next = common.next();
            }
            right += 1;
        }
    }
    order
}
