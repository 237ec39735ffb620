//! Conversion of JSON data to CEL values by schema.

use super::{ShapeKind, ValueShape};
use crate::value::{Error, ListValue, MapValue, ObjectValue, Value, ValueResult, WorkBudget, time};
use base64::alphabet;
use base64::engine::{Engine as _, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value as Json;

/// Data without a schema.
static DYNAMIC: ValueShape = ValueShape::dynamic();

impl ValueShape {
    pub(crate) fn is_dynamic(&self) -> bool {
        matches!(self.kind, ShapeKind::Dynamic)
    }

    /// The shape of elements of a list or values of a map.
    pub(crate) fn element(&self) -> &Self {
        match &self.kind {
            ShapeKind::List { items, .. } => items,
            ShapeKind::Map(values) => values,
            _ => &DYNAMIC,
        }
    }

    /// Converts data to a value. Elements and fields are converted on access; strings are not
    /// copied.
    ///
    /// # Errors
    ///
    /// If the data does not match the schema (`invalid data, unexpected_data string, got int64`).
    pub fn view<'a>(&'a self, json: &'a Json, work: &WorkBudget) -> ValueResult<'a> {
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
                Ok(Value::Object(ObjectValue::Json { fields, shape: self }))
            }
            (ShapeKind::Map(_), Json::Object(entries)) => {
                Ok(Value::Map(MapValue::Json { entries, shape: self }))
            }
            (ShapeKind::Object(_) | ShapeKind::Map(_), _) => Err(Error::fixed(
                "invalid data, expected a map for the provided schema with type=object",
            )),
            (ShapeKind::List { .. }, Json::Array(items)) => {
                Ok(Value::List(ListValue::Json { items, shape: self }))
            }
            (ShapeKind::List { .. }, _) => Err(Error::fixed(
                "invalid data, expected an array for the provided schema with type=array",
            )),
            (ShapeKind::String | ShapeKind::IntOrString, Json::String(text)) => {
                Ok(Value::text(text.as_str()))
            }
            (ShapeKind::Bytes, Json::String(text)) => bytes(text, work),
            (ShapeKind::Duration, Json::String(text)) => time::schema_duration(text, work),
            (ShapeKind::Date, Json::String(text)) => time::schema_date(text, work),
            (ShapeKind::DateTime, Json::String(text)) => time::schema_date_time(text, work),
            (
                ShapeKind::String
                | ShapeKind::Bytes
                | ShapeKind::Duration
                | ShapeKind::Date
                | ShapeKind::DateTime,
                _,
            ) => Err(unexpected_data("string", json, work)),
            (ShapeKind::Integer, _) => {
                json.as_i64().map(Value::Int).ok_or_else(|| unexpected_data("int", json, work))
            }
            (ShapeKind::IntOrString, _) => {
                json.as_i64().map(Value::Int).ok_or(EXPECTED_INT_OR_STRING)
            }
            (ShapeKind::Number, _) => {
                json.as_f64().map(Value::Double).ok_or_else(|| unexpected_data("float", json, work))
            }
            (ShapeKind::Boolean, _) => {
                json.as_bool().map(Value::Bool).ok_or_else(|| unexpected_data("bool", json, work))
            }
            (ShapeKind::Preserved, _) => Ok(Value::Preserved(json)),
        }
    }
}

impl ValueShape {
    /// Converts a value as if it were data of an object, as Kubernetes does with elements that
    /// rules add to a list. Where a schema expects a time or duration, the value must be a text.
    pub(crate) fn view_value<'a>(
        &'a self,
        value: &Value<'a>,
        work: &WorkBudget,
    ) -> ValueResult<'a> {
        const EXPECTED_MAP: Error =
            Error::fixed("invalid data, expected a map for the provided schema with type=object");
        const EXPECTED_LIST: Error =
            Error::fixed("invalid data, expected an array for the provided schema with type=array");
        let type_error = |what: &str| Err(unexpected_type(what, go_type(value), work));
        match (&self.kind, value) {
            (ShapeKind::Dynamic | ShapeKind::Preserved, _)
            | (ShapeKind::List { .. }, Value::List(ListValue::Joined { .. }))
            | (ShapeKind::String | ShapeKind::IntOrString, Value::String(_))
            | (ShapeKind::Integer | ShapeKind::IntOrString, Value::Int(_))
            | (ShapeKind::Number, Value::Double(_))
            | (ShapeKind::Boolean, Value::Bool(_)) => Ok(value.clone()),
            (
                ShapeKind::Object(_),
                Value::Object(ObjectValue::Json { fields, .. })
                | Value::Map(MapValue::Json { entries: fields, .. }),
            ) => Ok(Value::Object(ObjectValue::Json { fields, shape: self })),
            (
                ShapeKind::Map(_),
                Value::Object(ObjectValue::Json { fields: entries, .. })
                | Value::Map(MapValue::Json { entries, .. }),
            ) => Ok(Value::Map(MapValue::Json { entries, shape: self })),
            (ShapeKind::Object(_) | ShapeKind::Map(_), _) => Err(EXPECTED_MAP),
            (ShapeKind::List { .. }, Value::List(ListValue::Json { items, .. })) => {
                Ok(Value::List(ListValue::Json { items, shape: self }))
            }
            (ShapeKind::List { .. }, _) => Err(EXPECTED_LIST),
            (ShapeKind::Duration, Value::String(text)) => time::schema_duration(text, work),
            (ShapeKind::Date, Value::String(text)) => time::schema_date(text, work),
            (ShapeKind::DateTime, Value::String(text)) => time::schema_date_time(text, work),
            (ShapeKind::Bytes, Value::String(text)) => bytes(text, work),
            #[expect(clippy::cast_precision_loss, reason = "the nearest double is meant")]
            (ShapeKind::Number, Value::Int(int)) => Ok(Value::Double(*int as f64)),
            (ShapeKind::IntOrString, _) => Err(EXPECTED_INT_OR_STRING),
            (ShapeKind::Integer, _) => type_error("int"),
            (ShapeKind::Number, _) => type_error("float"),
            (ShapeKind::Boolean, _) => type_error("bool"),
            (
                ShapeKind::String
                | ShapeKind::Bytes
                | ShapeKind::Duration
                | ShapeKind::Date
                | ShapeKind::DateTime,
                _,
            ) => type_error("string"),
        }
    }
}

/// The Go type of a value without a schema.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) | Value::Type(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Duration(_) => "time.Duration",
        Value::Timestamp(_) => "time.Time",
        Value::List(ListValue::Values(_)) => "[]ref.Val",
        Value::List(_) => "[]interface {}",
        Value::Map(MapValue::Values(_)) => "map[ref.Val]ref.Val",
        Value::Map(_) | Value::Object(_) | Value::Preserved(_) => "map[string]interface {}",
        Value::Optional(_) | Value::Opaque(_) => "<nil>",
    }
}

impl<'a> Value<'a> {
    /// The value of data without a schema.
    pub fn from_json(json: &'a Json) -> Self {
        dynamic(&DYNAMIC, json)
    }
}

fn dynamic<'a>(shape: &'a ValueShape, json: &'a Json) -> Value<'a> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(bool) => Value::Bool(*bool),
        // As in Kubernetes, a number beyond `int` is a double.
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::List(ListValue::Json { items, shape }),
        Json::Object(entries) => Value::Map(MapValue::Json { entries, shape }),
    }
}

/// The error for data of the wrong type, with Go's type names.
fn unexpected_data(what: &str, json: &Json, work: &WorkBudget) -> Error {
    let got = match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    };
    unexpected_type(what, got, work)
}

fn unexpected_type(what: &str, got: &str, work: &WorkBudget) -> Error {
    Error::text(format!("invalid data, expected {what}, got {got}"), work)
}

const EXPECTED_INT_OR_STRING: Error =
    Error::fixed("invalid data, expected XIntOrString value to be either a string or integer");

/// `format: byte`: base64 with the URL alphabet, without line breaks.
fn bytes(text: &str, work: &WorkBudget) -> ValueResult<'static> {
    // As in Go, trailing bits may have any value.
    const ENGINE: GeneralPurpose = GeneralPurpose::new(
        &alphabet::URL_SAFE,
        GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
    );
    let encoded: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    if let Ok(bytes) = ENGINE.decode(&encoded) {
        return Ok(Value::Bytes(bytes.into()));
    }
    let at = encoded.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_');
    let at = at.unwrap_or(encoded.len());
    Err(Error::text(
        format!("Invalid byte formatted string {text}: illegal base64 data at input byte {at}"),
        work,
    ))
}
