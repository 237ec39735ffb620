//! Evaluation of comprehensions.
//!
//! The accumulator may be an error: the loop continues (`@not_strictly_false` allows it), and a
//! later step may replace it by a value. The initial value of the accumulator is computed on first
//! use.

use super::construct::{not_optional_element, optional_value};
use super::go_values::go_type;
use super::machine::{Machine, Slot, is_final};
use super::node::{ComprehensionNode, LiteralItem, Node, NodeId, Quantifier, SlotId};
use crate::cost::LIST_CREATE;
use crate::value::{
    Error, ListValue, MapEntries, MapKey, MapValue, Value, ValueResult, WorkBudget,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl<'a> Machine<'a, '_, '_> {
    /// Evaluates a comprehension.
    pub(super) fn comprehension(
        &mut self,
        comprehension: &'a ComprehensionNode,
    ) -> ValueResult<'a> {
        let range = self.eval(comprehension.range)?;
        if let Some(quantifier) = &comprehension.quantifier {
            let mut result = Ok(!quantifier.deciding_value);
            self.iterate(comprehension, &range, |machine| {
                machine.quantify(quantifier, &mut result)
            })?;
            self.budget.charge(1)?;
            return result.map(Value::Bool);
        }
        self.slots[comprehension.accumulator as usize] = Slot::Empty;
        self.iterate(comprehension, &range, |machine| machine.step(comprehension))?;
        let result = self.eval(comprehension.result);
        self.slots[comprehension.accumulator as usize] = Slot::Empty;
        result
    }

    /// Runs a step for each element, until one returns false.
    fn iterate(
        &mut self,
        comprehension: &'a ComprehensionNode,
        range: &Value<'a>,
        step: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        match range {
            Value::List(list) => self.iterate_list(comprehension, list, step),
            Value::Map(map) => self.iterate_entries(comprehension, map.iter(self.work), step),
            Value::Object(object) => {
                self.iterate_entries(comprehension, object.iter(self.work), step)
            }
            other => Err(not_iterable(comprehension, other, self.work)),
        }
    }

    fn iterate_list(
        &mut self,
        comprehension: &'a ComprehensionNode,
        list: &ListValue<'a>,
        mut step: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for (at, element) in list.iter(self.work).enumerate() {
            let element = Slot::of(element);
            if let Some(second) = comprehension.second {
                let index = Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                self.slots[comprehension.first as usize] = Slot::Value(index);
                self.slots[second as usize] = element;
            } else {
                self.slots[comprehension.first as usize] = element;
            }
            if !step(self)? {
                break;
            }
            self.budget.count_iteration(self.work)?;
        }
        Ok(())
    }

    fn iterate_entries(
        &mut self,
        comprehension: &'a ComprehensionNode,
        entries: MapEntries<'_, 'a>,
        mut step: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for (key, value) in entries {
            self.slots[comprehension.first as usize] = Slot::Value(key);
            if let Some(second) = comprehension.second {
                self.slots[second as usize] = Slot::of(value);
            }
            if !step(self)? {
                break;
            }
            self.budget.count_iteration(self.work)?;
        }
        Ok(())
    }

    /// One iteration of `all` or `exists`; false if the result is final.
    fn quantify(
        &mut self,
        quantifier: &'a Quantifier,
        result: &mut Result<bool, Error>,
    ) -> Result<bool, Error> {
        // cel-go charges the accumulator in the condition (in `exists` also its negation), the
        // condition, and the accumulator in the step.
        self.budget.charge(1)?;
        if quantifier.deciding_value {
            self.budget.charge(1)?;
        }
        self.budget.charge(1)?;
        let error_so_far = match result {
            Ok(value) if *value == quantifier.deciding_value => return Ok(false),
            Ok(_) => None,
            Err(error) => Some(error.clone()),
        };
        self.budget.charge(1)?;
        *result =
            self.evaluate_operands(error_so_far, &quantifier.operands, quantifier.deciding_value);
        match result {
            Err(error) if is_final(error) => Err(error.clone()),
            _ => Ok(true),
        }
    }

    /// One iteration; false if the condition ends the loop.
    fn step(&mut self, comprehension: &'a ComprehensionNode) -> Result<bool, Error> {
        match self.eval(comprehension.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if is_final(&error) => return Err(error),
            _ => {}
        }
        match self.eval(comprehension.step) {
            Err(error) if is_final(&error) => return Err(error),
            accumulator => self.slots[comprehension.accumulator as usize] = Slot::of(accumulator),
        }
        Ok(true)
    }

    /// Takes the accumulator out of its slot, to change it in place.
    fn take_accumulator(&mut self, accumulator: SlotId) -> Result<Value<'a>, Error> {
        match std::mem::replace(&mut self.slots[accumulator as usize], Slot::Empty) {
            Slot::Value(value) => Ok(value),
            Slot::Failed(error) => Err(error),
            // The slot was filled before.
            Slot::Empty => Err(Error::NoSuchOverload),
        }
    }

    /// Evaluates `accumulator + [a]`.
    pub(super) fn push(&mut self, accumulator: SlotId, list: NodeId) -> ValueResult<'a> {
        self.fill_slot(accumulator)?;
        self.budget.charge(1)?;
        let program: &'a super::Program = self.program;
        let addition = match &program.nodes[list as usize] {
            Node::List(items) if let [LiteralItem { node, optional }] = &**items => {
                let element = self.element(*node, *optional);
                if !matches!(&element, Err(error) if is_final(error)) {
                    self.budget.charge(LIST_CREATE)?;
                }
                element
            }
            _ => self.eval(list).map(Addition::List),
        };
        if let Err(error) = &addition
            && is_final(error)
        {
            return addition.map(|_| Value::Null);
        }
        self.budget.charge(1)?;
        let Value::List(list) = self.take_accumulator(accumulator)? else {
            return Err(Error::NoSuchOverload);
        };
        match (list, addition?) {
            (list, Addition::Element(None)) => Ok(Value::List(list)),
            (ListValue::Values(mut values), Addition::Element(Some(element))) => {
                Arc::make_mut(&mut values).push(element);
                Ok(Value::List(ListValue::Values(values)))
            }
            (list, Addition::Element(Some(element))) => {
                list.join(&ListValue::of(vec![element]), self.work).map(Value::List)
            }
            (list, Addition::List(Value::List(more))) => {
                list.join(&more, self.work).map(Value::List)
            }
            (_, Addition::List(_)) => Err(Error::NoSuchOverload),
        }
    }

    fn element(&mut self, node: NodeId, optional: bool) -> Result<Addition<'a>, Error> {
        let value = self.eval(node)?;
        if !optional {
            return Ok(Addition::Element(Some(value)));
        }
        let optional_value =
            optional_value(value).map_err(|value| not_optional_element(&value, self.work))?;
        Ok(Addition::Element(optional_value.map(Value::into_result).transpose()?))
    }

    /// Evaluates the insertion of a key and value, or of a map, into the accumulator.
    pub(super) fn insert(&mut self, accumulator: SlotId, args: &'a [NodeId]) -> ValueResult<'a> {
        let work = self.work;
        self.fill_slot(accumulator)?;
        self.budget.charge(1)?;
        let error_so_far = match &self.slots[accumulator as usize] {
            Slot::Failed(error) => Some(error.clone()),
            _ => None,
        };
        match args {
            // With a key and value, an error of the accumulator ends the call; with a map, both
            // arguments are evaluated.
            [key, value] => {
                if let Some(error) = error_so_far {
                    return Err(error);
                }
                let key = self.eval(*key)?;
                let value = match self.eval(*value) {
                    Err(error) if is_final(&error) => return Err(error),
                    value => value,
                };
                self.budget.charge(1)?;
                let value = value?;
                self.change_map(accumulator, |map| insert(map, &key, value, work))
            }
            [more] => {
                let more = match self.eval(*more) {
                    Err(error) if is_final(&error) => return Err(error),
                    more => more,
                };
                self.budget.charge(1)?;
                if let Some(error) = error_so_far {
                    return Err(error);
                }
                let more = more?;
                self.change_map(accumulator, |map| {
                    let entries = match &more {
                        Value::Map(more) => more.iter(work),
                        Value::Object(more) => more.iter(work),
                        _ => return Err(Error::NoSuchOverload),
                    };
                    for (key, value) in entries {
                        insert(map, &key, value?, work)?;
                    }
                    Ok(())
                })
            }
            _ => Err(Error::NoSuchOverload),
        }
    }

    fn change_map(
        &mut self,
        accumulator: SlotId,
        change: impl FnOnce(&mut BTreeMap<MapKey<'a>, Value<'a>>) -> Result<(), Error>,
    ) -> ValueResult<'a> {
        match self.take_accumulator(accumulator)? {
            Value::Map(MapValue::Values(mut map)) => {
                change(Arc::make_mut(&mut map))?;
                Ok(Value::Map(MapValue::Values(map)))
            }
            _ => Err(Error::NoSuchOverload),
        }
    }
}

/// What is added to an accumulated list.
enum Addition<'a> {
    /// One element, or none for an empty optional.
    Element(Option<Value<'a>>),
    /// A list.
    List(Value<'a>),
}

fn insert<'a>(
    map: &mut BTreeMap<MapKey<'a>, Value<'a>>,
    key: &Value<'a>,
    value: Value<'a>,
    work: &WorkBudget,
) -> Result<(), Error> {
    let Some(map_key) = MapKey::of(key) else {
        return Err(Error::text(format!("unsupported key type: {}", go_type(key)), work));
    };
    match map.entry(map_key) {
        std::collections::btree_map::Entry::Vacant(entry) => {
            entry.insert(value);
            Ok(())
        }
        std::collections::btree_map::Entry::Occupied(_) => {
            let text = format!("insert failed: key {} already exists", key.display(work));
            Err(Error::text(text, work))
        }
    }
}

#[cold]
fn not_iterable(comprehension: &ComprehensionNode, range: &Value<'_>, work: &WorkBudget) -> Error {
    let name = go_type(range);
    let text = match comprehension.second {
        Some(_) => format!("unsupported comprehension range type: {name}"),
        None => format!("got '{name}', expected iterable type"),
    };
    Error::text(text, work)
}
