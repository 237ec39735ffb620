//! Validators of others: programs that are given the bundle's folder and print a result.

use super::super::call::Io;
use super::super::{go, tool};
use super::outcome::Outcome;
use mainstay_bundle::validate::printed;
use serde_json::Value;

/// Runs the programs of a list that is separated by colons, and adds what they found.
///
/// # Errors
/// Why one of them has no result, in upstream's words.
pub(super) fn run(
    io: &mut Io<'_>,
    list: &str,
    folder: &str,
    outcome: &mut Outcome,
) -> Result<(), String> {
    for program in list.split(':') {
        let output = tool::start(io, program, &[folder]).map_err(|ended| ended.why)?;
        io.complain(&String::from_utf8_lossy(&output.stderr));
        if let Some(why) = tool::ending(&output) {
            return Err(why);
        }
        if let Err(why) = read(&output.stdout).map(|result| add(&result, outcome)) {
            io.print(&format!("decode failed: {why}\n"));
            return Err(why);
        }
    }
    Ok(())
}

/// The fields of a result, and those of a finding.
const RESULT: [&str; 3] = ["Name", "Errors", "Warnings"];
const FINDING: [&str; 5] = ["Type", "Level", "Field", "BadValue", "Detail"];

/// Reads a result, with no other fields than those there are.
fn read(text: &[u8]) -> Result<Value, String> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = match values.next() {
        None => return Err("EOF".to_owned()),
        Some(Err(error)) if error.is_eof() => return Err("unexpected EOF".to_owned()),
        Some(Err(_)) => return Err(invalid(text, values.byte_offset())),
        Some(Ok(value)) => value,
    };
    known(&value, &RESULT, "", "errors.ManifestResult")?;
    let text = |value: Option<&Value>, place: &str| match value {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(other) => Err(mismatch(other, place, "string")),
    };
    text(field(&value, "Name"), "ManifestResult.Name")?;
    for list in ["Errors", "Warnings"] {
        match field(&value, list) {
            None | Some(Value::Null) => {}
            Some(Value::Array(items)) => {
                for item in items.iter().filter(|item| !item.is_null()) {
                    known(item, &FINDING, &format!("ManifestResult.{list}"), "errors.Error")?;
                    for name in FINDING.into_iter().filter(|name| *name != "BadValue") {
                        text(field(item, name), &format!("ManifestResult.{list}.{name}"))?;
                    }
                }
            }
            Some(other) => {
                let place = format!("ManifestResult.{list}");
                return Err(mismatch(other, &place, "[]errors.Error"));
            }
        }
    }
    Ok(value)
}

/// What stands in the way of a parser.
fn invalid(text: &[u8], from: usize) -> String {
    let mut at = from;
    // The parser stops within or behind what it cannot read: the first byte that begins nothing.
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    let c = text.get(at).map_or('?', |byte| char::from(*byte));
    format!("invalid character {} looking for beginning of value", go::quote_char(c))
}

/// A field, whatever the case of its name.
fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let fields = value.as_object()?;
    fields.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn known(value: &Value, names: &[&str], place: &str, kind: &str) -> Result<(), String> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(mismatch(other, place, kind)),
    };
    match fields.keys().find(|key| !names.iter().any(|name| key.eq_ignore_ascii_case(name))) {
        Some(key) => Err(format!("json: unknown field {}", go::quote(key))),
        None => Ok(()),
    }
}

fn mismatch(value: &Value, place: &str, kind: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if place.is_empty() {
        format!("json: cannot unmarshal {found} into Go value of type {kind}")
    } else {
        format!("json: cannot unmarshal {found} into Go struct field {place} of type {kind}")
    }
}

fn add(result: &Value, outcome: &mut Outcome) {
    let list = |name: &str| field(result, name).and_then(Value::as_array).into_iter().flatten();
    for warning in list("Warnings") {
        outcome.warning(words(warning));
    }
    for error in list("Errors") {
        outcome.error(words(error));
    }
}

/// A finding as one line.
fn words(finding: &Value) -> String {
    let text = |name: &str| field(finding, name).and_then(Value::as_str).unwrap_or_default();
    let bad = field(finding, "BadValue").filter(|value| !value.is_null()).map(printed);
    let detail = match text("Detail") {
        "" => String::new(),
        detail => format!(": {detail}"),
    };
    let words = match (text("Field"), bad) {
        ("", None) => detail,
        ("", Some(bad)) => format!("Value {bad}{detail}"),
        (field, None) => format!("Field {field}{detail}"),
        (field, Some(bad)) => format!("Field {field}, Value {bad}{detail}"),
    };
    if words.is_empty() {
        return "ErrMessageMissing".to_owned();
    }
    format!("{}: {words}", text("Level"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_known_fields_only() {
        for (text, why) in [
            ("", Some("EOF")),
            ("{", Some("unexpected EOF")),
            ("plain", Some("invalid character 'p' looking for beginning of value")),
            ("{\"Colour\": 1}", Some("json: unknown field \"Colour\"")),
            (
                "{\"Name\": 1}",
                Some(
                    "json: cannot unmarshal number into Go struct field ManifestResult.Name of type string",
                ),
            ),
            (
                "[]",
                Some("json: cannot unmarshal array into Go value of type errors.ManifestResult"),
            ),
            ("{\"errors\": [{\"hue\": 1}]}", Some("json: unknown field \"hue\"")),
            ("{\"name\": null, \"Warnings\": null} more", None),
            ("null", None),
        ] {
            assert_eq!(read(text.as_bytes()).err().as_deref(), why, "{text}");
        }
    }
}
