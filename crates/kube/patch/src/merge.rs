//! Merge patch: RFC 7386 with the edges of Go's library.

use crate::{PatchError, depth};
use serde_json::{Map, Value};

/// Merges a patch into an object: objects merge field by field, null removes a field, everything
/// else replaces.
///
/// Two edges differ from the RFC: nulls inside objects inside new lists are dropped as well, and
/// nulls inside a value that replaces an object by something else stay.
///
/// # Errors
/// [`PatchError::Malformed`] if the patch is not an object, or deeper than [`crate::MAX_DEPTH`].
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
        return Err(PatchError::Malformed(depth::refusal()));
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
            (Some(slot @ Value::Object(_)), other) => slot.clone_from(other),
            (_, other) => {
                let mut value = other.clone();
                prune_nulls(&mut value);
                fields.insert(name.clone(), value);
            }
        }
    }
}

/// Drops null fields of objects, also of those in lists; null elements stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|_, value| {
            prune_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}
