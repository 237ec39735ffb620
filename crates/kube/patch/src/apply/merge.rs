//! Merging a configuration into an object.

use super::lists;
use super::problems::Problems;
use super::types::{ListType, MapType, Shaped, TypeRef};
use super::validate::wrong_scalar;
use serde_json::{Map, Value};

/// Puts everything that a configuration says into an object. Nothing is removed.
///
/// Fields and elements that both have are merged; leaves are the configuration's. Elements that
/// both have come in the configuration's order, and its own ones where they stand between those;
/// the object's own ones keep their neighbours as far as that allows.
///
/// # Errors
/// If neither has its type, or elements of lists cannot be told apart. The object may be changed
/// in part then.
pub fn merge(object: &mut Value, config: &Value, ty: TypeRef<'_>) -> Result<(), Problems> {
    let mut problems = Problems::default();
    visit(object, config, ty, &mut problems);
    problems.result()
}

fn visit(target: &mut Value, config: &Value, ty: TypeRef<'_>, problems: &mut Problems) {
    let Some(shape) = ty.resolve().shape(config) else {
        problems.add("schema error: invalid atom: inlined");
        return;
    };
    match shape {
        Shaped::Scalar(scalar) => {
            if let (Some(left), Some(right)) =
                (wrong_scalar(scalar, target), wrong_scalar(scalar, config))
            {
                problems.add(format!("lhs: {left}"));
                problems.add(format!("rhs: {right}"));
                return;
            }
            target.clone_from(config);
        }
        // Values of another kind count as empty; who is empty leaves the other as it is.
        Shaped::List(list) => match (&mut *target, config) {
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
        Shaped::Map(map) => match (&mut *target, config) {
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
    problems: &mut Problems,
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

/// Where an element of a merged list comes from.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The object alone.
    Object(usize),
    /// The configuration, and the object if it has one such element.
    Config(usize, Option<usize>),
}

/// For each element of the object the position of the same one in the configuration, and the other
/// way round.
#[derive(Debug)]
struct Pairs {
    objects: Vec<Option<usize>>,
    configs: Vec<Counterpart>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counterpart {
    None,
    One(usize),
    /// Several elements are the same one; they are not merged, but replaced.
    Several,
}

fn merge_items(
    items: &mut Vec<Value>,
    config: &[Value],
    list: &ListType<'_>,
    problems: &mut Problems,
) {
    let Some(pairs) = pair(items, config, list, problems) else { return };
    let mut objects = std::mem::take(items);
    items.reserve(objects.len().max(config.len()));
    for place in interleave(&pairs) {
        items.push(match place {
            Place::Object(at) => objects[at].take(),
            Place::Config(at, None) => config[at].clone(),
            Place::Config(at, Some(other)) => {
                let mut item = objects[other].take();
                // The original loses what is wrong with elements; configurations are checked before.
                visit(&mut item, &config[at], list.element, &mut Problems::default());
                item
            }
        });
    }
}

/// Finds out which elements are the same. None if that is not known.
fn pair(
    items: &[Value],
    config: &[Value],
    list: &ListType<'_>,
    problems: &mut Problems,
) -> Option<Pairs> {
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
    let mut pairs = Pairs {
        objects: Vec::with_capacity(items.len()),
        configs: vec![Counterpart::None; config.len()],
    };
    for (at, step) in &objects {
        let same = configs.binary_search_by(|(_, other)| other.order(step)).ok();
        let same = same.map(|found| configs[found].0);
        if let Some(same) = same {
            pairs.configs[same] = match pairs.configs[same] {
                Counterpart::None => Counterpart::One(*at),
                _ => Counterpart::Several,
            };
        }
        pairs.objects.push(same);
    }
    Some(pairs)
}

/// The order of a merged list. Walks both lists and takes an element of the object while it is the
/// object's own, skips it while the configuration wants another common one first, and takes from
/// the configuration otherwise.
fn interleave(pairs: &Pairs) -> Vec<Place> {
    let (objects, configs) = (&pairs.objects, &pairs.configs);
    let mut order = Vec::with_capacity(objects.len() + configs.len());
    let mut taken = vec![false; configs.len()];
    let mut common = (0..configs.len()).filter(|at| configs[*at] != Counterpart::None);
    let mut next = common.next();
    let (mut left, mut right) = (0, 0);
    while left < objects.len() || right < configs.len() {
        match objects.get(left) {
            Some(None) => {
                order.push(Place::Object(left));
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
                Counterpart::One(at) => Some(*at),
                Counterpart::None | Counterpart::Several => None,
            };
            order.push(Place::Config(right, object));
            taken[right] = true;
            if next == Some(right) {
                next = common.next();
            }
            right += 1;
        }
    }
    order
}
