//! `deploymentConfig`: changes that the user of an operator makes in its Deployments.

use super::{DeploymentConfigError, objects};
use crate::decode_error::TypeError;
use mainstay_gocompat::values::json_kind;
use mainstay_schema::{builtin, strict};
use serde_json::{Map, Value};

/// Changes in all Deployments of an operator, in the form of their types.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeploymentConfig {
    fields: Map<String, Value>,
}

/// Fields: the name, whether it is a list, and the type of the value or item; none for a text map.
const FIELDS: [(&str, bool, Option<&str>); 9] = [
    ("env", true, Some("EnvVar")),
    ("envFrom", true, Some("EnvFromSource")),
    ("volumes", true, Some("Volume")),
    ("volumeMounts", true, Some("VolumeMount")),
    ("tolerations", true, Some("Toleration")),
    ("resources", false, Some("ResourceRequirements")),
    ("nodeSelector", false, None),
    ("affinity", false, Some("Affinity")),
    ("annotations", false, None),
];

impl DeploymentConfig {
    /// Reads the value of `deploymentConfig`. Unknown fields are ignored.
    ///
    /// # Errors
    /// The first value of a wrong type.
    pub fn read(value: &Value) -> Result<Self, DeploymentConfigError> {
        let Value::Object(given) = value else {
            let found = json_kind(value).to_owned();
            let expected = "v1alpha1.SubscriptionConfig".to_owned();
            return Err(TypeError::WrongValue { found, expected }.into());
        };
        let mut fields = Map::new();
        for (name, is_list, kind) in FIELDS {
            let Some(value) = given.get(name).filter(|value| !value.is_null()) else { continue };
            let mut value = value.clone();
            let definition =
                kind.and_then(|kind| builtin::definition(&format!("api.core.v1.{kind}")));
            let wrong_kind = |value: &Value, expected: &str| TypeError::WrongField {
                found: json_kind(value).to_owned(),
                owner: "SubscriptionConfig",
                path: name.to_owned(),
                expected: expected.to_owned(),
            };
            let undecodable = |source| DeploymentConfigError::DecodeField { field: name, source };
            match (definition, is_list, &mut value) {
                (Some(definition), true, Value::Array(items)) => {
                    for item in items {
                        if item.is_null() {
                            *item = Value::Object(Map::new());
                        }
                        strict::decode(definition, item).map_err(undecodable)?;
                    }
                }
                (Some(definition), true, other) => {
                    let expected = format!("[]v1.{}", definition.short_name());
                    return Err(wrong_kind(other, &expected).into());
                }
                (Some(definition), false, value) => {
                    strict::decode(definition, value).map_err(undecodable)?;
                }
                (None, _, Value::Object(entries)) => {
                    for entry in entries.values_mut() {
                        match entry {
                            Value::Null => *entry = "".into(),
                            Value::String(_) => {}
                            other => return Err(wrong_kind(other, "string").into()),
                        }
                    }
                }
                (None, _, other) => return Err(wrong_kind(other, "map[string]string").into()),
            }
            fields.insert(name.to_owned(), value);
        }
        Ok(Self { fields })
    }

    fn list(&self, name: &str) -> &[Value] {
        self.fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Applies the changes to a Deployment.
    pub(super) fn apply(&self, deployment: &mut Map<String, Value>) {
        let template = deployment.get_mut("spec").and_then(|spec| objects::entry(spec, "template"));
        if let Some(template) = template {
            if let Some(pod) = objects::entry(template, "spec") {
                self.apply_to_pod(pod);
            }
            if let Some(metadata) = objects::entry(template, "metadata") {
                self.annotate(metadata);
            }
        }
        if let Some(metadata) = deployment.get_mut("metadata") {
            self.annotate(metadata);
        }
    }

    fn apply_to_pod(&self, pod: &mut Value) {
        for container in list_of(pod, "containers").into_iter().flatten() {
            if mainstay_fault::is_on("variables-come-twice") {
                append_new(container, "env", self.list("env"));
            } else {
                replace_by_name(container, "env", self.list("env"));
            }
            append_new(container, "envFrom", self.list("envFrom"));
            replace_by_name(container, "volumeMounts", self.list("volumeMounts"));
            if let Some(resources) = self.fields.get("resources") {
                container["resources"] = resources.clone();
            }
        }
        replace_by_name(pod, "volumes", self.list("volumes"));
        append_new(pod, "tolerations", self.list("tolerations"));
        if let Some(selector) = self.fields.get("nodeSelector") {
            pod["nodeSelector"] = selector.clone();
        }
        if let Some(affinity) = self.fields.get("affinity").and_then(Value::as_object) {
            set_affinity(pod, affinity);
        }
    }

    /// Adds annotations that do not exist yet.
    fn annotate(&self, metadata: &mut Value) {
        let Some(Value::Object(new)) = self.fields.get("annotations") else { return };
        let Some(Value::Object(existing)) = objects::entry(metadata, "annotations") else { return };
        for (name, value) in new {
            existing.entry(name).or_insert_with(|| value.clone());
        }
    }
}

fn list_of<'v>(holder: &'v mut Value, field: &str) -> Option<&'v mut Vec<Value>> {
    holder.get_mut(field).and_then(Value::as_array_mut)
}

/// A list; created if absent.
fn list_in<'v>(holder: &'v mut Value, field: &str) -> Option<&'v mut Vec<Value>> {
    let value = holder.as_object_mut()?.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut()
}

/// Replaces items by name (the last of that name); appends items with new names.
fn replace_by_name(holder: &mut Value, field: &str, new: &[Value]) {
    if new.is_empty() {
        return;
    }
    let Some(items) = list_in(holder, field) else { return };
    let before = items.len();
    for item in new {
        let found = items[..before].iter().rposition(|old| name_of(old) == name_of(item));
        match found {
            Some(at) => items[at] = item.clone(),
            None => items.push(item.clone()),
        }
    }
}

fn name_of(item: &Value) -> &str {
    item.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// Appends items that the list does not contain.
fn append_new(holder: &mut Value, field: &str, new: &[Value]) {
    if new.is_empty() {
        return;
    }
    let Some(items) = list_in(holder, field) else { return };
    for item in new {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
}

const AFFINITIES: [&str; 3] = ["nodeAffinity", "podAffinity", "podAntiAffinity"];

/// Replaces the given parts of an affinity. A part given as empty is removed; if no part is given,
/// the whole affinity is removed.
fn set_affinity(pod: &mut Value, new: &Map<String, Value>) {
    let Some(pod) = pod.as_object_mut() else { return };
    let is_given = |name: &&'static str| new.get(*name).is_some_and(|value| !value.is_null());
    if !AFFINITIES.iter().any(is_given) {
        pod.remove("affinity");
        return;
    }
    let mut affinity = match pod.remove("affinity") {
        Some(Value::Object(affinity)) => affinity,
        _ => Map::new(),
    };
    for name in AFFINITIES.iter().filter(|name| is_given(name)) {
        match new.get(*name) {
            Some(value) if !is_empty(value) => affinity.insert((*name).to_owned(), value.clone()),
            _ => affinity.remove(*name),
        };
    }
    if !AFFINITIES.iter().all(|name| affinity.get(*name).is_none_or(is_empty)) {
        pod.insert("affinity".to_owned(), Value::Object(affinity));
    }
}

/// Whether an affinity has no terms.
fn is_empty(affinity: &Value) -> bool {
    let nothing = |value: &Value| match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => {
            fields.get("nodeSelectorTerms").and_then(Value::as_array).is_none_or(Vec::is_empty)
        }
        _ => true,
    };
    affinity.as_object().is_none_or(|fields| fields.values().all(nothing))
}
