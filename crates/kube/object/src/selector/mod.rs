//! Label and field selectors: parsing, with the messages of the API, and matching.

mod fields;
mod query;

pub use fields::{FieldSelector, FieldTerm};

use crate::{FieldError, FieldPath, Object, names};
use serde_json::Value;
use std::fmt;

/// A selector cannot be parsed; the text is that of `k8s.io/apimachinery`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label has this value.
    Equals(String, String),
    /// The label is absent or has another value.
    NotEquals(String, String),
    /// The label has one of the values.
    In(String, Values),
    /// The label is absent or has none of the values.
    NotIn(String, Values),
    /// The label is present.
    Exists(String),
    /// The label is absent.
    NotExists(String),
    /// The label is an integer above the bound.
    Greater(String, i64),
    /// The label is an integer below the bound.
    Less(String, i64),
}

impl Requirement {
    /// The key of the label.
    pub fn key(&self) -> &str {
        match self {
            Self::Equals(key, _)
            | Self::NotEquals(key, _)
            | Self::In(key, _)
            | Self::NotIn(key, _)
            | Self::Exists(key)
            | Self::NotExists(key)
            | Self::Greater(key, _)
            | Self::Less(key, _) => key,
        }
    }

    fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        let number = |key: &str| label(key).and_then(|v| v.parse::<i64>().ok());
        match self {
            Self::Equals(key, value) => label(key).is_some_and(|v| v == value),
            Self::NotEquals(key, value) => label(key).is_none_or(|v| v != value),
            Self::In(key, values) => label(key).is_some_and(|v| values.contains(v)),
            Self::NotIn(key, values) => label(key).is_none_or(|v| !values.contains(v)),
            Self::Exists(key) => label(key).is_some(),
            Self::NotExists(key) => label(key).is_none(),
            Self::Greater(key, bound) => number(key).is_some_and(|v| v > *bound),
            Self::Less(key, bound) => number(key).is_some_and(|v| v < *bound),
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(key, value) => write!(f, "{key}={value}"),
            Self::NotEquals(key, value) => write!(f, "{key}!={value}"),
            Self::In(key, values) => write!(f, "{key} in ({values})"),
            Self::NotIn(key, values) => write!(f, "{key} notin ({values})"),
            Self::Exists(key) => f.write_str(key),
            Self::NotExists(key) => write!(f, "!{key}"),
            Self::Greater(key, bound) => write!(f, "{key}>{bound}"),
            Self::Less(key, bound) => write!(f, "{key}<{bound}"),
        }
    }
}

/// The values of `in` and `notin`, sorted as they are printed. A request may have many of them, and
/// each object of a list is compared with them, so a lookup is a binary search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Vec<String>);

impl Values {
    fn new(mut values: Vec<String>) -> Self {
        values.sort_unstable();
        Self(values)
    }

    fn contains(&self, value: &str) -> bool {
        self.0.binary_search_by(|other| other.as_str().cmp(value)).is_ok()
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// A conjunction of requirements on labels. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Matches every object.
    pub const fn everything() -> Self {
        Self { requirements: Vec::new() }
    }

    /// Matches objects that carry all these labels.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pairs = pairs.into_iter();
        Self::new(pairs.map(|(key, value)| Requirement::Equals(key.into(), value.into())).collect())
    }

    /// Parses the query form: `a=b,c!=d,e in (f,g),!h,i>3`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        query::parse(text).map(Self::new)
    }

    /// Upstream sorts requirements by key, which a printed selector shows.
    fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key().cmp(b.key()));
        Self { requirements }
    }

    /// Reads `metav1.LabelSelector` (`matchLabels`, `matchExpressions`). An empty object matches
    /// everything; the caller decides what an absent selector means.
    pub fn from_value(value: &Value) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        if let Some(labels) = value.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default();
                requirements.push(requirement(key, Operator::Equals, vec![value.to_owned()])?);
            }
        }
        for expression in
            value.get("matchExpressions").and_then(Value::as_array).into_iter().flatten()
        {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
            let values = expression.get("values").and_then(Value::as_array).map(|values| {
                values.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
            });
            let operator = match expression.get("operator").and_then(Value::as_str) {
                Some("In") => Operator::In,
                Some("NotIn") => Operator::NotIn,
                Some("Exists") => Operator::Exists,
                Some("DoesNotExist") => Operator::NotExists,
                other => {
                    let other = other.unwrap_or_default();
                    return Err(SelectorError(format!(
                        "{other:?} is not a valid label selector operator"
                    )));
                }
            };
            requirements.push(optional_requirement(key, operator, values)?);
        }
        Ok(Self::new(requirements))
    }

    /// Whether there is no requirement.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, in order of their keys.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object's labels satisfy every requirement.
    pub fn matches(&self, object: &Object) -> bool {
        self.matches_with(|key| object.label(key))
    }

    /// Whether the labels that `label` returns satisfy every requirement.
    pub fn matches_with<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(&label))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, requirement) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            write!(f, "{requirement}")?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equals,
    NotEquals,
    In,
    NotIn,
    Exists,
    NotExists,
    Greater,
    Less,
}

/// A requirement from its parts, or the rules that they break.
fn requirement(
    key: &str,
    operator: Operator,
    values: Vec<String>,
) -> Result<Requirement, SelectorError> {
    optional_requirement(key, operator, Some(values))
}

/// As [`requirement`]; `values` is none if the selector has no such field.
fn optional_requirement(
    key: &str,
    operator: Operator,
    values: Option<Vec<String>>,
) -> Result<Requirement, SelectorError> {
    let given = values.as_ref().map_or(Value::Null, |values| values.clone().into());
    let values = values.unwrap_or_default();
    let mut errors: Vec<FieldError> = Vec::new();
    let problems = names::qualified_name(key);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(&FieldPath::new("key"), key, problems.join("; ")));
    }
    let path = FieldPath::new("values");
    let why = match operator {
        Operator::In | Operator::NotIn if values.is_empty() => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        Operator::Exists | Operator::NotExists if !values.is_empty() => {
            Some("values set must be empty for exists and does not exist")
        }
        _ => None,
    };
    if let Some(why) = why {
        errors.push(FieldError::invalid(&path, given, why));
    }
    let mut bound = 0;
    for (at, value) in values.iter().enumerate() {
        if !matches!(operator, Operator::Greater | Operator::Less) {
            break;
        }
        if let Ok(number) = value.parse() {
            bound = number;
        } else {
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            errors.push(FieldError::invalid(&path.index(at), value.as_str(), why));
        }
    }
    for (at, value) in values.iter().enumerate() {
        let problems = names::label_value(value);
        if !problems.is_empty() {
            let path = path.index(at).key(key);
            errors.push(FieldError::invalid(&path, value.as_str(), problems.join("; ")));
        }
    }
    if !errors.is_empty() {
        return Err(SelectorError(FieldError::join(&errors)));
    }
    let key = key.to_owned();
    let mut values = values;
    Ok(match operator {
        Operator::Equals => Requirement::Equals(key, values.pop().unwrap_or_default()),
        Operator::NotEquals => Requirement::NotEquals(key, values.pop().unwrap_or_default()),
        Operator::In => Requirement::In(key, Values::new(values)),
        Operator::NotIn => Requirement::NotIn(key, Values::new(values)),
        Operator::Exists => Requirement::Exists(key),
        Operator::NotExists => Requirement::NotExists(key),
        Operator::Greater => Requirement::Greater(key, bound),
        Operator::Less => Requirement::Less(key, bound),
    })
}

#[cfg(test)]
mod tests;
