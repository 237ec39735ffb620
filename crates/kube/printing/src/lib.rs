//! Tables of the Kubernetes API: the columns and cells that `kubectl get` shows.
//!
//! A client that requests a table gets columns and cells instead of objects, so the server decides
//! for each kind what is shown. Columns of built-in kinds are functions in one table (`builtin`);
//! those of custom kinds are JSON paths in their CRDs. Cells of columns with a priority are always
//! sent: whether they are shown is the client's business.
//!
//! Data flow: objects, row of the kind, time ─► [`table`] ─► `Table` as JSON.
//!
//! Not part of this crate: text layout. Ages are texts already, because upstream sends them so.

mod age;
mod builtin;
mod cluster;
mod columns;
mod config;
mod network;
mod pods;
mod row;
mod workloads;

pub use age::format_age;

use builtin::Printer;
use jiff::Timestamp;
use mainstay_jsonpath::{JsonPath, format_value};
use mainstay_kinds::{KindRow, KindSource, PrinterColumn};
use mainstay_object::Object;
use row::Row;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// The object that each row of a table contains (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// No object.
    None,
    /// `PartialObjectMetadata`: the default.
    #[default]
    Metadata,
    /// The object in the requested version.
    Object,
}

/// The options of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions<'a> {
    /// `v1` or `v1beta1` of `meta.k8s.io`.
    pub version: &'a str,
    /// The object in each row.
    pub include: IncludeObject,
    /// Omits `columnDefinitions`, as in every watch event after the first.
    pub no_headers: bool,
    /// The current time, for ages.
    pub now: Timestamp,
}

/// A `Table` of objects of one kind; `metadata` is the list's (`resourceVersion`, `continue`, …).
pub fn table(
    row: &KindRow,
    objects: &[Object],
    metadata: Value,
    options: &TableOptions<'_>,
) -> Value {
    build_table(&Columns::of(row), objects, metadata, options)
}

/// A `Table` of the `Scale` of an object of this kind.
pub fn scale_table(row: &KindRow, scale: &Object, options: &TableOptions<'_>) -> Value {
    let columns = match row.source {
        KindSource::BuiltIn(_) => {
            Columns::BuiltIn(builtin::printer("autoscaling", "Scale"), "Scale")
        }
        KindSource::Custom(_) => Columns::declared(&*SCALE),
    };
    let metadata = json!({"resourceVersion": scale.resource_version()});
    build_table(&columns, std::slice::from_ref(scale), metadata, options)
}

/// The columns of a custom kind's `Scale` besides its name.
static SCALE: LazyLock<[PrinterColumn; 3]> = LazyLock::new(|| {
    let column = |name: &str, kind: &str, description: &str, path: &str| PrinterColumn {
        name: name.to_owned(),
        kind: kind.to_owned(),
        format: String::new(),
        description: description.to_owned(),
        priority: 0,
        json_path: path.to_owned(),
    };
    let age = columns::description("Pod", "Age");
    [
        column("Desired", "integer", "Number of desired replicas", ".spec.replicas"),
        column("Available", "integer", "Number of actual replicas", ".status.replicas"),
        column("Age", "date", age, ".metadata.creationTimestamp"),
    ]
});

#[expect(
    clippy::needless_pass_by_value,
    reason = "the metadata is made for the table by its caller"
)]
fn build_table(
    columns: &Columns<'_>,
    objects: &[Object],
    metadata: Value,
    options: &TableOptions<'_>,
) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut out = json!({"cells": columns.cells(object, options.now)});
            if let Some(conditions) = columns.conditions(object) {
                out["conditions"] = conditions;
            }
            out["object"] = match options.include {
                IncludeObject::None => Value::Null,
                IncludeObject::Metadata => partial(object, options.version),
                IncludeObject::Object => object.to_value(),
            };
            out
        })
        .collect();
    // Upstream's general printer makes no list while there is no row.
    let rows = if rows.is_empty() && columns.is_general() { Value::Null } else { rows.into() };
    json!({
        "apiVersion": format!("meta.k8s.io/{}", options.version),
        "kind": "Table",
        "metadata": metadata,
        "columnDefinitions": (!options.no_headers).then(|| columns.definitions()),
        "rows": rows,
    })
}

/// The `PartialObjectMetadata` of an object.
pub fn partial(object: &Object, version: &str) -> Value {
    json!({
        "apiVersion": format!("meta.k8s.io/{version}"),
        "kind": "PartialObjectMetadata",
        "metadata": object.get(&["metadata"]).cloned().unwrap_or_default(),
    })
}

/// The `PartialObjectMetadata` of an object in stored text form; other fields are skipped, not
/// parsed. None if the text has no metadata.
pub fn partial_text(bytes: &[u8], version: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        metadata: &'a serde_json::value::RawValue,
    }
    let Head { metadata } = serde_json::from_slice(bytes).ok()?;
    Some(format!(
        r#"{{"apiVersion":"meta.k8s.io/{version}","kind":"PartialObjectMetadata","metadata":{}}}"#,
        metadata.get()
    ))
}

/// The columns of one kind.
enum Columns<'a> {
    /// Columns that functions fill; with the kind.
    BuiltIn(&'static Printer, &'a str),
    /// Columns with JSON paths; a path that does not compile shows nothing.
    Custom(Vec<(&'a PrinterColumn, Option<JsonPath>)>),
    /// The columns of a custom kind without declared ones: name and age.
    CustomDefault,
}

impl<'a> Columns<'a> {
    fn of(row: &'a KindRow) -> Self {
        let KindSource::Custom(custom) = &row.source else {
            return Self::BuiltIn(builtin::printer(&row.group, &row.kind), &row.kind);
        };
        let columns = custom.columns();
        if columns.is_empty() {
            return Self::CustomDefault;
        }
        Self::declared(columns)
    }

    /// The columns of `additionalPrinterColumns`.
    fn declared(columns: &'a [PrinterColumn]) -> Self {
        let path =
            |column: &'a PrinterColumn| (column, JsonPath::parse_column(&column.json_path).ok());
        Self::Custom(columns.iter().map(path).collect())
    }

    /// Whether the kind has no columns of its own.
    fn is_general(&self) -> bool {
        matches!(self, Self::BuiltIn(printer, _) if std::ptr::eq(*printer, &raw const builtin::OTHER))
    }

    fn definitions(&self) -> Vec<Value> {
        let name = json!({"name": "Name", "type": "string", "format": "name", "description": columns::description("Pod", "Name"), "priority": 0});
        match self {
            Self::BuiltIn(printer, kind) => printer
                .columns
                .iter()
                .map(|column| {
                    json!({
                        "name": column.name,
                        "type": column.kind,
                        "format": column.format,
                        "description": columns::description(kind, column.name),
                        "priority": column.priority,
                    })
                })
                .collect(),
            Self::Custom(columns) => {
                let mut out = vec![name];
                out.extend(columns.iter().map(|(column, _)| custom_definition(column)));
                out
            }
            Self::CustomDefault => vec![
                name,
                json!({"name": "Age", "type": "date", "format": "", "description": columns::description("Pod", "Age"), "priority": 0}),
            ],
        }
    }

    fn cells(&self, object: &Object, now: Timestamp) -> Vec<Value> {
        let row = Row { object, now };
        match self {
            Self::BuiltIn(printer, _) => (printer.cells)(&row),
            Self::CustomDefault => vec![object.name().into(), row.age().into()],
            Self::Custom(columns) => {
                let value = object.to_value();
                let mut out = vec![object.name().into()];
                out.extend(columns.iter().map(|(column, path)| {
                    // A path that cannot be evaluated gives an empty cell, not an error.
                    let found = path.as_ref().and_then(|path| path.first(&value).ok()).flatten();
                    found.map_or(Value::Null, |found| custom_cell(&column.kind, found, now))
                }));
                out
            }
        }
    }

    fn conditions(&self, object: &Object) -> Option<Value> {
        match self {
            Self::BuiltIn(printer, _) => (printer.conditions)(object),
            _ => None,
        }
    }
}

fn custom_definition(column: &PrinterColumn) -> Value {
    let description = if column.description.is_empty() {
        format!("Custom resource definition column (in JSONPath format): {}", column.json_path)
    } else {
        column.description.clone()
    };
    json!({
        "name": column.name,
        "type": column.kind,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    })
}

/// A cell of a declared type; null if the value has another one.
fn custom_cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", value) => format_value(value).into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().map_or(Value::Null, truncated),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(text)) if text.is_empty() => "<unknown>".into(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(time) => format_age(now.duration_since(time)).into(),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

/// The integer part of a number.
#[expect(clippy::cast_possible_truncation, reason = "dropping the fraction is what is asked for")]
fn truncated(number: f64) -> Value {
    (number.trunc() as i64).into()
}

#[cfg(test)]
mod tests;
