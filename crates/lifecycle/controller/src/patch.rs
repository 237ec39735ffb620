//! Merge patches (RFC 7396) between two JSON values.

use mainstay_api::TypedObject;
use mainstay_client::Patch;
use mainstay_object::Object;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The merge patch (RFC 7396) that turns `old` into exactly `new`; none if they are equal.
pub fn between(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for (key, value) in new {
                match old.get(key) {
                    Some(before) => {
                        if let Some(inner) = between(before, value) {
                            patch.insert(key.clone(), inner);
                        }
                    }
                    None => {
                        patch.insert(key.clone(), value.clone());
                    }
                }
            }
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        _ => (old != new).then(|| new.clone()),
    }
}

/// The patch that sets the status of an object, with its resourceVersion as a precondition; none if the
/// status is already equal.
pub fn status<T: Serialize>(live: &Object, new: &T) -> serde_json::Result<Option<Patch>> {
    let new = serde_json::to_value(new)?;
    let empty = Value::Object(Map::new());
    let old = live.get(&["status"]).unwrap_or(&empty);
    Ok(between(old, &new).map(|status| {
        Patch::Merge(json!({
            "metadata": {"resourceVersion": live.resource_version()},
            "status": status,
        }))
    }))
}

/// As [`status`], for a typed view that was read through a cache.
pub fn of_view<S, T: Serialize>(
    view: &TypedObject<S, T>,
    new: &T,
) -> serde_json::Result<Option<Patch>> {
    let (old, new) = (serde_json::to_value(&view.status)?, serde_json::to_value(new)?);
    Ok(between(&old, &new).map(|status| {
        Patch::Merge(json!({
            "metadata": {"resourceVersion": view.metadata.resource_version},
            "status": status,
        }))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_fields_become_null_at_every_depth() {
        let old = json!({"a": 1, "b": {"c": 1, "d": 2}, "list": [1], "same": {"x": 1}});
        let new = json!({"b": {"c": 1, "e": 3}, "list": [2], "same": {"x": 1}});
        assert_eq!(
            between(&old, &new),
            Some(json!({"a": null, "b": {"d": null, "e": 3}, "list": [2]}))
        );
        assert_eq!(between(&old, &old), None);
    }
}
