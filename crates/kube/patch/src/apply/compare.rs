//! Comparison of two objects of one type.

use super::path::Step;
use super::problems::TypeProblems;
use super::set::FieldSet;
use super::types::{ListType, MapType, ScalarType, TypeRef, TypeShape};
use super::validate::scalar_problem;
use super::{lists, scalar};
use serde_json::{Map, Value};
use std::cmp::Ordering;

/// The differences between two objects. No path is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldComparison {
    /// Paths that only the first object has.
    pub removed: FieldSet,
    /// Paths that both objects have with different values.
    pub modified: FieldSet,
    /// Paths that only the second object has.
    pub added: FieldSet,
}

/// The difference of a value itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueChange {
    Removed,
    Modified,
    Added,
}

/// The two values of a path; at least one exists.
#[derive(Clone, Copy, Debug)]
struct ValuePair<'a> {
    left: Option<&'a Value>,
    right: Option<&'a Value>,
}

impl FieldComparison {
    /// Whether the objects are equal.
    pub const fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// Adds the differences at a path element and below it.
    fn add(&mut self, step: &Step<'_>, change: Option<ValueChange>, below: Self) {
        self.removed.add(step, change == Some(ValueChange::Removed), below.removed);
        self.modified.add(step, change == Some(ValueChange::Modified), below.modified);
        self.added.add(step, change == Some(ValueChange::Added), below.added);
    }
}

/// Compares two objects. An added or removed object or element is in the result itself, with all
/// paths below it.
///
/// # Errors
/// Neither object has its type, or elements of a list are not distinguishable.
pub fn compare(
    left: &Value,
    right: &Value,
    ty: TypeRef<'_>,
) -> Result<FieldComparison, TypeProblems> {
    let mut problems = TypeProblems::default();
    let mut comparison = FieldComparison::default();
    let pair = ValuePair { left: Some(left), right: Some(right) };
    visit(pair, ty, &mut comparison, &mut problems);
    problems.result()?;
    Ok(comparison)
}

fn visit(
    pair: ValuePair<'_>,
    ty: TypeRef<'_>,
    below: &mut FieldComparison,
    problems: &mut TypeProblems,
) -> Option<ValueChange> {
    let atom = ty.resolve();
    let (left, right) = match (pair.left, pair.right) {
        (Some(left), None) => (None, atom.shape(left)),
        (None, Some(right)) => (None, atom.shape(right)),
        (Some(left), Some(right)) => {
            let (first, second) = (atom.shape(left), atom.shape(right));
            // Values of the same shape are visited once.
            (
                first.filter(|first| !second.is_some_and(|second| first.is_same_shape(&second))),
                second,
            )
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

/// Visits the values in one shape of their type. A value of another shape counts as empty.
fn visit_as(
    pair: ValuePair<'_>,
    shape: TypeShape<'_>,
    below: &mut FieldComparison,
    problems: &mut TypeProblems,
) -> Option<ValueChange> {
    match shape {
        TypeShape::Scalar(scalar) => visit_scalar(pair, scalar, problems),
        TypeShape::List(list) => {
            let (left, right) = (items(pair.left), items(pair.right));
            if list.atomic || (left.is_empty() && right.is_empty()) {
                return pair.leaf();
            }
            if left != right {
                visit_items(left, right, &list, below, problems);
            }
            pair.added_or_removed()
        }
        TypeShape::Map(map) => {
            let (left, right) = (fields(pair.left), fields(pair.right));
            if map.atomic || (left.is_none() && right.is_none()) {
                return pair.leaf();
            }
            visit_fields(left, right, &map, below, problems);
            pair.added_or_removed()
        }
    }
}

/// The elements of a list; none of any other value.
fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The fields of an object that is not empty.
fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object).filter(|fields| !fields.is_empty())
}

impl ValuePair<'_> {
    /// Whether an object or list that is not empty was added or removed.
    const fn added_or_removed(self) -> Option<ValueChange> {
        match (self.left, self.right) {
            (None, _) => Some(ValueChange::Added),
            (_, None) => Some(ValueChange::Removed),
            (Some(_), Some(_)) => None,
        }
    }

    /// The difference of a value that is compared as a whole.
    fn leaf(self) -> Option<ValueChange> {
        match (self.left, self.right) {
            (Some(left), Some(right)) => {
                (!scalar::is_equal(left, right)).then_some(ValueChange::Modified)
            }
            _ => self.added_or_removed(),
        }
    }
}

fn visit_scalar(
    pair: ValuePair<'_>,
    scalar: ScalarType,
    problems: &mut TypeProblems,
) -> Option<ValueChange> {
    let problem = |value: Option<&Value>| value.and_then(|value| scalar_problem(scalar, value));
    if let (Some(left), Some(right)) = (problem(pair.left), problem(pair.right)) {
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
    below: &mut FieldComparison,
    problems: &mut TypeProblems,
) {
    let mut lefts = left.into_iter().flatten().peekable();
    let mut rights = right.into_iter().flatten().peekable();
    loop {
        // The field names are sorted.
        let order = match (lefts.peek(), rights.peek()) {
            (Some(left), Some(right)) => left.0.cmp(right.0),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return,
        };
        let left = if order.is_le() { lefts.next() } else { None };
        let right = if order.is_ge() { rights.next() } else { None };
        let Some((name, _)) = left.or(right) else { return };
        let pair = ValuePair { left: left.map(|field| field.1), right: right.map(|field| field.1) };
        let ty = map.field(name).unwrap_or(map.element);
        let mut inner = FieldComparison::default();
        let change = problems.field(name, |problems| visit(pair, ty, &mut inner, problems));
        below.add(&Step::Field(name), change, inner);
    }
}

fn visit_items(
    left: &[Value],
    right: &[Value],
    list: &ListType<'_>,
    below: &mut FieldComparison,
    problems: &mut TypeProblems,
) {
    let mut steps = Vec::with_capacity(left.len() + right.len());
    for (side, items) in [(false, left), (true, right)] {
        let found = lists::steps(list, items, problems);
        steps.extend(found.into_iter().map(|(index, step)| (step, side, &items[index])));
    }
    // The sort is stable: elements with the same path element keep their order, the left side
    // first.
    steps.sort_by(|one, two| one.0.order(&two.0));
    for group in steps.chunk_by(|one, two| one.0.order(&two.0).is_eq()) {
        let (left, right) = group.split_at(group.partition_point(|item| !item.1));
        let step = &group[0].0;
        let mut inner = FieldComparison::default();
        let mut compare = |left: Option<&Value>, right: Option<&Value>| {
            let pair = ValuePair { left, right };
            problems.below(
                || step.to_string(),
                |problems| visit(pair, list.element, &mut inner, problems),
            )
        };
        // Duplicate elements are one value. An element that replaces duplicates, or is replaced by
        // them, is added or removed with all paths below it.
        let change = match (left, right) {
            ([] | [_], [] | [_]) => {
                compare(left.first().map(|item| item.2), right.first().map(|item| item.2))
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = left.len() == right.len()
                    && left
                        .iter()
                        .zip(right)
                        .all(|(left, right)| scalar::is_equal(left.2, right.2));
                (!same).then_some(ValueChange::Modified)
            }
            ([_, _, ..], right) => {
                if let [right] = right
                    && compare(None, Some(right.2)) == Some(ValueChange::Added)
                {
                    below.added.add(step, true, FieldSet::new());
                }
                Some(ValueChange::Removed)
            }
            (left, [_, _, ..]) => {
                if let [left] = left
                    && compare(Some(left.2), None) == Some(ValueChange::Removed)
                {
                    below.removed.add(step, true, FieldSet::new());
                }
                Some(ValueChange::Added)
            }
        };
        below.add(step, change, inner);
    }
}
