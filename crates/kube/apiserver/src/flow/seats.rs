//! Seats: which requests are served now, and which wait.
//!
//! A request of a limited priority level needs a seat. A level has its share of all seats; other
//! levels may take the lendable ones that it does not use. A request without a seat waits in a queue
//! of its level, or is refused when the queue is full. Each flow may use only its hand of the queues,
//! chosen by a hash, and joins the shortest of them. Free seats go to the queues in turn. So a client
//! that floods its own queues does not delay a flow whose hand has another queue.
//!
//! Differences from kube-apiserver: every request counts as one seat, and a lendable seat is free as
//! soon as its level does not use it (there, every ten seconds).

use super::config::{LevelLimits, PriorityLevel, QueueConfig};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// All seats, as many as kube-apiserver's defaults: 400 for reads, 200 for writes.
const SEATS: u64 = 600;

/// The seats of a server. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<SeatState>>);

#[derive(Debug, Default)]
struct SeatState {
    levels: HashMap<Arc<str>, LevelSeats>,
    total: u64,
    /// Waiting requests of all levels.
    waiting: usize,
    next: u64,
}

/// The seats of one level.
#[derive(Debug, Default)]
struct LevelSeats {
    nominal: u64,
    /// Seats that no other level may take.
    guaranteed: u64,
    maximum: u64,
    queues: Option<QueueConfig>,
    used: u64,
    waiting: BTreeMap<u64, VecDeque<QueuedRequest>>,
    /// The queue that was served last.
    last: u64,
}

#[derive(Debug)]
struct QueuedRequest {
    id: u64,
    sender: oneshot::Sender<Seat>,
}

/// A seat that a request occupies; free again when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Option<Seats>,
    level: Arc<str>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(seats) = self.seats.take() {
            let mut state = seats.0.lock();
            if let Some(level_seats) = state.levels.get_mut(&self.level) {
                level_seats.used = level_seats.used.saturating_sub(1);
            }
            let abandoned = state.serve_waiting(&seats, &self.level);
            drop(state);
            abandoned.into_iter().for_each(Self::discard);
        }
    }
}

impl Seat {
    /// Drops a seat that was never counted, because its request has left.
    fn discard(mut self) {
        self.seats = None;
    }
}

/// A position in a queue; left when dropped.
struct QueuePosition<'a> {
    seats: &'a Seats,
    level: &'a Arc<str>,
    queue: u64,
    id: u64,
}

impl Drop for QueuePosition<'_> {
    fn drop(&mut self) {
        let mut state = self.seats.0.lock();
        let Some(level_seats) = state.levels.get_mut(self.level) else { return };
        let Some(queue) = level_seats.waiting.get_mut(&self.queue) else { return };
        let before = queue.len();
        queue.retain(|request| request.id != self.id);
        let abandoned = before - queue.len();
        if queue.is_empty() {
            level_seats.waiting.remove(&self.queue);
        }
        state.waiting -= abandoned;
    }
}

/// Usage of a priority level, for metrics.
#[derive(Clone, Debug)]
pub(crate) struct LevelUsage {
    /// Name of the level.
    pub(crate) level: Arc<str>,
    /// Its nominal seats.
    pub(crate) nominal: u64,
    /// Occupied seats.
    pub(crate) used: u64,
    /// Waiting requests.
    #[cfg(test)]
    pub(crate) waiting: usize,
}

impl Seats {
    /// Sets the limits of the levels. Requests keep the seats that they have. Requests of deleted
    /// levels continue to wait until their timeout.
    pub(super) fn configure(&self, levels: &[Arc<PriorityLevel>]) {
        let mut state = self.0.lock();
        let limited =
            || levels.iter().filter_map(|level| level.limits.map(|limits| (&level.name, limits)));
        let shares: u64 = limited().map(|(_, limits)| limits.shares).sum::<u64>().max(1);
        for level_seats in state.levels.values_mut() {
            (level_seats.nominal, level_seats.guaranteed, level_seats.maximum) = (0, 0, 0);
        }
        let mut total = 0;
        for (name, limits) in limited() {
            let nominal = (SEATS * limits.shares).div_ceil(shares);
            total += nominal;
            let level_seats = state.levels.entry(name.clone()).or_default();
            level_seats.nominal = nominal;
            level_seats.queues = limits.queues;
            level_seats.guaranteed = nominal - percentage(nominal, limits.lendable);
            level_seats.maximum = borrowing_maximum(nominal, limits);
        }
        state.total = total.max(SEATS);
        state.levels.retain(|_, level_seats| {
            level_seats.nominal > 0
                || level_seats.maximum > 0
                || level_seats.used > 0
                || !level_seats.waiting.is_empty()
        });
        let abandoned = state.serve_waiting(self, &"".into());
        drop(state);
        abandoned.into_iter().for_each(Seat::discard);
    }

    /// A seat of a level, at once or after waiting no longer than `timeout`. None if the request is
    /// refused.
    pub(super) async fn take(
        &self,
        level: &Arc<str>,
        flow: u64,
        timeout: Duration,
    ) -> Option<Seat> {
        let (position, receiver) = {
            let mut state = self.0.lock();
            let free = state.has_seat(level);
            let id = state.next;
            state.next += 1;
            let level_seats = state.levels.get_mut(level)?;
            if free && level_seats.waiting.is_empty() {
                level_seats.used += 1;
                return Some(Seat { seats: Some(self.clone()), level: level.clone() });
            }
            let queue =
                level_seats.queues.and_then(|queues| level_seats.shortest_queue(queues, flow));
            let queue = queue?;
            let (sender, receiver) = oneshot::channel();
            level_seats.waiting.entry(queue).or_default().push_back(QueuedRequest { id, sender });
            state.waiting += 1;
            let abandoned = state.serve_waiting(self, level);
            abandoned.into_iter().for_each(Seat::discard);
            (QueuePosition { seats: self, level, queue, id }, receiver)
        };
        let seat = tokio::time::timeout(timeout, receiver).await;
        drop(position);
        seat.ok()?.ok()
    }

    /// The usage of the levels, sorted by name.
    pub(crate) fn usage(&self) -> Vec<LevelUsage> {
        let state = self.0.lock();
        let mut all: Vec<LevelUsage> = state
            .levels
            .iter()
            .map(|(name, level_seats)| LevelUsage {
                level: name.clone(),
                nominal: level_seats.nominal,
                used: level_seats.used,
                #[cfg(test)]
                waiting: level_seats.waiting.values().map(VecDeque::len).sum(),
            })
            .collect();
        drop(state);
        all.sort_by(|a, b| a.level.cmp(&b.level));
        all
    }
}

/// A percentage of a number, rounded.
fn percentage(number: u64, percent: u64) -> u64 {
    (number * percent + 50) / 100
}

fn borrowing_maximum(nominal: u64, limits: LevelLimits) -> u64 {
    limits
        .borrowing
        .map_or(u64::MAX, |percent| nominal.saturating_add(nominal.saturating_mul(percent) / 100))
}

impl SeatState {
    /// Whether a level may serve one more request.
    fn has_seat(&self, level: &Arc<str>) -> bool {
        let Some(level_seats) = self.levels.get(level) else { return false };
        if level_seats.used < level_seats.guaranteed {
            return true;
        }
        // Seats that other levels hold, or may claim at any time.
        let taken: u64 = self
            .levels
            .iter()
            .filter(|(name, _)| *name != level)
            .map(|(_, other)| other.used.max(other.guaranteed))
            .sum();
        // At least one request is always served, whatever the shares are.
        level_seats.used < level_seats.maximum.max(1)
            && (taken + level_seats.used < self.total || level_seats.used == 0)
    }

    /// Gives free seats to waiting requests, those of the level `first` before others. Returns the
    /// seats of requests that have left meanwhile, to be discarded.
    fn serve_waiting(&mut self, seats: &Seats, first: &Arc<str>) -> Vec<Seat> {
        let mut abandoned = Vec::new();
        if self.waiting == 0 {
            return abandoned;
        }
        let mut names: Vec<Arc<str>> = self
            .levels
            .iter()
            .filter(|(_, level_seats)| !level_seats.waiting.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        names.sort_by_key(|name| (name != first, name.clone()));
        for name in names {
            while self.has_seat(&name) {
                let Some(level_seats) = self.levels.get_mut(&name) else { break };
                let Some(next) = level_seats.next_request() else { break };
                self.waiting -= 1;
                let seat = Seat { seats: Some(seats.clone()), level: name.clone() };
                match next.sender.send(seat) {
                    Ok(()) => {
                        level_seats.used += 1;
                    }
                    Err(seat) => abandoned.push(seat),
                }
            }
        }
        abandoned
    }
}

impl LevelSeats {
    /// The shortest queue of the flow's hand; none if all of them are full.
    fn shortest_queue(&self, queues: QueueConfig, flow: u64) -> Option<u64> {
        deal(queues, flow)
            .into_iter()
            .map(|queue| (self.waiting.get(&queue).map_or(0, VecDeque::len), queue))
            .min()
            .filter(|(length, _)| *length < queues.length)
            .map(|(_, queue)| queue)
    }

    /// Takes the first request of the queue after the one that was served last.
    fn next_request(&mut self) -> Option<QueuedRequest> {
        let after = self.waiting.range(self.last.saturating_add(1)..).next();
        let queue = *after.or_else(|| self.waiting.iter().next())?.0;
        self.last = queue;
        let requests = self.waiting.get_mut(&queue)?;
        let next = requests.pop_front();
        if requests.is_empty() {
            self.waiting.remove(&queue);
        }
        next
    }
}

/// The hand of a flow: distinct queues, dealt by the digits of its hash in descending bases
/// (`k8s.io/apiserver/pkg/util/shufflesharding`).
fn deal(queues: QueueConfig, mut flow: u64) -> Vec<u64> {
    let mut digits = Vec::new();
    for at in 0..queues.hand.min(queues.count).min(15) {
        let base = queues.count - at;
        digits.push(flow % base);
        flow /= base;
    }
    let mut hand: Vec<u64> = Vec::with_capacity(digits.len());
    for (at, digit) in digits.iter().enumerate() {
        let mut card = *digit;
        for before in digits[..at].iter().rev() {
            if card >= *before {
                card += 1;
            }
        }
        hand.push(card);
    }
    hand
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn level(
        name: &str,
        shares: u64,
        lendable: u64,
        queues: Option<QueueConfig>,
    ) -> Arc<PriorityLevel> {
        let limits = LevelLimits { shares, lendable, borrowing: Some(0), queues };
        Arc::new(PriorityLevel {
            name: name.into(),
            uid: HeaderValue::from_static("uid"),
            limits: Some(limits),
        })
    }

    const QUEUES: QueueConfig = QueueConfig { count: 8, hand: 2, length: 3 };
    const TIMEOUT: Duration = Duration::from_secs(1);

    #[test]
    fn a_hand_has_distinct_queues() {
        for flow in (0..u64::MAX / 2).step_by(usize::MAX / 64) {
            let hand = deal(QueueConfig { count: 16, hand: 5, length: 1 }, flow);
            let distinct: std::collections::BTreeSet<&u64> = hand.iter().collect();
            assert_eq!((hand.len(), distinct.len()), (5, 5));
            assert!(hand.iter().all(|queue| *queue < 16), "{hand:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_fills_only_the_queues_of_its_own_hand() {
        let seats = Seats::default();
        // Of 600 seats, the level `small` has one.
        seats.configure(&[level("small", 1, 0, Some(QUEUES)), level("large", 599, 0, None)]);
        let small: Arc<str> = "small".into();
        let seat = seats.take(&small, 0, TIMEOUT).await.unwrap();
        let hands = |flow| deal(QUEUES, flow);
        let other_flow =
            (1..1000).find(|flow| hands(*flow).iter().all(|queue| !hands(0).contains(queue)));
        let other_flow = other_flow.unwrap();
        let mut flood: Vec<_> = (0..6)
            .map(|_| {
                let (seats, small) = (seats.clone(), small.clone());
                tokio::spawn(async move { seats.take(&small, 0, TIMEOUT).await })
            })
            .collect();
        tokio::task::yield_now().await;
        // The two queues of the flood are full now.
        assert!(seats.take(&small, 0, TIMEOUT).await.is_none());
        let other = {
            let (seats, small) = (seats.clone(), small.clone());
            tokio::spawn(async move { seats.take(&small, other_flow, TIMEOUT).await })
        };
        tokio::task::yield_now().await;
        assert_eq!(seats.usage()[1].waiting, 7);
        drop(seat);
        tokio::task::yield_now().await;
        // At most one request of each queue of the flood is served before it.
        let mut before = 0;
        while !other.is_finished() {
            let served =
                flood.remove(flood.iter().position(tokio::task::JoinHandle::is_finished).unwrap());
            drop(served.await.unwrap().unwrap());
            before += 1;
            tokio::task::yield_now().await;
        }
        assert!(before <= 2, "{before}");
        drop(other.await.unwrap().unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_leaves_its_queue_when_it_times_out_or_is_cancelled() {
        let seats = Seats::default();
        seats.configure(&[level("small", 1, 0, Some(QUEUES)), level("large", 599, 0, None)]);
        let small: Arc<str> = "small".into();
        let seat = seats.take(&small, 0, TIMEOUT).await.unwrap();
        assert!(seats.take(&small, 1, TIMEOUT).await.is_none());
        let cancelled = tokio::spawn({
            let (seats, small) = (seats.clone(), small.clone());
            async move { seats.take(&small, 1, TIMEOUT).await.is_some() }
        });
        tokio::task::yield_now().await;
        cancelled.abort();
        assert!(cancelled.await.unwrap_err().is_cancelled());
        assert_eq!(seats.usage()[1].waiting, 0);
        drop(seat);
        assert!(seats.take(&small, 0, TIMEOUT).await.is_some());
        assert_eq!(seats.usage()[1].used, 0);
    }

    #[tokio::test]
    async fn a_level_borrows_lendable_seats() {
        let seats = Seats::default();
        let mut borrower = level("borrower", 1, 0, None);
        Arc::get_mut(&mut borrower).unwrap().limits.as_mut().unwrap().borrowing = None;
        seats.configure(&[borrower, level("lender", 1, 50, None)]);
        let (borrower, lender): (Arc<str>, Arc<str>) = ("borrower".into(), "lender".into());
        let mut held = Vec::new();
        while let Some(seat) = seats.take(&borrower, 0, TIMEOUT).await {
            held.push(seat);
        }
        assert_eq!(held.len(), 450);
        let mut borrowed = Vec::new();
        while let Some(seat) = seats.take(&lender, 0, TIMEOUT).await {
            borrowed.push(seat);
        }
        assert_eq!(borrowed.len(), 150);
        held.clear();
        assert!(seats.take(&lender, 0, TIMEOUT).await.is_some());
    }
}
