//! What stood where something stands now: which part of a changed value comes from which part of
//! the value before, and whether it is the same.
//!
//! Fields come from fields of the same name, elements of maps from those with the same keys.
//! Elements of other lists come from nowhere. Of what the schema does not know nothing is known.

use super::{ListType, Schema};
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::collections::HashMap;

/// The value that stood here before, and the schema of what stands here: not of rules, which may
/// say less than there is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Old<'a> {
    pub(super) schema: &'a Schema,
    pub(super) value: &'a Value,
}

impl<'a> Old<'a> {
    /// What stood in a field. Of a field that the schema does not have nothing is known.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let (schema, value) = (self.schema.field(name)?, self.value.get(name)?);
        Some(Self { schema, value })
    }

    /// The elements that stood here, where new ones can come from them.
    pub(super) fn elements(self) -> Option<Elements<'a>> {
        Elements::new(self.schema, self.value.as_array()?)
    }

    /// Whether the value is what it was: elements of maps may have changed their places. What the
    /// schema does not know cannot be told to be the same.
    pub(super) fn is(self, value: &Value) -> bool {
        match (value, self.value) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match (self.elements(), &self.schema.items) {
                    (Some(olds), Some(schema)) => new.iter().all(|item| {
                        olds.get(item).is_some_and(|value| Old { schema, value }.is(item))
                    }),
                    _ => new == old,
                }
            }
            (Value::Object(new), Value::Object(old)) => same_fields(self.schema, new, old),
            (new, old) => new == old,
        }
    }
}

/// [`Old::is`] for the fields of objects.
pub(super) fn same_fields(
    schema: &Schema,
    new: &Map<String, Value>,
    old: &Map<String, Value>,
) -> bool {
    new.len() == old.len()
        && new.iter().all(|(name, value)| {
            let old =
                old.get(name).and_then(|value| Some(Old { schema: schema.field(name)?, value }));
            old.is_some_and(|old| old.is(value))
        })
}

/// The elements of a list that is a map, to be found by their keys.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    keys: &'a [Box<str>],
    items: &'a [Value],
    by_key: OnceCell<HashMap<String, &'a Value>>,
}

impl<'a> Elements<'a> {
    /// The elements of a list; none if new elements cannot be told to come from these.
    pub(super) fn new(schema: &'a Schema, items: &'a [Value]) -> Option<Self> {
        let keys = schema.list_map_keys.as_slice();
        (schema.list_type == Some(ListType::Map) && !keys.is_empty() && !items.is_empty())
            .then(|| Self { keys, items, by_key: OnceCell::new() })
    }

    /// The first element with the keys of this one.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        let key = self.key(item)?;
        let by_key = self.by_key.get_or_init(|| {
            let mut by_key = HashMap::with_capacity(self.items.len());
            for item in self.items {
                if let Some(key) = self.key(item) {
                    by_key.entry(key).or_insert(item);
                }
            }
            by_key
        });
        by_key.get(&key).copied()
    }

    /// All keys in one text; none if one is missing or not a plain value.
    fn key(&self, item: &Value) -> Option<String> {
        let fields = item.as_object()?;
        let mut key = String::new();
        for name in self.keys {
            match fields.get(&**name)? {
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
                // As JSON, so that numbers are not texts and no text reaches into the next.
                scalar => key.push_str(&scalar.to_string()),
            }
            key.push(',');
        }
        Some(key)
    }
}
