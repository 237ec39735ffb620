//! The row: an object and the current time, from which cells are made.

use super::age;
use jiff::Timestamp;
use mainstay_object::selector::LabelSelector;
use mainstay_object::{Object, value_at};
use serde_json::Value;

/// Cells of values of any types.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(serde_json::Value::from($cell)),*] };
}
pub(super) use cells;

/// The text of an empty value.
pub(super) const NONE: &str = "<none>";
/// The text of an unset value.
pub(super) const UNSET: &str = "<unset>";

/// An object that becomes a row of a table.
pub(super) struct Row<'a> {
    pub(super) object: &'a Object,
    pub(super) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(super) fn name(&self) -> &'a str {
        self.object.name()
    }

    /// The string at a path; empty if there is none.
    pub(super) fn text(&self, path: &[&str]) -> &'a str {
        self.object.str(path).unwrap_or_default()
    }

    /// The string at a path, or `nothing`.
    pub(super) fn text_or(&self, path: &[&str], nothing: &'static str) -> &'a str {
        match self.text(path) {
            "" => nothing,
            text => text,
        }
    }

    /// The integer at a path, or zero.
    pub(super) fn number(&self, path: &[&str]) -> i64 {
        self.object.i64(path).unwrap_or_default()
    }

    pub(super) fn flag(&self, path: &[&str]) -> bool {
        self.object.bool(path).unwrap_or_default()
    }

    pub(super) fn items(&self, path: &[&str]) -> &'a [Value] {
        self.object.array(path)
    }

    pub(super) fn has(&self, path: &[&str]) -> bool {
        self.object.get(path).is_some_and(|value| !value.is_null())
    }

    /// Age of the object.
    pub(super) fn age(&self) -> String {
        self.since(&["metadata", "creationTimestamp"])
    }

    pub(super) fn since(&self, path: &[&str]) -> String {
        age::since(self.object.str(path), self.now)
    }

    /// The number of entries in the map at a path.
    pub(super) fn entries(&self, path: &[&str]) -> usize {
        self.object.get(path).and_then(Value::as_object).map_or(0, serde_json::Map::len)
    }

    /// Names and images of the containers at a path.
    pub(super) fn containers(&self, path: &[&str]) -> (String, String) {
        let join = |field: &str| {
            let texts = self.items(path).iter().map(|one| text(one, field));
            texts.collect::<Vec<_>>().join(",")
        };
        (join("name"), join("image"))
    }

    /// The label selector at a path; `<none>` if it has no requirement.
    pub(super) fn selector(&self, path: &[&str]) -> String {
        match selector_text(self.object.get(path)) {
            None => "<error>".to_owned(),
            Some(text) if text.is_empty() => NONE.to_owned(),
            Some(text) => text,
        }
    }

    /// The map of labels at a path.
    pub(super) fn labels(&self, path: &[&str]) -> String {
        let labels = self.object.get(path).and_then(Value::as_object);
        let pairs: Vec<String> = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
    }
}

/// A label selector in the query form, requirements in order of their keys; none if it is invalid.
pub(super) fn selector_text(value: Option<&Value>) -> Option<String> {
    let Some(value) = value else { return Some(String::new()) };
    Some(LabelSelector::from_value(value).ok()?.to_string())
}

/// The string in a field; empty if there is none.
pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The integer in a field, or zero.
pub(super) fn number(value: &Value, field: &str) -> i64 {
    value.get(field).and_then(Value::as_i64).unwrap_or_default()
}

/// The value at a path, unless it is null.
pub(super) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    value_at(value, path).filter(|value| !value.is_null())
}

/// A number or a string as text: amounts and percentages may be either.
pub(super) fn number_or_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// `True`, `False` or `<unset>`.
pub(super) fn yes_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    }
}

/// The first `most` elements of a list, and the number of the others.
pub(super) fn first_and_more(list: &[String], most: usize, separator: &str) -> String {
    let text = list[..list.len().min(most)].join(separator);
    if list.len() > most { format!("{text} + {} more...", list.len() - most) } else { text }
}
