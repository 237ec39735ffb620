//! Conversion of values to JSON.

use super::{Error, Value, WorkBudget, display, time};
use base64::Engine as _;
use serde_json::{Map as JsonMap, Value as Json};

impl Value<'_> {
    /// The value as JSON: bytes as base64, durations and timestamps as strings, an optional as its
    /// value.
    ///
    /// # Errors
    ///
    /// If the value has no JSON form (types, values of libraries, `NaN`, an empty optional), or if
    /// data does not match its schema.
    pub fn to_json(&self) -> Result<Json, Error> {
        self.to_json_with(&WorkBudget::unlimited())
    }

    fn to_json_with(&self, work: &WorkBudget) -> Result<Json, Error> {
        Ok(match self {
            Self::Null => Json::Null,
            Self::Bool(bool) => Json::Bool(*bool),
            Self::Int(int) => Json::from(*int),
            Self::Uint(uint) => Json::from(*uint),
            Self::Double(double) => {
                serde_json::Number::from_f64(*double).map(Json::Number).ok_or_else(|| {
                    let text = display::go_double(*double);
                    Error::text(format!("json: unsupported value: {text}"), work)
                })?
            }
            Self::String(text) => Json::from(text.as_str()),
            Self::Bytes(bytes) => {
                Json::from(base64::engine::general_purpose::STANDARD.encode(bytes.as_slice()))
            }
            Self::Duration(duration) => Json::from(time::format_seconds(*duration)),
            Self::Timestamp(time) => Json::from(time.to_string()),
            Self::List(list) => {
                let values = list.iter(work).map(|value| value?.to_json_with(work));
                Json::Array(values.collect::<Result<_, _>>()?)
            }
            Self::Map(map) => object(map.iter(work), work)?,
            Self::Object(fields) => object(fields.iter(work), work)?,
            Self::Optional(Some(value)) => value.to_json_with(work)?,
            Self::Optional(None) => return Err(Error::fixed("optional.none() dereference")),
            Self::Preserved(json) => (*json).clone(),
            Self::Type(_) => {
                return Err(Error::fixed("type conversion not supported for 'type'"));
            }
            Self::Opaque(_) => {
                let name = self.type_name();
                return Err(Error::text(
                    format!("type conversion error from '{name}' to JSON"),
                    work,
                ));
            }
        })
    }
}

fn object(entries: super::MapEntries<'_, '_>, work: &WorkBudget) -> Result<Json, Error> {
    let mut object = JsonMap::new();
    for (key, value) in entries {
        object.insert(key.display(work).to_string(), value?.to_json_with(work)?);
    }
    Ok(Json::Object(object))
}
