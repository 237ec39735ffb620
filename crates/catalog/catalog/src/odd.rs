//! Values that are no documents of a catalog whatever their schema, in upstream's words.

use crate::{fold, golang};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that say what a document is called.
pub(crate) const NAMES: [&str; 3] = ["schema", "package", "name"];

/// How upstream begins to say what a field is that should be a text.
pub(crate) fn expected(key: &str) -> String {
    format!("expected value for key \"{key}\" to be a string, got ")
}

/// Upstream's words for a name that is no text.
pub(crate) fn no_text(key: &str, value: &Value) -> String {
    format!("{}{}: {}", expected(key), golang::print(value, true), golang::print(value, false))
}

/// Why upstream does not take a value for a document at all, whatever its schema. `shown` is the value
/// as JSON.
pub(crate) fn no_document(value: &Value, shown: impl FnOnce() -> String) -> Option<String> {
    let Value::Object(fields) = value else {
        return Some(golang::no_object(mainstay_gocompat::values::json_kind(value), &shown()));
    };
    let odd = |field: &&str| {
        let (key, value) = fields.iter().find(|(key, _)| fold::same(key, field))?;
        (!value.is_string()).then(|| no_text(key, value))
    };
    folded_duplicates(fields).or_else(|| NAMES.iter().find_map(odd))
}

/// Keys of a document that differ only in case, in upstream's words.
pub(crate) fn folded_duplicates(fields: &Map<String, Value>) -> Option<String> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in fields.keys() {
        groups.entry(name.to_uppercase().to_lowercase()).or_default().push(name);
    }
    let mut messages: Vec<String> = groups
        .into_iter()
        .filter(|(_, names)| names.len() > 1)
        .map(|(key, names)| format!("duplicate keys for key \"{key}\": [{}]", names.join(" ")))
        .collect();
    match messages.len() {
        0 | 1 => messages.pop(),
        _ => Some(format!("[{}]", messages.join(", "))),
    }
}
