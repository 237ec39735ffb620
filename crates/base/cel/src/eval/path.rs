//! Evaluation of paths: `self.a.b[c]`, `has(self.a)`, `a.?b`.
//!
//! Each step costs one, and so does the root, except for a path in a branch of a conditional, in an
//! index, or in `has`. After an optional step (`.?a`) all steps are optional; an optional step that
//! does not exist costs nothing.

use super::go_values::unwrap_value;
use super::machine::{Machine, Slot, borrowed, is_final};
use super::node::{NameCandidate, NameSource, Path, PathStep, Root, SlotId, StepKey};
use crate::value::{Error, Value, ValueResult, WorkBudget};
use std::sync::Arc;

/// The value of a step; none if it does not exist and need not.
type StepResult<'a> = Result<Option<Value<'a>>, Error>;

impl<'a> Machine<'a, '_, '_> {
    /// Evaluates a path.
    pub(super) fn path(&mut self, path: &'a Path) -> ValueResult<'a> {
        let outcome = self.path_without_root_cost(path);
        if let Err(error) = &outcome
            && is_final(error)
        {
            return outcome;
        }
        if path.has {
            if matches!(path.root, Root::Branches(_)) {
                self.budget.refund();
            }
            return match outcome? {
                Value::Optional(value) => Ok(Value::Bool(value.is_some())),
                result => Ok(result),
            };
        }
        if !matches!(path.root, Root::Branches(_)) {
            self.budget.charge(1)?;
        }
        outcome
    }

    /// Evaluates a path without the cost of its root.
    pub(super) fn path_without_root_cost(&mut self, path: &'a Path) -> ValueResult<'a> {
        match &path.root {
            Root::Slot(slot) => {
                if !self.fill_slot(*slot)? {
                    return Err(self.missing_variable(*slot));
                }
                self.eval_from_slot(*slot, &path.steps)
            }
            Root::VariableField(slot, test) => {
                let found = self.fill_slot(*slot)?;
                self.budget.charge(1)?;
                if !found {
                    return Err(self.missing_variable(*slot));
                }
                let (steps, test) = (&*path.steps, *test);
                match &self.slots[*slot as usize] {
                    Slot::Failed(error) => Err(error.clone()),
                    _ if test && steps.is_empty() => Ok(Value::Bool(true)),
                    _ => self.eval_from_slot(*slot, steps),
                }
            }
            Root::Node(node) | Root::Branches(node) => {
                let root = self.eval(*node)?;
                self.eval_from_value(root, &path.steps)
            }
            Root::Names(candidates) => self.eval_from_names(candidates, &path.steps),
        }
    }

    #[cold]
    fn missing_variable(&self, slot: SlotId) -> Error {
        match &self.program.slots[slot as usize] {
            super::SlotKind::Variable(name) => missing_variable(name, self.work),
            // Elements are set before they are used.
            super::SlotKind::Element | super::SlotKind::Accumulator(_) => {
                missing_variable("", self.work)
            }
        }
    }

    fn eval_from_slot(&mut self, slot: SlotId, steps: &'a [PathStep]) -> ValueResult<'a> {
        let root = match &self.slots[slot as usize] {
            Slot::Value(value) => value,
            Slot::Failed(error) => return Err(error.clone()),
            Slot::Empty => return Err(self.missing_variable(slot)),
        };
        if matches!(root, Value::Optional(_)) {
            let root = root.clone();
            return self.eval_from_value(root, steps);
        }
        // The first step borrows from the slot.
        match steps {
            [] => Ok(root.clone()),
            [PathStep { key: StepKey::Field(field), optional: false, test: false }, rest @ ..] => {
                let next = field.value_in(root, self.work);
                self.budget.charge(1)?;
                match next? {
                    Some(next) => self.evaluate_steps(next, false, rest),
                    None => Err(no_such_field(&field.name, self.work)),
                }
            }
            [PathStep { key: StepKey::Field(field), optional: false, test: true }] => {
                let next =
                    if has_elements(root) { field.value_in(root, self.work) } else { Ok(None) };
                self.budget.charge(1)?;
                Ok(Value::Bool(next?.is_some()))
            }
            _ => {
                let root = root.clone();
                self.evaluate_steps(root, false, steps)
            }
        }
    }

    fn eval_from_value(&mut self, root: Value<'a>, steps: &'a [PathStep]) -> ValueResult<'a> {
        match root {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(value)) => {
                self.evaluate_steps(unwrap_value(&value).into_result()?, true, steps)
            }
            root => self.evaluate_steps(root, false, steps),
        }
    }

    fn evaluate_steps(
        &mut self,
        mut value: Value<'a>,
        mut optional: bool,
        steps: &'a [PathStep],
    ) -> ValueResult<'a> {
        for step in steps {
            optional |= step.optional;
            if optional {
                match self.evaluate_step(&value, step, true)? {
                    Some(next) => value = next,
                    None => return Ok(Value::Optional(None)),
                }
                self.budget.charge(1)?;
                continue;
            }
            let result = self.evaluate_step(&value, step, step.test);
            if let Err(error) = &result
                && is_final(error)
            {
                return Err(error.clone());
            }
            self.budget.charge(1)?;
            value = match result? {
                Some(next) if !step.test => next,
                next => Value::Bool(next.is_some()),
            };
        }
        if optional { Ok(Value::Optional(Some(Arc::new(value)))) } else { Ok(value) }
    }

    /// Evaluates a step, which need not exist if `lenient`.
    fn evaluate_step(
        &mut self,
        value: &Value<'a>,
        step: &'a PathStep,
        lenient: bool,
    ) -> StepResult<'a> {
        match &step.key {
            StepKey::Field(field) => {
                let next =
                    if has_elements(value) { field.value_in(value, self.work)? } else { None };
                if next.is_some() || lenient {
                    Ok(next)
                } else {
                    Err(no_such_field(&field.name, self.work))
                }
            }
            StepKey::Constant(key) => index(value, &borrowed(key), lenient, self.work),
            StepKey::Computed(node) => {
                let key = self.eval_without_root_cost(*node)?;
                if !matches!(
                    key,
                    Value::String(_)
                        | Value::Int(_)
                        | Value::Uint(_)
                        | Value::Bool(_)
                        | Value::Double(_)
                ) {
                    return Err(super::go_values::invalid_key(&key, self.work));
                }
                index(value, &key, lenient, self.work)
            }
        }
    }

    /// Evaluates the first candidate that exists.
    fn eval_from_names(
        &mut self,
        candidates: &'a [NameCandidate],
        steps: &'a [PathStep],
    ) -> ValueResult<'a> {
        for candidate in candidates {
            let steps = &steps[candidate.steps_in_name..];
            for source in &candidate.sources {
                match source {
                    NameSource::Slot(slot) if self.fill_slot(*slot)? => {
                        return self.eval_from_slot(*slot, steps);
                    }
                    NameSource::Type(named_type) if steps.is_empty() => {
                        return Ok(Value::from_type(named_type.clone()));
                    }
                    _ => {}
                }
            }
        }
        let names = candidates.first().map_or(String::new(), |first| first.names.join(", "));
        Err(missing_variable(&names, self.work))
    }
}

fn missing_variable(name: &str, work: &WorkBudget) -> Error {
    Error::text(format!("no such attribute(s): {name}"), work)
}

#[cold]
fn no_such_field(name: &str, work: &WorkBudget) -> Error {
    Error::no_such_key(&Value::text(name), work)
}

/// Whether a value has fields or elements.
const fn has_elements(value: &Value<'_>) -> bool {
    matches!(value, Value::Map(_) | Value::Object(_) | Value::List(_))
}

/// The value of a key or index.
fn index<'a>(
    value: &Value<'a>,
    key: &Value<'a>,
    lenient: bool,
    work: &WorkBudget,
) -> StepResult<'a> {
    if !has_elements(value) {
        return if lenient { Ok(None) } else { Err(Error::no_such_key(key, work)) };
    }
    match value.find(key, work)? {
        None if !lenient => Err(match value {
            Value::List(_) => Error::out_of_bounds(key, work),
            _ => Error::no_such_key(key, work),
        }),
        found => Ok(found),
    }
}
