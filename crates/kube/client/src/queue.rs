//! Work queue: no duplicate keys, delays, and one worker at a time for each key.

use crate::backoff::now;
use jiff::Timestamp;
use mainstay_clock::Clock;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A work queue of keys. Cheap to clone; clones are the same queue.
///
/// A key that is added while it waits stays in the queue once. A key that is added while a worker
/// has it waits until that is finished. A key has at most one delay, the shortest requested; of a
/// wall-clock time and a delay, the earlier counts.
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
    /// A key became ready, or an earlier delay was set.
    work: Notify,
    /// The queue may have become idle.
    idle: Notify,
}

struct State<K> {
    ready: VecDeque<K>,
    /// The keys in `ready`, and those that become ready when their worker has finished.
    waiting: FxHashSet<K>,
    working: FxHashSet<K>,
    /// Delayed keys by time; the number distinguishes keys of the same instant.
    delayed: BTreeMap<(Instant, u64), K>,
    delay_of: FxHashMap<K, (Instant, u64)>,
    /// Keys that wait for a wall-clock time. The wall clock can be set, so timers do not suffice.
    timed: BTreeMap<(Timestamp, u64), K>,
    time_of: FxHashMap<K, (Timestamp, u64)>,
    /// The wall clock of `timed`.
    clock: Option<Clock>,
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
            timed: BTreeMap::new(),
            time_of: FxHashMap::default(),
            clock: None,
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

    /// Adds a key to be processed as soon as possible.
    pub fn add(&self, key: K) {
        let mut state = self.inner.state.lock();
        state.forget_delay(&key);
        if state.make_ready(key) {
            drop(state);
            self.inner.work.notify_one();
        }
    }

    /// Adds a key to be processed after a delay, unless it is due sooner.
    pub fn add_after(&self, key: K, wait: Duration) {
        let now = now();
        // A delay beyond the range of the clock becomes a month, which is as good as forever.
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

    /// Adds a key to be processed when the wall clock reads `time`, unless it is due sooner.
    pub fn add_at(&self, key: K, clock: Clock, time: Timestamp) {
        let mut state = self.inner.state.lock();
        state.clock = Some(clock);
        if state.waiting.contains(&key) {
            return;
        }
        if state.time_of.get(&key).is_some_and(|(earlier, _)| *earlier <= time) {
            return;
        }
        state.forget_time(&key);
        state.counter += 1;
        let slot = (time, state.counter);
        let is_first = state.timed.first_key_value().is_none_or(|(first, _)| slot < *first);
        state.time_of.insert(key.clone(), slot);
        state.timed.insert(slot, key);
        drop(state);
        if is_first {
            self.inner.work.notify_one();
        }
    }

    /// The number of waiting keys, without delayed ones and those in progress.
    pub fn len(&self) -> usize {
        self.inner.state.lock().ready.len()
    }

    /// The number of keys added so far; a key that was already waiting does not count.
    pub fn added(&self) -> u64 {
        self.inner.state.lock().added
    }

    /// Whether no key waits (delayed keys do not count).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns once no key waits or is in progress. Delayed keys do not count.
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

    /// The next key; the caller must [`finish`](Self::finish) it. Only one task may call this.
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
                state.next_wakeup()
            };
            // `notify_one` leaves a permit, so a key that was added since is not missed.
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

    /// Marks a key as finished by its worker.
    pub(crate) fn finish(&self, key: &K) {
        let mut state = self.inner.state.lock();
        state.working.remove(key);
        let is_waiting = state.waiting.contains(key);
        if is_waiting {
            state.ready.push_back(key.clone());
        }
        let idle = state.ready.is_empty() && state.working.is_empty();
        drop(state);
        if is_waiting {
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
        self.forget_time(key);
    }

    fn forget_time(&mut self, key: &K) {
        if let Some(slot) = self.time_of.remove(key) {
            self.timed.remove(&slot);
        }
    }

    /// When to check for due keys; none if no key is delayed.
    fn next_wakeup(&self) -> Option<Instant> {
        let delayed = self.delayed.first_key_value().map(|((due, _), _)| *due);
        let timed = self.clock.zip(self.timed.first_key_value());
        let timed = timed.map(|(clock, ((time, _), _))| {
            // The wall clock may be set meanwhile.
            now() + mainstay_clock::recheck_delay(clock.time_until(*time))
        });
        delayed.into_iter().chain(timed).min()
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
            self.forget_time(&key);
            self.make_ready(key);
        }
        let Some(clock) = self.clock.filter(|_| !self.timed.is_empty()) else { return };
        let wall = clock.now();
        while let Some(entry) = self.timed.first_entry() {
            if entry.key().0 > wall {
                break;
            }
            let key = entry.remove();
            self.forget_delay(&key);
            self.make_ready(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::SignedDuration;

    async fn next(queue: &Queue<&'static str>) -> Option<&'static str> {
        tokio::time::timeout(Duration::from_millis(1), queue.next()).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_queued_once_and_never_processed_concurrently() {
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
    async fn a_timed_key_is_due_when_the_wall_clock_is_set_past_its_time() {
        let (clock, hands) = Clock::adjustable("2026-01-02T03:04:05Z".parse().unwrap());
        let at = |hours| clock.now().checked_add(SignedDuration::from_hours(hours)).unwrap();
        let queue = Queue::new();
        queue.add_at("a", clock, at(3));
        queue.add_at("a", clock, at(2));
        queue.add_at("b", clock, at(48));
        let start = now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed(), Duration::from_hours(2));
        queue.finish(&"a");
        let waiting = queue.clone();
        let waiting = tokio::spawn(async move { waiting.next().await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        hands.suspend(Duration::from_hours(48));
        assert_eq!(waiting.await.unwrap(), "b");
        let passed = start.elapsed().saturating_sub(Duration::from_hours(2));
        assert!(passed <= Duration::from_mins(1), "{passed:?}");
        queue.finish(&"b");

        queue.add_at("c", clock, at(1));
        queue.add_after("c", Duration::from_secs(5));
        assert_eq!(queue.next().await, "c");
        queue.finish(&"c");
        tokio::time::advance(Duration::from_hours(2)).await;
        assert_eq!(next(&queue).await, None, "it was there once");
        let soon = at(1);
        hands.step(SignedDuration::from_hours(-1));
        queue.add_at("d", clock, soon);
        let start = now();
        assert_eq!(queue.next().await, "d");
        assert_eq!(start.elapsed(), Duration::from_hours(2), "a step back is waited out");
    }

    #[tokio::test(start_paused = true)]
    async fn the_shortest_delay_counts_and_add_overrides_it() {
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
