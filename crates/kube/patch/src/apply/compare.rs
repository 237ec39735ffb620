//! What changed between two objects of one type.

use super::path::Step;
use super::problems::Problems;
use super::set::Set;
use super::types::{ListType, MapType, Scalar, Shaped, TypeRef};
use super::validate::wrong_scalar;
use super::{lists, scalar};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// What changed between two objects. No path is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// What only the first has.
    pub removed: Set,
    /// What both have with different values.
    pub modified: Set,
    /// What only the second has.
    pub added: Set,
}

/// What happened to a value itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Removed,
    Modified,
    Added,
}

/// The two values of one path; at least one is there.
#[derive(Clone, Copy, Debug)]
struct Pair<'a> {
    left: Option<&'a Value>,
    right: Option<&'a Value>,
}

impl Comparison {
    /// Whether nothing changed.
    pub const fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Adds what changed at and below a step.
    fn add(&mut self, step: &Step<'_>, change: Option<Change>, below: Self) {
        self.removed.add(step, change == Some(Change::Removed), below.removed);
        self.modified.add(step, change == Some(Change::Modified), below.modified);
        self.added.add(step, change == Some(Change::Added), below.added);
    }
}

/// Compares two objects. Objects and elements that appear or go are in the result themselves, with
/// everything below them.
///
/// # Errors
/// If neither has its type, or elements of lists cannot be told apart.
pub fn compare(left: &Value, right: &Value, ty: TypeRef<'_>) -> Result<Comparison, Problems> {
    let mut problems = Problems::default();
    let mut comparison = Comparison::default();
    let pair = Pair { left: Some(left), right: Some(right) };
    visit(pair, ty, &mut comparison, &mut problems);
    problems.result()?;
    Ok(comparison)
}

fn visit(
    pair: Pair<'_>,
    ty: TypeRef<'_>,
    below: &mut Comparison,
    problems: &mut Problems,
) -> Option<Change> {
    let atom = ty.resolve();
    let (left, right) = match (pair.left, pair.right) {
        (Some(left), None) => (None, atom.shape(left)),
        (None, Some(right)) => (None, atom.shape(right)),
        (Some(left), Some(right)) => {
            let (first, second) = (atom.shape(left), atom.shape(right));
            // Values of one kind are visited once.
            (first.filter(|first| !second.is_some_and(|second| first.is_kind_of(&second))), second)
        }
        (None, None) => return None,
    };
    let Some(right) = right else {
        problems.add("schema error: invalid atom: inlined");
        return None;
    };
    let first = left.and_then(|left| visit_as(pair, left, below, problems));
    let second = visit_as(pair, right, below, problems);
    first.or(second)
}

/// Visits values as one of the possibilities of their type. Each side that is something else counts
/// as empty.
fn visit_as(
    pair: Pair<'_>,
    shape: Shaped<'_>,
    below: &mut Comparison,
    problems: &mut Problems,
) -> Option<Change> {
    match shape {
        Shaped::Scalar(scalar) => visit_scalar(pair, scalar, problems),
        Shaped::List(list) => {
            let (left, right) = (items(pair.left), items(pair.right));
            if list.atomic || (left.is_empty() && right.is_empty()) {
                return pair.leaf();
            }
            if left != right {
                visit_items(left, right, &list, below, problems);
            }
            pair.whole()
        }
        Shaped::Map(map) => {
            let (left, right) = (fields(pair.left), fields(pair.right));
            if map.atomic || (left.is_none() && right.is_none()) {
                return pair.leaf();
            }
            visit_fields(left, right, &map, below, problems);
            pair.whole()
        }
    }
}

/// The elements of a list; none of anything else.
fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The fields of an object that has some.
fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}

impl Pair<'_> {
    /// What happened to an object or list that has something in it.
    const fn whole(self) -> Option<Change> {
        match (self.left, self.right) {
            (None, _) => Some(Change::Added),
            (_, None) => Some(Change::Removed),
            (Some(_), Some(_)) => None,
        }
    }

    /// What happened to a value that is compared as one.
    fn leaf(self) -> Option<Change> {
        match (self.left, self.right) {
            (Some(left), Some(right)) => (!scalar::same(left, right)).then_some(Change::Modified),
            _ => self.whole(),
        }
    }
}

fn visit_scalar(pair: Pair<'_>, scalar: Scalar, problems: &mut Problems) -> Option<Change> {
    let wrong = |value: Option<&Value>| value.and_then(|value| wrong_scalar(scalar, value));
    if let (Some(left), Some(right)) = (wrong(pair.left), wrong(pair.right)) {
        problems.add(format!("lhs: {left}"));
        problems.add(format!("rhs: {right}"));
        return None;
    }
    pair.leaf()
}

fn visit_fields(
    left: Option<&Map<String, Value>>,
    right: Option<&Map<String, Value>>,
    map: &MapType<'_>,
    below: &mut Comparison,
    problems: &mut Problems,
) {
    let mut lefts = left.into_iter().flatten().peekable();
    let mut rights = right.into_iter().flatten().peekable();
    loop {
        // Names are sorted.
        let order = match (lefts.peek(), rights.peek()) {
            (Some(left), Some(right)) => left.0.cmp(right.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let left = if order.is_le() { lefts.next() } else { None };
        let right = if order.is_ge() { rights.next() } else { None };
        let Some((name, _)) = left.or(right) else { return };
        let pair = Pair { left: left.map(|field| field.1), right: right.map(|field| field.1) };
        let ty = map.field(name).unwrap_or(map.element);
        let mut inner = Comparison::default();
        let change = problems.field(name, |problems| visit(pair, ty, &mut inner, problems));
        below.add(&Step::Field(name), change, inner);
    }
}

fn visit_items(
    left: &[Value],
    right: &[Value],
    list: &ListType<'_>,
    below: &mut Comparison,
    problems: &mut Problems,
) {
    let mut steps = Vec::with_capacity(left.len() + right.len());
    for (side, items) in [(false, left), (true, right)] {
        let found = lists::steps(list, items, problems);
        steps.extend(found.into_iter().map(|(at, step)| (step, side, &items[at])));
    }
    // Stable: elements of one step stay in their order, those of the left side first.
    steps.sort_by(|one, two| one.0.order(&two.0));
    for group in steps.chunk_by(|one, two| one.0.order(&two.0).is_eq()) {
        let (left, right) = group.split_at(group.partition_point(|item| !item.1));
        let step = &group[0].0;
        let mut inner = Comparison::default();
        let mut compare = |left: Option<&Value>, right: Option<&Value>| {
            let pair = Pair { left, right };
            problems.below(
                || step.to_string(),
                |problems| visit(pair, list.element, &mut inner, problems),
            )
        };
        // An element that is there twice is one value. What such an element replaces, or is
        // replaced by, comes and goes with everything below it.
        let change = match (left, right) {
            ([] | [_], [] | [_]) => {
                compare(left.first().map(|item| item.2), right.first().map(|item| item.2))
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len()
                    && left.iter().zip(right).all(|(left, right)| scalar::same(left.2, right.2));
                (!same).then_some(Change::Modified)
            }
            ([_, _, ..], right) => {
                if let [right] = right
                    && compare(None, Some(right.2)) == Some(Change::Added)
                {
                    below.added.add(step, true, Set::new());
                }
                Some(Change::Removed)
            }
            (left, [_, _, ..]) => {
                if let [left] = left
                    && compare(Some(left.2), None) == Some(Change::Removed)
                {
                    below.removed.add(step, true, Set::new());
                }
                Some(Change::Added)
            }
        };
        below.add(step, change, inner);
    }
}
