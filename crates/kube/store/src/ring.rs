//! The event ring: the recent events of one resource.
//!
//! One ring serves any number of watchers: each has a cursor, none has a buffer. Count, age and
//! size bound the ring, never the slowest watcher. The owner of a cursor that falls off the tail
//! gets an error and lists again.

use crate::{Event, History};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Events in order of their revisions, each with a sequence number that is never reused.
pub(crate) struct Ring {
    events: VecDeque<RingEntry>,
    /// The sequence number of the oldest kept event.
    first: u64,
    /// The sum of the events' costs in bytes.
    bytes: usize,
    /// Every event with a greater revision is kept.
    complete_after: u64,
}

struct RingEntry {
    event: Arc<Event>,
    /// The time of its publication on the store's clock.
    at: Duration,
}

impl Ring {
    /// A ring that is complete after a revision.
    pub(crate) const fn new(complete_after: u64) -> Self {
        Self { events: VecDeque::new(), first: 0, bytes: 0, complete_after }
    }

    pub(crate) fn push(&mut self, event: Arc<Event>, at: Duration, limits: &History) {
        self.bytes += event.cost();
        self.events.push_back(RingEntry { event, at });
        self.trim(at, limits);
    }

    /// Drops events beyond the limits; the newest event always stays.
    pub(crate) fn trim(&mut self, now: Duration, limits: &History) {
        while self.events.len() > 1 {
            let Some(oldest) = self.events.front() else { break };
            let exceeds_limits =
                self.events.len() > limits.max_events || self.bytes > limits.max_bytes;
            let aged = now.saturating_sub(oldest.at) > limits.window
                && (self.events.len() > limits.min_events || self.bytes > limits.idle_bytes);
            if !exceeds_limits && !aged {
                break;
            }
            self.bytes -= oldest.event.cost();
            self.complete_after = oldest.event.revision;
            self.first += 1;
            self.events.pop_front();
        }
        if self.events.capacity() > 4 * self.events.len().max(64) {
            self.events.shrink_to(2 * self.events.len());
        }
    }

    /// Whether [`Ring::trim`] may have to drop events later, without a new one.
    pub(crate) fn is_above_floor(&self, limits: &History) -> bool {
        self.events.len() > 1
            && (self.events.len() > limits.min_events || self.bytes > limits.idle_bytes)
    }

    /// One past the newest sequence number.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The cursor of a watch that has everything up to `revision`; none if later events are
    /// dropped.
    pub(crate) fn cursor_after(&self, revision: u64) -> Option<u64> {
        (revision >= self.complete_after).then(|| {
            self.first
                + self.events.partition_point(|entry| entry.event.revision <= revision) as u64
        })
    }

    /// The event at a sequence number; an error if it was dropped, none if it is still to come.
    pub(crate) fn at(&self, cursor: u64) -> Result<Option<&Arc<Event>>, EventDropped> {
        let offset = cursor.checked_sub(self.first).ok_or(EventDropped)?;
        Ok(usize::try_from(offset)
            .ok()
            .and_then(|at| self.events.get(at))
            .map(|entry| &entry.event))
    }

    /// The events after a revision, newest first; none if some of them were dropped.
    pub(crate) fn undo_to(&self, revision: u64) -> Option<Vec<Arc<Event>>> {
        (revision >= self.complete_after).then(|| {
            self.events
                .iter()
                .rev()
                .map(|entry| &entry.event)
                .take_while(|event| event.revision > revision)
                .map(Arc::clone)
                .collect()
        })
    }

    /// The oldest revision from which a watch can start.
    pub(crate) const fn complete_after(&self) -> u64 {
        self.complete_after
    }
}

/// The event at a cursor was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventDropped;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventKind, Key, Labels, Stored, Text};
    use bytes::Bytes;

    fn event(revision: u64, size: usize) -> Arc<Event> {
        let object = Stored {
            key: Key::cluster("things", "a"),
            revision,
            terminating: false,
            labels: Labels::default(),
            text: Text::whole(Bytes::from(vec![b' '; size])),
            slot: 0,
        };
        Event::new(EventKind::Added, Arc::new(object), None)
    }

    fn limits() -> History {
        History {
            min_events: 3,
            max_events: 6,
            max_bytes: 10_000,
            idle_bytes: 5_000,
            window: Duration::from_secs(75),
        }
    }

    fn fill(limits: &History, sizes: &[usize], seconds_apart: u64) -> Ring {
        let mut ring = Ring::new(1);
        for (at, size) in (0_u64..).zip(sizes) {
            ring.push(event(at + 2, *size), Duration::from_secs(at * seconds_apart), limits);
        }
        ring
    }

    #[test]
    fn young_events_stay_up_to_the_maximum_and_old_ones_down_to_the_minimum() {
        assert_eq!(fill(&limits(), &[0; 5], 1).events.len(), 5);
        assert_eq!(fill(&limits(), &[0; 9], 1).events.len(), 6);
        assert_eq!(fill(&limits(), &[0; 9], 60).events.len(), 3);
    }

    #[test]
    fn size_overrides_the_minimum_but_the_newest_event_stays() {
        assert_eq!(fill(&limits(), &[3000, 3000, 3000], 1).events.len(), 1);
        assert_eq!(fill(&limits(), &[20_000], 1).events.len(), 1);
    }

    #[test]
    fn an_idle_ring_shrinks_to_its_floor() {
        let mut ring = fill(&limits(), &[0; 6], 0);
        assert!(ring.is_above_floor(&limits()));
        ring.trim(Duration::from_secs(76), &limits());
        assert_eq!((ring.events.len(), ring.complete_after()), (3, 4));
        assert!(!ring.is_above_floor(&limits()));
    }

    #[test]
    fn a_cursor_starts_only_where_no_event_was_dropped() {
        let ring = fill(&limits(), &[0; 9], 1);
        // Revisions 2 to 10 were pushed; 2, 3 and 4 were dropped.
        assert_eq!(ring.complete_after(), 4);
        assert_eq!(ring.cursor_after(3), None);
        let cursor = ring.cursor_after(4).unwrap();
        assert_eq!(ring.at(cursor).unwrap().unwrap().revision, 5);
        assert_eq!(ring.cursor_after(10), Some(ring.end()));
        assert_eq!(ring.cursor_after(99), Some(ring.end()));
        assert!(ring.at(0).is_err());
        assert!(ring.at(ring.end()).unwrap().is_none());
        assert!(ring.undo_to(3).is_none());
        let undone: Vec<_> = ring.undo_to(8).unwrap().iter().map(|event| event.revision).collect();
        assert_eq!(undone, [10, 9]);
    }
}
