//! Access to fields of the ClusterServiceVersion for validators.

use super::load::LoadedBundle;
use crate::go_field;
use mainstay_object::Gvk;
use serde_json::Value;

/// The value of an absent field.
static NONE: Value = Value::Null;

/// A field; null if absent.
pub(crate) fn field_value<'v>(value: &'v Value, name: &str) -> &'v Value {
    go_field::field(value, name).unwrap_or(&NONE)
}

/// A field by its path; null if absent.
pub(crate) fn field_at<'v>(value: &'v Value, path: &[&str]) -> &'v Value {
    path.iter().fold(value, |value, name| field_value(value, name))
}

/// The items of a list; empty if the field is not a list.
pub(crate) fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    field_value(value, name).as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(crate) fn texts<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v str> {
    items(value, name).iter().map(|item| item.as_str().unwrap_or_default())
}

/// `g/v, FileKind=k`, as upstream prints a group, version and kind.
pub(crate) fn gvk_text(group: &str, version: &str, kind: &str) -> String {
    format!("{group}/{version}, Kind={kind}")
}

/// The group, version and kind of an object; group and version are empty if `apiVersion` has more
/// than one slash.
pub(crate) fn gvk_of(value: &Value) -> Gvk {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = match text("apiVersion").split_once('/') {
        None => ("", text("apiVersion")),
        Some((_, rest)) if rest.contains('/') => ("", ""),
        Some(both) => both,
    };
    Gvk::new(group, version, text("kind"))
}

impl LoadedBundle {
    /// The ClusterServiceVersion.
    pub(crate) fn csv_value(&self) -> &Value {
        &self.csv.1
    }

    /// `spec`.
    pub(crate) fn spec(&self) -> &Value {
        field_value(&self.csv.1, "spec")
    }

    /// The name of the ClusterServiceVersion.
    pub(crate) fn csv_name(&self) -> &str {
        go_field::text(field_value(&self.csv.1, "metadata"), "name")
    }

    /// The annotations of the ClusterServiceVersion, by name.
    pub(crate) fn annotations(&self) -> impl Iterator<Item = (&str, &str)> {
        let found = field_at(&self.csv.1, &["metadata", "annotations"]).as_object();
        found
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
    }

    /// An annotation.
    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    /// `spec.install.spec`.
    pub(crate) fn install(&self) -> &Value {
        field_at(self.spec(), &["install", "spec"])
    }

    /// The deployments, each with its pod spec.
    pub(crate) fn deployments(&self) -> impl Iterator<Item = (&Value, &Value)> {
        let pod = |deployment| field_at(deployment, &["spec", "template", "spec"]);
        items(self.install(), "deployments")
            .iter()
            .map(move |deployment| (deployment, pod(deployment)))
    }

    /// Owned or required custom resources.
    pub(crate) fn resources(&self, which: &str) -> &[Value] {
        items(field_value(self.spec(), "customresourcedefinitions"), which)
    }

    /// The version; 0.0.0 if absent or invalid.
    pub(crate) fn version(&self) -> mainstay_version::Version {
        let text = go_field::text(self.spec(), "version");
        mainstay_version::parse_tolerant(text)
            .unwrap_or_else(|_| mainstay_version::Version::new(0, 0, 0))
    }
}
