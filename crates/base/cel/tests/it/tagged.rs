//! JSON form of values. A value without a JSON form is an object with one key that starts with `$`:
//! `{"$uint": "1"}`, `{"$map": [[1, "a"]]}`.

use mainstay_cel::types::Type;
use mainstay_cel::value::{MapKey, MapValue, Timestamp, Value, ValueResult, WorkBudget};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// A `double`.
pub(crate) fn double(value: f64) -> Json {
    json!({ "$double": format!("{value:e}") })
}

/// `bytes`
pub(crate) fn bytes(value: &[u8]) -> Json {
    let hex = value.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    });
    json!({ "$bytes": hex })
}

/// A map of these entries, sorted.
pub(crate) fn map(mut entries: Vec<(Json, Json)>) -> Json {
    if entries.iter().all(|(key, _)| key.is_string()) {
        let entries = entries.into_iter().map(|(key, value)| (key.as_str().unwrap().into(), value));
        return Json::Object(entries.collect());
    }
    entries.sort_by_cached_key(|(key, _)| key.to_string());
    json!({ "$map": entries })
}

/// The JSON form of a value.
pub(crate) fn write(value: &Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(bool) => json!(bool),
        Value::Int(int) => json!(int),
        Value::Uint(uint) => json!({ "$uint": uint.to_string() }),
        Value::Double(value) => double(*value),
        Value::String(text) => json!(&**text),
        Value::Bytes(blob) => bytes(blob),
        Value::Duration(nanos) => json!({ "$duration": format!("{nanos}ns") }),
        Value::Timestamp(at) => {
            json!({ "$timestamp": format!("{}.{:09}", at.seconds, at.nanos) })
        }
        Value::Type(cel_type) => json!({ "$type": cel_type.name() }),
        Value::List(list) => list.iter(&WorkBudget::unlimited()).map(write_result).collect(),
        Value::Map(entries) => map(entries
            .iter(&WorkBudget::unlimited())
            .map(|(key, value)| (write(&key), write_result(value)))
            .collect()),
        Value::Object(fields) => map(fields
            .iter(&WorkBudget::unlimited())
            .map(|(name, value)| (write(&name), write_result(value)))
            .collect()),
        Value::Optional(None) => json!({ "$optional": [] }),
        Value::Optional(Some(value)) => json!({ "$optional": [write(value)] }),
        Value::Opaque(opaque) => json!({ "$opaque": opaque.cel_type().name() }),
        Value::Preserved(json) => json!({ "$data": json }),
    }
}

fn write_result(result: ValueResult<'_>) -> Json {
    result.map_or_else(|error| json!({ "$error": error.to_string() }), |value| write(&value))
}

/// Reads a value of the expected type.
pub(crate) fn read(json: &Json, cel_type: &Type) -> Value<'static> {
    match (json, cel_type) {
        (Json::Null, _) => Value::Null,
        (Json::Bool(bool), _) => Value::Bool(*bool),
        (Json::Number(number), Type::Double) => Value::Double(number.as_f64().unwrap()),
        (Json::Number(number), Type::Uint) => Value::Uint(number.as_u64().unwrap()),
        (Json::Number(number), _) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Double(number.as_f64().unwrap()),
        },
        (Json::String(text), Type::Timestamp) => tag("$timestamp", &json!(text)).unwrap(),
        (Json::String(text), Type::Duration) => tag("$duration", &json!(text)).unwrap(),
        (Json::String(text), Type::Bytes) => tag("$bytes", &json!(text)).unwrap(),
        (Json::String(text), _) => Value::text(text.clone()),
        (Json::Array(items), _) => {
            let cel_type = if let Type::List(element) = cel_type { element } else { &Type::Dyn };
            Value::list(items.iter().map(|item| read(item, cel_type)).collect())
        }
        (Json::Object(entries), _) => {
            if let [(name, content)] = entries.iter().collect::<Vec<_>>()[..]
                && let Some(value) = tag(name, content)
            {
                return value;
            }
            let cel_type = if let Type::Map(entry) = cel_type { &entry.1 } else { &Type::Dyn };
            let entries = entries
                .iter()
                .map(|(key, value)| (MapKey::String(key.clone().into()), read(value, cel_type)));
            Value::Map(MapValue::of(entries.collect()))
        }
    }
}

/// The value of a tag with its content, if the name is a tag.
fn tag(name: &str, content: &Json) -> Option<Value<'static>> {
    let text = content.as_str().unwrap_or_default();
    Some(match name {
        "$uint" => Value::Uint(text.parse().unwrap()),
        "$double" => Value::Double(text.parse().unwrap()),
        "$bytes" => {
            let bytes: Vec<u8> = (0..text.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
                .collect();
            Value::Bytes(bytes.into())
        }
        "$duration" => Value::Duration(text.strip_suffix("ns").unwrap().parse().unwrap()),
        "$timestamp" => {
            let (seconds, nanos) = text.split_once('.').unwrap();
            Value::Timestamp(Timestamp {
                seconds: seconds.parse().unwrap(),
                nanos: nanos.parse().unwrap(),
                offset: 0,
            })
        }
        "$optional" => {
            let inner = content.as_array().unwrap().first();
            Value::Optional(inner.map(|inner| Arc::new(read(inner, &Type::Dyn))))
        }
        "$map" => {
            let entries: BTreeMap<MapKey<'static>, Value<'static>> = content
                .as_array()
                .unwrap()
                .iter()
                .map(|entry| {
                    let key = read(&entry[0], &Type::Dyn);
                    (MapKey::of(&key).unwrap(), read(&entry[1], &Type::Dyn))
                })
                .collect();
            Value::Map(MapValue::of(entries))
        }
        _ => return None,
    })
}
