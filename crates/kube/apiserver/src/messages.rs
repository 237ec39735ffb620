//! Protobuf messages of stored objects, kept while somebody asks for them.
//!
//! Clients written in Go list and watch built-in kinds in protobuf, each controller of a cluster the
//! same objects. An object is encoded for the first of them. What nobody asks for any more is
//! forgotten after a while: messages live in two generations, the younger of which becomes the older
//! one when it is full or old; what is asked for again is young again.

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
const YOUNG: Duration = Duration::from_secs(10);
/// What a message costs besides its bytes.
const OVERHEAD: usize = 64;

/// The messages of objects by the revision of their last change, which no other object has.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    generations: Mutex<Generations>,
    /// The event that was last told to a watch: the next watches are told the same.
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
    /// Bytes of the young ones.
    size: usize,
    /// Whether a task forgets.
    is_aging: bool,
}

impl Messages {
    /// The message of a stored object; none if it does not have the form of its kind.
    pub(crate) fn of(
        self: &Arc<Self>,
        row: &KindRow,
        kind: &MessageKind<Arc<str>>,
        stored: &Stored,
    ) -> Option<Bytes> {
        if !forms::is_identity(row) || row.custom().is_some() {
            return kind.message(&forms::bytes(row, stored));
        }
        if let Some(known) = self.generations.lock().get(stored.revision) {
            return Some(known);
        }
        let message = kind.message(&stored.bytes())?;
        // One that would take the place of many others is made again.
        if message.len() < GENERATION / 16 {
            self.keep(stored.revision, message.clone());
        }
        Some(message)
    }

    /// An event of a watch as it happened; none if the object does not have the form of its kind.
    pub(crate) fn event(
        self: &Arc<Self>,
        row: &KindRow,
        kind: &MessageKind<Arc<str>>,
        event: &Event,
    ) -> Option<Bytes> {
        let encode = || Some(kind.event(event.kind.as_str(), &self.of(row, kind, &event.object)?));
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

    fn keep(self: &Arc<Self>, revision: u64, message: Bytes) {
        let mut generations = self.generations.lock();
        generations.put(revision, message);
        if std::mem::replace(&mut generations.is_aging, true) {
            return;
        }
        drop(generations);
        tokio::spawn(age(Arc::downgrade(self)));
    }
}

/// Forgets what is old, until nothing is left.
async fn age(messages: Weak<Messages>) {
    loop {
        tokio::time::sleep(YOUNG).await;
        let Some(messages) = messages.upgrade() else { return };
        let mut generations = messages.generations.lock();
        generations.turn();
        if generations.young.is_empty() && generations.old.is_empty() {
            generations.is_aging = false;
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
            self.turn();
        }
        if self.young.insert(revision, message).is_none() {
            self.size += size;
        }
    }

    fn turn(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.size = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() {
        let mut generations = Generations::default();
        generations.put(1, Bytes::from_static(b"a"));
        generations.put(2, Bytes::from_static(b"b"));
        generations.turn();
        assert_eq!(generations.get(1).unwrap(), "a");
        generations.turn();
        assert_eq!((generations.get(1).as_deref(), generations.get(2)), (Some(&b"a"[..]), None));
    }

    #[test]
    fn two_generations_hold_no_more_than_their_bytes() {
        let mut generations = Generations::default();
        let message = Bytes::from(vec![0; 1 << 20]);
        for revision in 0..100 {
            generations.put(revision, message.clone());
            let kept = generations.young.len() + generations.old.len();
            assert!(kept <= 2 * GENERATION / message.len(), "{kept}");
        }
        assert_eq!(generations.get(99), Some(message));
    }
}
