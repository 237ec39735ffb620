//! Label and field selectors: parsing with the API's messages, and matching.

use crate::{Object, names};
use serde_json::Value;
use std::fmt;

/// A selector that cannot be read, in the words of `k8s.io/apimachinery`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub String);

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label has one of the values.
    In(String, Vec<String>),
    /// The label is absent or has none of the values.
    NotIn(String, Vec<String>),
    /// The label is there.
    Exists(String),
    /// The label is absent.
    NotExists(String),
    /// The label is an integer above the bound.
    Greater(String, i64),
    /// The label is an integer below the bound.
    Less(String, i64),
}

impl Requirement {
    fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::In(key, values) => label(key).is_some_and(|v| values.iter().any(|x| x == v)),
            Self::NotIn(key, values) => label(key).is_none_or(|v| values.iter().all(|x| x != v)),
            Self::Exists(key) => label(key).is_some(),
            Self::NotExists(key) => label(key).is_none(),
            Self::Greater(key, bound) => {
                label(key).and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v > *bound)
            }
            Self::Less(key, bound) => {
                label(key).and_then(|v| v.parse::<i64>().ok()).is_some_and(|v| v < *bound)
            }
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::In(key, values) if values.len() == 1 => write!(f, "{key}={}", values[0]),
            Self::In(key, values) => write!(f, "{key} in ({})", sorted(values)),
            Self::NotIn(key, values) if values.len() == 1 => write!(f, "{key}!={}", values[0]),
            Self::NotIn(key, values) => write!(f, "{key} notin ({})", sorted(values)),
            Self::Exists(key) => f.write_str(key),
            Self::NotExists(key) => write!(f, "!{key}"),
            Self::Greater(key, bound) => write!(f, "{key}>{bound}"),
            Self::Less(key, bound) => write!(f, "{key}<{bound}"),
        }
    }
}

fn sorted(values: &[String]) -> String {
    let mut values = values.to_vec();
    values.sort();
    values.join(",")
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
        let requirements = pairs
            .into_iter()
            .map(|(key, value)| Requirement::In(key.to_owned(), vec![value.to_owned()]))
            .collect();
        Self { requirements }
    }

    /// Reads the query form: `a=b,c!=d,e in (f,g),!h,i>3`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser { rest: text }.selector()
    }

    /// Reads `metav1.LabelSelector` (`matchLabels`, `matchExpressions`). An empty object matches
    /// everything; the caller decides what an absent selector means.
    pub fn from_value(value: &Value) -> Result<Self, SelectorError> {
        let mut requirements = Vec::new();
        if let Some(labels) = value.get("matchLabels").and_then(Value::as_object) {
            for (key, value) in labels {
                let value = value.as_str().unwrap_or_default().to_owned();
                requirements.push(Requirement::In(key.clone(), vec![value]));
            }
        }
        for expression in
            value.get("matchExpressions").and_then(Value::as_array).into_iter().flatten()
        {
            let key = expression.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
            let values: Vec<String> = expression
                .get("values")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .collect();
            let operator = expression.get("operator").and_then(Value::as_str).unwrap_or_default();
            requirements.push(match operator {
                "In" if !values.is_empty() => Requirement::In(key, values),
                "NotIn" if !values.is_empty() => Requirement::NotIn(key, values),
                "In" | "NotIn" => {
                    return Err(SelectorError(
                        "for 'in', 'notin' operators, values set can't be empty".to_owned(),
                    ));
                }
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::NotExists(key),
                other => {
                    return Err(SelectorError(format!(
                        "\"{other}\" is not a valid label selector operator"
                    )));
                }
            });
        }
        Ok(Self { requirements })
    }

    /// Whether no requirement is made.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements, in the order written.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object's labels satisfy every requirement.
    pub fn matches(&self, object: &Object) -> bool {
        self.matches_with(|key| object.label(key))
    }

    /// Whether labels looked up by `label` satisfy every requirement.
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

/// A recursive-descent reader of the query form. Tokens end at blanks and at `!=,()<>`.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn selector(mut self) -> Result<LabelSelector, SelectorError> {
        let mut requirements = Vec::new();
        self.blanks();
        while !self.rest.is_empty() {
            requirements.push(self.requirement()?);
            self.blanks();
            if self.rest.is_empty() {
                break;
            }
            if !self.take(",") {
                return Err(Self::found(self.token(), "',' or 'end of string'"));
            }
            self.blanks();
            if self.rest.is_empty() {
                return Err(Self::found("", "identifier after ','"));
            }
        }
        // The original sorts by key, which shows wherever a selector is printed.
        requirements.sort_by(|a, b| key_of(a).cmp(key_of(b)));
        Ok(LabelSelector { requirements })
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        if self.take("!") {
            self.blanks();
            let key = self.key()?;
            return Ok(Requirement::NotExists(key));
        }
        let key = self.key()?;
        self.blanks();
        if self.rest.is_empty() || self.rest.starts_with(',') {
            return Ok(Requirement::Exists(key));
        }
        for operator in ["!=", "==", "=", ">", "<"] {
            if !self.take(operator) {
                continue;
            }
            self.blanks();
            let value = self.word().to_owned();
            if matches!(operator, ">" | "<") {
                let bound = value.parse().map_err(|_| {
                    SelectorError(
                        "for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
                    )
                })?;
                return Ok(match operator {
                    ">" => Requirement::Greater(key, bound),
                    _ => Requirement::Less(key, bound),
                });
            }
            check_value(&key, &value)?;
            return Ok(match operator {
                "!=" => Requirement::NotIn(key, vec![value]),
                _ => Requirement::In(key, vec![value]),
            });
        }
        let operator = self.word();
        let negated = match operator {
            "in" => false,
            "notin" => true,
            other => {
                return Err(Self::found(other, "in, notin, =, ==, !=, gt, lt"));
            }
        };
        let values = self.values()?;
        for value in &values {
            check_value(&key, value)?;
        }
        Ok(if negated { Requirement::NotIn(key, values) } else { Requirement::In(key, values) })
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        self.blanks();
        if !self.take("(") {
            return Err(Self::found(self.token(), "'('"));
        }
        let mut values = Vec::new();
        loop {
            self.blanks();
            values.push(self.word().to_owned());
            self.blanks();
            if self.take(")") {
                return Ok(values);
            }
            if !self.take(",") {
                return Err(Self::found(self.token(), "',' or ')'"));
            }
        }
    }

    fn key(&mut self) -> Result<String, SelectorError> {
        let key = self.word().to_owned();
        if key.is_empty() {
            return Err(Self::found(self.token(), "identifier"));
        }
        let wrong = names::qualified_name(&key);
        if wrong.is_empty() {
            Ok(key)
        } else {
            Err(SelectorError(format!(
                "unable to parse requirement: key: Invalid value: {key:?}: {}",
                wrong.join("; ")
            )))
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| c.is_whitespace() || "!=,()<>".contains(c))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// What stands here, for a message.
    fn token(&self) -> &'a str {
        let end = self.rest.char_indices().nth(1).map_or(self.rest.len(), |(at, _)| at);
        &self.rest[..end]
    }

    fn found(token: &str, expected: &str) -> SelectorError {
        SelectorError(format!("unable to parse requirement: found '{token}', expected: {expected}"))
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

fn key_of(requirement: &Requirement) -> &str {
    match requirement {
        Requirement::In(key, _)
        | Requirement::NotIn(key, _)
        | Requirement::Exists(key)
        | Requirement::NotExists(key)
        | Requirement::Greater(key, _)
        | Requirement::Less(key, _) => key,
    }
}

fn check_value(key: &str, value: &str) -> Result<(), SelectorError> {
    let wrong = names::label_value(value);
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(SelectorError(format!(
            "unable to parse requirement: values[0][{key}]: Invalid value: {value:?}: {}",
            wrong.join("; ")
        )))
    }
}

/// A conjunction of `path=value` and `path!=value` on fields that a kind declares selectable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

/// One term of a [`FieldSelector`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// Dotted path, such as `metadata.name` or `involvedObject.uid`.
    pub path: String,
    /// The value compared with.
    pub value: String,
    /// Whether the term is `!=`.
    pub negated: bool,
}

impl FieldSelector {
    /// Reads the query form; `\` escapes `,`, `=` and itself in values.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let (path, value, negated) = if let Some((path, value)) = part.split_once("!=") {
                (path, value, true)
            } else if let Some((path, value)) = part.split_once("==") {
                (path, value, false)
            } else if let Some((path, value)) = part.split_once('=') {
                (path, value, false)
            } else {
                return Err(SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                )));
            };
            terms.push(FieldTerm { path: path.to_owned(), value: unescape(value), negated });
        }
        Ok(Self { terms })
    }

    /// The terms, in the order written.
    pub fn terms(&self) -> &[FieldTerm] {
        &self.terms
    }

    /// Whether no term is made.
    pub fn is_everything(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that `path` must equal, if the selector says so.
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms.iter().find(|t| !t.negated && t.path == path).map(|t| t.value.as_str())
    }

    /// Whether the values that `field` finds satisfy every term; an absent field is the empty string.
    pub fn matches_with(&self, field: impl Fn(&str) -> String) -> bool {
        self.terms.iter().all(|term| (field(&term.path) == term.value) != term.negated)
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matches(selector: &str, labels: &Value) -> bool {
        let object = Object::from_value(json!({"metadata": {"labels": labels}})).unwrap();
        LabelSelector::parse(selector).unwrap().matches(&object)
    }

    #[test]
    fn every_operator_of_the_query_form() {
        let labels = json!({"a": "1", "b": "x", "g.io/c": ""});
        for yes in [
            "",
            "a=1",
            "a==1",
            "a!=2",
            "z!=1",
            "a",
            "!z",
            "a in (1,2)",
            "b notin (y, z)",
            "a>0",
            "a<2",
            "g.io/c=",
            "a=1,b=x",
        ] {
            assert!(matches(yes, &labels), "{yes}");
        }
        for no in ["a=2", "a!=1", "z", "!a", "a in (2,3)", "b notin (x)", "a>1", "b>0", "a=1,b=y"] {
            assert!(!matches(no, &labels), "{no}");
        }
    }

    #[test]
    fn malformed_selectors_are_refused() {
        for bad in
            ["a=1,", "a b", "a in 1", "a in (1", "=x", "a=b c", "a>x", "-a=1", "a=b/c", "a,,b"]
        {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn printing_is_sorted_and_reads_back() {
        let selector = LabelSelector::parse("z, b in (2,1),a=1,!c").unwrap();
        assert_eq!(selector.to_string(), "a=1,b in (1,2),!c,z");
        let again = LabelSelector::parse(&selector.to_string()).unwrap();
        assert_eq!(again.to_string(), selector.to_string());
    }

    #[test]
    fn the_object_form() {
        let selector = LabelSelector::from_value(&json!({
            "matchLabels": {"a": "1"},
            "matchExpressions": [{"key": "b", "operator": "In", "values": ["x"]}, {"key": "c", "operator": "DoesNotExist"}],
        }))
        .unwrap();
        assert_eq!(selector.to_string(), "a=1,b=x,!c");
        let wrong = json!({"matchExpressions": [{"key": "b", "operator": "Near"}]});
        assert!(LabelSelector::from_value(&wrong).is_err());
    }

    #[test]
    fn field_selectors_unescape_values() {
        let selector = FieldSelector::parse(r"metadata.name=a\,b,spec.x!=1").unwrap();
        assert_eq!(selector.required("metadata.name"), Some("a,b"));
        assert!(selector.matches_with(|path| if path == "spec.x" {
            "2".into()
        } else {
            "a,b".into()
        }));
        assert!(!selector.matches_with(|path| if path == "spec.x" {
            "1".into()
        } else {
            "a,b".into()
        }));
        assert!(FieldSelector::parse("nonsense").is_err());
    }
}
