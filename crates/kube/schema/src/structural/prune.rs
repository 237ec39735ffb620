//! Pruning: drops fields that the schema does not have.

use super::{Schema, is_meta};
use crate::trail::{Step, Trail};
use serde_json::Value;

/// Prunes a value and returns the paths of dropped fields, sorted. At the root of a whole object, type
/// and metadata stay, as in an embedded object.
pub(super) fn value(schema: &Schema, target: &mut Value, root: bool) -> Vec<String> {
    let mut found = DroppedPaths::default();
    visit(Some(schema), target, root, &Trail::default(), &mut found);
    found.paths.sort();
    found.paths
}

/// The most bytes of all reported paths: paths may be long, and as many as the value has fields.
/// Further fields are dropped without a report.
const MAX_PATHS: usize = 512 * 1024;

/// Paths of dropped fields.
#[derive(Default)]
struct DroppedPaths {
    paths: Vec<String>,
    bytes: usize,
}

impl DroppedPaths {
    fn add(&mut self, trail: &Trail<'_>) {
        if self.bytes < MAX_PATHS {
            let path = trail.to_string();
            self.bytes += path.len();
            self.paths.push(path);
        }
    }
}

fn visit(
    schema: Option<&Schema>,
    target: &mut Value,
    root: bool,
    trail: &Trail<'_>,
    found: &mut DroppedPaths,
) {
    if let Some(schema) = schema
        && schema.preserve_unknown
    {
        return visit_preserved(schema, target, root, trail, found);
    }
    match target {
        Value::Object(fields) => fields.retain(|name, field| {
            let trail = trail.then(Step::Field(name));
            let Some(schema) = schema else {
                found.add(&trail);
                return false;
            };
            if (root || schema.embedded) && is_meta(name) {
                return true;
            }
            if let Some(property) = schema.property(name) {
                visit(Some(property), field, false, &trail, found);
                return true;
            }
            if schema.additional.is_some() {
                visit(schema.additional(), field, false, &trail, found);
                return true;
            }
            found.add(&trail);
            mainstay_fault::is_on("unknown-fields-stay")
        }),
        Value::Array(items) => {
            let items_schema = schema.and_then(|schema| schema.items.as_deref());
            for (at, item) in items.iter_mut().enumerate() {
                visit(items_schema, item, false, &trail.then(Step::Index(at)), found);
            }
        }
        _ => {}
    }
}

/// Prunes below known fields of a schema that preserves unknown fields.
fn visit_preserved(
    schema: &Schema,
    target: &mut Value,
    root: bool,
    trail: &Trail<'_>,
    found: &mut DroppedPaths,
) {
    match target {
        Value::Object(fields) => {
            if schema.properties.is_empty() && schema.additional.is_none() {
                return;
            }
            for (name, field) in fields.iter_mut() {
                if (root || schema.embedded) && is_meta(name) {
                    continue;
                }
                let trail = trail.then(Step::Field(name));
                if let Some(property) = schema.property(name) {
                    visit(Some(property), field, false, &trail, found);
                } else if schema.additional.is_some() {
                    visit(schema.additional(), field, false, &trail, found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (at, item) in items.iter_mut().enumerate() {
                    visit_preserved(schema, item, false, &trail.then(Step::Index(at)), found);
                }
            }
        }
        _ => {}
    }
}
