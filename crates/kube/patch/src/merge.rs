//! Merge patch: RFC 7386 with the deviations of Go's library (`evanphx/json-patch`).

use crate::{PatchError, depth};
use serde_json::{Map, Value};

/// Merges a patch into an object: objects merge field by field, null removes a field, any other
/// value replaces.
///
/// Two details differ from the RFC. Nulls in objects of new lists are dropped as well. Nulls in a
/// value that replaces an object by a value of another type stay.
///
/// # Errors
/// [`PatchError::Malformed`] if the patch is no object, or deeper than [`crate::MAX_DEPTH`].
pub fn merge_patch(target: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if patch.is_null() {
        return Err(PatchError::Malformed("Invalid JSON Patch".to_owned()));
    }
    let Value::Object(changes) = patch else {
        let found = mainstay_gocompat::values::json_kind(patch);
        return Err(PatchError::Malformed(format!(
            "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        )));
    };
    if depth::exceeds(patch, depth::MAX_DEPTH) {
        return Err(PatchError::Malformed(depth::too_deep_message()));
    }
    match target {
        Value::Object(fields) => merge_fields(fields, changes),
        other => {
            let mut fields = Map::new();
            merge_fields(&mut fields, changes);
            *other = Value::Object(fields);
        }
    }
    Ok(())
}

fn merge_fields(fields: &mut Map<String, Value>, changes: &Map<String, Value>) {
    for (name, change) in changes {
        if change.is_null() && !mainstay_fault::is_on("merge-patch-keeps-nulls") {
            fields.remove(name);
            continue;
        }
        match (fields.get_mut(name), change) {
            (Some(Value::Object(inner)), Value::Object(changes)) => merge_fields(inner, changes),
            (Some(field @ Value::Object(_)), other) => field.clone_from(other),
            (_, other) => {
                let mut value = other.clone();
                drop_nulls(&mut value);
                fields.insert(name.clone(), value);
            }
        }
    }
}

/// Drops null fields of objects, also of those in lists; null elements stay.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            drop_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
