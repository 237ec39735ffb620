//! Allocator of Service IPs and node ports: which are allocated, to which Services.
//!
//! The store is the only record. The allocator is an index of it, kept in memory: built from one list
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

/// An address or port that one Service at a time can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocatable {
    /// An address in the cluster.
    Address(Ipv4Addr),
    /// A port of every node.
    Port(i64),
}

/// What a Service has. A number that serves several protocols counts once.
fn allocations_of(service: &Object) -> Vec<Allocatable> {
    let address = service.str(&["spec", "clusterIP"]).unwrap_or_default();
    let mut items: Vec<Allocatable> =
        address.parse().ok().map(Allocatable::Address).into_iter().collect();
    let ports = service.array(&["spec", "ports"]).iter();
    let ports = ports.filter_map(|port| port.get("nodePort").and_then(Value::as_i64));
    let health = service.i64(&["spec", "healthCheckNodePort"]);
    let mut seen = HashSet::new();
    for port in ports.chain(health).filter(|port| *port != 0).map(Allocatable::Port) {
        if seen.insert(port) {
            items.push(port);
        }
    }
    items
}

/// The index of allocations. One per server.
pub struct Allocator {
    store: Store,
    clock: Clock,
    allocations: Mutex<Allocations>,
}

#[derive(Default)]
struct Allocations {
    /// The events that the allocations does not know yet; none before it was built.
    news: Option<Watch>,
    /// What each Service has.
    services: HashMap<Key, Vec<Allocatable>>,
    /// How many Services have an item: one, unless something else wrote the store.
    taken: HashMap<Allocatable, u32>,
    reserved: HashSet<Allocatable>,
    /// Reservations in doubt, and until when they stand. In order of time.
    doubtful: VecDeque<(Duration, Allocatable)>,
}

impl Allocations {
    fn record(&mut self, key: Key, items: Vec<Allocatable>) {
        for item in &items {
            *self.taken.entry(*item).or_default() += 1;
        }
        self.forget(&key);
        if !items.is_empty() {
            self.services.insert(key, items);
        }
    }

    fn forget(&mut self, key: &Key) {
        for item in self.services.remove(key).into_iter().flatten() {
            if let Some(count) = self.taken.get_mut(&item) {
                *count -= 1;
                if *count == 0 {
                    self.taken.remove(&item);
                }
            }
        }
    }

    /// Brings the allocations to what the store holds. Whoever stored a Service before this is called is
    /// in it, because the store publishes before it answers.
    fn follow(&mut self, store: &Store, now: Duration) {
        while self.doubtful.front().is_some_and(|(until, _)| *until < now) {
            if let Some((_, item)) = self.doubtful.pop_front() {
                self.reserved.remove(&item);
            }
        }
        loop {
            let Some(news) = &mut self.news else {
                let list = store.list(SERVICES, None);
                self.services.clear();
                self.taken.clear();
                for stored in list.iter() {
                    self.record(stored.key.clone(), allocations_of(&stored.object()));
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
                    self.record(event.object.key.clone(), allocations_of(&event.object.object()));
                }
                Ok(None) => return,
                Err(_) => self.news = None,
            }
        }
    }
}

impl Allocator {
    /// An allocator of the Services of a store, which is read when it is first needed.
    pub fn new(store: Store, clock: Clock) -> Arc<Self> {
        Arc::new(Self { store, clock, allocations: Mutex::default() })
    }

    /// The reservations of a new request: none yet.
    pub fn reservations(self: &Arc<Self>) -> Reservations {
        Reservations {
            allocator: Arc::clone(self),
            items: Mutex::default(),
            storing: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allocations = self.allocations.lock();
        write!(
            f,
            "{} allocations of {} Services",
            allocations.taken.len(),
            allocations.services.len()
        )
    }
}

/// Reservations of one request. Dropping them ends them.
#[derive(Debug)]
pub struct Reservations {
    allocator: Arc<Allocator>,
    items: Mutex<Vec<Allocatable>>,
    /// Whether the store is at work on it.
    storing: AtomicBool,
}

impl Reservations {
    /// Begins to allocate. What the request reserved before is given back: it tries again.
    ///
    /// `owner` is the stored Service that is changed, none for a new one: what it has is free to it.
    pub fn open(&self, owner: Option<&Object>) -> AllocationGuard<'_> {
        let mut allocations = self.allocator.allocations.lock();
        let mut items = self.items.lock();
        for item in items.drain(..) {
            allocations.reserved.remove(&item);
        }
        allocations.follow(&self.allocator.store, self.allocator.clock.elapsed());
        let own = owner.and_then(|owner| {
            allocations.services.get(&Key::new(SERVICES, owner.namespace(), owner.name()))
        });
        let own = own.into_iter().flatten().copied().collect();
        AllocationGuard { allocations, items, own }
    }

    /// Marks the change as sent to the store. Until [`Storing::answered`] its outcome is unknown.
    pub fn storing(&self) -> Storing<'_> {
        self.storing.store(true, Ordering::Relaxed);
        Storing(self)
    }
}

impl Drop for Reservations {
    fn drop(&mut self) {
        let items = self.items.get_mut();
        if items.is_empty() {
            return;
        }
        let mut allocations = self.allocator.allocations.lock();
        if *self.storing.get_mut() {
            let until = self.allocator.clock.elapsed() + IN_DOUBT;
            allocations.doubtful.extend(items.drain(..).map(|item| (until, item)));
        } else {
            for item in items.drain(..) {
                allocations.reserved.remove(&item);
            }
        }
    }
}

/// A change whose outcome in the store is unknown.
#[must_use]
pub struct Storing<'a>(&'a Reservations);

impl Storing<'_> {
    /// The store has answered.
    pub fn answered(self) {
        self.0.storing.store(false, Ordering::Relaxed);
    }
}

/// Exclusive access to the allocations, for one Service.
pub struct AllocationGuard<'a> {
    allocations: MutexGuard<'a, Allocations>,
    items: MutexGuard<'a, Vec<Allocatable>>,
    /// What the Service has in the store.
    own: HashSet<Allocatable>,
}

impl AllocationGuard<'_> {
    /// Reserves an item; false if another Service has it or is about to, or this one took it
    /// before. What the stored Service has needs no reservation: should it lose the item before
    /// this change is stored, then the change is refused as stale.
    pub fn allocate(&mut self, item: Allocatable) -> bool {
        if self.own.contains(&item) {
            return true;
        }
        if self.allocations.taken.contains_key(&item) || !self.allocations.reserved.insert(item) {
            return false;
        }
        self.items.push(item);
        true
    }

    /// Reserves the first that nobody has.
    pub fn allocate_first(
        &mut self,
        mut items: impl Iterator<Item = Allocatable>,
    ) -> Option<Allocatable> {
        items.find(|item| !self.own.contains(item) && self.allocate(*item))
    }
}
