//! Evaluation of list, map and object literals.

use super::go_values::go_type;
use super::machine::{Machine, is_final};
use super::node::{LiteralItem, NodeId};
use crate::cost::{LIST_CREATE, MAP_CREATE, OBJECT_CREATE};
use crate::value::{
    Error, ListValue, MapKey, MapValue, ObjectValue, Value, ValueResult, WorkBudget,
};
use std::collections::BTreeMap;
use std::sync::Arc;

impl<'a> Machine<'a, '_, '_> {
    /// `[a, ?b]`
    pub(super) fn list(&mut self, items: &'a [LiteralItem]) -> ValueResult<'a> {
        let result = self.items(items);
        self.charge_literal(result, LIST_CREATE).map(|values| Value::List(ListValue::of(values)))
    }

    /// Evaluates the elements of a list literal, without the cost of the list.
    fn items(&mut self, items: &'a [LiteralItem]) -> Result<Vec<Value<'a>>, Error> {
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            let value = self.eval(item.node)?;
            if !item.optional {
                values.push(value);
                continue;
            }
            let optional_value =
                optional_value(value).map_err(|value| not_optional_element(&value, self.work))?;
            values.extend(optional_value.map(Value::into_result).transpose()?);
        }
        Ok(values)
    }

    /// `{a: b, ?c: d}`
    pub(super) fn map(&mut self, entries: &'a [(NodeId, LiteralItem)]) -> ValueResult<'a> {
        let result = self.entries(entries);
        self.charge_literal(result, MAP_CREATE).map(|entries| Value::Map(MapValue::of(entries)))
    }

    fn entries(
        &mut self,
        entries: &'a [(NodeId, LiteralItem)],
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
        fields: &'a [(Arc<str>, LiteralItem)],
    ) -> ValueResult<'a> {
        let result = self.fields(fields);
        self.charge_literal(result, OBJECT_CREATE).map(|fields| {
            Value::Object(ObjectValue::Values { name: name.clone(), fields: Arc::new(fields) })
        })
    }

    fn fields(
        &mut self,
        fields: &'a [(Arc<str>, LiteralItem)],
    ) -> Result<BTreeMap<Arc<str>, Value<'a>>, Error> {
        let mut object = BTreeMap::new();
        for (name, item) in fields {
            let value = self.eval(item.node)?;
            if !item.optional {
                object.insert(name.clone(), value);
                continue;
            }
            let optional_value = optional_value(value)
                .map_err(|value| not_optional_entry(name, &value, self.work))?;
            match optional_value.map(Value::into_result).transpose()? {
                Some(value) => object.insert(name.clone(), value),
                None => object.remove(name),
            };
        }
        Ok(object)
    }

    /// Charges the cost of a literal, also if its construction failed.
    fn charge_literal<T>(&mut self, result: Result<T, Error>, cost: u64) -> Result<T, Error> {
        if let Err(error) = &result
            && is_final(error)
        {
            return result;
        }
        self.budget.charge(cost)?;
        // The text of an error may have used up the work.
        self.work.check()?;
        result
    }
}

/// Adds an entry to a map literal.
pub(super) fn add_entry<'a>(
    map: &mut BTreeMap<MapKey<'a>, Value<'a>>,
    key: &Value<'a>,
    value: Value<'a>,
    optional: bool,
    work: &WorkBudget,
) -> Result<(), Error> {
    let value = if optional {
        let optional_value = optional_value(value)
            .map_err(|value| not_optional_entry(&key.display(work), &value, work))?;
        optional_value.map(Value::into_result).transpose()?
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

/// The value of an optional, if it has one. The error is the value itself if it is not an optional.
pub(super) fn optional_value(value: Value<'_>) -> Result<Option<Value<'_>>, Value<'_>> {
    match value {
        Value::Optional(optional_value) => Ok(optional_value.map(Arc::unwrap_or_clone)),
        value => Err(value),
    }
}

/// The error for an element with `?` that is not an optional.
#[cold]
pub(super) fn not_optional_element(value: &Value<'_>, work: &WorkBudget) -> Error {
    let value = value.display(work);
    let message = "cannot initialize optional list element from non-optional value";
    Error::text(format!("{message} {value}"), work)
}

/// The error for an entry or field with `?` that is not an optional.
#[cold]
fn not_optional_entry(key: &dyn std::fmt::Display, value: &Value<'_>, work: &WorkBudget) -> Error {
    let value = value.display(work);
    let message =
        format!("cannot initialize optional entry '{key}' from non-optional value {value}");
    Error::text(message, work)
}
