//! Watches: the changes of one resource.

use crate::index::{Shared, Topic};
use crate::{Event, Expired};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// Why a watch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// The watcher was too slow: events that it has not read are no longer kept. List again.
    #[error(transparent)]
    Expired(#[from] Expired),
    /// The store is closed; there will be no more events.
    #[error("the store is closed")]
    Closed,
}

/// A cursor into the events of one resource, without a buffer: a thousand watches of one resource
/// read the same events in place. A watch ends when the store is closed or its last handle is
/// dropped.
pub struct WatchCursor {
    shared: Arc<Shared>,
    topic: Arc<Topic>,
    wakeup: watch::Receiver<()>,
    /// The sequence number of the next event to read.
    cursor: u64,
    /// Every event up to this revision was delivered, or precedes the start.
    position: u64,
}

impl WatchCursor {
    /// A watch of the changes after `from`.
    pub(crate) fn start(shared: &Arc<Shared>, resource: &str, from: u64) -> Result<Self, Expired> {
        let topic = shared.topic(resource);
        let wakeup = topic.listen();
        let ring = topic.ring.lock();
        let Some(cursor) = ring.cursor_after(from) else {
            return Err(Expired { requested: from, oldest: ring.complete_after() });
        };
        drop(ring);
        Ok(Self { shared: Arc::clone(shared), topic, wakeup, cursor, position: from })
    }

    /// The next event, in order of revisions; waits for it. Safe to drop while waiting.
    pub async fn next(&mut self) -> Result<Arc<Event>, WatchError> {
        self.ready().await?;
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            self.ready().await?;
        }
    }

    /// At least one and at most `limit` next events; waits for the first. Safe to drop while
    /// waiting.
    pub async fn next_batch(&mut self, limit: usize) -> Result<Vec<Arc<Event>>, WatchError> {
        let mut events = vec![self.next().await?];
        while events.len() < limit {
            // An expiry after a first event is reported by the next call.
            match self.try_next() {
                Ok(Some(event)) => events.push(event),
                Ok(None) | Err(_) => break,
            }
        }
        Ok(events)
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, Expired> {
        let ring = self.topic.ring.lock();
        loop {
            let Ok(found) = ring.at(self.cursor) else {
                return Err(Expired { requested: self.position, oldest: ring.complete_after() });
            };
            let Some(event) = found else { return Ok(None) };
            self.cursor += 1;
            // Only a watch from a future revision skips events.
            if event.revision > self.position {
                self.position = event.revision;
                return Ok(Some(Arc::clone(event)));
            }
        }
    }

    /// A revision up to which this watch has delivered everything: the value for a bookmark.
    ///
    /// Without pending events it is the store's revision, which other resources advance.
    pub fn position(&mut self) -> u64 {
        // The writer publishes under this lock, so revision and ring belong together.
        let index = self.shared.index.read();
        if self.topic.ring.lock().end() == self.cursor {
            self.position = self.position.max(index.revision);
        }
        self.position
    }

    /// Waits for an event, an expiry or the end.
    async fn ready(&mut self) -> Result<(), WatchError> {
        loop {
            // Marked as seen before the check: a signal after the check ends the wait.
            self.wakeup.borrow_and_update();
            if self.topic.ring.lock().end() > self.cursor {
                return Ok(());
            }
            if self.shared.is_closed() || self.wakeup.changed().await.is_err() {
                return Err(WatchError::Closed);
            }
        }
    }
}

impl fmt::Debug for WatchCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "watch of {} after {}", self.topic.resource, self.position)
    }
}
