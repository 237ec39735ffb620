//! Correlation of a changed value with its old value, for validation ratcheting.
//!
//! Fields correlate with fields of the same name, elements of list maps with those of the same keys.
//! Elements of other lists, and fields that the schema does not have, do not correlate.

use super::{ListType, Schema};
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::collections::HashMap;

/// The old value that correlates with a value, and the structural schema of both. Schemas below
/// `allOf` and the like are no substitute, because they may have fewer fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldValue<'a> {
    pub(super) schema: &'a Schema,
    pub(super) value: &'a Value,
}

impl<'a> OldValue<'a> {
    /// The old value of a field; none if the schema does not have the field.
    pub(super) fn field(self, name: &str) -> Option<Self> {
        let (schema, value) = (self.schema.field(name)?, self.value.get(name)?);
        Some(Self { schema, value })
    }

    /// The old elements of a list map.
    pub(super) fn elements(self) -> Option<MapElements<'a>> {
        MapElements::new(self.schema, self.value.as_array()?)
    }

    /// Whether a value is unchanged. Elements of list maps may be reordered. A value with fields that
    /// the schema does not have counts as changed.
    pub(super) fn equals(self, value: &Value) -> bool {
        match (value, self.value) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match (self.elements(), &self.schema.items) {
                    (Some(olds), Some(schema)) => new.iter().all(|item| {
                        olds.get(item).is_some_and(|value| OldValue { schema, value }.equals(item))
                    }),
                    _ => new == old,
                }
            }
            (Value::Object(new), Value::Object(old)) => fields_equal(self.schema, new, old),
            (new, old) => new == old,
        }
    }
}

/// [`OldValue::equals`] for the fields of objects.
pub(super) fn fields_equal(
    schema: &Schema,
    new: &Map<String, Value>,
    old: &Map<String, Value>,
) -> bool {
    new.len() == old.len()
        && new.iter().all(|(name, value)| {
            let old = old
                .get(name)
                .and_then(|value| Some(OldValue { schema: schema.field(name)?, value }));
            old.is_some_and(|old| old.equals(value))
        })
}

/// The elements of a list map, indexed by their keys.
#[derive(Debug)]
pub(super) struct MapElements<'a> {
    keys: &'a [Box<str>],
    items: &'a [Value],
    by_key: OnceCell<HashMap<String, &'a Value>>,
}

impl<'a> MapElements<'a> {
    /// The elements of a list; none if the list is no map or empty.
    pub(super) fn new(schema: &'a Schema, items: &'a [Value]) -> Option<Self> {
        let keys = schema.list_map_keys.as_slice();
        (schema.list_type == Some(ListType::Map) && !keys.is_empty() && !items.is_empty())
            .then(|| Self { keys, items, by_key: OnceCell::new() })
    }

    /// The first element with the same keys as an item.
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

    /// All keys in one text; none if a key is missing or no scalar.
    fn key(&self, item: &Value) -> Option<String> {
        let fields = item.as_object()?;
        let mut key = String::new();
        for name in self.keys {
            match fields.get(&**name)? {
                Value::Null | Value::Array(_) | Value::Object(_) => return None,
                // As JSON, so that numbers differ from strings and keys cannot run together.
                scalar => key.push_str(&scalar.to_string()),
            }
            key.push(',');
        }
        Some(key)
    }
}
