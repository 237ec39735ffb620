//! Loops.
//!
//! What is gathered may be an error: the loop goes on (`@not_strictly_false` lets it), and a later
//! step may make a value of it again. Its first value is made only when it is asked for.

use super::construct::{held, no_optional_element};
use super::go_values::go_type;
use super::machine::{Machine, Slot, is_final};
use super::node::{Item, Loop, Node, NodeId, Quantifier, SlotId};
use crate::cost::LIST_CREATE;
use crate::value::{
    Error, ListValue, MapEntries, MapKey, MapValue, Value, ValueResult, WorkBudget,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl<'a> Machine<'a, '_, '_> {
    /// A loop.
    pub(super) fn fold(&mut self, fold: &'a Loop) -> ValueResult<'a> {
        let range = self.eval(fold.range)?;
        if let Some(quantifier) = &fold.quantifier {
            let mut answer = Ok(!quantifier.decides);
            self.over(fold, &range, |machine| machine.ask(quantifier, &mut answer))?;
            self.budget.charge(1)?;
            return answer.map(Value::Bool);
        }
        self.slots[fold.gathered as usize] = Slot::Empty;
        self.over(fold, &range, |machine| machine.turn(fold))?;
        let result = self.eval(fold.result);
        self.slots[fold.gathered as usize] = Slot::Empty;
        result
    }

    /// Takes turns, one for each element, until one says that there is to be no other.
    fn over(
        &mut self,
        fold: &'a Loop,
        range: &Value<'a>,
        turn: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        match range {
            Value::List(list) => self.over_list(fold, list, turn),
            Value::Map(map) => self.over_entries(fold, map.iter(self.work), turn),
            Value::Object(object) => self.over_entries(fold, object.iter(self.work), turn),
            other => Err(not_iterable(fold, other, self.work)),
        }
    }

    fn over_list(
        &mut self,
        fold: &'a Loop,
        list: &ListValue<'a>,
        mut turn: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for (at, element) in list.iter(self.work).enumerate() {
            let element = Slot::of(element);
            if let Some(second) = fold.second {
                let index = Value::Int(i64::try_from(at).unwrap_or(i64::MAX));
                self.slots[fold.first as usize] = Slot::Value(index);
                self.slots[second as usize] = element;
            } else {
                self.slots[fold.first as usize] = element;
            }
            if !turn(self)? {
                break;
            }
            self.budget.turn(self.work)?;
        }
        Ok(())
    }

    fn over_entries(
        &mut self,
        fold: &'a Loop,
        entries: MapEntries<'_, 'a>,
        mut turn: impl FnMut(&mut Self) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        for (key, value) in entries {
            self.slots[fold.first as usize] = Slot::Value(key);
            if let Some(second) = fold.second {
                self.slots[second as usize] = Slot::of(value);
            }
            if !turn(self)? {
                break;
            }
            self.budget.turn(self.work)?;
        }
        Ok(())
    }

    /// One turn of `all` or `exists`; false if the answer is known already.
    fn ask(
        &mut self,
        quantifier: &'a Quantifier,
        answer: &mut Result<bool, Error>,
    ) -> Result<bool, Error> {
        // The answer so far is looked at, whether to go on is asked (of the opposite, in
        // `exists`), and the answer is looked at again.
        self.budget.charge(1)?;
        if quantifier.decides {
            self.budget.charge(1)?;
        }
        self.budget.charge(1)?;
        let failed = match answer {
            Ok(known) if *known == quantifier.decides => return Ok(false),
            Ok(_) => None,
            Err(error) => Some(error.clone()),
        };
        self.budget.charge(1)?;
        *answer = self.more_sides(failed, &quantifier.sides, quantifier.decides);
        match answer {
            Err(error) if is_final(error) => Err(error.clone()),
            _ => Ok(true),
        }
    }

    /// One turn; false if the loop was not to go on.
    fn turn(&mut self, fold: &'a Loop) -> Result<bool, Error> {
        match self.eval(fold.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if is_final(&error) => return Err(error),
            _ => {}
        }
        match self.eval(fold.step) {
            Err(error) if is_final(&error) => return Err(error),
            gathered => self.slots[fold.gathered as usize] = Slot::of(gathered),
        }
        Ok(true)
    }

    /// Takes what is gathered out of its place, to be changed where it lies.
    fn take_gathered(&mut self, gathered: SlotId) -> Result<Value<'a>, Error> {
        match std::mem::replace(&mut self.slots[gathered as usize], Slot::Empty) {
            Slot::Value(value) => Ok(value),
            Slot::Failed(error) => Err(error),
            // It was filled before.
            Slot::Empty => Err(Error::NoSuchOverload),
        }
    }

    /// `gathered + [a]`
    pub(super) fn push(&mut self, gathered: SlotId, list: NodeId) -> ValueResult<'a> {
        self.fill(gathered)?;
        self.budget.charge(1)?;
        let program: &'a super::Program = self.program;
        let added = match &program.nodes[list as usize] {
            Node::List(items) if let [Item { node, optional }] = &**items => {
                let element = self.element(*node, *optional);
                if !matches!(&element, Err(error) if is_final(error)) {
                    self.budget.charge(LIST_CREATE)?;
                }
                element
            }
            _ => self.eval(list).map(Added::List),
        };
        if let Err(error) = &added
            && is_final(error)
        {
            return added.map(|_| Value::Null);
        }
        self.budget.charge(1)?;
        let Value::List(list) = self.take_gathered(gathered)? else {
            return Err(Error::NoSuchOverload);
        };
        match (list, added?) {
            (list, Added::Element(None)) => Ok(Value::List(list)),
            (ListValue::Values(mut values), Added::Element(Some(element))) => {
                Arc::make_mut(&mut values).push(element);
                Ok(Value::List(ListValue::Values(values)))
            }
            (list, Added::Element(Some(element))) => {
                list.join(&ListValue::of(vec![element]), self.work).map(Value::List)
            }
            (list, Added::List(Value::List(more))) => list.join(&more, self.work).map(Value::List),
            (_, Added::List(_)) => Err(Error::NoSuchOverload),
        }
    }

    fn element(&mut self, node: NodeId, optional: bool) -> Result<Added<'a>, Error> {
        let value = self.eval(node)?;
        if !optional {
            return Ok(Added::Element(Some(value)));
        }
        let held = held(value).map_err(|value| no_optional_element(&value, self.work))?;
        Ok(Added::Element(held.map(Value::into_result).transpose()?))
    }

    /// A map that is gathered, and what is added to it.
    pub(super) fn insert(&mut self, gathered: SlotId, args: &'a [NodeId]) -> ValueResult<'a> {
        let work = self.work;
        self.fill(gathered)?;
        self.budget.charge(1)?;
        let failed = match &self.slots[gathered as usize] {
            Slot::Failed(error) => Some(error.clone()),
            _ => None,
        };
        match args {
            // With a key and a value an error ends it; with a map both sides are asked for.
            [key, value] => {
                if let Some(error) = failed {
                    return Err(error);
                }
                let key = self.eval(*key)?;
                let value = match self.eval(*value) {
                    Err(error) if is_final(&error) => return Err(error),
                    value => value,
                };
                self.budget.charge(1)?;
                let value = value?;
                self.grow(gathered, |map| insert(map, &key, value, work))
            }
            [more] => {
                let more = match self.eval(*more) {
                    Err(error) if is_final(&error) => return Err(error),
                    more => more,
                };
                self.budget.charge(1)?;
                if let Some(error) = failed {
                    return Err(error);
                }
                let more = more?;
                self.grow(gathered, |map| {
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

    fn grow(
        &mut self,
        gathered: SlotId,
        change: impl FnOnce(&mut BTreeMap<MapKey<'a>, Value<'a>>) -> Result<(), Error>,
    ) -> ValueResult<'a> {
        match self.take_gathered(gathered)? {
            Value::Map(MapValue::Values(mut map)) => {
                change(Arc::make_mut(&mut map))?;
                Ok(Value::Map(MapValue::Values(map)))
            }
            _ => Err(Error::NoSuchOverload),
        }
    }
}

/// What is added to a list that is gathered.
enum Added<'a> {
    /// One element, or none.
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
    let Some(known) = MapKey::of(key) else {
        return Err(Error::text(format!("unsupported key type: {}", go_type(key)), work));
    };
    match map.entry(known) {
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
fn not_iterable(fold: &Loop, range: &Value<'_>, work: &WorkBudget) -> Error {
    let name = go_type(range);
    let text = match fold.second {
        Some(_) => format!("unsupported comprehension range type: {name}"),
        None => format!("got '{name}', expected iterable type"),
    };
    Error::text(text, work)
}
