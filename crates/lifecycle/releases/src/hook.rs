//! Hooks: objects that Helm runs at a point of an operation, by their annotation `helm.sh/hook`.

use crate::chart::absent_if_null;
use crate::release::{text_unless_empty, texts_unless_empty, time, time_text};
use jiff::Timestamp;
use mainstay_gocompat::json::JsonWriter;
use serde::Deserialize;
use serde_json::Value;

/// The events that Helm knows; `test-success` is an old name of `test`.
const EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];

/// An object that is a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ReleaseHook {
    /// The name of the object.
    #[serde(deserialize_with = "absent_if_null")]
    pub name: String,
    /// Its kind.
    #[serde(deserialize_with = "absent_if_null")]
    pub kind: String,
    /// The template that it comes from.
    #[serde(deserialize_with = "absent_if_null")]
    pub path: String,
    /// The object as rendered. Post-renderers do not see hooks, so it has no owner reference.
    #[serde(deserialize_with = "absent_if_null")]
    pub manifest: String,
    /// The events at which it runs.
    #[serde(deserialize_with = "absent_if_null")]
    pub events: Vec<String>,
    /// Its last run.
    #[serde(deserialize_with = "absent_if_null")]
    pub last_run: HookExecution,
    /// Its place among the hooks of an event.
    #[serde(deserialize_with = "absent_if_null")]
    pub weight: i64,
    /// When the object is deleted.
    #[serde(deserialize_with = "absent_if_null")]
    pub delete_policies: Vec<String>,
    /// When the logs of its Pods are shown.
    #[serde(deserialize_with = "absent_if_null")]
    pub output_log_policies: Vec<String>,
}

/// A run of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HookExecution {
    /// When it started.
    #[serde(deserialize_with = "time")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(deserialize_with = "time")]
    pub completed_at: Option<Timestamp>,
    /// `Running`, `Succeeded`, `Failed`, `Unknown`; empty before the first run.
    #[serde(deserialize_with = "absent_if_null")]
    pub phase: String,
}

/// Where a rendered object goes, by its annotations.
#[derive(Debug)]
pub(crate) enum RenderedTarget {
    /// An object of the manifest.
    Manifest,
    /// A hook.
    Hook(Box<ReleaseHook>),
    /// An object with an unknown event: Helm drops it.
    Dropped,
}

/// Reads the hook annotations of an object. `json` is the object as rendered, `path` its template.
pub(crate) fn classify(object: &Value, json: &str, path: &str) -> RenderedTarget {
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str();
    let words = |name: &str| -> Vec<String> {
        let list = annotation(name).into_iter().flat_map(|list| list.split(','));
        list.map(|word| word.trim().to_lowercase()).collect()
    };
    if annotation("helm.sh/hook").is_none() {
        return RenderedTarget::Manifest;
    }
    let mut events = words("helm.sh/hook");
    if events.iter().any(|event| !EVENTS.contains(&event.as_str())) {
        return RenderedTarget::Dropped;
    }
    for event in &mut events {
        if event == "test-success" {
            "test".clone_into(event);
        }
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    RenderedTarget::Hook(Box::new(ReleaseHook {
        name: text(&object["metadata"]["name"]),
        kind: text(&object["kind"]),
        path: path.to_owned(),
        manifest: json.to_owned(),
        events,
        last_run: HookExecution::default(),
        weight: annotation("helm.sh/hook-weight")
            .and_then(|weight| weight.parse().ok())
            .unwrap_or_default(),
        delete_policies: words("helm.sh/hook-delete-policy"),
        output_log_policies: words("helm.sh/hook-output-log-policy"),
    }))
}

impl ReleaseHook {
    pub(crate) fn write(&self, writer: &mut JsonWriter<'_>) {
        writer.open('{');
        text_unless_empty(writer, "name", &self.name);
        text_unless_empty(writer, "kind", &self.kind);
        text_unless_empty(writer, "path", &self.path);
        text_unless_empty(writer, "manifest", &self.manifest);
        texts_unless_empty(writer, "events", &self.events);
        writer.key("last_run");
        writer.open('{');
        writer.key("started_at");
        writer.text(&time_text(self.last_run.started_at));
        writer.key("completed_at");
        writer.text(&time_text(self.last_run.completed_at));
        writer.key("phase");
        writer.text(&self.last_run.phase);
        writer.close('}');
        if self.weight != 0 {
            writer.key("weight");
            writer.raw(&self.weight.to_string());
        }
        texts_unless_empty(writer, "delete_policies", &self.delete_policies);
        texts_unless_empty(writer, "output_log_policies", &self.output_log_policies);
        writer.close('}');
    }
}
