//! `fieldsV1`: the form of field sets in `metadata.managedFields`.
//!
//! A set is an object. Each name in it is a path element, and its first letter is the kind of the
//! element: `f:` for a field, `k:` for the element of a list map with these keys, `v:` for the
//! element of a set, `i:` for an index. A path element with an empty object is a member. Another
//! one is a member if its object has the name `.` too. Names with other letters are ignored,
//! because a newer server may have written them.

use super::path::PathElement;
use super::scalar;
use super::set::{FieldSet, SetNode};
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// A value is no valid `fieldsV1`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FieldsError(String);

impl FieldSet {
    /// Parses `fieldsV1`.
    ///
    /// # Errors
    /// The value is no object of objects, or a name in it is no path element.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        Ok(read(fields)?.1)
    }

    /// Writes `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        Value::Object(write(self, false))
    }
}

/// Parses an object: whether it is a member itself, and the set below it.
fn read(fields: &Value) -> Result<(bool, FieldSet), FieldsError> {
    let fields = match fields {
        Value::Object(fields) => fields,
        Value::Null => return Ok((true, FieldSet::new())),
        other => {
            let found = scalar::go_type(other);
            return Err(FieldsError(format!("expected an object of fields, got {found}")));
        }
    };
    let mut member = false;
    let mut nodes = Vec::with_capacity(fields.len());
    for (name, below) in fields {
        if name == "." {
            member = true;
        } else if let Some(element) = read_element(name)? {
            let (member, below) = read(below)?;
            nodes.push(SetNode { element, member, below });
        }
    }
    Ok((member || nodes.is_empty(), FieldSet::from_nodes(nodes)))
}

/// Parses a path element; none for an unknown kind.
fn read_element(name: &str) -> Result<Option<PathElement>, FieldsError> {
    let Some((kind, text)) = name.split_once(':').filter(|parts| parts.0.len() == 1) else {
        return Err(FieldsError(format!("missing colon: {name}")));
    };
    let invalid = |error: &dyn std::fmt::Display| FieldsError(format!("{name}: {error}"));
    let element = match kind {
        "f" => PathElement::Field(text.into()),
        "k" => {
            let keys: Option<Map<String, Value>> =
                serde_json::from_str(text).map_err(|error| invalid(&error))?;
            // The names of a JSON object are sorted here.
            let keys = keys.unwrap_or_default().into_iter();
            PathElement::Key(keys.map(|(name, key)| (name.into(), key)).collect())
        }
        "v" => {
            let value = serde_json::from_str(text).map_err(|error| invalid(&error))?;
            PathElement::Value(Box::new(value))
        }
        "i" => PathElement::Index(text.parse().map_err(|error| invalid(&error))?),
        _ => return Ok(None),
    };
    Ok(Some(element))
}

fn write(set: &FieldSet, member: bool) -> Map<String, Value> {
    let own = member.then(|| (".".to_owned(), Value::Object(Map::new())));
    let below = set.nodes().iter().map(|node| {
        let below =
            if node.below.is_empty() { Map::new() } else { write(&node.below, node.member) };
        (element_name(&node.element), Value::Object(below))
    });
    own.into_iter().chain(below).collect()
}

fn element_name(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Key(keys) => {
            let mut text = String::from("k:{");
            for (index, (name, value)) in keys.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_text(&mut text, name, false);
                text.push(':');
                write_json(&mut text, value);
            }
            text.push('}');
            text
        }
        PathElement::Value(value) => {
            let mut text = String::from("v:");
            write_json(&mut text, value);
            text
        }
        PathElement::Index(index) => format!("i:{index}"),
    }
}

/// Writes JSON as Go's encoder does: characters with a meaning in HTML are escaped.
fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text, true),
        Value::Number(number) if number.is_f64() => {
            write_float(out, number.as_f64().unwrap_or_default());
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_text(out, name, true);
                out.push(':');
                write_json(out, field);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            let _ = write!(out, "{value}");
        }
    }
}

fn write_text(out: &mut String, text: &str, escape_html: bool) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escape_html => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

/// Writes a floating point number as Go does: with an exponent below 10⁻⁶ and from 10²¹ on, without
/// a zero fraction.
fn write_float(out: &mut String, number: f64) {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or_default();
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{digits}e{sign}{:02}", exponent.abs());
    } else {
        let _ = write!(out, "{number}");
    }
}
