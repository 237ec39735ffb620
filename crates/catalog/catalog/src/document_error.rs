//! Document errors: values that are no catalog document of any schema, in upstream's words.

use crate::go_format;
use mainstay_gocompat::json::is_same_field;
use mainstay_gocompat::values::json_kind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that name a document.
pub(crate) const NAMES: [&str; 3] = ["schema", "package", "name"];

/// Why a value is no document of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogDocumentError {
    /// The value is not an object.
    #[error("{}", go_format::not_an_object(json_kind, json))]
    NoObject {
        /// The type of the value.
        json_kind: &'static str,
        /// The value as JSON.
        json: String,
    },
    /// Keys that differ only in case: each folded key with its spellings.
    #[error("{}", duplicates(.0))]
    DuplicateKeys(Vec<(String, Vec<String>)>),
    /// A field that names the document is not a text.
    #[error("{}", not_text_message(key, value))]
    NoText {
        /// The field.
        key: String,
        /// Its value.
        value: Value,
    },
}

/// The beginning of upstream's message for a field that must be a text.
pub(crate) fn not_text_prefix(key: &str) -> String {
    format!("expected value for key \"{key}\" to be a string, got ")
}

/// Upstream's message for a name that is not a text.
pub(crate) fn not_text_message(key: &str, value: &Value) -> String {
    format!(
        "{}{}: {}",
        not_text_prefix(key),
        go_format::print(value, true),
        go_format::print(value, false)
    )
}

/// Why upstream does not accept a value as a document of any schema. `json` is the value as JSON.
pub(crate) fn find_document_error(
    value: &Value,
    json: impl FnOnce() -> String,
) -> Option<CatalogDocumentError> {
    let Value::Object(fields) = value else {
        return Some(CatalogDocumentError::NoObject { json_kind: json_kind(value), json: json() });
    };
    let wrong_name = |field: &&str| {
        let (key, value) = fields.iter().find(|(key, _)| is_same_field(key, field))?;
        let not_text_message =
            || CatalogDocumentError::NoText { key: key.clone(), value: value.clone() };
        (!value.is_string()).then(not_text_message)
    };
    folded_duplicates(fields).or_else(|| NAMES.iter().find_map(wrong_name))
}

/// Keys of a document that differ only in case.
pub(crate) fn folded_duplicates(fields: &Map<String, Value>) -> Option<CatalogDocumentError> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in fields.keys() {
        groups.entry(name.to_uppercase().to_lowercase()).or_default().push(name.clone());
    }
    let duplicates: Vec<(String, Vec<String>)> =
        groups.into_iter().filter(|(_, names)| names.len() > 1).collect();
    (!duplicates.is_empty()).then_some(CatalogDocumentError::DuplicateKeys(duplicates))
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
