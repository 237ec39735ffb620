//! Who is served now and who waits.
//!
//! A request of a limited level needs a seat. A level has its share of all seats; what it lends and
//! does not use, others may take. Who finds none waits in a queue of its level, or is refused when
//! its queue is full. Each flow may use only a hand of the queues, chosen by a hash, and takes the
//! shortest of them; free seats go round the queues. So a client that floods its own queues holds up
//! nobody whose hand has another one.
//!
//! Against the original: every request counts as one seat, and what a level lends is free as soon as
//! it is not in use (there, every ten seconds).

use super::plan::{Bounds, Level, Queues};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// All seats, those of the shared level of the original: 400 reading, 200 changing.
const SEATS: u64 = 600;

/// The seats of a server. Clones are the same seats.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Arc<Mutex<Room>>);

#[derive(Debug, Default)]
struct Room {
    levels: HashMap<Arc<str>, Table>,
    total: u64,
    /// Requests that wait, in all levels.
    waiting: usize,
    next: u64,
}

/// The seats of one level.
#[derive(Debug, Default)]
struct Table {
    nominal: u64,
    /// Seats that nobody else may take.
    own: u64,
    most: u64,
    queues: Option<Queues>,
    used: u64,
    waiting: BTreeMap<u64, VecDeque<Waiting>>,
    /// The queue that was served last.
    last: u64,
}

#[derive(Debug)]
struct Waiting {
    id: u64,
    call: oneshot::Sender<Seat>,
}

/// A seat that is taken; free again when dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    seats: Option<Seats>,
    level: Arc<str>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(seats) = self.seats.take() {
            let mut room = seats.0.lock();
            if let Some(table) = room.levels.get_mut(&self.level) {
                table.used = table.used.saturating_sub(1);
            }
            let left = room.call(&seats, &self.level);
            drop(room);
            left.into_iter().for_each(Self::forget);
        }
    }
}

impl Seat {
    /// A seat that nobody took: it was not counted.
    fn forget(mut self) {
        self.seats = None;
    }
}

/// A place in a queue; left when dropped.
struct Place<'a> {
    seats: &'a Seats,
    level: &'a Arc<str>,
    queue: u64,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut room = self.seats.0.lock();
        let Some(table) = room.levels.get_mut(self.level) else { return };
        let Some(queue) = table.waiting.get_mut(&self.queue) else { return };
        let before = queue.len();
        queue.retain(|one| one.id != self.id);
        let left = before - queue.len();
        if queue.is_empty() {
            table.waiting.remove(&self.queue);
        }
        room.waiting -= left;
    }
}

/// What a level does now, for whoever counts.
#[derive(Clone, Debug)]
pub(crate) struct Usage {
    /// Name of the level.
    pub(crate) level: Arc<str>,
    /// Its seats.
    pub(crate) nominal: u64,
    /// Seats that are taken.
    pub(crate) used: u64,
    /// Requests that wait.
    #[cfg(test)]
    pub(crate) waiting: usize,
}

impl Seats {
    /// Gives the levels what they may take from now on. Requests that have seats keep them; those
    /// of levels that are gone wait on and are refused when their time is over.
    pub(super) fn set(&self, levels: &[Arc<Level>]) {
        let mut room = self.0.lock();
        let limited =
            || levels.iter().filter_map(|level| level.bounds.map(|bounds| (&level.name, bounds)));
        let shares: u64 = limited().map(|(_, bounds)| bounds.shares).sum::<u64>().max(1);
        for table in room.levels.values_mut() {
            (table.nominal, table.own, table.most) = (0, 0, 0);
        }
        let mut total = 0;
        for (name, bounds) in limited() {
            let nominal = (SEATS * bounds.shares).div_ceil(shares);
            total += nominal;
            let table = room.levels.entry(name.clone()).or_default();
            table.nominal = nominal;
            table.queues = bounds.queues;
            table.own = nominal - rounded(nominal, bounds.lendable);
            table.most = most(nominal, bounds);
        }
        room.total = total.max(SEATS);
        room.levels.retain(|_, table| {
            table.nominal > 0 || table.most > 0 || table.used > 0 || !table.waiting.is_empty()
        });
        let left = room.call(self, &"".into());
        drop(room);
        left.into_iter().for_each(Seat::forget);
    }

    /// A seat of a level, at once or after waiting no longer than `patience`. None if the request
    /// is to be refused.
    pub(super) async fn take(
        &self,
        level: &Arc<str>,
        flow: u64,
        patience: Duration,
    ) -> Option<Seat> {
        let (place, call) = {
            let mut room = self.0.lock();
            let free = room.has_seat(level);
            let id = room.next;
            room.next += 1;
            let table = room.levels.get_mut(level)?;
            if free && table.waiting.is_empty() {
                table.used += 1;
                return Some(Seat { seats: Some(self.clone()), level: level.clone() });
            }
            let queue = table.queues.and_then(|queues| table.shortest(queues, flow));
            let queue = queue?;
            let (call, called) = oneshot::channel();
            table.waiting.entry(queue).or_default().push_back(Waiting { id, call });
            room.waiting += 1;
            let left = room.call(self, level);
            left.into_iter().for_each(Seat::forget);
            (Place { seats: self, level, queue, id }, called)
        };
        let seat = tokio::time::timeout(patience, call).await;
        drop(place);
        seat.ok()?.ok()
    }

    /// What the levels do now, by name.
    pub(crate) fn usage(&self) -> Vec<Usage> {
        let room = self.0.lock();
        let mut all: Vec<Usage> = room
            .levels
            .iter()
            .map(|(name, table)| Usage {
                level: name.clone(),
                nominal: table.nominal,
                used: table.used,
                #[cfg(test)]
                waiting: table.waiting.values().map(VecDeque::len).sum(),
            })
            .collect();
        drop(room);
        all.sort_by(|a, b| a.level.cmp(&b.level));
        all
    }
}

/// So many hundredths of a number, rounded.
fn rounded(number: u64, percent: u64) -> u64 {
    (number * percent + 50) / 100
}

fn most(nominal: u64, bounds: Bounds) -> u64 {
    bounds
        .borrowing
        .map_or(u64::MAX, |percent| nominal.saturating_add(nominal.saturating_mul(percent) / 100))
}

impl Room {
    /// Whether a level may serve one more request.
    fn has_seat(&self, level: &Arc<str>) -> bool {
        let Some(table) = self.levels.get(level) else { return false };
        if table.used < table.own {
            return true;
        }
        // What others hold, or may claim at any time.
        let taken: u64 = self
            .levels
            .iter()
            .filter(|(name, _)| *name != level)
            .map(|(_, other)| other.used.max(other.own))
            .sum();
        // One request at least is always served, whatever the shares are.
        table.used < table.most.max(1) && (taken + table.used < self.total || table.used == 0)
    }

    /// Calls whoever may be served now, those of `first` before others. Gives back the seats of
    /// those who have left meanwhile, to be forgotten.
    fn call(&mut self, seats: &Seats, first: &Arc<str>) -> Vec<Seat> {
        let mut left = Vec::new();
        if self.waiting == 0 {
            return left;
        }
        let mut names: Vec<Arc<str>> = self
            .levels
            .iter()
            .filter(|(_, table)| !table.waiting.is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        names.sort_by_key(|name| (name != first, name.clone()));
        for name in names {
            while self.has_seat(&name) {
                let Some(table) = self.levels.get_mut(&name) else { break };
                let Some(next) = table.next() else { break };
                self.waiting -= 1;
                let seat = Seat { seats: Some(seats.clone()), level: name.clone() };
                match next.call.send(seat) {
                    Ok(()) => {
                        table.used += 1;
                    }
                    Err(seat) => left.push(seat),
                }
            }
        }
        left
    }
}

impl Table {
    /// The shortest queue of a flow's hand; none if all of them are full.
    fn shortest(&self, queues: Queues, flow: u64) -> Option<u64> {
        deal(queues, flow)
            .into_iter()
            .map(|queue| (self.waiting.get(&queue).map_or(0, VecDeque::len), queue))
            .min()
            .filter(|(length, _)| *length < queues.length)
            .map(|(_, queue)| queue)
    }

    /// The first request of the queue after the one that was served last.
    fn next(&mut self) -> Option<Waiting> {
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

/// The queues of a flow: different ones, dealt by the digits of its hash in falling bases
/// (`k8s.io/apiserver/pkg/util/shufflesharding`).
fn deal(queues: Queues, mut flow: u64) -> Vec<u64> {
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

    fn level(name: &str, shares: u64, lendable: u64, queues: Option<Queues>) -> Arc<Level> {
        let bounds = Bounds { shares, lendable, borrowing: Some(0), queues };
        Arc::new(Level {
            name: name.into(),
            uid: HeaderValue::from_static("uid"),
            bounds: Some(bounds),
        })
    }

    const QUEUES: Queues = Queues { count: 8, hand: 2, length: 3 };
    const PATIENCE: Duration = Duration::from_secs(1);

    #[test]
    fn a_hand_has_different_queues_of_the_deck() {
        for flow in (0..u64::MAX / 2).step_by(usize::MAX / 64) {
            let hand = deal(Queues { count: 16, hand: 5, length: 1 }, flow);
            let distinct: std::collections::BTreeSet<&u64> = hand.iter().collect();
            assert_eq!((hand.len(), distinct.len()), (5, 5));
            assert!(hand.iter().all(|queue| *queue < 16), "{hand:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_fills_its_own_queues_and_others_are_served_in_turn() {
        let seats = Seats::default();
        // 600 seats, of which one level has one in 600.
        seats.set(&[level("small", 1, 0, Some(QUEUES)), level("large", 599, 0, None)]);
        let small: Arc<str> = "small".into();
        let held = seats.take(&small, 0, PATIENCE).await.unwrap();
        let hands = |flow| deal(QUEUES, flow);
        let quiet =
            (1..1000).find(|flow| hands(*flow).iter().all(|queue| !hands(0).contains(queue)));
        let quiet = quiet.unwrap();
        let mut flood: Vec<_> = (0..6)
            .map(|_| {
                let (seats, small) = (seats.clone(), small.clone());
                tokio::spawn(async move { seats.take(&small, 0, PATIENCE).await })
            })
            .collect();
        tokio::task::yield_now().await;
        // Its two queues are full now.
        assert!(seats.take(&small, 0, PATIENCE).await.is_none());
        let other = {
            let (seats, small) = (seats.clone(), small.clone());
            tokio::spawn(async move { seats.take(&small, quiet, PATIENCE).await })
        };
        tokio::task::yield_now().await;
        assert_eq!(seats.usage()[1].waiting, 7);
        drop(held);
        tokio::task::yield_now().await;
        // At most one of each queue of the flood comes before it.
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
    async fn who_waits_too_long_or_leaves_holds_no_place() {
        let seats = Seats::default();
        seats.set(&[level("small", 1, 0, Some(QUEUES)), level("large", 599, 0, None)]);
        let small: Arc<str> = "small".into();
        let held = seats.take(&small, 0, PATIENCE).await.unwrap();
        assert!(seats.take(&small, 1, PATIENCE).await.is_none());
        let gone = tokio::spawn({
            let (seats, small) = (seats.clone(), small.clone());
            async move { seats.take(&small, 1, PATIENCE).await.is_some() }
        });
        tokio::task::yield_now().await;
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        assert_eq!(seats.usage()[1].waiting, 0);
        drop(held);
        assert!(seats.take(&small, 0, PATIENCE).await.is_some());
        assert_eq!(seats.usage()[1].used, 0);
    }

    #[tokio::test]
    async fn seats_that_are_lent_are_used_by_who_needs_them() {
        let seats = Seats::default();
        let mut borrower = level("borrower", 1, 0, None);
        Arc::get_mut(&mut borrower).unwrap().bounds.as_mut().unwrap().borrowing = None;
        seats.set(&[borrower, level("lender", 1, 50, None)]);
        let (borrower, lender): (Arc<str>, Arc<str>) = ("borrower".into(), "lender".into());
        let mut held = Vec::new();
        while let Some(seat) = seats.take(&borrower, 0, PATIENCE).await {
            held.push(seat);
        }
        assert_eq!(held.len(), 450);
        let mut lent = Vec::new();
        while let Some(seat) = seats.take(&lender, 0, PATIENCE).await {
            lent.push(seat);
        }
        assert_eq!(lent.len(), 150);
        held.clear();
        assert!(seats.take(&lender, 0, PATIENCE).await.is_some());
    }
}
