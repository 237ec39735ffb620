//! JSON objects, decoded as leniently as by Go.

use mainstay_resolver::OperatorApi;
use serde_json::{Map, Value};

/// The value does not have the expected type.
#[derive(Debug)]
pub(crate) struct ShapeError;

/// Parses a whole text.
pub(crate) fn parse(text: &str) -> Result<Value, ShapeError> {
    serde_json::from_str(text).map_err(|_| ShapeError)
}

/// The fields of an object. Null counts as an object without fields; names match in any case.
pub(crate) struct Fields<'a>(Option<&'a Map<String, Value>>);

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value) -> Result<Self, ShapeError> {
        match value {
            Value::Null => Ok(Self(None)),
            Value::Object(map) => Ok(Self(Some(map))),
            _ => Err(ShapeError),
        }
    }

    /// A field, unless it is null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        let mut found = None;
        for (key, value) in self.0.into_iter().flatten() {
            if key == name {
                return Some(value).filter(|value| !value.is_null());
            }
            if key.eq_ignore_ascii_case(name) {
                found = Some(value);
            }
        }
        found.filter(|value| !value.is_null())
    }

    /// The text of a field, empty if the object does not have it.
    pub(crate) fn text(&self, name: &str) -> Result<String, ShapeError> {
        match self.get(name) {
            None => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(ShapeError),
        }
    }

    /// The group, version and kind of an API.
    pub(crate) fn api(&self) -> Result<OperatorApi, ShapeError> {
        Ok(OperatorApi::new(self.text("group")?, self.text("version")?, self.text("kind")?))
    }

    /// Refuses all other fields than these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ShapeError> {
        let mut keys = self.0.into_iter().flat_map(Map::keys);
        if keys.all(|key| known.iter().any(|name| name.eq_ignore_ascii_case(key))) {
            Ok(())
        } else {
            Err(ShapeError)
        }
    }
}
