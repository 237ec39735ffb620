//! Files of the folder `metadata`: annotations, dependencies and properties. Files are recognized
//! by their content, not by their names.

use crate::{go_field, types};
use mainstay_gocompat::json::{Html, Numbers};
use mainstay_schema::gojson::{self, DeclaredType};
use mainstay_yaml::{Document, DocumentFormat};
use serde_json::{Map, Value, value::RawValue};
use std::collections::BTreeMap;

/// The annotations file of a bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The file, below the bundle's folder.
    pub file: String,
    /// The line (from 1) of its document.
    pub line: usize,
    /// The package; may be empty.
    pub package: String,
    /// The channels as written: names separated by commas.
    pub channels: String,
    /// The default channel; may be empty.
    pub default_channel: String,
    /// All annotations with text values, including these three.
    pub all: BTreeMap<String, String>,
}

impl Annotations {
    /// The channels, one by one.
    pub fn channel_names(&self) -> impl Iterator<Item = &str> {
        self.channels.split(',').filter(|_| !self.channels.is_empty())
    }
}

/// A type and a value: a property, or a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleProperty {
    /// The type; may be empty.
    pub kind: String,
    /// The value: a JSON text, byte for byte as upstream passes it on. No value is written as
    /// `null`.
    pub value: Option<String>,
    /// The file that declares it, below the bundle's folder.
    pub file: String,
}

impl BundleProperty {
    /// The value as upstream writes it.
    pub fn json(&self) -> &str {
        self.value.as_deref().unwrap_or("null")
    }
}

/// The annotations in a document, unless it holds something else.
pub(crate) fn annotations(document: &Document, file: &str) -> Option<Annotations> {
    let strict = document.format == DocumentFormat::Json
        && gojson::check_struct(&document.value, &types::ANNOTATIONS_FILE).is_ok();
    let Value::Object(fields) = go_field::field(&document.value, "annotations")? else {
        return None;
    };
    let text = |name: &str| match any_case(fields, name) {
        None => Some(String::new()),
        Some(value) if strict => Some(value.as_str().unwrap_or_default().to_owned()),
        Some(value) => lenient(value),
    };
    let all = fields.iter().filter_map(|(key, value)| Some((key.clone(), lenient(value)?)));
    let found = Annotations {
        file: file.to_owned(),
        line: document.line,
        package: text(types::PACKAGE_KEY)?,
        channels: text(types::CHANNELS_KEY)?,
        default_channel: match text(types::DEFAULT_KEY)? {
            _ if mainstay_fault::is_on("default-channels-of-bundles-are-not-read") => String::new(),
            channel => channel,
        },
        all: all.collect(),
    };
    let required = [&found.package, &found.channels, &found.default_channel];
    required.iter().any(|text| !text.is_empty()).then_some(found)
}

/// The dependencies in a document; none if it holds something else.
pub(crate) fn dependencies(document: &Document, source: &[u8], file: &str) -> Vec<BundleProperty> {
    list(document, source, file, "dependencies", &DeclaredType::Struct(&types::DEPENDENCIES_FILE))
}

/// The properties in a document; none if it holds something else.
pub(crate) fn properties(document: &Document, source: &[u8], file: &str) -> Vec<BundleProperty> {
    list(document, source, file, "properties", &DeclaredType::Struct(&types::PROPERTIES_FILE))
}

fn list(
    document: &Document,
    source: &[u8],
    file: &str,
    field: &str,
    kind: &DeclaredType,
) -> Vec<BundleProperty> {
    let Some(Value::Array(items)) = go_field::field(&document.value, field) else {
        return Vec::new();
    };
    if document.format == DocumentFormat::Json
        && gojson::check(&document.value, kind).is_ok()
        && let Some(found) = raw_list(&source[document.bytes.clone()], field)
    {
        return found.into_iter().map(|(kind, value)| property(kind, value, file)).collect();
    }
    let item = |item: &Value| match item {
        Value::Null => Some(property(String::new(), None, file)),
        Value::Object(fields) => {
            let kind = any_case(fields, "type").map_or(Some(String::new()), lenient)?;
            let value = any_case(fields, "value").map(yaml_as_json);
            Some(property(kind, value, file))
        }
        _ => None,
    };
    items.iter().map(item).collect::<Option<Vec<_>>>().unwrap_or_default()
}

fn property(kind: String, value: Option<String>, file: &str) -> BundleProperty {
    BundleProperty { kind, value, file: file.to_owned() }
}

/// The properties of the annotation `olm.properties`, and the error in it, if any. An item of
/// another type becomes an empty property; a text that is not JSON has no properties.
pub(crate) fn from_annotation(text: &str, file: &str) -> (Vec<BundleProperty>, Option<String>) {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let type_error =
        gojson::check(&value, &types::PROPERTIES).err().map(|found| found.reason.to_string());
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(text) else {
        return (Vec::new(), type_error);
    };
    let found = items.into_iter().map(|item| {
        let (kind, value) = raw_item(item.get()).unwrap_or_default();
        property(kind, value, file)
    });
    (found.collect(), type_error)
}

/// The list in a field of a JSON text; values keep their bytes.
fn raw_list(bytes: &[u8], field: &str) -> Option<Vec<(String, Option<String>)>> {
    let root: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes).ok()?;
    let list = raw_field(&root, field)?;
    let items: Vec<&RawValue> = serde_json::from_str(list.get()).ok()?;
    Some(items.into_iter().map(|item| raw_item(item.get()).unwrap_or_default()).collect())
}

fn raw_item(text: &str) -> Option<(String, Option<String>)> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
    let kind = raw_field(&fields, "type").and_then(|kind| serde_json::from_str(kind.get()).ok());
    let value = raw_field(&fields, "value").map(|value| value.get().to_owned());
    Some((kind.unwrap_or_default(), value))
}

fn raw_field<'r>(fields: &BTreeMap<String, &'r RawValue>, name: &str) -> Option<&'r RawValue> {
    let in_any_case = || fields.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name));
    fields.get(name).copied().or_else(|| in_any_case().map(|(_, value)| *value))
}

fn any_case<'v>(fields: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    let in_any_case = || fields.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name));
    fields.get(name).or_else(|| in_any_case().map(|(_, value)| value))
}

/// A scalar as a text, as upstream's YAML reader converts it where a text is expected.
fn lenient(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(_) => Some(yaml_as_json(value)),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A value that was read from YAML as JSON text.
fn yaml_as_json(value: &Value) -> String {
    mainstay_gocompat::json::value(value, Html::Escaped, Numbers::Whole)
}
