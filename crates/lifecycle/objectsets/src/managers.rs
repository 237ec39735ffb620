//! Field manager of created objects: from an update to server-side apply.
//!
//! An object is created with a POST, which makes its fields those of an update. A later apply would be another
//! manager of the same name, and could not remove fields. So the entry becomes one of an apply right after.

use mainstay_api::names::olm_v1::OBJECT_FIELD_MANAGER;
use mainstay_object::Object;
use mainstay_patch::apply::{FieldSet, FieldsError, PathElement};
use mainstay_patch::managed::ANNOTATION as LAST_APPLIED;
use serde_json::{Value, json};

/// The JSON patch that gives the fields which the field manager of ClusterObjectSets updated to its apply; none
/// if there are none.
///
/// # Errors
/// Managed fields are malformed.
pub fn apply_manager_patch(object: &Object) -> Result<Option<Value>, FieldsError> {
    let entries = object.array(&["metadata", "managedFields"]);
    let is_ours = |entry: &&Value, operation: &str| {
        entry["manager"] == OBJECT_FIELD_MANAGER
            && entry["operation"] == operation
            && entry["subresource"].as_str().is_none_or(str::is_empty)
    };
    let updates: Vec<&Value> = entries.iter().filter(|entry| is_ours(entry, "Update")).collect();
    let Some(update) = updates.first() else { return Ok(None) };
    let applied = entries.iter().find(|entry| is_ours(entry, "Apply"));
    let mut fields = FieldSet::new();
    for entry in updates.iter().copied().chain(applied) {
        fields = fields.union(FieldSet::from_fields_v1(&entry["fieldsV1"])?);
    }
    let mut last_applied = FieldSet::new();
    last_applied.insert(&["metadata", "annotations", LAST_APPLIED].map(PathElement::field));
    let mut entry = (*applied.unwrap_or(update)).clone();
    entry["operation"] = "Apply".into();
    entry["fieldsV1"] = fields.difference(&last_applied).to_fields_v1();
    let kept = entries.iter().filter(|other| {
        !is_ours(other, "Update") && applied.is_none_or(|applied| *other != applied)
    });
    let entries: Vec<Value> = kept.cloned().chain([entry]).collect();
    Ok(Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version()},
    ])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &Value) -> Object {
        let object = json!({"metadata": {"resourceVersion": "7", "managedFields": entries}});
        Object::from_value(object).unwrap()
    }

    fn entry(manager: &str, operation: &str, field: &str) -> Value {
        json!({
            "manager": manager,
            "operation": operation,
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {format!("f:{field}"): {}}},
        })
    }

    #[test]
    fn updates_of_the_manager_become_its_apply() {
        let other = entry("kubectl", "Update", "b");
        let created = object(&json!([entry(OBJECT_FIELD_MANAGER, "Update", "a"), other]));
        let patch = apply_manager_patch(&created).unwrap().unwrap();
        let entries = json!([other, entry(OBJECT_FIELD_MANAGER, "Apply", "a")]);
        assert_eq!(patch[0]["value"], entries);
        assert_eq!(patch[1]["value"], "7");

        let both = object(&json!([
            entry(OBJECT_FIELD_MANAGER, "Apply", "a"),
            entry(OBJECT_FIELD_MANAGER, "Update", "b"),
        ]));
        let patch = apply_manager_patch(&both).unwrap().unwrap();
        assert_eq!(patch[0]["value"][0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
        let applied = object(&json!([entry(OBJECT_FIELD_MANAGER, "Apply", "a")]));
        assert_eq!(apply_manager_patch(&applied).unwrap(), None);
    }
}
