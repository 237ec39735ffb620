//! Tables: what `kubectl get` shows.

use crate::registry::KindRow;
use jiff::Timestamp;
use mainstay_object::Object;
use serde_json::{Value, json};

/// Which object a table's rows carry along (`includeObject`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// `PartialObjectMetadata`: what clients get that do not ask.
    #[default]
    Metadata,
    /// The object as the version asked for has it.
    Object,
}

/// How to make a table.
#[derive(Clone, Copy, Debug)]
pub struct TableOptions<'a> {
    /// `v1` or `v1beta1` of `meta.k8s.io`.
    pub version: &'a str,
    /// What each row carries.
    pub include: IncludeObject,
    /// Leaves out `columnDefinitions`: every watch event after the first.
    pub no_headers: bool,
    /// The time that ages count to.
    pub now: Timestamp,
}

/// A `Table` of objects of one kind; `metadata` is the list's (`resourceVersion`, `continue`, …).
pub fn table(
    row: &KindRow,
    objects: &[Object],
    metadata: Value,
    options: &TableOptions<'_>,
) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| json!({"cells": [object.name()], "object": partial(object, options.version)}))
        .collect();
    let _ = row;
    json!({
        "apiVersion": format!("meta.k8s.io/{}", options.version),
        "kind": "Table",
        "metadata": metadata,
        "columnDefinitions": if options.no_headers { json!([]) } else { json!([
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        ]) },
        "rows": rows,
    })
}

/// The metadata-only form of an object.
pub fn partial(object: &Object, version: &str) -> Value {
    json!({
        "apiVersion": format!("meta.k8s.io/{version}"),
        "kind": "PartialObjectMetadata",
        "metadata": object.get(&["metadata"]).cloned().unwrap_or_default(),
    })
}
