//! Data of objects as values, as their schemas say.

use super::{Shape, ShapeKind};
use crate::value::{Error, List, Map, Object, Outcome, Value, time};
use base64::Engine as _;
use serde_json::Value as Json;

/// Data without a schema.
static DYNAMIC: Shape = Shape::dynamic();

impl Shape {
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self.kind, ShapeKind::Dynamic)
    }

    /// What is in a list or map of this shape.
    pub(crate) fn element(&self) -> &Self {
        match &self.kind {
            ShapeKind::List { items, .. } => items,
            ShapeKind::Map(values) => values,
            _ => &DYNAMIC,
        }
    }

    /// Looks at data. Lists, maps and objects are looked into when they are asked; strings are not
    /// copied.
    ///
    /// # Errors
    ///
    /// If the data is not what the schema says (`invalid data, expected string, got int64`).
    pub fn view<'a>(&'a self, json: &'a Json) -> Outcome<'a> {
        if json.is_null() {
            return if self.nullable || self.is_dynamic() {
                Ok(Value::Null)
            } else {
                Err(Error::fixed("invalid data, got null for schema with nullable=false"))
            };
        }
        match (&self.kind, json) {
            (ShapeKind::Dynamic, _) => Ok(dynamic(self, json)),
            (ShapeKind::Object(_), Json::Object(fields)) => {
                Ok(Value::Object(Object::Json { fields, shape: self }))
            }
            (ShapeKind::Map(_), Json::Object(entries)) => {
                Ok(Value::Map(Map::Json { entries, shape: self }))
            }
            (ShapeKind::Object(_) | ShapeKind::Map(_), _) => Err(Error::fixed(
                "invalid data, expected a map for the provided schema with type=object",
            )),
            (ShapeKind::List { .. }, Json::Array(items)) => {
                Ok(Value::List(List::Json { items, shape: self }))
            }
            (ShapeKind::List { .. }, _) => Err(Error::fixed(
                "invalid data, expected an array for the provided schema with type=array",
            )),
            (ShapeKind::String | ShapeKind::IntOrString, Json::String(text)) => {
                Ok(Value::text(text.as_str()))
            }
            (ShapeKind::Bytes, Json::String(text)) => bytes(text),
            (ShapeKind::Duration, Json::String(text)) => time::schema_duration(text),
            (ShapeKind::Date, Json::String(text)) => time::schema_date(text),
            (ShapeKind::DateTime, Json::String(text)) => time::schema_date_time(text),
            (
                ShapeKind::String
                | ShapeKind::Bytes
                | ShapeKind::Duration
                | ShapeKind::Date
                | ShapeKind::DateTime,
                _,
            ) => Err(expected("string", json)),
            (ShapeKind::Integer, _) => {
                json.as_i64().map(Value::Int).ok_or_else(|| expected("int", json))
            }
            (ShapeKind::IntOrString, _) => json.as_i64().map(Value::Int).ok_or(Error::fixed(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
            (ShapeKind::Number, _) => {
                json.as_f64().map(Value::Double).ok_or_else(|| expected("float", json))
            }
            (ShapeKind::Boolean, _) => {
                json.as_bool().map(Value::Bool).ok_or_else(|| expected("bool", json))
            }
            (ShapeKind::Preserved, _) => Ok(Value::Preserved(json)),
        }
    }
}

impl<'a> Value<'a> {
    /// Data without a schema, whatever it is.
    pub fn of_json(json: &'a Json) -> Self {
        dynamic(&DYNAMIC, json)
    }
}

fn dynamic<'a>(shape: &'a Shape, json: &'a Json) -> Value<'a> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(*bool),
        // What is too great for an `int` is a double, as when Kubernetes reads it.
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::List(List::Json { items, shape }),
        Json::Object(entries) => Value::Map(Map::Json { entries, shape }),
    }
}

/// Data that a schema did not let expect, with the names that Go has for what is there.
fn expected(what: &str, json: &Json) -> Error {
    let got = match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    Error::text(format!("invalid data, expected {what}, got {got}"))
}

/// `format: byte`: base64 with the letters of URLs, line breaks left out.
fn bytes(text: &str) -> Outcome<'static> {
    let clean: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    if let Ok(bytes) = base64::engine::general_purpose::URL_SAFE.decode(&clean) {
        return Ok(Value::Bytes(bytes.into()));
    }
    let at = clean.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let at = at.unwrap_or(clean.len());
    Err(Error::text(format!(
        "Invalid byte formatted string {text}: illegal base64 data at input byte {at}"
    )))
}
