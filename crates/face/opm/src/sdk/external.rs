//! External validators: programs that get the folder of the bundle and print a result.

use super::super::call::CommandIo;
use super::super::{go, tool};
use super::result::ValidationResult;
use mainstay_bundle::validate::format_go_value;
use serde_json::Value;

/// A program has no result. The texts are upstream's.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExternalError {
    /// The program cannot be started, or fails.
    #[error("{why}")]
    Run {
        /// The program.
        program: String,
        /// The reason.
        why: String,
    },
    /// Its output is not a result.
    #[error(transparent)]
    Result(#[from] ResultError),
}

/// The text is not a result.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResultError {
    /// The text is empty.
    #[error("EOF")]
    Empty,
    /// The text ends too early.
    #[error("unexpected EOF")]
    UnexpectedEnd,
    /// The text is not JSON.
    #[error("invalid character {} looking for beginning of value", go::quote_char(*found))]
    Syntax {
        /// The character in place of a value.
        found: char,
    },
    /// The result has an unknown field.
    #[error("json: unknown field {}", go::quote(field))]
    UnknownField {
        /// The field.
        field: String,
    },
    /// A value has another type.
    #[error("json: cannot unmarshal {found} into {} of type {expected}", target(place))]
    WrongType {
        /// The JSON type.
        found: &'static str,
        /// The path of the value; empty for the root.
        place: String,
        /// The Go type.
        expected: &'static str,
    },
}

fn target(place: &str) -> String {
    if place.is_empty() { "Go value".to_owned() } else { format!("Go struct field {place}") }
}

/// Runs the programs of a list with colons, and adds their findings.
///
/// # Errors
/// If one of them has no result.
pub(super) fn run(
    io: &mut CommandIo<'_>,
    list: &str,
    folder: &str,
    result: &mut ValidationResult,
) -> Result<(), ExternalError> {
    for program in list.split(':') {
        let failed = |why| ExternalError::Run { program: program.to_owned(), why };
        let output =
            tool::run_program(io, program, &[folder]).map_err(|ended| failed(ended.why))?;
        io.print_error(&String::from_utf8_lossy(&output.stderr));
        if let Some(why) = tool::exit_reason(&output) {
            return Err(failed(why));
        }
        if let Err(error) = read(&output.stdout).map(|printed| add(&printed, result)) {
            io.print(&format!("decode failed: {error}\n"));
            return Err(error.into());
        }
    }
    Ok(())
}

/// The fields of a result, and those of a finding.
const RESULT: [&str; 3] = ["Name", "Errors", "Warnings"];
const FINDING: [&str; 5] = ["Type", "Level", "Field", "BadValue", "Detail"];

/// Parses a result; unknown fields are errors.
fn read(text: &[u8]) -> Result<Value, ResultError> {
    let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let value = match values.next() {
        None => return Err(ResultError::Empty),
        Some(Err(error)) if error.is_eof() => return Err(ResultError::UnexpectedEnd),
        Some(Err(_)) => return Err(invalid(text, values.byte_offset())),
        Some(Ok(value)) => value,
    };
    check_fields(&value, &RESULT, "", "errors.ManifestResult")?;
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
                    check_fields(
                        item,
                        &FINDING,
                        &format!("ManifestResult.{list}"),
                        "errors.Error",
                    )?;
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

/// The syntax error of a text.
fn invalid(text: &[u8], from: usize) -> ResultError {
    let mut at = from;
    // The parser stops at or after the invalid byte: the first one that begins no value.
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    ResultError::Syntax { found: text.get(at).map_or('?', |byte| char::from(*byte)) }
}

/// A field, whatever the case of its name.
fn field<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    let fields = value.as_object()?;
    fields.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn check_fields(
    value: &Value,
    names: &[&str],
    place: &str,
    kind: &'static str,
) -> Result<(), ResultError> {
    let fields = match value {
        Value::Null => return Ok(()),
        Value::Object(fields) => fields,
        other => return Err(mismatch(other, place, kind)),
    };
    match fields.keys().find(|key| !names.iter().any(|name| key.eq_ignore_ascii_case(name))) {
        Some(key) => Err(ResultError::UnknownField { field: key.clone() }),
        None => Ok(()),
    }
}

fn mismatch(value: &Value, place: &str, expected: &'static str) -> ResultError {
    let found = mainstay_gocompat::values::json_kind(value);
    ResultError::WrongType { found, place: place.to_owned(), expected }
}

fn add(printed_result: &Value, result: &mut ValidationResult) {
    let list =
        |name: &str| field(printed_result, name).and_then(Value::as_array).into_iter().flatten();
    for warning in list("Warnings") {
        result.warning(format_finding(warning));
    }
    for error in list("Errors") {
        result.error(format_finding(error));
    }
}

/// Formats a finding as one line.
fn format_finding(finding: &Value) -> String {
    let text = |name: &str| field(finding, name).and_then(Value::as_str).unwrap_or_default();
    let bad = field(finding, "BadValue").filter(|value| !value.is_null()).map(format_go_value);
    let detail = match text("Detail") {
        "" => String::new(),
        detail => format!(": {detail}"),
    };
    let format_finding = match (text("Field"), bad) {
        ("", None) => detail,
        ("", Some(bad)) => format!("Value {bad}{detail}"),
        (field, None) => format!("Field {field}{detail}"),
        (field, Some(bad)) => format!("Field {field}, Value {bad}{detail}"),
    };
    if format_finding.is_empty() {
        return "ErrMessageMissing".to_owned();
    }
    format!("{}: {format_finding}", text("Level"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_may_only_have_known_fields() {
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
            let found = read(text.as_bytes()).err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), why, "{text}");
        }
    }
}
