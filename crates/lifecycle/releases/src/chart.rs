//! The chart of a release: metadata, templates and files.

use crate::release::{text_unless_empty, texts, texts_unless_empty};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mainstay_gocompat::{decode_base64, json::JsonWriter};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A Helm chart as releases store it: without the charts that it depends on.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Chart {
    /// The content of `Chart.yaml`.
    pub metadata: Option<ChartMetadata>,
    /// The content of `Chart.lock`.
    pub lock: Option<Map<String, Value>>,
    /// The templates.
    pub templates: Option<Vec<ChartFile>>,
    /// The default values.
    pub values: Option<Map<String, Value>>,
    /// The JSON schema of the values.
    #[serde(deserialize_with = "optional_bytes")]
    pub schema: Option<Vec<u8>>,
    /// All other files.
    pub files: Option<Vec<ChartFile>>,
}

/// The metadata of a chart. That of a bundle has annotations only.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[expect(missing_docs, reason = "the fields of Chart.yaml, by their names")]
pub struct ChartMetadata {
    #[serde(deserialize_with = "absent_if_null")]
    pub name: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub home: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub sources: Vec<String>,
    #[serde(deserialize_with = "absent_if_null")]
    pub version: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub description: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub keywords: Vec<String>,
    #[serde(deserialize_with = "absent_if_null")]
    pub maintainers: Vec<ChartMaintainer>,
    #[serde(deserialize_with = "absent_if_null")]
    pub icon: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub api_version: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub condition: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub tags: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub app_version: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub deprecated: bool,
    #[serde(deserialize_with = "absent_if_null")]
    pub annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "absent_if_null")]
    pub kube_version: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub dependencies: Vec<Value>,
    #[serde(rename = "type", deserialize_with = "absent_if_null")]
    pub chart_type: String,
}

/// A maintainer of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the fields of Chart.yaml, by their names")]
pub struct ChartMaintainer {
    #[serde(deserialize_with = "absent_if_null")]
    pub name: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub email: String,
    #[serde(deserialize_with = "absent_if_null")]
    pub url: String,
}

/// A file of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ChartFile {
    /// The path below the chart.
    #[serde(deserialize_with = "absent_if_null")]
    pub name: String,
    /// The content.
    #[serde(deserialize_with = "bytes")]
    pub data: Vec<u8>,
}

/// The order of the fields of a dependency.
const DEPENDENCY_FIELDS: &[&str] =
    &["name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"];

impl Chart {
    pub(crate) fn write(&self, writer: &mut JsonWriter<'_>) {
        writer.open('{');
        writer.key("metadata");
        match &self.metadata {
            Some(metadata) => metadata.write(writer),
            None => writer.null(),
        }
        writer.key("lock");
        match &self.lock {
            Some(lock) => write_lock(writer, lock),
            None => writer.null(),
        }
        write_files(writer, "templates", self.templates.as_deref());
        writer.key("values");
        match &self.values {
            Some(values) => writer.object(values),
            None => writer.null(),
        }
        writer.key("schema");
        match &self.schema {
            Some(schema) => writer.text(&STANDARD.encode(schema)),
            None => writer.null(),
        }
        write_files(writer, "files", self.files.as_deref());
        writer.close('}');
    }
}

impl ChartMetadata {
    fn write(&self, writer: &mut JsonWriter<'_>) {
        writer.open('{');
        text_unless_empty(writer, "name", &self.name);
        text_unless_empty(writer, "home", &self.home);
        texts_unless_empty(writer, "sources", &self.sources);
        text_unless_empty(writer, "version", &self.version);
        text_unless_empty(writer, "description", &self.description);
        texts_unless_empty(writer, "keywords", &self.keywords);
        if !self.maintainers.is_empty() {
            writer.key("maintainers");
            writer.open('[');
            for maintainer in &self.maintainers {
                writer.open('{');
                text_unless_empty(writer, "name", &maintainer.name);
                text_unless_empty(writer, "email", &maintainer.email);
                text_unless_empty(writer, "url", &maintainer.url);
                writer.close('}');
            }
            writer.close(']');
        }
        text_unless_empty(writer, "icon", &self.icon);
        text_unless_empty(writer, "apiVersion", &self.api_version);
        text_unless_empty(writer, "condition", &self.condition);
        text_unless_empty(writer, "tags", &self.tags);
        text_unless_empty(writer, "appVersion", &self.app_version);
        if self.deprecated {
            writer.key("deprecated");
            writer.raw("true");
        }
        if !self.annotations.is_empty() {
            writer.key("annotations");
            texts(writer, &self.annotations);
        }
        text_unless_empty(writer, "kubeVersion", &self.kube_version);
        if !self.dependencies.is_empty() {
            writer.key("dependencies");
            write_dependencies(writer, &self.dependencies);
        }
        text_unless_empty(writer, "type", &self.chart_type);
        writer.close('}');
    }
}

fn write_files(writer: &mut JsonWriter<'_>, name: &str, files: Option<&[ChartFile]>) {
    writer.key(name);
    let Some(files) = files else { return writer.null() };
    writer.open('[');
    for file in files {
        writer.open('{');
        writer.key("name");
        writer.text(&file.name);
        writer.key("data");
        writer.text(&STANDARD.encode(&file.data));
        writer.close('}');
    }
    writer.close(']');
}

fn write_lock(writer: &mut JsonWriter<'_>, lock: &Map<String, Value>) {
    writer.open('{');
    for name in ["generated", "digest", "dependencies"] {
        let Some(value) = lock.get(name) else { continue };
        writer.key(name);
        match value {
            Value::Array(dependencies) => write_dependencies(writer, dependencies),
            other => writer.value(other),
        }
    }
    writer.close('}');
}

fn write_dependencies(writer: &mut JsonWriter<'_>, dependencies: &[Value]) {
    writer.open('[');
    for dependency in dependencies {
        let Value::Object(values) = dependency else {
            writer.value(dependency);
            continue;
        };
        writer.open('{');
        for name in DEPENDENCY_FIELDS {
            if let Some(value) = values.get(*name) {
                writer.key(name);
                writer.value(value);
            }
        }
        writer.close('}');
    }
    writer.close(']');
}

/// Reads a value that Go decodes to its zero value if it is null.
pub(crate) fn absent_if_null<'de, T, D>(decoder: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
    D: Deserializer<'de>,
{
    Ok(Option::deserialize(decoder)?.unwrap_or_default())
}

fn optional_bytes<'de, D: Deserializer<'de>>(decoder: D) -> Result<Option<Vec<u8>>, D::Error> {
    Option::<String>::deserialize(decoder)?
        .map(|text| decode_base64(&text).map_err(serde::de::Error::custom))
        .transpose()
}

fn bytes<'de, D: Deserializer<'de>>(decoder: D) -> Result<Vec<u8>, D::Error> {
    Ok(optional_bytes(decoder)?.unwrap_or_default())
}
