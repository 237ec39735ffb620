//! Simple JSON paths into schemas: `selectableFields`, and the `fieldPath` of validation rules.

use serde_json::Value;

/// A path names no field of the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    /// The path ends too early.
    #[error("unexpected end of JSON path")]
    End,
    /// Brackets are not allowed in this path.
    #[error("array notation is not allowed")]
    Brackets,
    /// Brackets contain no quoted string.
    #[error("expected single quoted string but got {found}")]
    NoText {
        /// The text found.
        found: String,
    },
    /// A part begins with neither `[` nor `.`.
    #[error("expected [ or . but got: {found}")]
    NoPart {
        /// The text found.
        found: String,
    },
    /// A bracket is not closed.
    #[error("expected ] but got {found}")]
    NotClosed {
        /// The text found.
        found: String,
    },
    /// A quoted string has an unknown escape.
    #[error("invalid string literal: invalid escape char \\{found}")]
    Escape {
        /// The character after the backslash.
        found: char,
    },
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    NoField,
}

/// Resolves a path such as `.spec.color` or `.labels['a.b']` in a schema. Returns the canonical path
/// and the schema of the field.
///
/// # Errors
/// If the path names no field.
pub(crate) fn resolve<'a>(
    path: &str,
    schema: &'a Value,
    allow_brackets: bool,
) -> Result<(String, &'a Value), PathError> {
    let mut tokens = Tokens { rest: path };
    let mut canonical = String::new();
    let mut current = schema;
    while let Some(token) = tokens.next() {
        let name = match token {
            "[" if !allow_brackets => return Err(PathError::Brackets),
            "[" => {
                let text = tokens.next().ok_or(PathError::End)?;
                let inner = text
                    .strip_prefix('\'')
                    .and_then(|text| text.strip_suffix('\''))
                    .ok_or_else(|| PathError::NoText { found: text.to_owned() })?;
                unescape(inner)?
            }
            "." => tokens.next().ok_or(PathError::End)?.to_owned(),
            other => return Err(PathError::NoPart { found: other.to_owned() }),
        };
        current = resolve_field(current, &name, &mut canonical).ok_or(PathError::NoField)?;
        if token == "[" {
            let close = tokens.next().ok_or(PathError::End)?;
            if close != "]" {
                return Err(PathError::NotClosed { found: close.to_owned() });
            }
        }
    }
    Ok((canonical, current))
}

/// The schema of a field; appends its name to the canonical path.
fn resolve_field<'a>(schema: &'a Value, name: &str, canonical: &mut String) -> Option<&'a Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(properties) = properties.filter(|properties| !properties.is_empty()) {
        if !canonical.is_empty() {
            canonical.push('.');
        }
        canonical.push_str(name);
        return properties.get(name);
    }
    let values = schema.get("additionalProperties").filter(|values| !values.is_null())?;
    canonical.push('[');
    canonical.push_str(name);
    canonical.push(']');
    Some(values)
}

fn unescape(text: &str) -> Result<String, PathError> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        out.push(match letters.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some(same @ ('\'' | '\\')) => same,
            None => '\\',
            Some(found) => return Err(PathError::Escape { found }),
        });
    }
    Ok(out)
}

/// Tokens of a path: `.`, `[`, `]`, quoted strings, names.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest;
        let first = text.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = text.as_bytes();
                let close =
                    (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
                close.map_or(text.len(), |at| at + 1)
            }
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.rest = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_path_resolves_to_a_field_or_an_error() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        }});
        for (path, outcome) in [
            (".a", Ok("a")),
            (".m['x.y']", Ok("m[x.y]")),
            (r".m['x\'\ty']", Ok("m[x'\ty]")),
            (r".m['\x']", Err(r"invalid string literal: invalid escape char \x")),
            (".m.x", Ok("m[x]")),
            ("['a']", Ok("a")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            (".b", Err("does not refer to a valid field")),
            (".a.b", Err("does not refer to a valid field")),
            (".m[x]", Err("expected single quoted string but got x")),
            (".m['x'", Err("unexpected end of JSON path")),
        ] {
            let found = resolve(path, &schema, true).map(|found| found.0);
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, outcome.map(str::to_owned).map_err(str::to_owned), "{path}");
        }
        let error = resolve(".m['x']", &schema, false).unwrap_err();
        assert_eq!(error.to_string(), "array notation is not allowed");
    }
}
