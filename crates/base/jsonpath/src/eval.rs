//! JSONPath evaluation.

use crate::{Comparison, Filter, Item, Slice, Step};
use mainstay_gocompat::values;
use serde_json::Value;
use std::cmp::Ordering;

/// The template cannot be evaluated for a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// No input has the field, and missing fields are an error.
    #[error("{0} is not found")]
    MissingField(String),
    /// An index or filter applies to a value that is not an array.
    #[error("{0} is not array or slice")]
    NotAnArray(&'static str),
    /// An index is outside the array.
    #[error("array index out of bounds: index {index}, length {length}")]
    OutOfBounds {
        /// The index in the template.
        index: i64,
        /// The number of elements in the array.
        length: i64,
    },
    /// A slice ends before it begins.
    #[error("starting index {start} is greater than ending index {end}")]
    Reversed {
        /// The first index.
        start: i64,
        /// The index after the last one.
        end: i64,
    },
    /// The step of a slice is not positive.
    #[error("step must be > 0")]
    Step,
    /// One side of a comparison has several values.
    #[error("can only compare one element at a time")]
    SeveralOperands,
    /// The two sides have different types.
    #[error("incompatible types for comparison")]
    Incompatible,
    /// Values of this type do not have this comparison.
    #[error("invalid type for comparison")]
    Incomparable,
}

type Values<'v> = Vec<&'v Value>;

pub(crate) fn find<'v>(
    items: &'v [Item],
    value: &'v Value,
    lenient: bool,
) -> Result<Vec<Values<'v>>, EvalError> {
    let mut out = Vec::new();
    Evaluator { lenient }.items(items, value, &mut out)?;
    Ok(out)
}

struct Evaluator {
    lenient: bool,
}

impl Evaluator {
    fn items<'v>(
        &self,
        items: &'v [Item],
        value: &'v Value,
        out: &mut Vec<Values<'v>>,
    ) -> Result<(), EvalError> {
        for item in items {
            match item {
                Item::Text(text) => out.push(vec![text]),
                Item::Action(steps) => out.push(self.steps(vec![value], steps)?),
                Item::Range { path, body } => {
                    for value in self.steps(vec![value], path)? {
                        self.items(body, value, out)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn steps<'v>(
        &self,
        mut values: Values<'v>,
        steps: &'v [Step],
    ) -> Result<Values<'v>, EvalError> {
        for step in steps {
            values = self.step(values, step)?;
        }
        Ok(values)
    }

    fn step<'v>(&self, input: Values<'v>, step: &'v Step) -> Result<Values<'v>, EvalError> {
        match step {
            Step::Field(name) => {
                if input.is_empty() {
                    return Ok(input);
                }
                let found: Values<'v> =
                    input.into_iter().filter_map(|value| value.get(name)).collect();
                if found.is_empty() && !self.lenient {
                    return Err(EvalError::MissingField(name.clone()));
                }
                Ok(found)
            }
            Step::Slice(slice) => slice_all(&input, *slice),
            Step::Wildcard => Ok(input.into_iter().flat_map(children).collect()),
            Step::Recursive => {
                let mut out = Vec::new();
                for value in input {
                    descend(value, &mut out);
                }
                Ok(out)
            }
            Step::Union(paths) => {
                let mut out = Vec::new();
                for path in paths {
                    out.extend(self.steps(input.clone(), path)?);
                }
                Ok(out)
            }
            Step::Filter(filter) => self.filter(&input, filter),
            Step::Text(text) => Ok(vec![text]),
            Step::Scalar(scalar) => Ok(vec![scalar; input.len()]),
        }
    }

    fn filter<'v>(&self, input: &[&'v Value], filter: &'v Filter) -> Result<Values<'v>, EvalError> {
        let mut out = Vec::new();
        for value in input {
            let Value::Array(elements) = value else {
                return Err(EvalError::NotAnArray(type_name(value)));
            };
            for element in elements {
                let left = self.steps(vec![element], &filter.left);
                let Some((comparison, right)) = &filter.test else {
                    // Existence: a path that fails does not exist.
                    if left.is_ok_and(|values| !values.is_empty()) {
                        out.push(element);
                    }
                    continue;
                };
                let Some(left) = single_value(&left?)? else { continue };
                let Some(right) = single_value(&self.steps(vec![element], right)?)? else {
                    continue;
                };
                if satisfies(left, *comparison, right)? {
                    out.push(element);
                }
            }
        }
        Ok(out)
    }
}

fn single_value<'v>(values: &[&'v Value]) -> Result<Option<&'v Value>, EvalError> {
    match values {
        [] => Ok(None),
        [value] => Ok(Some(value)),
        _ => Err(EvalError::SeveralOperands),
    }
}

fn slice_all<'v>(input: &[&'v Value], slice: Slice) -> Result<Values<'v>, EvalError> {
    let mut out = Vec::new();
    for value in input {
        let elements = match value {
            Value::Null => continue,
            Value::Array(elements) => elements,
            other => return Err(EvalError::NotAnArray(type_name(other))),
        };
        let length = i64::try_from(elements.len()).unwrap_or(i64::MAX);
        let mut start = slice.start.unwrap_or(0);
        if start < 0 {
            start += length;
        }
        let mut end = slice.end.unwrap_or(length);
        if end < 0 || (end == 0 && slice.single) {
            end += length;
        }
        if start == end {
            // An empty slice is valid anywhere.
            return Ok(out);
        }
        if start >= length || start < 0 {
            return Err(EvalError::OutOfBounds { index: start, length });
        }
        if end > length || end < 0 {
            return Err(EvalError::OutOfBounds { index: end - 1, length });
        }
        if start > end {
            return Err(EvalError::Reversed { start, end });
        }
        let step = match slice.step {
            None => 1,
            Some(step) => usize::try_from(step).ok().filter(|s| *s > 0).ok_or(EvalError::Step)?,
        };
        let range = usize::try_from(start).unwrap_or(0)..usize::try_from(end).unwrap_or(0);
        out.extend(elements.get(range).unwrap_or_default().iter().step_by(step));
    }
    Ok(out)
}

fn children(value: &Value) -> Box<dyn Iterator<Item = &Value> + '_> {
    match value {
        Value::Array(elements) => Box::new(elements.iter()),
        Value::Object(fields) => Box::new(fields.values()),
        _ => Box::new(std::iter::empty()),
    }
}

/// Containers and strings that are not empty, in depth-first order. Like upstream, this skips numbers
/// and booleans.
fn descend<'v>(value: &'v Value, out: &mut Values<'v>) {
    let is_included = match value {
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => false,
    };
    if is_included {
        out.push(value);
        for child in children(value) {
            descend(child, out);
        }
    }
}

/// Compares as Go templates do: the types must be the same; integers and floats are different types.
fn satisfies(left: &Value, comparison: Comparison, right: &Value) -> Result<bool, EvalError> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => match comparison {
            Comparison::Equal => return Ok(left == right),
            Comparison::NotEqual => return Ok(left != right),
            _ => return Err(EvalError::Incomparable),
        },
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i128(), right.as_i128()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().partial_cmp(&right.as_f64()),
            _ => return Err(EvalError::Incompatible),
        },
        (Value::Null | Value::Array(_) | Value::Object(_), _)
        | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err(EvalError::Incomparable);
        }
        _ => return Err(EvalError::Incompatible),
    };
    Ok(match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as kubectl prints it: containers as compact JSON, strings without quotes, numbers as
/// Go's `%v`.
pub fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => values::float(float),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}
