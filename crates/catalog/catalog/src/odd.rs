//! Document errors: values that are no catalog document of any schema, in upstream's words.

use crate::golang;
use mainstay_gocompat::json::is_same_field;
use mainstay_gocompat::values::json_kind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that name a document.
pub(crate) const NAMES: [&str; 3] = ["schema", "package", "name"];

/// Why a value is no document of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The value is not an object.
    #[error("{}", golang::no_object(found, shown))]
    NoObject {
        /// The type of the value.
        found: &'static str,
        /// The value as JSON.
        shown: String,
    },
    /// Keys that differ only in case: each folded key with its spellings.
    #[error("{}", duplicates(.0))]
    DuplicateKeys(Vec<(String, Vec<String>)>),
    /// A field that names the document is not a text.
    #[error("{}", no_text(key, value))]
    NoText {
        /// The field.
        key: String,
        /// Its value.
        value: Value,
    },
}

/// The beginning of upstream's message for a field that must be a text.
pub(crate) fn expected(key: &str) -> String {
    format!("expected value for key \"{key}\" to be a string, got ")
}

/// Upstream's message for a name that is not a text.
pub(crate) fn no_text(key: &str, value: &Value) -> String {
    format!("{}{}: {}", expected(key), golang::print(value, true), golang::print(value, false))
}

/// Why upstream does not accept a value as a document of any schema. `shown` is the value as JSON.
pub(crate) fn no_document(value: &Value, shown: impl FnOnce() -> String) -> Option<DocumentError> {
    let Value::Object(fields) = value else {
        return Some(DocumentError::NoObject { found: json_kind(value), shown: shown() });
    };
    let odd = |field: &&str| {
        let (key, value) = fields.iter().find(|(key, _)| is_same_field(key, field))?;
        let no_text = || DocumentError::NoText { key: key.clone(), value: value.clone() };
        (!value.is_string()).then(no_text)
    };
    folded_duplicates(fields).or_else(|| NAMES.iter().find_map(odd))
}

/// Keys of a document that differ only in case.
pub(crate) fn folded_duplicates(fields: &Map<String, Value>) -> Option<DocumentError> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in fields.keys() {
        groups.entry(name.to_uppercase().to_lowercase()).or_default().push(name.clone());
    }
    let duplicates: Vec<(String, Vec<String>)> =
        groups.into_iter().filter(|(_, names)| names.len() > 1).collect();
    (!duplicates.is_empty()).then_some(DocumentError::DuplicateKeys(duplicates))
}

fn duplicates(groups: &[(String, Vec<String>)]) -> String {
    let one = |(key, names): &(String, Vec<String>)| {
        format!("duplicate keys for key \"{key}\": [{}]", names.join(" "))
    };
    match groups {
        [group] => one(group),
        all => format!("[{}]", all.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}
