//! Lists, maps and objects that are written out.

use super::go_values::go_type;
use super::machine::{Machine, is_final};
use super::node::{Item, NodeId};
use crate::cost::{LIST_CREATE, MAP_CREATE, OBJECT_CREATE};
use crate::value::{
    Error, ListValue, MapKey, MapValue, ObjectValue, Value, ValueResult, WorkBudget,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl<'a> Machine<'a, '_, '_> {
    /// `[a, ?b]`
    pub(super) fn list(&mut self, items: &'a [Item]) -> ValueResult<'a> {
        let made = self.items(items);
        self.made(made, LIST_CREATE).map(|values| Value::List(ListValue::of(values)))
    }

    /// The elements of a list that is written out; its own cost is not paid yet.
    fn items(&mut self, items: &'a [Item]) -> Result<Vec<Value<'a>>, Error> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(item.node)?;
            if !item.optional {
                values.push(value);
                continue;
            }
            let held = held(value).map_err(|value| no_optional_element(&value, self.work))?;
            values.extend(held.map(Value::into_result).transpose()?);
        }
        Ok(values)
    }

    /// `{a: b, ?c: d}`
    pub(super) fn map(&mut self, entries: &'a [(NodeId, Item)]) -> ValueResult<'a> {
        let made = self.entries(entries);
        self.made(made, MAP_CREATE).map(|entries| Value::Map(MapValue::of(entries)))
    }

    fn entries(
        &mut self,
        entries: &'a [(NodeId, Item)],
    ) -> Result<BTreeMap<MapKey<'a>, Value<'a>>, Error> {
        let mut map = BTreeMap::new();
        for (key, item) in entries {
            let key = self.eval(*key)?;
            let value = self.eval(item.node)?;
            add_entry(&mut map, &key, value, item.optional, self.work)?;
        }
        Ok(map)
    }

    /// `Type{a: b, ?c: d}`
    pub(super) fn object(
        &mut self,
        name: &'a Arc<str>,
        fields: &'a [(Arc<str>, Item)],
    ) -> ValueResult<'a> {
        let made = self.fields(fields);
        self.made(made, OBJECT_CREATE).map(|fields| {
            Value::Object(ObjectValue::Values { name: name.clone(), fields: Arc::new(fields) })
        })
    }

    fn fields(
        &mut self,
        fields: &'a [(Arc<str>, Item)],
    ) -> Result<BTreeMap<Arc<str>, Value<'a>>, Error> {
        let mut object = BTreeMap::new();
        for (name, item) in fields {
            let value = self.eval(item.node)?;
            if !item.optional {
                object.insert(name.clone(), value);
                continue;
            }
            let held = held(value).map_err(|value| no_optional_entry(name, &value, self.work))?;
            match held.map(Value::into_result).transpose()? {
                Some(value) => object.insert(name.clone(), value),
                None => object.remove(name),
            };
        }
        Ok(object)
    }

    /// Pays for what was made, or was to be made.
    fn made<T>(&mut self, made: Result<T, Error>, cost: u64) -> Result<T, Error> {
        if let Err(error) = &made
            && is_final(error)
        {
            return made;
        }
        self.budget.charge(cost)?;
        // Making the text of an error may have used up the work.
        self.work.check()?;
        made
    }
}

/// Adds an entry to a map that is written out.
pub(super) fn add_entry<'a>(
    map: &mut BTreeMap<MapKey<'a>, Value<'a>>,
    key: &Value<'a>,
    value: Value<'a>,
    optional: bool,
    work: &WorkBudget,
) -> Result<(), Error> {
    let value = if optional {
        let held =
            held(value).map_err(|value| no_optional_entry(&key.display(work), &value, work))?;
        held.map(Value::into_result).transpose()?
    } else {
        Some(value)
    };
    let Some(key) = MapKey::of(key) else {
        return Err(Error::text(format!("unsupported key type: {}", go_type(key)), work));
    };
    match value {
        Some(value) => map.insert(key, value),
        None => map.remove(&key),
    };
    Ok(())
}

/// What an optional holds; the value itself if it is no optional.
pub(super) fn held(value: Value<'_>) -> Result<Option<Value<'_>>, Value<'_>> {
    match value {
        Value::Optional(held) => Ok(held.map(Arc::unwrap_or_clone)),
        value => Err(value),
    }
}

/// Of an element that is marked `?`.
#[cold]
pub(super) fn no_optional_element(value: &Value<'_>, work: &WorkBudget) -> Error {
    let value = value.display(work);
    let what = "cannot initialize optional list element from non-optional value";
    Error::text(format!("{what} {value}"), work)
}

/// Of an entry or field that is marked `?`.
#[cold]
fn no_optional_entry(key: &dyn std::fmt::Display, value: &Value<'_>, work: &WorkBudget) -> Error {
    let value = value.display(work);
    let what = format!("cannot initialize optional entry '{key}' from non-optional value {value}");
    Error::text(what, work)
}
