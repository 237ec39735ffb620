//! The `JSONPath` dialect of kubectl, for printer columns, `-o jsonpath` and `kubectl wait`.
//!
//! The dialect is older than RFC 9535 and differs from it: expressions stand in braces inside literal
//! text, `{range}…{end}` repeats a part of the template, quoted keys are themselves dotted paths, and
//! comparisons fail for operands of different types. Clients rely on these rules, so this crate follows
//! them as `k8s.io/client-go/util/jsonpath` documents and tests them. There are three deliberate
//! differences: errors appear when the template is compiled instead of when it is used, fields of a JSON
//! object come in sorted order instead of a random one, and a string has no elements (Go would give its
//! bytes).
//!
//! Data flow: text ─► [`JsonPath::parse`] (once) ─► [`JsonPath::find`] or [`JsonPath::render`]
//! over any number of `serde_json` values. Results borrow from the value and the template; nothing
//! is copied.
//!
//! This crate does not change values, and does not read Go structs by field name.

mod eval;
mod parse;

pub use eval::{EvalError, format_value};
pub use parse::ParseJsonPathError;

use serde_json::Value;

/// A compiled template.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    items: Vec<Item>,
    missing_keys: MissingKeys,
}

/// The handling of a field that no input has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKeys {
    /// Evaluation fails: `kubectl get -o jsonpath` on one object.
    #[default]
    Refused,
    /// The result is empty: printer columns, conditions to wait for.
    Allowed,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    /// Text outside braces.
    Text(Value),
    /// One expression in braces.
    Action(Vec<Step>),
    /// `{range …}` up to its `{end}`.
    Range { path: Vec<Step>, body: Vec<Self> },
}

/// One step of an action; each maps a list of values to a list of values.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The field of every input that has it.
    Field(String),
    /// A slice of every input array.
    Slice(Slice),
    /// Every element or field value.
    Wildcard,
    /// All descendants, each container before its children.
    Recursive,
    /// The results of several paths, one after the other.
    Union(Vec<Vec<Self>>),
    /// The elements of arrays that satisfy a condition.
    Filter(Box<Filter>),
    /// A quoted text: replaces all inputs.
    Text(Value),
    /// A number or boolean: replaces each input.
    Scalar(Value),
}

/// `[start:end:step]`; one index is the slice of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slice {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
    /// Whether this is one index: `-1` then ends at the end of the array.
    single: bool,
}

/// `[?(left operator right)]`, or `[?(left)]` for existence.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    left: Vec<Step>,
    test: Option<(Comparison, Vec<Step>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl JsonPath {
    /// Compiles a template: literal text with expressions in braces, as `-o jsonpath=` takes it.
    pub fn parse(text: &str) -> Result<Self, ParseJsonPathError> {
        Ok(Self { items: parse::parse_template(text)?, missing_keys: MissingKeys::Refused })
    }

    /// Compiles a path without braces, as in `additionalPrinterColumns[].jsonPath`; fields may be missing.
    /// Several actions (`.a}{.b`) compile too, because the API server wraps the text in braces; printer
    /// columns use the first one.
    pub fn parse_column(path: &str) -> Result<Self, ParseJsonPathError> {
        let items = parse::parse_without_braces(path)?;
        Ok(Self { items, missing_keys: MissingKeys::Allowed })
    }

    /// Compiles a path with or without braces and leading dot (`status.phase`,
    /// `.status.phase`, `{.status.phase}`), as `kubectl wait --for=jsonpath=` and
    /// `-o custom-columns=` accept it. Fields may be missing.
    pub fn parse_relaxed(text: &str) -> Result<Self, ParseJsonPathError> {
        let inner = match text.strip_prefix('{') {
            Some(rest) => rest.strip_suffix('}').ok_or_else(|| {
                ParseJsonPathError::at(
                    text.len(),
                    "the expression begins with a brace and does not end with one",
                )
            })?,
            None => text,
        };
        let shift = text.len() - text.trim_start_matches('{').len();
        if let Some(at) = inner.find(['{', '}']) {
            return Err(ParseJsonPathError::at(at + shift, "one path is expected, not a template"));
        }
        if inner.trim_start_matches('.').is_empty() {
            return Err(ParseJsonPathError::at(text.len(), "a path is expected"));
        }
        let path =
            if inner.starts_with(['.', '[']) { inner.to_owned() } else { format!(".{inner}") };
        Self::parse_column(&path)
    }

    /// The same template with another rule for missing fields.
    #[must_use]
    pub fn with_missing_keys(mut self, rule: MissingKeys) -> Self {
        self.missing_keys = rule;
        self
    }

    /// Evaluates the template: one list of values for each text or action, in order.
    pub fn find<'v>(&'v self, value: &'v Value) -> Result<Vec<Vec<&'v Value>>, EvalError> {
        eval::find(&self.items, value, self.missing_keys == MissingKeys::Allowed)
    }

    /// The first value of the first action, if there is one, as printer columns use it.
    pub fn first<'v>(&'v self, value: &'v Value) -> Result<Option<&'v Value>, EvalError> {
        Ok(self.find(value)?.first().and_then(|values| values.first().copied()))
    }

    /// Evaluates the template and writes the results as kubectl does: containers as JSON, scalars plain,
    /// the results of one action separated by blanks.
    pub fn render(&self, value: &Value) -> Result<String, EvalError> {
        let mut out = String::new();
        for values in self.find(value)? {
            for (at, value) in values.into_iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(&format_value(value));
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
