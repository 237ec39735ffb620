//! A queue of keys: no duplicates, delays, and one worker at a time for each key.

use crate::backoff::now;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Keys that wait to be reconciled. Cheap to clone; clones are the same queue.
///
/// A key that is added while it waits is there once; a key that is added while it is being worked
/// on waits until that is finished. A key has at most one delay, the shortest asked for.
pub struct Queue<K> {
    inner: Arc<Inner<K>>,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct Inner<K> {
    state: Mutex<State<K>>,
    /// Something became ready, or an earlier delay was set.
    work: Notify,
    /// The queue may have become idle.
    idle: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    /// What is in `ready`, or must go there when its worker is done.
    waiting: FxHashSet<K>,
    working: FxHashSet<K>,
    /// Delayed keys by time; the number tells keys of the same instant apart.
    delayed: BTreeMap<(Instant, u64), K>,
    delay_of: FxHashMap<K, (Instant, u64)>,
    counter: u64,
    added: u64,
}

impl<K: Clone + Eq + Hash> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue.
    pub fn new() -> Self {
        let state = State {
            ready: VecDeque::new(),
            waiting: FxHashSet::default(),
            working: FxHashSet::default(),
            delayed: BTreeMap::new(),
            delay_of: FxHashMap::default(),
            counter: 0,
            added: 0,
        };
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                work: Notify::new(),
                idle: Notify::new(),
            }),
        }
    }

    /// Adds a key to work on as soon as possible.
    pub fn add(&self, key: K) {
        let mut state = self.inner.state.lock();
        state.forget_delay(&key);
        if state.make_ready(key) {
            drop(state);
            self.inner.work.notify_one();
        }
    }

    /// Adds a key to work on after a while, unless it is due sooner anyway.
    pub fn add_after(&self, key: K, wait: Duration) {
        let now = now();
        // A wait beyond what the clock can say is a month, which is as good as forever.
        let due = now.checked_add(wait).unwrap_or(now + Duration::from_hours(720));
        let mut state = self.inner.state.lock();
        if state.waiting.contains(&key) {
            return;
        }
        if state.delay_of.get(&key).is_some_and(|(earlier, _)| *earlier <= due) {
            return;
        }
        state.forget_delay(&key);
        state.counter += 1;
        let slot = (due, state.counter);
        let is_first = state.delayed.first_key_value().is_none_or(|(first, _)| slot < *first);
        state.delay_of.insert(key.clone(), slot);
        state.delayed.insert(slot, key);
        drop(state);
        if is_first {
            self.inner.work.notify_one();
        }
    }

    /// Keys that wait, without those that are delayed or worked on.
    pub fn len(&self) -> usize {
        self.inner.state.lock().ready.len()
    }

    /// How many keys have come in so far; one that waits already is not counted again.
    pub fn added(&self) -> u64 {
        self.inner.state.lock().added
    }

    /// Whether no key waits (delayed keys do not count).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns once nothing waits and nothing is being worked on. Delayed keys do not count.
    pub async fn idle(&self) {
        loop {
            let notified = self.inner.idle.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            {
                let state = self.inner.state.lock();
                if state.ready.is_empty() && state.working.is_empty() {
                    return;
                }
            }
            notified.await;
        }
    }

    /// The next key; the caller must [`finish`](Self::finish) it. Only one task may ask.
    pub(crate) async fn next(&self) -> K {
        loop {
            let due = {
                let mut state = self.inner.state.lock();
                state.promote(now());
                if let Some(key) = state.ready.pop_front() {
                    state.waiting.remove(&key);
                    state.working.insert(key.clone());
                    return key;
                }
                state.delayed.first_key_value().map(|((due, _), _)| *due)
            };
            // `notify_one` leaves a permit, so what was added since is not missed.
            match due {
                Some(due) => {
                    tokio::select! {
                        () = self.inner.work.notified() => {}
                        () = tokio::time::sleep_until(due) => {}
                    }
                }
                None => self.inner.work.notified().await,
            }
        }
    }

    /// Says that a key's worker is done.
    pub(crate) fn finish(&self, key: &K) {
        let mut state = self.inner.state.lock();
        state.working.remove(key);
        let again = state.waiting.contains(key);
        if again {
            state.ready.push_back(key.clone());
        }
        let idle = state.ready.is_empty() && state.working.is_empty();
        drop(state);
        if again {
            self.inner.work.notify_one();
        }
        if idle {
            self.inner.idle.notify_waiters();
        }
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn forget_delay(&mut self, key: &K) {
        if let Some(slot) = self.delay_of.remove(key) {
            self.delayed.remove(&slot);
        }
    }

    /// Returns whether a worker can start on the key now.
    fn make_ready(&mut self, key: K) -> bool {
        if !self.waiting.insert(key.clone()) {
            return false;
        }
        self.added += 1;
        if self.working.contains(&key) {
            return false;
        }
        self.ready.push_back(key);
        true
    }

    fn promote(&mut self, now: Instant) {
        while let Some(entry) = self.delayed.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let key = entry.remove();
            self.delay_of.remove(&key);
            self.make_ready(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(queue: &Queue<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(Duration::from_millis(1), queue.next()).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_waits_once_and_is_never_worked_on_twice_at_a_time() {
        let queue = Queue::new();
        queue.add("a");
        queue.add("a");
        queue.add("b");
        assert_eq!(next(&queue).await, Some("a"));
        queue.add("a");
        assert_eq!(next(&queue).await, Some("b"));
        assert_eq!(next(&queue).await, None);
        queue.finish(&"a");
        assert_eq!(next(&queue).await, Some("a"));
        queue.finish(&"a");
        queue.finish(&"b");
        queue.idle().await;
        assert_eq!(next(&queue).await, None);
        assert_eq!(queue.added(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn the_shortest_delay_counts_and_an_event_cuts_it_short() {
        let queue = Queue::new();
        queue.add_after("a", Duration::from_secs(10));
        queue.add_after("a", Duration::from_secs(5));
        queue.add_after("a", Duration::from_secs(20));
        queue.add_after("b", Duration::from_secs(7));
        let start = now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.finish(&"a");
        queue.add("b");
        assert_eq!(queue.next().await, "b");
        assert_eq!(start.elapsed().as_secs(), 5);
        queue.finish(&"b");
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(next(&queue).await, None);
    }
}
