//! Field errors: the field, the rule that it breaks, and the message of
//! `k8s.io/apimachinery/pkg/util/validation/field`.

use mainstay_gocompat::values;
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;

/// A path of fields as messages print it: `spec.containers[0].name`, `metadata.labels[a/b]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldPath(String);

impl FieldPath {
    /// The path of a field of the object.
    pub fn new(field: &str) -> Self {
        Self(field.to_owned())
    }

    /// The root, which prints as the empty text.
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// The path of a field of this value.
    #[must_use]
    pub fn child(&self, field: &str) -> Self {
        if self.0.is_empty() { Self(field.to_owned()) } else { Self(format!("{}.{field}", self.0)) }
    }

    /// The path of an element of this list.
    #[must_use]
    pub fn index(&self, at: usize) -> Self {
        Self(format!("{}[{at}]", self.0))
    }

    /// The path of an entry of this map.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self(format!("{}[{key}]", self.0))
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The rule that a field breaks (`field.ErrorType`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// The value refers to an object that does not exist.
    NotFound(Value),
    /// A value is needed.
    Required,
    /// The value occurs twice.
    Duplicate(Value),
    /// The value breaks a rule.
    Invalid(Value),
    /// The value breaks a rule and is printed as this text: in upstream it is a Go struct, not JSON.
    InvalidText(String),
    /// The value is not one of those listed.
    NotSupported(Value, Vec<String>),
    /// The value may not be set here.
    Forbidden,
    /// The value is longer than this number of bytes; none if the limit is unknown.
    TooLong(Option<u64>),
    /// Too many entries: their number, the maximum.
    TooMany(u64, u64),
    /// Too few entries: their number, the minimum.
    TooFew(u64, u64),
    /// The value has another type: the type found.
    TypeInvalid(String),
    /// The check itself failed.
    Internal,
    /// As the given kind, for a value that is not printed as JSON: a Go struct of upstream, or no
    /// value at all.
    Printed(PrintedKind, Option<String>),
    /// No error itself, but the number of errors that the list omits.
    Omitted(usize),
}

/// The kinds of [`FieldErrorKind::Printed`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PrintedKind {
    /// As [`FieldErrorKind::Invalid`].
    Invalid,
    /// As [`FieldErrorKind::Duplicate`].
    Duplicate,
    /// As [`FieldErrorKind::NotSupported`], with the supported values.
    NotSupported(Vec<String>),
}

impl FieldErrorKind {
    /// The cause's reason.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate(_) => "FieldValueDuplicate",
            Self::Invalid(_) | Self::InvalidText(_) | Self::TooFew(..) | Self::Omitted(_) => {
                "FieldValueInvalid"
            }
            Self::NotSupported(..) => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong(_) => "FieldValueTooLong",
            Self::TooMany(..) => "FieldValueTooMany",
            Self::TypeInvalid(_) => "FieldValueTypeInvalid",
            Self::Internal => "InternalError",
            Self::Printed(kind, _) => match kind {
                PrintedKind::Invalid => "FieldValueInvalid",
                PrintedKind::Duplicate => "FieldValueDuplicate",
                PrintedKind::NotSupported(_) => "FieldValueNotSupported",
            },
        }
    }
}

/// One broken rule: where, what and in which words.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// Path of the field.
    pub field: String,
    /// The broken rule and the value.
    pub kind: FieldErrorKind,
    /// The text after that of the kind; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An error of any kind.
    pub fn new(field: &FieldPath, kind: FieldErrorKind, detail: impl Into<String>) -> Self {
        Self { field: field.to_string(), kind, detail: detail.into() }
    }

    /// A value is needed.
    pub fn required(field: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(field, FieldErrorKind::Required, detail)
    }

    /// The value breaks a rule.
    pub fn invalid(field: &FieldPath, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(field, FieldErrorKind::Invalid(value.into()), detail)
    }

    /// The value may not be set here.
    pub fn forbidden(field: &FieldPath, detail: impl Into<String>) -> Self {
        Self::new(field, FieldErrorKind::Forbidden, detail)
    }

    /// The value occurs twice.
    pub fn duplicate(field: &FieldPath, value: impl Into<Value>) -> Self {
        Self::new(field, FieldErrorKind::Duplicate(value.into()), "")
    }

    /// The value is not one of those listed.
    pub fn not_supported(field: &FieldPath, value: impl Into<Value>, allowed: &[&str]) -> Self {
        let allowed = allowed.iter().map(|text| (*text).to_owned()).collect();
        Self::new(field, FieldErrorKind::NotSupported(value.into(), allowed), "")
    }

    /// Several errors in one line, without repetitions; in brackets unless there is one.
    pub fn join(errors: &[Self]) -> String {
        if let [one] = errors {
            return one.to_string();
        }
        let mut texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        // A set, because there may be as many errors as the value has parts.
        let mut distinct = HashSet::with_capacity(texts.len());
        texts.retain(|text| distinct.insert(text.clone()));
        match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        }
    }

    /// The text after the field: `Invalid value: "x": why`.
    pub fn body(&self) -> String {
        let head = match &self.kind {
            FieldErrorKind::NotFound(value) => format!("Not found: {}", go_value(value)),
            FieldErrorKind::Required => "Required value".to_owned(),
            FieldErrorKind::Duplicate(value) => format!("Duplicate value: {}", go_value(value)),
            FieldErrorKind::Invalid(value) => format!("Invalid value: {}", go_value(value)),
            FieldErrorKind::InvalidText(text) => format!("Invalid value: {text}"),
            FieldErrorKind::NotSupported(value, allowed) => {
                format!("Unsupported value: {}: {}", go_value(value), supported(allowed))
            }
            FieldErrorKind::Printed(kind, text) => {
                let (head, allowed) = match kind {
                    PrintedKind::Invalid => ("Invalid value", None),
                    PrintedKind::Duplicate => ("Duplicate value", None),
                    PrintedKind::NotSupported(allowed) => {
                        ("Unsupported value", Some(supported(allowed)))
                    }
                };
                [Some(head), text.as_deref(), allowed.as_deref()]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(": ")
            }
            FieldErrorKind::Forbidden => "Forbidden".to_owned(),
            FieldErrorKind::TooLong(Some(1)) => "Too long: may not be more than 1 byte".to_owned(),
            FieldErrorKind::TooLong(Some(max)) => {
                format!("Too long: may not be more than {max} bytes")
            }
            FieldErrorKind::TooLong(None) => "Too long: value is too long".to_owned(),
            FieldErrorKind::TooMany(found, max) => {
                let items = if *max == 1 { "item" } else { "items" };
                format!("Too many: {found}: must have at most {max} {items}")
            }
            FieldErrorKind::TooFew(found, min) => {
                let items = if *min == 1 { "item" } else { "items" };
                format!("Invalid value: {found}: must have at least {min} {items}")
            }
            FieldErrorKind::TypeInvalid(found) => {
                format!("Invalid value: {}", mainstay_gocompat::quote(found))
            }
            FieldErrorKind::Internal => "Internal error".to_owned(),
            FieldErrorKind::Omitted(1) => "Invalid value: 1 more error is left out".to_owned(),
            FieldErrorKind::Omitted(count) => {
                format!("Invalid value: {count} more errors are left out")
            }
        };
        if self.detail.is_empty() { head } else { format!("{head}: {}", self.detail) }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = if self.field.is_empty() { "<nil>" } else { &self.field };
        write!(f, "{field}: {}", self.body())
    }
}

fn supported(allowed: &[String]) -> String {
    let quoted: Vec<String> = allowed.iter().map(|text| mainstay_gocompat::quote(text)).collect();
    format!("supported values: {}", quoted.join(", "))
}

/// A value as Go's messages print it: strings quoted, other scalars plain, the rest as JSON.
fn go_value(value: &Value) -> String {
    match value {
        Value::String(text) => mainstay_gocompat::quote(text),
        Value::Number(number) if number.is_f64() => {
            values::float(number.as_f64().unwrap_or_default())
        }
        other => values::json(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_values_replace_the_json() {
        let field = FieldPath::new("a");
        let kinds = [
            (PrintedKind::Invalid, None, "a: Invalid value: why"),
            (PrintedKind::Duplicate, Some("{}".to_owned()), "a: Duplicate value: {}: why"),
            (
                PrintedKind::NotSupported(vec!["x".to_owned()]),
                Some("1".to_owned()),
                "a: Unsupported value: 1: supported values: \"x\": why",
            ),
        ];
        for (kind, text, expected) in kinds {
            let error = FieldError::new(&field, FieldErrorKind::Printed(kind, text), "why");
            assert_eq!(error.to_string(), expected);
        }
    }
}
