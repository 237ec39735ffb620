//! Event recorder: Events of `core/v1` and `events.k8s.io/v1` about objects.
//!
//! Recording never fails and never waits for the API. Events go through a bounded channel to one
//! task; if the channel is full they are dropped with a log message, after shutdown without one. A
//! repeated event increments `count` of the existing one, as `kubectl describe` shows it ("x5 over
//! 3m").
//!
//! An event with an action ([`Recorder::publish_action`]) has the form of `events.k8s.io/v1`: a
//! time with microseconds, a reporting instance, and a `series` when it repeats.

use crate::{Cluster, Error, Patch, Result};
use mainstay_clock::Clock;
use mainstay_object::{Object, builtin, fnv};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The capacity of the channel: a few events for each object of a rollout of a thousand Pods.
const WAITING: usize = 8192;
/// The number of distinct events that are remembered for counting; beyond it the memory starts
/// afresh.
const REMEMBERED: usize = 4096;

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// An expected event.
    Normal,
    /// A person may have to act.
    Warning,
}

impl EventType {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Records events of one component. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    sender: mpsc::Sender<Note>,
    component: Arc<str>,
    host: Arc<str>,
    stop: CancellationToken,
}

/// The object that an event is about (`v1.ObjectReference`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Regarding {
    api_version: String,
    kind: String,
    namespace: String,
    name: String,
    uid: String,
    /// The field path, such as `spec.containers{main}`; empty for the whole object.
    field: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Note {
    regarding: Regarding,
    kind: EventType,
    reason: String,
    message: String,
    component: Arc<str>,
    /// The reporting node, if any.
    host: Arc<str>,
    /// The action, for events of the newer form.
    action: Option<&'static str>,
}

impl Recorder {
    /// Starts the writing task, until the token is cancelled. `component` is the reporting
    /// component.
    pub fn start(
        cluster: &Cluster,
        component: &str,
        clock: Clock,
        stop: CancellationToken,
    ) -> Self {
        let (sender, mut notes) = mpsc::channel(WAITING);
        let mut writer = Writer { cluster: cluster.clone(), clock, written: FxHashMap::default() };
        let stopped = stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(async {
                while let Some(note) = notes.recv().await {
                    writer.write(note).await;
                }
            })
            .await;
        });
        Self { sender, component: component.into(), host: Arc::default(), stop: stopped }
    }

    /// The same recorder with another component name.
    #[must_use]
    pub fn signed(&self, component: &str) -> Self {
        Self { component: component.into(), ..self.clone() }
    }

    /// The same recorder for events on a node.
    #[must_use]
    pub fn on(&self, host: &str) -> Self {
        Self { host: host.into(), ..self.clone() }
    }

    /// Records an event about an object, which needs `apiVersion`, `kind` and `metadata`.
    pub fn publish(
        &self,
        about: &Object,
        kind: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.send(about, "", kind, None, reason.into(), message.into());
    }

    /// Records an event about a part of an object, such as `spec.containers{main}`.
    pub fn publish_part(
        &self,
        about: &Object,
        field: &str,
        kind: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.send(about, field, kind, None, reason.into(), message.into());
    }

    /// Records an event with an action, as `events.k8s.io/v1` requires: `Binding`.
    pub fn publish_action(
        &self,
        about: &Object,
        kind: EventType,
        action: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.send(about, "", kind, Some(action), reason.into(), message.into());
    }

    fn send(
        &self,
        about: &Object,
        field: &str,
        kind: EventType,
        action: Option<&'static str>,
        reason: String,
        message: String,
    ) {
        let note = Note {
            regarding: Regarding {
                api_version: about.api_version().to_owned(),
                kind: about.kind().to_owned(),
                namespace: about.namespace().to_owned(),
                name: about.name().to_owned(),
                uid: about.uid().to_owned(),
                field: field.to_owned(),
            },
            kind,
            reason,
            message,
            component: Arc::clone(&self.component),
            host: Arc::clone(&self.host),
            action,
        };
        if let Err(error) = self.sender.try_send(note)
            && !self.stop.is_cancelled()
        {
            tracing::warn!(component = %self.component, %error, "an event was not recorded");
        }
    }
}

struct Writer {
    cluster: Cluster,
    clock: Clock,
    written: FxHashMap<Note, (String, i64)>,
}

impl Writer {
    async fn write(&mut self, note: Note) {
        match self.record(&note).await {
            Ok(entry) => {
                if self.written.len() >= REMEMBERED {
                    self.written.clear();
                }
                self.written.insert(note, entry);
            }
            // The namespace is being deleted together with its events.
            Err(error) if error.is_forbidden() || error.is_not_found() => {}
            Err(error) => {
                tracing::warn!(
                    component = %note.component,
                    reason = note.reason,
                    error = &error as &dyn std::error::Error,
                    "cannot record an event"
                );
            }
        }
    }

    async fn record(&self, note: &Note) -> Result<(String, i64), Error> {
        let about = &note.regarding;
        // Events about cluster-scoped objects live in `default`.
        let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
        let now = self.clock.now_rfc3339();
        if let Some((name, count)) = self.written.get(note) {
            let count = count + 1;
            let patch = Patch::Merge(match note.action {
                Some(_) => {
                    json!({"series": {"count": count, "lastObservedTime": self.clock.now_micro()}})
                }
                None => json!({"count": count, "lastTimestamp": now}),
            });
            match self.cluster.patch(&builtin::EVENT, Some(namespace), name, &patch).await {
                Ok(_) => return Ok((name.clone(), count)),
                // The event expired or was deleted: start a new one.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        // Two events at one instant (of a paused clock) differ in their texts.
        let words =
            fnv::fnv64a(format!("{}/{}/{}", about.uid, note.reason, note.message).as_bytes());
        let instant = self.clock.now().as_nanosecond().to_le_bytes();
        let name = format!("{}.{:016x}", about.name, fnv::fnv64a(&instant) ^ words);
        let mut reference = json!({
            "apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid,
        });
        if !about.namespace.is_empty() {
            reference["namespace"] = about.namespace.clone().into();
        }
        if !about.field.is_empty() {
            reference["fieldPath"] = about.field.clone().into();
        }
        let mut event = Object::new(&builtin::EVENT.gvk(), &name);
        event.set(&["metadata", "namespace"], namespace.into());
        event.set(&["involvedObject"], reference);
        event.set(&["type"], note.kind.as_str().into());
        event.set(&["reason"], note.reason.clone().into());
        event.set(&["message"], note.message.clone().into());
        event.set(&["reportingComponent"], (*note.component).into());
        if let Some(action) = note.action {
            event.set(&["action"], action.into());
            event.set(&["eventTime"], self.clock.now_micro().into());
            event.set(&["reportingInstance"], format!("{}-mainstay", note.component).into());
        } else {
            let mut source = json!({"component": &*note.component});
            if !note.host.is_empty() {
                source["host"] = (*note.host).into();
                event.set(&["reportingInstance"], (*note.host).into());
            }
            event.set(&["source"], source);
            event.set(&["firstTimestamp"], now.clone().into());
            event.set(&["lastTimestamp"], now.into());
            event.set(&["count"], 1.into());
        }
        self.cluster.create(&builtin::EVENT, &event).await?;
        Ok((name, 1))
    }
}
