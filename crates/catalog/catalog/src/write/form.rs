//! Form of documents as upstream's Go types encode them.
//!
//! A document of a known schema is a struct: unknown fields are dropped, names have one spelling,
//! and empty fields are omitted or written as the struct's tags say. In other documents only
//! numbers change, because they pass through double precision.

use base64::{Engine, engine::general_purpose::STANDARD};
use mainstay_gocompat::decode_base64;
use mainstay_gocompat::json::is_same_field as same;
use mainstay_gocompat::json::{JsonWriter, float};
use mainstay_gocompat::sort_slice;
use serde_json::{Map, Number, Value};

/// The type of a field.
enum Kind {
    /// A text; empty when it is unset.
    Text,
    /// Bytes in base64; `null` when they are unset.
    Bytes,
    /// Any value; `null` when it is unset.
    Raw,
    /// A struct.
    One(&'static Form),
    /// A struct, or `null`.
    Maybe(&'static Form),
    /// A list of texts, or `null`.
    Texts,
    /// A list of structs, or `null`.
    Many(&'static Form),
}

/// When a field is omitted.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Never,
    Empty,
}

use Kind::{Bytes, Many, Maybe, One, Raw, Text, Texts};
use When::{Empty, Never};

/// A struct: its fields in order.
pub(super) struct Form(&'static [(&'static str, Kind, When)]);

static PROPERTY: Form = Form(&[("type", Text, Never), ("value", Raw, Never)]);

static PACKAGE: Form = Form(&[
    ("schema", Text, Never),
    ("name", Text, Never),
    ("defaultChannel", Text, Never),
    ("icon", Maybe(&ICON), Empty),
    ("description", Text, Empty),
    ("properties", Many(&PROPERTY), Empty),
]);

static ICON: Form = Form(&[("base64data", Bytes, Never), ("mediatype", Text, Never)]);

static CHANNEL: Form = Form(&[
    ("schema", Text, Never),
    ("name", Text, Never),
    ("package", Text, Never),
    ("entries", Many(&ENTRY), Never),
    ("properties", Many(&PROPERTY), Empty),
]);

static ENTRY: Form = Form(&[
    ("name", Text, Never),
    ("replaces", Text, Empty),
    ("skips", Texts, Empty),
    ("skipRange", Text, Empty),
]);

static BUNDLE: Form = Form(&[
    ("schema", Text, Never),
    ("name", Text, Empty),
    ("package", Text, Empty),
    ("image", Text, Never),
    ("properties", Many(&PROPERTY), Empty),
    ("relatedImages", Many(&RELATED_IMAGE), Empty),
]);

static RELATED_IMAGE: Form = Form(&[("name", Text, Never), ("image", Text, Never)]);

static DEPRECATIONS: Form = Form(&[
    ("schema", Text, Never),
    ("package", Text, Never),
    ("entries", Many(&DEPRECATION), Never),
]);

static DEPRECATION: Form = Form(&[("reference", One(&REFERENCE), Never), ("message", Text, Never)]);

static REFERENCE: Form = Form(&[("schema", Text, Never), ("name", Text, Empty)]);

/// The form of a schema's documents, if the schema is known.
pub(super) fn of(schema: &str) -> Option<&'static Form> {
    match schema {
        "olm.package" => Some(&PACKAGE),
        "olm.channel" => Some(&CHANNEL),
        "olm.bundle" => Some(&BUNDLE),
        "olm.deprecations" => Some(&DEPRECATIONS),
        _ => None,
    }
}

/// Types of properties that are written behind all others.
const LAST: [&str; 2] = [crate::model::BUNDLE_OBJECT, crate::model::CSV_METADATA];

/// Brings a document into its form. In bundles, properties with manifests come last, and related
/// images are sorted by reference.
pub(crate) fn shape(schema: &str, document: Value) -> Value {
    let mut shaped = match (of(schema), document) {
        (Some(form), Value::Object(fields)) => shape_struct(fields, form),
        (_, mut other) => {
            numbers(&mut other);
            return other;
        }
    };
    if schema == "olm.bundle" {
        if let Some(Value::Array(properties)) = shaped.get_mut("properties") {
            let kind = |property: &Value| property["type"].as_str().unwrap_or_default().to_owned();
            properties.sort_by_key(|property| LAST.contains(&kind(property).as_str()));
        }
        if let Some(Value::Array(images)) = shaped.get_mut("relatedImages") {
            let image = |at: &usize| images[*at]["image"].as_str().unwrap_or_default();
            let mut order: Vec<usize> = (0..images.len()).collect();
            sort_slice(&mut order, |a, b| image(a) < image(b));
            *images = order.into_iter().map(|at| images[at].take()).collect();
        }
    }
    Value::Object(shaped)
}

fn shape_struct(mut fields: Map<String, Value>, form: &Form) -> Map<String, Value> {
    let mut shaped = Map::new();
    for (name, kind, when) in form.0 {
        // Go decodes field after field: of several spellings the last one counts, and `null` does
        // not change texts and structs.
        let mut found = None;
        for (key, value) in &mut fields {
            let stored = value.is_null() && matches!(kind, Text | One(_));
            if !stored && (key == name || same(key, name)) {
                found = Some(value.take());
            }
        }
        let value = shape_kind(found, kind);
        let empty = match &value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if !(empty && *when == Empty) {
            shaped.insert((*name).to_owned(), value);
        }
    }
    shaped
}

/// A value in the form of its kind. Reading has checked its type.
fn shape_kind(value: Option<Value>, kind: &Kind) -> Value {
    let items = |value: Option<Value>, each: &dyn Fn(Value) -> Value| match value {
        Some(Value::Array(items)) => items.into_iter().map(each).collect(),
        _ => Value::Null,
    };
    let fields = |value: Option<Value>| match value {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    match kind {
        Text => match value {
            Some(text @ Value::String(_)) => text,
            _ => Value::String(String::new()),
        },
        Bytes => match value {
            Some(Value::String(text)) if text.contains(['\n', '\r']) => {
                // Line breaks are ignored and not written again.
                decode_base64(&text)
                    .map_or(Value::String(text), |bytes| Value::String(STANDARD.encode(bytes)))
            }
            Some(Value::Array(items)) => {
                // Reading has refused items that are not bytes; `null` is 0.
                let byte = |item: &Value| item.as_u64().and_then(|byte| u8::try_from(byte).ok());
                let bytes: Vec<u8> =
                    items.iter().map(|item| byte(item).unwrap_or_default()).collect();
                Value::String(STANDARD.encode(bytes))
            }
            Some(other) => other,
            None => Value::Null,
        },
        Raw => {
            let mut value = value.unwrap_or_default();
            numbers(&mut value);
            value
        }
        One(form) => Value::Object(shape_struct(fields(value), form)),
        Maybe(form) => match value {
            Some(Value::Object(fields)) => Value::Object(shape_struct(fields, form)),
            _ => Value::Null,
        },
        Texts => items(value, &|item| shape_kind(Some(item), &Text)),
        Many(form) => items(value, &|item| shape_kind(Some(item), &One(form))),
    }
}

/// Converts numbers to double precision.
pub(super) fn numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let exact = -(1_i64 << 53)..=1 << 53;
            if !number.as_i64().is_some_and(|whole| exact.contains(&whole)) {
                *number = through_float(number);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(numbers),
        Value::Object(fields) => fields.values_mut().for_each(numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Removes the sign of zeros, because YAML reads `-0` as an integer.
pub(super) fn unsigned_zeros(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if number.is_f64() && number.as_f64() == Some(0.0) {
                *number = 0.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unsigned_zeros),
        Value::Object(fields) => fields.values_mut().for_each(unsigned_zeros),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// A number in double precision. A float without fraction and exponent becomes an integer again.
fn through_float(number: &Number) -> Number {
    let text = float(number.as_f64().unwrap_or_default());
    match (text.parse::<i64>(), text.parse::<u64>()) {
        // Zero is the only integer whose float has more information: its sign.
        (Ok(whole), _) if whole != 0 => whole.into(),
        (_, Ok(whole)) => whole.into(),
        _ => number.as_f64().and_then(Number::from_f64).unwrap_or_else(|| number.clone()),
    }
}

/// Writes a document that [`shape`] has made, with fields in the order of the form.
pub(super) fn write(writer: &mut JsonWriter<'_>, schema: &str, document: &Value) {
    match (of(schema), document) {
        (Some(form), Value::Object(fields)) => write_struct(writer, fields, form),
        _ => writer.value(document),
    }
}

fn write_struct(writer: &mut JsonWriter<'_>, fields: &Map<String, Value>, form: &Form) {
    writer.open('{');
    for (name, kind, _) in form.0 {
        let Some(value) = fields.get(*name) else { continue };
        writer.key(name);
        match (kind, value) {
            (One(form) | Maybe(form), Value::Object(fields)) => write_struct(writer, fields, form),
            (Many(form), Value::Array(items)) => {
                writer.open('[');
                for item in items {
                    match item {
                        Value::Object(fields) => write_struct(writer, fields, form),
                        other => writer.value(other),
                    }
                }
                writer.close(']');
            }
            _ => writer.value(value),
        }
    }
    writer.close('}');
}
