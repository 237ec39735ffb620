//! Dropping fields that the schema does not have.

use super::{Schema, is_meta};
use crate::trail::{Step, Trail};
use serde_json::Value;

/// Prunes a value and returns the paths of what was dropped, sorted. At the root of a whole object
/// its own metadata stays, as if it were embedded.
pub(super) fn value(schema: &Schema, target: &mut Value, root: bool) -> Vec<String> {
    let mut found = Dropped::default();
    walk(Some(schema), target, root, &Trail::default(), &mut found);
    found.paths.sort();
    found.paths
}

/// How many bytes the paths of dropped fields may have: each may be of any length, and there may be
/// as many as the value has parts. What is dropped beyond that is dropped without a word.
const MAX_PATHS: usize = 512 * 1024;

/// Paths of fields that were dropped.
#[derive(Default)]
struct Dropped {
    paths: Vec<String>,
    bytes: usize,
}

impl Dropped {
    fn note(&mut self, trail: &Trail<'_>) {
        if self.bytes < MAX_PATHS {
            let path = trail.to_string();
            self.bytes += path.len();
            self.paths.push(path);
        }
    }
}

fn walk(
    schema: Option<&Schema>,
    target: &mut Value,
    root: bool,
    trail: &Trail<'_>,
    found: &mut Dropped,
) {
    if let Some(schema) = schema
        && schema.preserve_unknown
    {
        return preserved(schema, target, root, trail, found);
    }
    match target {
        Value::Object(fields) => fields.retain(|name, field| {
            let trail = trail.then(Step::Field(name));
            let Some(schema) = schema else {
                found.note(&trail);
                return false;
            };
            if (root || schema.embedded) && is_meta(name) {
                return true;
            }
            if let Some(property) = schema.property(name) {
                walk(Some(property), field, false, &trail, found);
                return true;
            }
            if schema.additional.is_some() {
                walk(schema.additional(), field, false, &trail, found);
                return true;
            }
            found.note(&trail);
            mainstay_fault::is_on("unknown-fields-stay")
        }),
        Value::Array(items) => {
            let items_schema = schema.and_then(|schema| schema.items.as_deref());
            for (at, item) in items.iter_mut().enumerate() {
                walk(items_schema, item, false, &trail.then(Step::Index(at)), found);
            }
        }
        _ => {}
    }
}

/// Where unknown fields are preserved, known ones may still prune what is below them.
fn preserved(
    schema: &Schema,
    target: &mut Value,
    root: bool,
    trail: &Trail<'_>,
    found: &mut Dropped,
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
                    walk(Some(property), field, false, &trail, found);
                } else if schema.additional.is_some() {
                    walk(schema.additional(), field, false, &trail, found);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for (at, item) in items.iter_mut().enumerate() {
                    preserved(schema, item, false, &trail.then(Step::Index(at)), found);
                }
            }
        }
        _ => {}
    }
}
