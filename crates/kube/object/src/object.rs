//! The untyped object.

use crate::{Gvk, NamespacedName, OwnerReference};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// A Kubernetes object as JSON, with accessors for what every object has.
///
/// Accessors never fail: a field of the wrong type reads as absent, because the server validates an
/// object before it is read. Keys are in Go's (sorted) order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Object(Map<String, Value>);

/// The value is JSON, but not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnObject;

impl fmt::Display for NotAnObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value is not a JSON object")
    }
}

impl std::error::Error for NotAnObject {}

impl Object {
    /// An object with `apiVersion`, `kind` and `metadata.name`.
    pub fn new(gvk: &Gvk, name: &str) -> Self {
        let mut object = Self::default();
        object.set(&["apiVersion"], gvk.api_version().into());
        object.set(&["kind"], gvk.kind.clone().into());
        object.set(&["metadata", "name"], name.into());
        object
    }

    /// Takes a JSON value that must be an object.
    pub fn from_value(value: Value) -> Result<Self, NotAnObject> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(NotAnObject),
        }
    }

    /// The object as a JSON value.
    pub fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    /// The object as a JSON value, copied.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// The fields.
    pub const fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The fields, mutable.
    pub const fn fields_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.0
    }

    /// The whole object read as a Rust type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.0)
    }

    /// An object made from a Rust type that serializes to a JSON object.
    pub fn encode<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        match serde_json::to_value(value)? {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(serde::ser::Error::custom(NotAnObject)),
        }
    }

    /// The value at a path of field names.
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        value_at(self.0.get(*first)?, rest)
    }

    /// The string at a path; none if absent or not a string.
    pub fn str(&self, path: &[&str]) -> Option<&str> {
        self.get(path)?.as_str()
    }

    /// The integer at a path.
    pub fn i64(&self, path: &[&str]) -> Option<i64> {
        self.get(path)?.as_i64()
    }

    /// The boolean at a path.
    pub fn bool(&self, path: &[&str]) -> Option<bool> {
        self.get(path)?.as_bool()
    }

    /// The elements of the array at a path; empty if absent.
    pub fn array(&self, path: &[&str]) -> &[Value] {
        self.get(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// The value at a path read as a Rust type; none if absent, null or of another type.
    pub fn part<T: DeserializeOwned>(&self, path: &[&str]) -> Option<T> {
        T::deserialize(self.get(path)?).ok()
    }

    /// Sets the value at a path. Missing parents become objects; a parent that is no object is
    /// replaced.
    pub fn set(&mut self, path: &[&str], value: Value) {
        let Some((last, parents)) = path.split_last() else { return };
        let mut fields = &mut self.0;
        for parent in parents {
            let slot =
                fields.entry((*parent).to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if !slot.is_object() {
                *slot = Value::Object(Map::new());
            }
            let Value::Object(inner) = slot else { return };
            fields = inner;
        }
        fields.insert((*last).to_owned(), value);
    }

    /// Removes and returns the value at a path.
    pub fn remove(&mut self, path: &[&str]) -> Option<Value> {
        let (last, parents) = path.split_last()?;
        let mut fields = &mut self.0;
        for parent in parents {
            fields = fields.get_mut(*parent)?.as_object_mut()?;
        }
        fields.remove(*last)
    }

    /// `apiVersion`, or the empty string.
    pub fn api_version(&self) -> &str {
        self.str(&["apiVersion"]).unwrap_or_default()
    }

    /// `kind`, or the empty string.
    pub fn kind(&self) -> &str {
        self.str(&["kind"]).unwrap_or_default()
    }

    /// Group, version and kind; parts that are absent are empty.
    pub fn gvk(&self) -> Gvk {
        Gvk::from_api_version(self.api_version(), self.kind())
    }

    /// `metadata.name`, or the empty string.
    pub fn name(&self) -> &str {
        self.str(&["metadata", "name"]).unwrap_or_default()
    }

    /// `metadata.namespace`, or the empty string.
    pub fn namespace(&self) -> &str {
        self.str(&["metadata", "namespace"]).unwrap_or_default()
    }

    /// Namespace and name together.
    pub fn key(&self) -> NamespacedName {
        NamespacedName::new(self.namespace(), self.name())
    }

    /// `metadata.uid`, or the empty string.
    pub fn uid(&self) -> &str {
        self.str(&["metadata", "uid"]).unwrap_or_default()
    }

    /// `metadata.resourceVersion`, or the empty string. Opaque: compare for equality only.
    pub fn resource_version(&self) -> &str {
        self.str(&["metadata", "resourceVersion"]).unwrap_or_default()
    }

    /// `metadata.generation`, or zero.
    pub fn generation(&self) -> i64 {
        self.i64(&["metadata", "generation"]).unwrap_or_default()
    }

    /// `metadata.creationTimestamp`.
    pub fn creation_timestamp(&self) -> Option<jiff::Timestamp> {
        self.str(&["metadata", "creationTimestamp"])?.parse().ok()
    }

    /// `metadata.deletionTimestamp`: set while finalizers or a grace period delay the deletion.
    pub fn deletion_timestamp(&self) -> Option<jiff::Timestamp> {
        self.str(&["metadata", "deletionTimestamp"])?.parse().ok()
    }

    /// Whether the object has a deletion timestamp.
    pub fn is_terminating(&self) -> bool {
        self.str(&["metadata", "deletionTimestamp"]).is_some()
    }

    /// All labels, in order of their keys.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.strings(&["metadata", "labels"])
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.str(&["metadata", "labels", key])
    }

    /// Sets a label.
    pub fn set_label(&mut self, key: &str, value: impl Into<String>) {
        self.set(&["metadata", "labels", key], Value::String(value.into()));
    }

    /// All annotations, in order of their keys.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        self.strings(&["metadata", "annotations"])
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.str(&["metadata", "annotations", key])
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: impl Into<String>) {
        self.set(&["metadata", "annotations", key], Value::String(value.into()));
    }

    fn strings(&self, path: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.get(path)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> impl Iterator<Item = &str> {
        self.array(&["metadata", "finalizers"]).iter().filter_map(Value::as_str)
    }

    /// `metadata.ownerReferences` without malformed entries.
    pub fn owner_references(&self) -> Vec<OwnerReference> {
        self.array(&["metadata", "ownerReferences"])
            .iter()
            .filter_map(|value| OwnerReference::deserialize(value).ok())
            .collect()
    }

    /// The owner that is the managing controller.
    pub fn controller_owner(&self) -> Option<OwnerReference> {
        self.owner_references().into_iter().find(OwnerReference::is_controller)
    }

    /// Whether the managing controller is the object with this uid.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller_owner().is_some_and(|owner| owner.uid == uid)
    }

    /// A reference to this object as an owner of others; neither controller nor blocking.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            controller: None,
            block_owner_deletion: None,
        }
    }

    /// The status of the condition of this type in `status.conditions`.
    pub fn condition(&self, kind: &str) -> Option<&str> {
        self.array(&["status", "conditions"])
            .iter()
            .find(|condition| condition.get("type").and_then(Value::as_str) == Some(kind))?
            .get("status")?
            .as_str()
    }
}

/// The value at a path of field names below a value; the value itself for an empty path.
pub fn value_at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, field| value.get(*field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    #[test]
    fn fields_of_a_wrong_type_read_as_absent() {
        let malformed =
            object(json!({"metadata": {"name": 7, "labels": ["a"], "finalizers": "x"}}));
        assert_eq!(malformed.name(), "");
        assert_eq!(malformed.label("a"), None);
        assert_eq!(malformed.finalizers().count(), 0);
        assert_eq!(malformed.labels().count(), 0);
    }

    #[test]
    fn set_creates_missing_parents() {
        let mut sample = object(json!({"spec": 1}));
        sample.set(&["spec", "a", "b"], json!(2));
        assert_eq!(sample.to_value(), json!({"spec": {"a": {"b": 2}}}));
        assert_eq!(sample.remove(&["spec", "a", "b"]), Some(json!(2)));
        assert_eq!(sample.remove(&["nothing", "here"]), None);
    }

    #[test]
    fn controller_owner_and_conditions_are_found() {
        let sample = object(json!({
            "metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1"},
                {"apiVersion": "v1", "kind": "B", "name": "b", "uid": "2", "controller": true},
                {"kind": "broken"},
            ]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }));
        assert_eq!(sample.owner_references().len(), 2);
        assert_eq!(sample.controller_owner().unwrap().name, "b");
        assert!(sample.is_controlled_by("2") && !sample.is_controlled_by("1"));
        assert_eq!(sample.condition("Ready"), Some("True"));
        assert_eq!(sample.condition("Other"), None);
    }
}
