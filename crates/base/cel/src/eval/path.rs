//! Paths: `self.a.b[c]`, `has(self.a)`, `a.?b`.
//!
//! Each step costs one, and so does the beginning, except where a path is a branch of a
//! conditional or an index, or is only asked for with `has`. A step that may lead nowhere (`.?a`)
//! makes what follows optional too; a step that leads nowhere then costs nothing.

use super::go_values::native;
use super::machine::{Machine, Slot, borrowed, is_final};
use super::node::{Candidate, NameSource, Path, Root, SlotId, Step, StepKey};
use crate::value::{Error, Value, ValueResult, WorkBudget};
use std::sync::Arc;

/// What a step leads to; none if it leads nowhere and may.
type Taken<'a> = Result<Option<Value<'a>>, Error>;

impl<'a> Machine<'a, '_, '_> {
    /// The value at the end of a path.
    pub(super) fn path(&mut self, path: &'a Path) -> ValueResult<'a> {
        let outcome = self.walk(path);
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
                Value::Optional(held) => Ok(Value::Bool(held.is_some())),
                answer => Ok(answer),
            };
        }
        if !matches!(path.root, Root::Branches(_)) {
            self.budget.charge(1)?;
        }
        outcome
    }

    /// The value at the end of a path, without the cost of its beginning.
    pub(super) fn walk(&mut self, path: &'a Path) -> ValueResult<'a> {
        match &path.root {
            Root::Slot(slot) => {
                if !self.fill(*slot)? {
                    return Err(self.missing(*slot));
                }
                self.at_slot(*slot, &path.steps)
            }
            Root::Part(slot, test) => {
                let found = self.fill(*slot)?;
                self.budget.charge(1)?;
                if !found {
                    return Err(self.missing(*slot));
                }
                let (steps, test) = (&*path.steps, *test);
                match &self.slots[*slot as usize] {
                    Slot::Failed(error) => Err(error.clone()),
                    _ if test && steps.is_empty() => Ok(Value::Bool(true)),
                    _ => self.at_slot(*slot, steps),
                }
            }
            Root::Node(node) | Root::Branches(node) => {
                let begin = self.eval(*node)?;
                self.at_value(begin, &path.steps)
            }
            Root::Names(candidates) => self.at_names(candidates, &path.steps),
        }
    }

    #[cold]
    fn missing(&self, slot: SlotId) -> Error {
        match &self.program.slots[slot as usize] {
            super::SlotKind::Variable(name) => missing(name, self.work),
            // Elements are set before they are looked at.
            super::SlotKind::Element | super::SlotKind::Gathered(_) => missing("", self.work),
        }
    }

    fn at_slot(&mut self, slot: SlotId, steps: &'a [Step]) -> ValueResult<'a> {
        let begin = match &self.slots[slot as usize] {
            Slot::Value(value) => value,
            Slot::Failed(error) => return Err(error.clone()),
            Slot::Empty => return Err(self.missing(slot)),
        };
        if matches!(begin, Value::Optional(_)) {
            let begin = begin.clone();
            return self.at_value(begin, steps);
        }
        // The first step borrows what lies in the place.
        match steps {
            [] => Ok(begin.clone()),
            [Step { key: StepKey::Field(field), optional: false, test: false }, rest @ ..] => {
                let next = field.of(begin, self.work);
                self.budget.charge(1)?;
                match next? {
                    Some(next) => self.follow(next, false, rest),
                    None => Err(no_such_field(&field.name, self.work)),
                }
            }
            [Step { key: StepKey::Field(field), optional: false, test: true }] => {
                let next = if leads(begin) { field.of(begin, self.work) } else { Ok(None) };
                self.budget.charge(1)?;
                Ok(Value::Bool(next?.is_some()))
            }
            _ => {
                let begin = begin.clone();
                self.follow(begin, false, steps)
            }
        }
    }

    fn at_value(&mut self, begin: Value<'a>, steps: &'a [Step]) -> ValueResult<'a> {
        match begin {
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(held)) => self.follow(native(&held).into_result()?, true, steps),
            begin => self.follow(begin, false, steps),
        }
    }

    fn follow(
        &mut self,
        mut value: Value<'a>,
        mut optional: bool,
        steps: &'a [Step],
    ) -> ValueResult<'a> {
        for step in steps {
            optional |= step.optional;
            if optional {
                match self.take(&value, step, true)? {
                    Some(next) => value = next,
                    None => return Ok(Value::Optional(None)),
                }
                self.budget.charge(1)?;
                continue;
            }
            let taken = self.take(&value, step, step.test);
            if let Err(error) = &taken
                && is_final(error)
            {
                return Err(error.clone());
            }
            self.budget.charge(1)?;
            value = match taken? {
                Some(next) if !step.test => next,
                next => Value::Bool(next.is_some()),
            };
        }
        if optional { Ok(Value::Optional(Some(Arc::new(value)))) } else { Ok(value) }
    }

    /// Takes a step, which may lead nowhere if `lenient`.
    fn take(&mut self, value: &Value<'a>, step: &'a Step, lenient: bool) -> Taken<'a> {
        match &step.key {
            StepKey::Field(field) => {
                let next = if leads(value) { field.of(value, self.work)? } else { None };
                if next.is_some() || lenient {
                    Ok(next)
                } else {
                    Err(no_such_field(&field.name, self.work))
                }
            }
            StepKey::Constant(key) => index(value, &borrowed(key), lenient, self.work),
            StepKey::Computed(node) => {
                let key = self.resolve(*node)?;
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

    /// The beginning that there is, of those that the names may mean.
    fn at_names(&mut self, candidates: &'a [Candidate], steps: &'a [Step]) -> ValueResult<'a> {
        for candidate in candidates {
            let steps = &steps[candidate.skip..];
            for source in &candidate.sources {
                match source {
                    NameSource::Slot(slot) if self.fill(*slot)? => {
                        return self.at_slot(*slot, steps);
                    }
                    NameSource::Type(of) if steps.is_empty() => {
                        return Ok(Value::from_type(of.clone()));
                    }
                    _ => {}
                }
            }
        }
        let names = candidates.first().map_or(String::new(), |first| first.names.join(", "));
        Err(missing(&names, self.work))
    }
}

fn missing(name: &str, work: &WorkBudget) -> Error {
    Error::text(format!("no such attribute(s): {name}"), work)
}

#[cold]
fn no_such_field(name: &str, work: &WorkBudget) -> Error {
    Error::no_such_key(&Value::text(name), work)
}

/// Whether a value has something in it that steps could lead to.
const fn leads(value: &Value<'_>) -> bool {
    matches!(value, Value::Map(_) | Value::Object(_) | Value::List(_))
}

/// What is under a key or at an index.
fn index<'a>(value: &Value<'a>, key: &Value<'a>, lenient: bool, work: &WorkBudget) -> Taken<'a> {
    if !leads(value) {
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
