//! Cache of protobuf messages of stored objects.
//!
//! Clients written in Go list and watch built-in kinds in protobuf, and the controllers of a cluster
//! read the same objects. An object is encoded for the first of them. The cache has two generations:
//! the young one becomes the old one when it is full or old, and the previous old one is dropped. A
//! message that is read again moves to the young generation.

use bytes::Bytes;
use mainstay_conversion::forms;
use mainstay_http::messages::MessageKind;
use mainstay_kinds::KindRow;
use mainstay_store::{Event, Stored};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes of a generation: enough for ten thousand objects of the usual size.
const GENERATION: usize = 16 << 20;
/// How long a generation stays young.
const ROTATION: Duration = Duration::from_secs(10);
/// Bytes that a message costs besides its content.
const OVERHEAD: usize = 64;

/// Messages by the revision of the last change of their object; no two objects share a revision.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    generations: Mutex<Generations>,
    /// The event that a watch encoded last; the next watches send the same frame.
    last_event: Mutex<Option<LastEvent>>,
}

#[derive(Debug)]
struct LastEvent {
    revision: u64,
    frame: Bytes,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u64, Bytes>,
    old: HashMap<u64, Bytes>,
    /// Bytes of the young generation.
    size: usize,
    /// Whether a task drops old generations.
    has_cleanup: bool,
}

impl Messages {
    /// The message of a stored object; none if the object does not conform to its kind.
    pub(crate) fn message_of(
        self: &Arc<Self>,
        row: &KindRow,
        kind: &MessageKind<Arc<str>>,
        stored: &Stored,
    ) -> Option<Bytes> {
        if !forms::is_identity(row) || row.custom().is_some() {
            return kind.message(&forms::bytes(row, stored));
        }
        if let Some(cached) = self.generations.lock().get(stored.revision) {
            return Some(cached);
        }
        let message = kind.message(&stored.bytes())?;
        // A message that would displace many others is not cached.
        if message.len() < GENERATION / 16 {
            self.insert(stored.revision, message.clone());
        }
        Some(message)
    }

    /// The frame of a watch event; none if the object does not conform to its kind.
    pub(crate) fn event_frame(
        self: &Arc<Self>,
        row: &KindRow,
        kind: &MessageKind<Arc<str>>,
        event: &Event,
    ) -> Option<Bytes> {
        let encode =
            || Some(kind.event(event.kind.as_str(), &self.message_of(row, kind, &event.object)?));
        if !forms::is_identity(row) || row.custom().is_some() {
            return encode();
        }
        if let Some(last) = &*self.last_event.lock()
            && last.revision == event.revision
        {
            return Some(last.frame.clone());
        }
        let frame = encode()?;
        let last = LastEvent { revision: event.revision, frame: frame.clone() };
        *self.last_event.lock() = Some(last);
        Some(frame)
    }

    fn insert(self: &Arc<Self>, revision: u64, message: Bytes) {
        let mut generations = self.generations.lock();
        generations.put(revision, message);
        if std::mem::replace(&mut generations.has_cleanup, true) {
            return;
        }
        drop(generations);
        tokio::spawn(drop_old_generations(Arc::downgrade(self)));
    }
}

/// Drops old generations until the cache is empty.
async fn drop_old_generations(messages: Weak<Messages>) {
    loop {
        tokio::time::sleep(ROTATION).await;
        let Some(messages) = messages.upgrade() else { return };
        let mut generations = messages.generations.lock();
        generations.rotate();
        if generations.young.is_empty() && generations.old.is_empty() {
            generations.has_cleanup = false;
            *messages.last_event.lock() = None;
            return;
        }
    }
}

impl Generations {
    fn get(&mut self, revision: u64) -> Option<Bytes> {
        if let Some(message) = self.young.get(&revision) {
            return Some(message.clone());
        }
        let message = self.old.remove(&revision)?;
        self.put(revision, message.clone());
        Some(message)
    }

    fn put(&mut self, revision: u64, message: Bytes) {
        let size = message.len() + OVERHEAD;
        if self.size + size > GENERATION {
            self.rotate();
        }
        if self.young.insert(revision, message).is_none() {
            self.size += size;
        }
    }

    fn rotate(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.size = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_survives_two_rotations_only_if_it_is_read() {
        let mut generations = Generations::default();
        generations.put(1, Bytes::from_static(b"a"));
        generations.put(2, Bytes::from_static(b"b"));
        generations.rotate();
        assert_eq!(generations.get(1).unwrap(), "a");
        generations.rotate();
        assert_eq!((generations.get(1).as_deref(), generations.get(2)), (Some(&b"a"[..]), None));
    }

    #[test]
    fn two_generations_hold_no_more_than_their_limit() {
        let mut generations = Generations::default();
        let message = Bytes::from(vec![0; 1 << 20]);
        for revision in 0..100 {
            generations.put(revision, message.clone());
            let count = generations.young.len() + generations.old.len();
            assert!(count <= 2 * GENERATION / message.len(), "{count}");
        }
        assert_eq!(generations.get(99), Some(message));
    }
}
