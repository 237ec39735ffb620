//! Events: changes of objects as watchers receive them.

use crate::Stored;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// The kind of a change, by its watch name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// The object was created.
    Added,
    /// The object was changed.
    Modified,
    /// The object was deleted.
    Deleted,
}

impl EventKind {
    /// The `type` of a watch event: `ADDED`, `MODIFIED` or `DELETED`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One change of one object. Immutable and shared by all watchers.
#[derive(Debug)]
pub struct Event {
    /// The kind of the change.
    pub kind: EventKind,
    /// The object after the change; for a deletion its last state, at the revision of the deletion.
    pub object: Arc<Stored>,
    /// The object before the change, at its own revision; none for a creation.
    pub previous: Option<Arc<Stored>>,
    /// The revision of the change. Every change has its own.
    pub revision: u64,
    /// See [`Event::cost`].
    cost: usize,
    frame: OnceLock<Bytes>,
}

impl Event {
    pub(crate) fn new(
        kind: EventKind,
        object: Arc<Stored>,
        previous: Option<Arc<Stored>>,
    ) -> Arc<Self> {
        let revision = object.revision;
        let text = &object.text;
        let cost = text.weight() + if text.is_whole() { text.len() } else { 0 } + 256;
        Arc::new(Self { kind, object, previous, revision, cost, frame: OnceLock::new() })
    }

    /// The same event with the objects in another API version.
    pub fn of_objects(&self, object: Arc<Stored>, previous: Option<Arc<Stored>>) -> Arc<Self> {
        let Self { kind, revision, cost, .. } = *self;
        Arc::new(Self { kind, object, previous, revision, cost, frame: OnceLock::new() })
    }

    /// The event as a watch sends it in the stored form: one line of JSON with its newline.
    ///
    /// The first watcher encodes the line and all others share it. For an object with shared long
    /// values the line is not kept, as it would hold those values a second time.
    pub fn frame(&self) -> Bytes {
        let object = &self.object;
        if object.text.is_whole() {
            return self
                .frame
                .get_or_init(|| watch_frame(self.kind.as_str(), object.start()))
                .clone();
        }
        let mut line = Vec::with_capacity(object.size() + 64);
        line.extend_from_slice(br#"{"type":""#);
        line.extend_from_slice(self.kind.as_str().as_bytes());
        line.extend_from_slice(br#"","object":"#);
        object.write(&mut line);
        line.extend_from_slice(b"}\n");
        line.into()
    }

    /// The memory that the event may hold in bytes: the object, and its line if that is kept. A
    /// value that other objects share counts in part.
    pub(crate) const fn cost(&self) -> usize {
        self.cost
    }
}

/// A line of a watch: `{"type":…,"object":…}` and a newline, around an encoded object.
pub fn watch_frame(kind: &str, object: &[u8]) -> Bytes {
    let parts: [&[u8]; 5] = [br#"{"type":""#, kind.as_bytes(), br#"","object":"#, object, b"}\n"];
    Bytes::from(parts.concat())
}
