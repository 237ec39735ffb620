//! Pod accessors and message parts that the rules share.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A pod, or a template of pods.
pub(crate) struct Pod<'a> {
    metadata: Option<&'a Map<String, Value>>,
    pub(crate) spec: &'a Value,
}

/// A field that is present and not null.
pub(crate) fn field<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    (!found.is_null()).then_some(found)
}

/// The text of a field; empty if absent.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    field(value, path).and_then(Value::as_str).unwrap_or_default()
}

/// The elements of a list.
pub(crate) fn each<'a>(
    value: &'a Value,
    path: &[&str],
) -> impl Iterator<Item = &'a Value> + use<'a> {
    field(value, path).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn is_true(value: &Value, path: &[&str]) -> bool {
    field(value, path).and_then(Value::as_bool) == Some(true)
}

impl<'a> Pod<'a> {
    pub(crate) const fn new(metadata: Option<&'a Map<String, Value>>, spec: &'a Value) -> Self {
        Self { metadata, spec }
    }

    /// Init containers, containers and ephemeral containers.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| each(spec, &[list]))
    }

    pub(crate) fn annotations(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let annotations = self.metadata.and_then(|metadata| metadata.get("annotations"));
        let annotations = annotations.and_then(Value::as_object).into_iter().flatten();
        annotations.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&'a str> {
        self.annotations().find(|(other, _)| *other == key).map(|(_, value)| value)
    }

    pub(crate) fn is_windows(&self) -> bool {
        text(self.spec, &["os", "name"]) == "windows"
    }

    /// Whether the pod has a user namespace of its own (`hostUsers: false`), which relaxes some rules.
    pub(crate) fn has_user_namespace(&self) -> bool {
        field(self.spec, &["hostUsers"]).and_then(Value::as_bool) == Some(false)
    }

    /// A field of the pod's security context.
    pub(crate) fn setting(&self, path: &[&str]) -> Option<&'a Value> {
        setting(self.spec, path)
    }
}

/// A field of the security context of a container or a pod.
pub(crate) fn setting<'a>(holder: &'a Value, path: &[&str]) -> Option<&'a Value> {
    field(field(holder, &["securityContext"])?, path)
}

pub(crate) fn name(container: &Value) -> &str {
    text(container, &["name"])
}

/// The holders of security contexts that violate a rule: the pod itself, containers.
#[derive(Default)]
pub(crate) struct Violators<'a> {
    pub(crate) pod: bool,
    pub(crate) containers: Vec<&'a str>,
}

impl<'a> Violators<'a> {
    /// Checks the security context of the pod and of each container.
    pub(crate) fn find(pod: &Pod<'a>, mut violates: impl FnMut(&'a Value) -> bool) -> Self {
        Self {
            pod: violates(pod.spec),
            containers: pod
                .containers()
                .filter(|container| violates(container))
                .map(name)
                .collect(),
        }
    }

    /// `pod and containers "a", "b"`; none without violators.
    pub(crate) fn describe(&self) -> Option<String> {
        let containers = (!self.containers.is_empty()).then(|| containers(&self.containers));
        let pod = self.pod.then(|| "pod".to_owned());
        let parts: Vec<String> = pod.into_iter().chain(containers).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// The singular for one, the plural for another number.
pub(crate) const fn plural<'w>(singular: &'w str, plural: &'w str, count: usize) -> &'w str {
    if count == 1 { singular } else { plural }
}

/// `container "a"`, `containers "a", "b"`.
pub(crate) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quote_all(names))
}

/// Texts in quotation marks, without escaping.
pub(crate) fn quote_all<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> =
        texts.into_iter().map(|text| format!("\"{}\"", text.as_ref())).collect();
    texts.join(", ")
}

/// The values that violate a rule, without repetitions, in order.
pub(crate) type Values<'a> = BTreeSet<&'a str>;
