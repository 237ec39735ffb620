//! JSON schemas decoded into values of the Go types, as an API server's client reads them.

use super::types::{JsonForm, Kind, SCHEMA, Type};
use super::value::{Schema, Value};
use mainstay_gocompat::json::{Html, Numbers, value as go_json};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// How deep schemas may nest. The API server's limits on cost and size refuse deeper ones.
const MAX_DEPTH: usize = 200;

/// A schema that does not fit its Go type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub(crate) struct DecodeError {
    /// Where, from the schema on: `properties.spec.maxLength`.
    pub(crate) path: String,
    pub(crate) reason: String,
}

/// Decodes an `openAPIV3Schema`.
pub(crate) fn decode_schema(json: &Json) -> Result<Schema, DecodeError> {
    let value = Decoder { path: Vec::new() }.decode(json, &SCHEMA)?;
    Ok(Schema::from_value(value))
}

struct Decoder {
    path: Vec<String>,
}

impl Decoder {
    fn fail(&self, reason: impl Into<String>) -> DecodeError {
        DecodeError { path: self.path.join("."), reason: reason.into() }
    }

    /// Decodes a child and restores the path.
    fn child(&mut self, name: &str, json: &Json, kind: &Type) -> Result<Value, DecodeError> {
        if self.path.len() >= MAX_DEPTH * 2 {
            let reason = format!("the schema nests deeper than {MAX_DEPTH} levels");
            self.path.truncate(6);
            return Err(self.fail(reason));
        }
        self.path.push(name.to_owned());
        let value = self.decode(json, kind)?;
        self.path.pop();
        Ok(value)
    }

    fn decode(&mut self, json: &Json, kind: &Type) -> Result<Value, DecodeError> {
        match kind.form {
            JsonForm::Plain => {}
            JsonForm::Raw => return Ok(raw_json(json)),
            JsonForm::SchemaOrArray => return self.schema_or_array(json, kind),
            JsonForm::SchemaOrBool => return self.schema_or_bool(json, kind),
            JsonForm::SchemaOrNames => return self.schema_or_names(json, kind),
        }
        if json.is_null() {
            return Ok(Value::zero(kind));
        }
        let element = kind.element.unwrap_or(kind);
        match kind.kind {
            Kind::Bool => {
                json.as_bool().map(Value::Bool).ok_or_else(|| self.type_error(json, "a boolean"))
            }
            Kind::Float => {
                json.as_f64().map(Value::Float).ok_or_else(|| self.type_error(json, "a number"))
            }
            Kind::Int | Kind::Byte => whole_number(json)
                .map(Value::Int)
                .ok_or_else(|| self.type_error(json, "an integer")),
            Kind::Text => {
                let text = json.as_str().ok_or_else(|| self.type_error(json, "a string"))?;
                Ok(Value::Text(text.to_owned()))
            }
            Kind::Pointer => Ok(Value::Pointer(Some(Box::new(self.decode(json, element)?)))),
            Kind::Slice => {
                let items = json.as_array().ok_or_else(|| self.type_error(json, "a list"))?;
                let items = items.iter().enumerate();
                let decoded = items.map(|(at, item)| self.child(&at.to_string(), item, element));
                Ok(Value::Slice(Some(decoded.collect::<Result<_, _>>()?)))
            }
            Kind::Map => {
                let entries = json.as_object().ok_or_else(|| self.type_error(json, "an object"))?;
                let mut decoded = BTreeMap::new();
                for (name, entry) in entries {
                    decoded.insert(name.clone(), self.child(name, entry, element)?);
                }
                Ok(Value::Map(Some(decoded)))
            }
            Kind::Struct => {
                let entries = json.as_object().ok_or_else(|| self.type_error(json, "an object"))?;
                let mut fields = Vec::with_capacity(kind.fields.len());
                for field in kind.fields {
                    fields.push(match entries.get(field.key) {
                        Some(json) => self.child(field.key, json, field.kind)?,
                        None => Value::zero(field.kind),
                    });
                }
                Ok(Value::Struct(fields))
            }
        }
    }

    fn type_error(&self, json: &Json, wanted: &str) -> DecodeError {
        let found = match json {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "a list",
            Json::Object(_) => "an object",
        };
        self.fail(format!("{wanted} is expected, not {found}"))
    }

    /// The schema in a union type, whose fields are given.
    fn schema(&mut self, json: &Json) -> Result<Value, DecodeError> {
        Ok(Value::Pointer(Some(Box::new(self.decode(json, &SCHEMA)?))))
    }

    fn schema_or_array(&mut self, json: &Json, kind: &Type) -> Result<Value, DecodeError> {
        match json {
            Json::Object(_) => Ok(Value::Struct(vec![self.schema(json)?, Value::Slice(None)])),
            Json::Array(_) => {
                let schemas = self.decode(json, kind.fields[1].kind)?;
                Ok(Value::Struct(vec![Value::Pointer(None), schemas]))
            }
            _ => Ok(Value::zero(kind)),
        }
    }

    fn schema_or_bool(&mut self, json: &Json, kind: &Type) -> Result<Value, DecodeError> {
        match json {
            Json::Object(_) => Ok(Value::Struct(vec![Value::Bool(true), self.schema(json)?])),
            Json::Bool(on) => Ok(Value::Struct(vec![Value::Bool(*on), Value::Pointer(None)])),
            Json::Null => Ok(Value::zero(kind)),
            _ => Err(self.type_error(json, "a boolean or a schema")),
        }
    }

    fn schema_or_names(&mut self, json: &Json, kind: &Type) -> Result<Value, DecodeError> {
        match json {
            Json::Object(_) => Ok(Value::Struct(vec![self.schema(json)?, Value::Slice(None)])),
            Json::Array(_) => {
                let names = self.decode(json, kind.fields[1].kind)?;
                Ok(Value::Struct(vec![Value::Pointer(None), names]))
            }
            _ => Ok(Value::zero(kind)),
        }
    }
}

/// A value of the type `JSON`; null has no text.
fn raw_json(json: &Json) -> Value {
    if json.is_null() {
        return Value::Struct(vec![Value::Slice(None)]);
    }
    let text = go_json(json, Html::Escaped, Numbers::Object);
    Value::Struct(vec![Value::Slice(Some(text.bytes().map(Value::Byte).collect()))])
}

fn whole_number(json: &Json) -> Option<i64> {
    let float = || json.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
    #[expect(clippy::cast_possible_truncation, reason = "whole and below 2^53")]
    json.as_i64().or_else(|| float().map(|float| float as i64))
}
