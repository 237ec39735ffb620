//! core/v1 Events: what a controller tells people about an object.
//!
//! Recording never fails and never waits for the API: events go through a bounded channel to one
//! task, and what does not fit is dropped and said in the log; what comes after the stop is dropped
//! without a word. An event that repeats raises
//! `count` on the one that is there, as `kubectl describe` shows it ("x5 over 3m").

use crate::{Cluster, Error, Patch, Result};
use mainstay_clock::Clock;
use mainstay_object::{Object, fnv, known};
use rustc_hash::FxHashMap;
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many events may wait to be written.
const WAITING: usize = 1024;
/// How many distinct events are remembered to be counted up; beyond it the memory starts afresh.
const REMEMBERED: usize = 4096;

/// Whether an event is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// As expected.
    Normal,
    /// Somebody may have to act.
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

/// Writes events of one component. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    sender: mpsc::Sender<Note>,
    component: Arc<str>,
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
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Note {
    regarding: Regarding,
    kind: EventType,
    reason: String,
    message: String,
    component: Arc<str>,
}

impl Recorder {
    /// Starts the task that writes, until the token is cancelled. `component` is who reports.
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
        Self { sender, component: component.into(), stop: stopped }
    }

    /// The same, for a part that signs its events with another name.
    #[must_use]
    pub fn signed(&self, component: &str) -> Self {
        Self { component: component.into(), ..self.clone() }
    }

    /// Records an event about an object, which needs `apiVersion`, `kind` and `metadata`.
    pub fn publish(
        &self,
        about: &Object,
        kind: EventType,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        let note = Note {
            regarding: Regarding {
                api_version: about.api_version().to_owned(),
                kind: about.kind().to_owned(),
                namespace: about.namespace().to_owned(),
                name: about.name().to_owned(),
                uid: about.uid().to_owned(),
            },
            kind,
            reason: reason.into(),
            message: message.into(),
            component: Arc::clone(&self.component),
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
            // The namespace is going away and its events with it.
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
            let patch = Patch::Merge(json!({"count": count, "lastTimestamp": now}));
            match self.cluster.patch(&known::EVENT, Some(namespace), name, &patch).await {
                Ok(_) => return Ok((name.clone(), count)),
                // Expired or deleted: begin again.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        // Two events of one instant (a paused clock) differ in what they say.
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
        let mut event = Object::new(&known::EVENT.gvk(), &name);
        event.set(&["metadata", "namespace"], namespace.into());
        event.set(&["involvedObject"], reference);
        event.set(&["type"], note.kind.as_str().into());
        event.set(&["reason"], note.reason.clone().into());
        event.set(&["message"], note.message.clone().into());
        event.set(&["source"], json!({"component": &*note.component}));
        event.set(&["reportingComponent"], (*note.component).into());
        event.set(&["firstTimestamp"], now.clone().into());
        event.set(&["lastTimestamp"], now.into());
        event.set(&["count"], 1.into());
        self.cluster.create(&known::EVENT, &event).await?;
        Ok((name, 1))
    }
}
