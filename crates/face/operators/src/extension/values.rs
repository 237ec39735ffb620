//! Values of flags: version ranges, selectors, label changes, durations.

use mainstay_object::selector::{LabelSelector, Requirement};
use mainstay_version::{VersionConstraint, VersionConstraintError};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The longest range that the API takes, in characters.
const MAX_RANGE: usize = 64;
/// The longest time to wait.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);

/// A text is no value of a flag.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParseValueError {
    /// The text is no version range.
    #[error("{0}; write a version or a range, such as 1.2.3, 1.2.x, ^1.2 or '>=1.2 <2'")]
    VersionRange(#[from] VersionConstraintError),
    /// The API refuses ranges with a hyphen.
    #[error("OLM v1 takes no hyphen range; write '>={0} <={1}'")]
    HyphenRange(String, String),
    /// The range is longer than the API allows.
    #[error("the range has more than {MAX_RANGE} characters; shorten it")]
    LongRange,
    /// The text is no label selector.
    #[error("{0}; write a selector as kubectl takes it, such as team=tea,stage!=test")]
    Selector(String),
    /// A comparison with a number, which a field of an object cannot express.
    #[error("a selector of catalogs has no comparison `{0}`; write KEY=VALUE, or KEY in (A,B)")]
    Comparison(String),
    /// The text is no change of a label.
    #[error("write KEY=VALUE, or KEY- to remove a label")]
    Label,
    /// The text is no duration.
    #[error("write seconds, or a duration such as 90s, 10m or 1h; at most 24h")]
    Timeout,
}

/// Checks a version range as the controller reads it; an empty one is allowed.
pub(super) fn version_range(text: &str) -> Result<String, ParseValueError> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    if let Some((low, high)) = text.split_once(" - ") {
        return Err(ParseValueError::HyphenRange(low.trim().to_owned(), high.trim().to_owned()));
    }
    if text.chars().count() > MAX_RANGE {
        return Err(ParseValueError::LongRange);
    }
    VersionConstraint::parse(text)?;
    Ok(text.to_owned())
}

/// A label selector as a field of an object; none if the text is empty.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SelectorValue(pub(super) Option<Value>);

/// Reads the query form of a selector.
pub(super) fn selector(text: &str) -> Result<SelectorValue, ParseValueError> {
    if text.trim().is_empty() {
        return Ok(SelectorValue(None));
    }
    let selector = LabelSelector::parse(text);
    let selector = selector.map_err(|error| ParseValueError::Selector(error.to_string()))?;
    let mut labels = Map::new();
    let mut expressions = Vec::new();
    for requirement in selector.requirements() {
        let key = requirement.key();
        let expression = |operator: &str, values: Vec<String>| {
            if values.is_empty() {
                json!({"key": key, "operator": operator})
            } else {
                json!({"key": key, "operator": operator, "values": values})
            }
        };
        match requirement {
            Requirement::Equals(_, value) if !labels.contains_key(key) => {
                labels.insert(key.to_owned(), value.clone().into());
            }
            Requirement::Equals(_, value) => {
                expressions.push(expression("In", vec![value.clone()]));
            }
            Requirement::NotEquals(_, value) => {
                expressions.push(expression("NotIn", vec![value.clone()]));
            }
            Requirement::In(_, values) => expressions.push(expression("In", list(values))),
            Requirement::NotIn(_, values) => expressions.push(expression("NotIn", list(values))),
            Requirement::Exists(_) => expressions.push(expression("Exists", Vec::new())),
            Requirement::NotExists(_) => {
                expressions.push(expression("DoesNotExist", Vec::new()));
            }
            Requirement::Greater(..) | Requirement::Less(..) => {
                return Err(ParseValueError::Comparison(requirement.to_string()));
            }
        }
    }
    let mut fields = Map::new();
    if !labels.is_empty() {
        fields.insert("matchLabels".to_owned(), labels.into());
    }
    if !expressions.is_empty() {
        fields.insert("matchExpressions".to_owned(), expressions.into());
    }
    Ok(SelectorValue(Some(fields.into())))
}

/// The values of `in` and `notin`, which contain no commas.
fn list(values: &impl ToString) -> Vec<String> {
    values.to_string().split(',').map(str::to_owned).collect()
}

/// Checks a selector of objects in its query form.
pub(super) fn query_selector(text: &str) -> Result<String, ParseValueError> {
    let parsed = LabelSelector::parse(text);
    parsed.map_err(|error| ParseValueError::Selector(error.to_string()))?;
    Ok(text.to_owned())
}

/// A label that is set, or removed if it has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelChange {
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// Reads `KEY=VALUE` or `KEY-`.
pub(super) fn label_change(text: &str) -> Result<LabelChange, ParseValueError> {
    let (key, value) = match (text.split_once('='), text.strip_suffix('-')) {
        (Some((key, value)), _) => (key, Some(value.to_owned())),
        (None, Some(key)) => (key, None),
        (None, None) => return Err(ParseValueError::Label),
    };
    if key.is_empty() {
        return Err(ParseValueError::Label);
    }
    Ok(LabelChange { key: key.to_owned(), value })
}

/// Reads a time limit: seconds, or a duration with units. Zero checks once.
pub(super) fn timeout(text: &str) -> Result<Duration, ParseValueError> {
    let seconds = text.parse::<u64>().ok().map(Duration::from_secs);
    let with_units = || {
        let duration = text.parse::<jiff::SignedDuration>().ok()?;
        Duration::try_from(duration).ok()
    };
    let duration = seconds.or_else(with_units).ok_or(ParseValueError::Timeout)?;
    if duration > MAX_TIMEOUT { Err(ParseValueError::Timeout) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_range_is_one_that_the_controller_and_the_api_take() {
        for text in ["", "1.2.3", "~1.2", "^1", ">=1.2, <2", ">1.15 <1.17 || 2.x"] {
            assert_eq!(version_range(text).ok().as_deref(), Some(text), "{text}");
        }
        for (text, message) in [
            (">>1", "improper constraint: \">>1\"; write a version or a range"),
            ("1.2 - 2.0", "OLM v1 takes no hyphen range; write '>=1.2 <=2.0'"),
            ("==1.0.0", "improper constraint"),
        ] {
            let error = version_range(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
        let long = vec!["1.0.0"; 20].join(" || ");
        assert!(matches!(version_range(&long), Err(ParseValueError::LongRange)));
    }

    #[test]
    fn selector_becomes_a_field_of_the_object() {
        for (text, expected) in [
            ("", None),
            ("a=b,c=d", Some(json!({"matchLabels": {"a": "b", "c": "d"}}))),
            (
                "a=b,c!=d,e in (f,g),!h,i",
                Some(json!({
                    "matchLabels": {"a": "b"},
                    "matchExpressions": [
                        {"key": "c", "operator": "NotIn", "values": ["d"]},
                        {"key": "e", "operator": "In", "values": ["f", "g"]},
                        {"key": "h", "operator": "DoesNotExist"},
                        {"key": "i", "operator": "Exists"},
                    ],
                })),
            ),
        ] {
            let found = selector(text).map_err(|error| error.to_string());
            assert_eq!(found, Ok(SelectorValue(expected)), "{text}");
        }
        for text in ["a b", "a>3", "=b"] {
            assert!(selector(text).is_err(), "{text}");
        }
    }

    #[test]
    fn label_change_sets_or_removes() {
        let change = |key: &str, value: Option<&str>| LabelChange {
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        for (text, expected) in [
            ("a=b", Some(change("a", Some("b")))),
            ("a=", Some(change("a", Some("")))),
            ("a-", Some(change("a", None))),
            ("a", None),
            ("=b", None),
            ("-", None),
        ] {
            assert_eq!(label_change(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn timeout_is_in_seconds_or_has_units() {
        for (text, seconds) in
            [("0", Some(0)), ("90", Some(90)), ("10m", Some(600)), ("25h", None), ("-3s", None)]
        {
            assert_eq!(timeout(text).ok().map(|limit| limit.as_secs()), seconds, "{text}");
        }
    }
}
