//! Which addresses and ports of nodes are taken, by which Services.
//!
//! The store is the only record. The ledger is an index of it, kept in memory: built from one list
//! when it is first needed, then brought up to date with the store's events, whenever somebody
//! takes something. So it needs no upkeep of its own, is right after a restart, and taking costs
//! the same for ten Services and for a million.
//!
//! Between taking and storing lies a request. What it takes is reserved until it is over: then
//! either the store says who has it, or nobody does. Everything is taken under one lock, so two
//! Services never get the same. A request that is given up while the store works on it leaves its
//! reservations for a minute, because nobody knows then whether its Service will be there.

use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{EventKind, Key, Store, Watch};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Where the store keeps Services.
const SERVICES: &str = "services";
/// How long a reservation outlives a request of which nobody knows what became.
const IN_DOUBT: Duration = Duration::from_mins(1);

/// Something that one Service at a time can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Thing {
    /// An address in the cluster.
    Address(Ipv4Addr),
    /// A port of every node.
    Port(i64),
}

/// What a Service has. A number that serves several protocols counts once.
fn things(service: &Object) -> Vec<Thing> {
    let address = service.str(&["spec", "clusterIP"]).unwrap_or_default();
    let mut things: Vec<Thing> = address.parse().ok().map(Thing::Address).into_iter().collect();
    let ports = service.array(&["spec", "ports"]).iter();
    let ports = ports.filter_map(|port| port.get("nodePort").and_then(Value::as_i64));
    let health = service.i64(&["spec", "healthCheckNodePort"]);
    let mut seen = HashSet::new();
    for port in ports.chain(health).filter(|port| *port != 0).map(Thing::Port) {
        if seen.insert(port) {
            things.push(port);
        }
    }
    things
}

/// The index. One per server.
pub(crate) struct Ledger {
    store: Store,
    clock: Clock,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    /// The events that the book does not know yet; none before it was built.
    news: Option<Watch>,
    /// What each Service has.
    services: HashMap<Key, Vec<Thing>>,
    /// How many Services have a thing: one, unless something else wrote the store.
    taken: HashMap<Thing, u32>,
    reserved: HashSet<Thing>,
    /// Reservations in doubt, and until when they stand. In order of time.
    doubtful: VecDeque<(Duration, Thing)>,
}

impl Book {
    fn record(&mut self, key: Key, things: Vec<Thing>) {
        for thing in &things {
            *self.taken.entry(*thing).or_default() += 1;
        }
        self.forget(&key);
        if !things.is_empty() {
            self.services.insert(key, things);
        }
    }

    fn forget(&mut self, key: &Key) {
        for thing in self.services.remove(key).into_iter().flatten() {
            if let Some(count) = self.taken.get_mut(&thing) {
                *count -= 1;
                if *count == 0 {
                    self.taken.remove(&thing);
                }
            }
        }
    }

    /// Brings the book to what the store holds. Whoever stored a Service before this is called is
    /// in it, because the store publishes before it answers.
    fn follow(&mut self, store: &Store, now: Duration) {
        while self.doubtful.front().is_some_and(|(until, _)| *until < now) {
            if let Some((_, thing)) = self.doubtful.pop_front() {
                self.reserved.remove(&thing);
            }
        }
        loop {
            let Some(news) = &mut self.news else {
                let list = store.list(SERVICES, None);
                self.services.clear();
                self.taken.clear();
                for stored in list.iter() {
                    self.record(stored.key.clone(), things(&stored.object()));
                }
                // Only a list that is very old by now cannot be followed: then another is taken.
                self.news = store.watch(SERVICES, list.revision()).ok();
                continue;
            };
            match news.try_next() {
                Ok(Some(event)) if event.kind == EventKind::Deleted => {
                    self.forget(&event.object.key);
                }
                Ok(Some(event)) => {
                    self.record(event.object.key.clone(), things(&event.object.object()));
                }
                Ok(None) => return,
                Err(_) => self.news = None,
            }
        }
    }
}

impl Ledger {
    pub(crate) fn new(store: Store, clock: Clock) -> Arc<Self> {
        Arc::new(Self { store, clock, book: Mutex::default() })
    }

    /// What a request takes: nothing yet.
    pub(crate) fn claim(self: &Arc<Self>) -> Claim {
        Claim {
            ledger: Arc::clone(self),
            things: Mutex::default(),
            storing: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let book = self.book.lock();
        write!(f, "{} things of {} Services", book.taken.len(), book.services.len())
    }
}

/// What one request has reserved. Dropping it ends the reservations.
#[derive(Debug)]
pub(crate) struct Claim {
    ledger: Arc<Ledger>,
    things: Mutex<Vec<Thing>>,
    /// Whether the store is at work on it.
    storing: AtomicBool,
}

impl Claim {
    /// Begins to take. What the request reserved before is given back: it tries again.
    ///
    /// `owner` is the stored Service that is changed, none for a new one: what it has is free to it.
    pub(super) fn open(&self, owner: Option<&Key>) -> Taking<'_> {
        let mut book = self.ledger.book.lock();
        let mut things = self.things.lock();
        for thing in things.drain(..) {
            book.reserved.remove(&thing);
        }
        book.follow(&self.ledger.store, self.ledger.clock.elapsed());
        let own = owner.and_then(|owner| book.services.get(owner));
        let own = own.into_iter().flatten().copied().collect();
        Taking { book, things, own }
    }

    /// Says that the store is asked to make the change. Until [`Storing::answered`] nobody knows
    /// whether it does.
    pub(crate) fn storing(&self) -> Storing<'_> {
        self.storing.store(true, Ordering::Relaxed);
        Storing(self)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let things = self.things.get_mut();
        if things.is_empty() {
            return;
        }
        let mut book = self.ledger.book.lock();
        if *self.storing.get_mut() {
            let until = self.ledger.clock.elapsed() + IN_DOUBT;
            book.doubtful.extend(things.drain(..).map(|thing| (until, thing)));
        } else {
            for thing in things.drain(..) {
                book.reserved.remove(&thing);
            }
        }
    }
}

/// A change that the store is at work on.
#[must_use]
pub(crate) struct Storing<'a>(&'a Claim);

impl Storing<'_> {
    /// The store has answered.
    pub(crate) fn answered(self) {
        self.0.storing.store(false, Ordering::Relaxed);
    }
}

/// Taking, while nobody else does.
pub(super) struct Taking<'a> {
    book: MutexGuard<'a, Book>,
    things: MutexGuard<'a, Vec<Thing>>,
    /// What the Service has in the store.
    own: HashSet<Thing>,
}

impl Taking<'_> {
    /// Reserves a thing; false if another Service has it or is about to, or this one took it
    /// before. What the stored Service has needs no reservation: should it lose the thing before
    /// this change is stored, then the change is refused as stale.
    pub(super) fn take(&mut self, thing: Thing) -> bool {
        if self.own.contains(&thing) {
            return true;
        }
        if self.book.taken.contains_key(&thing) || !self.book.reserved.insert(thing) {
            return false;
        }
        self.things.push(thing);
        true
    }

    /// Reserves the first that nobody has.
    pub(super) fn take_first(&mut self, mut things: impl Iterator<Item = Thing>) -> Option<Thing> {
        things.find(|thing| !self.own.contains(thing) && self.take(*thing))
    }
}

#[cfg(test)]
impl Ledger {
    /// A ledger that knows these Services and follows an empty store.
    pub(super) fn of(services: &[Object]) -> Arc<Self> {
        let clock = Clock::system();
        let ledger = Self::new(Store::in_memory(mainstay_store::Options::new(clock)), clock);
        let mut book = ledger.book.lock();
        book.follow(&ledger.store, Duration::ZERO);
        for service in services {
            let key = Key::new(SERVICES, service.namespace(), service.name());
            book.record(key, things(service));
        }
        drop(book);
        ledger
    }
}
