//! Service IP and node port allocator: an index of the allocations of all Services.
//!
//! The store is the only record. The allocator is an index in memory: the first use builds it from
//! one list, and each allocation first applies the store's new events. So the index needs no
//! maintenance and is correct after a restart, and an allocation costs the same for ten Services and
//! for a million.
//!
//! An address or port is reserved from its allocation until the request ends; then the store has the
//! Service, or the item is free again. One lock guards all allocations, so two Services never get
//! the same item. A request that is cancelled while the store commits its Service leaves the
//! reservations for a minute, because the outcome of the commit is unknown.

use mainstay_clock::Clock;
use mainstay_object::Object;
use mainstay_store::{EventKind, Key, Store, WatchCursor};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The store's name of Services.
const SERVICES: &str = "services";
/// How long a reservation outlives a request with an unknown outcome.
const UNKNOWN_OUTCOME: Duration = Duration::from_mins(1);

/// An address or port, which at most one Service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocatable {
    /// An address in the cluster.
    Address(Ipv4Addr),
    /// A port of every node.
    Port(i64),
}

/// The allocations of a Service. A port number of several protocols counts once.
fn allocations_of(service: &Object) -> Vec<Allocatable> {
    let address = service.str(&["spec", "clusterIP"]).unwrap_or_default();
    let mut items: Vec<Allocatable> =
        address.parse().ok().map(Allocatable::Address).into_iter().collect();
    let ports = service.array(&["spec", "ports"]).iter();
    let ports = ports.filter_map(|port| port.get("nodePort").and_then(Value::as_i64));
    let health = service.i64(&["spec", "healthCheckNodePort"]);
    let mut distinct = HashSet::new();
    for port in ports.chain(health).filter(|port| *port != 0).map(Allocatable::Port) {
        if distinct.insert(port) {
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
    /// The events since the last update; none before the index is built.
    watch: Option<WatchCursor>,
    /// The allocations of each Service.
    services: HashMap<Key, Vec<Allocatable>>,
    /// The number of Services with an item: one, unless a writer bypassed the allocator.
    owners: HashMap<Allocatable, u32>,
    reserved: HashSet<Allocatable>,
    /// Reservations with an unknown outcome, with the time of their end, in order of time.
    expiring: VecDeque<(Duration, Allocatable)>,
}

impl Allocations {
    fn record(&mut self, key: Key, items: Vec<Allocatable>) {
        for item in &items {
            *self.owners.entry(*item).or_default() += 1;
        }
        self.remove(&key);
        if !items.is_empty() {
            self.services.insert(key, items);
        }
    }

    fn remove(&mut self, key: &Key) {
        for item in self.services.remove(key).into_iter().flatten() {
            if let Some(count) = self.owners.get_mut(&item) {
                *count -= 1;
                if *count == 0 {
                    self.owners.remove(&item);
                }
            }
        }
    }

    /// Applies the new events of the store. They include each Service that was stored before this
    /// call, because the store publishes a change before it replies.
    fn update(&mut self, store: &Store, now: Duration) {
        while self.expiring.front().is_some_and(|(until, _)| *until < now) {
            if let Some((_, item)) = self.expiring.pop_front() {
                self.reserved.remove(&item);
            }
        }
        loop {
            let Some(watch) = &mut self.watch else {
                let list = store.list(SERVICES, None);
                self.services.clear();
                self.owners.clear();
                for stored in list.iter() {
                    self.record(stored.key.clone(), allocations_of(&stored.object()));
                }
                // A watch fails only if the list is too old by now; then the loop lists again.
                self.watch = store.watch(SERVICES, list.revision()).ok();
                continue;
            };
            match watch.try_next() {
                Ok(Some(event)) if event.kind == EventKind::Deleted => {
                    self.remove(&event.object.key);
                }
                Ok(Some(event)) => {
                    self.record(event.object.key.clone(), allocations_of(&event.object.object()));
                }
                Ok(None) => return,
                Err(_) => self.watch = None,
            }
        }
    }
}

impl Allocator {
    /// An allocator for the Services of a store. The first allocation reads the store.
    pub fn new(store: Store, clock: Clock) -> Arc<Self> {
        Arc::new(Self { store, clock, allocations: Mutex::default() })
    }

    /// The reservations of a new request: none yet.
    pub fn reservations(self: &Arc<Self>) -> Reservations {
        Reservations {
            allocator: Arc::clone(self),
            items: Mutex::default(),
            committing: AtomicBool::new(false),
        }
    }
}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allocations = self.allocations.lock();
        write!(
            f,
            "{} allocations of {} Services",
            allocations.owners.len(),
            allocations.services.len()
        )
    }
}

/// Reservations of one request, which end when this is dropped.
#[derive(Debug)]
pub struct Reservations {
    allocator: Arc<Allocator>,
    items: Mutex<Vec<Allocatable>>,
    /// Whether the store is committing the change.
    committing: AtomicBool,
}

impl Reservations {
    /// Begins to allocate. Reservations of an earlier attempt of the request are released.
    ///
    /// `owner` is the stored Service that the request changes, none for a new one. It may allocate
    /// what it already has.
    pub fn begin(&self, owner: Option<&Object>) -> AllocationGuard<'_> {
        let mut allocations = self.allocator.allocations.lock();
        let mut items = self.items.lock();
        for item in items.drain(..) {
            allocations.reserved.remove(&item);
        }
        allocations.update(&self.allocator.store, self.allocator.clock.elapsed());
        let own = owner.and_then(|owner| {
            allocations.services.get(&Key::new(SERVICES, owner.namespace(), owner.name()))
        });
        let own = own.into_iter().flatten().copied().collect();
        AllocationGuard { allocations, items, own }
    }

    /// Marks the change as sent to the store. Its outcome is unknown until [`Commit::finish`].
    pub fn begin_commit(&self) -> Commit<'_> {
        self.committing.store(true, Ordering::Relaxed);
        Commit(self)
    }
}

impl Drop for Reservations {
    fn drop(&mut self) {
        let items = self.items.get_mut();
        if items.is_empty() {
            return;
        }
        let mut allocations = self.allocator.allocations.lock();
        if *self.committing.get_mut() {
            let until = self.allocator.clock.elapsed() + UNKNOWN_OUTCOME;
            allocations.expiring.extend(items.drain(..).map(|item| (until, item)));
        } else {
            for item in items.drain(..) {
                allocations.reserved.remove(&item);
            }
        }
    }
}

/// A change whose outcome in the store is unknown.
#[must_use]
pub struct Commit<'a>(&'a Reservations);

impl Commit<'_> {
    /// Marks the reply of the store.
    pub fn finish(self) {
        self.0.committing.store(false, Ordering::Relaxed);
    }
}

/// Exclusive access to the allocations, for one Service.
pub struct AllocationGuard<'a> {
    allocations: MutexGuard<'a, Allocations>,
    items: MutexGuard<'a, Vec<Allocatable>>,
    /// The allocations of the stored Service.
    own: HashSet<Allocatable>,
}

impl AllocationGuard<'_> {
    /// Reserves an item. Returns false if another Service has or reserves it, or if this request
    /// already reserved it. An item of the stored Service needs no reservation: if the Service loses
    /// the item before this change is stored, the change fails with a conflict.
    pub fn allocate(&mut self, item: Allocatable) -> bool {
        if self.own.contains(&item) {
            return true;
        }
        if self.allocations.owners.contains_key(&item) || !self.allocations.reserved.insert(item) {
            return false;
        }
        self.items.push(item);
        true
    }

    /// Reserves the first free item.
    pub fn allocate_first(
        &mut self,
        mut items: impl Iterator<Item = Allocatable>,
    ) -> Option<Allocatable> {
        items.find(|item| !self.own.contains(item) && self.allocate(*item))
    }
}
