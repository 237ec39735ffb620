//! Maps and objects: access to entries and fields.

use super::text::{AsKeyValue, KeyValue};
use super::{Error, MapKey, MapValue, ObjectValue, StringValue, Value, ValueResult, WorkBudget};
use crate::kubernetes::{ShapeKind, ValueShape, names};
use serde_json::{Map as JsonMap, Value as Json};
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

/// The value of an entry or field, if it exists.
pub type LookupResult<'a> = Result<Option<Value<'a>>, Error>;

impl<'a> MapValue<'a> {
    /// A map with these entries.
    pub fn of(entries: BTreeMap<MapKey<'a>, Value<'a>>) -> Self {
        Self::Values(Arc::new(entries))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Json { entries, .. } => entries.len(),
            Self::Values(entries) => entries.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a string key, if it exists.
    ///
    /// # Errors
    ///
    /// If data does not match its schema.
    pub fn get_str(&self, key: &str, work: &WorkBudget) -> LookupResult<'a> {
        match self {
            Self::Json { entries, shape } => {
                entries.get(key).map(|value| shape.element().view(value, work)).transpose()
            }
            Self::Values(entries) => {
                Ok(entries.get(&KeyValue::String(key) as &dyn AsKeyValue).cloned())
            }
        }
    }

    /// The value of a key, if it exists. Numbers are looked up by value.
    ///
    /// # Errors
    ///
    /// If data does not match its schema; [`Error::NoSuchOverload`] if this is a map of an object
    /// and the key is not a string.
    pub fn get(&self, key: &Value<'_>, work: &WorkBudget) -> LookupResult<'a> {
        match self {
            Self::Json { shape, .. } => match key {
                Value::String(key) => self.get_str(key, work),
                _ if shape.is_dynamic() => Ok(None),
                _ => Err(Error::NoSuchOverload),
            },
            Self::Values(entries) => {
                let Some(key) = KeyValue::of(key) else { return Ok(None) };
                Ok(entries.get(&key as &dyn AsKeyValue).cloned())
            }
        }
    }

    /// Whether it has a key.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub fn contains(&self, key: &Value<'_>, work: &WorkBudget) -> Result<bool, Error> {
        match (self, key) {
            (Self::Values(entries), key) => {
                Ok(KeyValue::of(key)
                    .is_some_and(|key| entries.contains_key(&key as &dyn AsKeyValue)))
            }
            _ => Ok(self.get(key, work)?.is_some()),
        }
    }

    /// The entries in the order of their keys.
    pub fn iter<'v>(&'v self, work: &'v WorkBudget) -> MapEntries<'v, 'a> {
        let iter = match self {
            Self::Json { entries, shape } => EntriesInner::Json(entries.iter(), shape),
            Self::Values(entries) => EntriesInner::Values(entries.iter()),
        };
        MapEntries { iter, work }
    }
}

impl<'a> ObjectValue<'a> {
    /// The number of fields, including undeclared ones.
    pub fn len(&self) -> usize {
        match self {
            Self::Json { fields, .. } => fields.len(),
            Self::Values { fields, .. } => fields.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a field by its escaped name; none if the field is missing, null or undeclared.
    ///
    /// # Errors
    ///
    /// If data does not match its schema.
    pub fn get(&self, name: &str, work: &WorkBudget) -> LookupResult<'a> {
        match self {
            Self::Json { fields, shape } => match names::unescape(name) {
                Some(property) => field(fields, shape, &property, work),
                None => Ok(None),
            },
            Self::Values { fields, .. } => Ok(fields.get(name).cloned()),
        }
    }

    /// As [`Self::get`], with any value as the key.
    ///
    /// # Errors
    ///
    /// As [`Self::get`]; [`Error::NoSuchOverload`] if the key is not a string.
    pub fn get_by_value(&self, key: &Value<'_>, work: &WorkBudget) -> LookupResult<'a> {
        match key {
            Value::String(name) => self.get(name, work),
            _ => Err(Error::NoSuchOverload),
        }
    }

    /// The declared fields by their escaped names, in the order of their names in data. A field
    /// that is null yields an error, because it does not exist in CEL.
    pub fn iter<'v>(&'v self, work: &'v WorkBudget) -> MapEntries<'v, 'a> {
        let iter = match self {
            Self::Json { fields, shape } => EntriesInner::Fields(fields.iter(), shape),
            Self::Values { fields, .. } => EntriesInner::Constructed(fields.iter()),
        };
        MapEntries { iter, work }
    }
}

/// The value of a declared field by its name in data.
fn field<'a>(
    fields: &'a JsonMap<String, Json>,
    shape: &'a ValueShape,
    name: &str,
    work: &WorkBudget,
) -> LookupResult<'a> {
    let ShapeKind::Object(object) = &shape.kind else { return Ok(None) };
    let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    match object.fields.get(name) {
        Some(field) => field.shape.view(value, work).map(Some),
        None => Ok(None),
    }
}

/// The entries of a map, or the fields of an object.
#[derive(Debug)]
pub struct MapEntries<'v, 'a> {
    iter: EntriesInner<'v, 'a>,
    work: &'v WorkBudget,
}

#[derive(Debug)]
enum EntriesInner<'v, 'a> {
    Json(serde_json::map::Iter<'a>, &'a ValueShape),
    Fields(serde_json::map::Iter<'a>, &'a ValueShape),
    Values(btree_map::Iter<'v, MapKey<'a>, Value<'a>>),
    Constructed(btree_map::Iter<'v, Arc<str>, Value<'a>>),
}

impl<'a> Iterator for MapEntries<'_, 'a> {
    type Item = (Value<'a>, ValueResult<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let work = self.work;
        match &mut self.iter {
            EntriesInner::Json(entries, shape) => {
                let (key, value) = entries.next()?;
                Some((Value::text(key.as_str()), shape.element().view(value, work)))
            }
            EntriesInner::Fields(fields, shape) => loop {
                let (property, value) = fields.next()?;
                let ShapeKind::Object(object) = &shape.kind else { return None };
                let Some(field) = object.fields.get(property.as_str()) else { continue };
                let name: StringValue<'a> = match names::escape(property) {
                    Some(std::borrow::Cow::Owned(name)) => name.into(),
                    _ => property.as_str().into(),
                };
                let value = if value.is_null() {
                    Err(Error::no_such_key(&Value::String(name.clone()), work))
                } else {
                    field.shape.view(value, work)
                };
                return Some((Value::String(name), value));
            },
            EntriesInner::Values(entries) => {
                let (key, value) = entries.next()?;
                Some((key.to_value(), Ok(value.clone())))
            }
            EntriesInner::Constructed(fields) => {
                let (name, value) = fields.next()?;
                Some((Value::String(StringValue::Shared(name.clone())), Ok(value.clone())))
            }
        }
    }
}
