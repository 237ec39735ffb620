//! A pod as the rules look at it, and words that they share.

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A pod, or a template of pods.
pub(crate) struct Pod<'a> {
    metadata: Option<&'a Map<String, Value>>,
    pub(crate) spec: &'a Value,
}

/// A field that is there and not null.
pub(crate) fn field<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let found = path.iter().try_fold(value, |value, key| value.get(key))?;
    (!found.is_null()).then_some(found)
}

/// A text; empty without one.
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

    /// All containers: those that start first, those that run, those that were added.
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
        self.annotations().find(|(one, _)| *one == key).map(|(_, value)| value)
    }

    pub(crate) fn is_of_windows(&self) -> bool {
        text(self.spec, &["os", "name"]) == "windows"
    }

    /// Whether users in the pod are others than on the node: some rules do not matter then.
    pub(crate) fn has_own_users(&self) -> bool {
        field(self.spec, &["hostUsers"]).and_then(Value::as_bool) == Some(false)
    }

    /// A part of the security settings of the pod itself.
    pub(crate) fn setting(&self, path: &[&str]) -> Option<&'a Value> {
        setting(self.spec, path)
    }
}

/// A part of the security settings of a container, or of a pod.
pub(crate) fn setting<'a>(of: &'a Value, path: &[&str]) -> Option<&'a Value> {
    field(field(of, &["securityContext"])?, path)
}

pub(crate) fn name(container: &Value) -> &str {
    text(container, &["name"])
}

/// Who breaks a rule: the pod itself, containers.
#[derive(Default)]
pub(crate) struct Breakers<'a> {
    pub(crate) pod: bool,
    pub(crate) containers: Vec<&'a str>,
}

impl<'a> Breakers<'a> {
    /// Holds the pod's own settings and those of every container against a rule.
    pub(crate) fn find(pod: &Pod<'a>, mut breaks: impl FnMut(&'a Value) -> bool) -> Self {
        let itself = breaks(pod.spec);
        let containers = pod.containers().filter(|one| breaks(one)).map(name).collect();
        Self { pod: itself, containers }
    }

    /// `pod and containers "a", "b"`; none if nobody breaks the rule.
    pub(crate) fn shown(&self) -> Option<String> {
        let containers = (!self.containers.is_empty()).then(|| containers(&self.containers));
        let pod = self.pod.then(|| "pod".to_owned());
        let parts: Vec<String> = pod.into_iter().chain(containers).collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }
}

/// One word for one, another for several.
pub(crate) const fn plural<'w>(one: &'w str, several: &'w str, count: usize) -> &'w str {
    if count == 1 { one } else { several }
}

/// `container "a"`, `containers "a", "b"`.
pub(crate) fn containers(names: &[&str]) -> String {
    format!("{} {}", plural("container", "containers", names.len()), quoted(names))
}

/// Texts between quotation marks; what is in them stays as it is.
pub(crate) fn quoted<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> =
        texts.into_iter().map(|text| format!("\"{}\"", text.as_ref())).collect();
    texts.join(", ")
}

/// The values that break a rule, each once, in order.
pub(crate) type Values<'a> = BTreeSet<&'a str>;
