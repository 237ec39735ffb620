//! Who may stay when there is no room for all: shares of connections, and who goes for a newcomer.
//!
//! A port has room for so many connections. Whoever has proved who it is has half of the room for itself:
//! connections that have proved nothing yet (strangers) are never more than the other half. A newcomer is
//! accepted at once; when its share is full, the oldest stranger ends for it. So a program that opens
//! connections and says nothing, or says it slowly, ends its own connections, and keeps nobody out:
//! a client that authenticates needs one round trip, and is gone from the strangers then.
//!
//! What an attacker can do, and what happens:
//!
//! * Fill the port with silence, half-sent heads or half-done handshakes: the oldest of them goes for each
//!   newcomer.
//! * Ask what anybody may ask, again and again, to look young: at a port where clients authenticate the age of
//!   a stranger counts from its beginning, whatever it asks.
//! * Come from one address: a network of peers (an address of IPv4, a `/64` of IPv6) has half of the strangers'
//!   share. Peers on this machine all have one address, so that rule does not hold for them.
//! * Come from very many addresses: the oldest still goes first, and a newcomer is the youngest.
//! * Come with good credentials: connections that work stay. The longest idle one goes when the room is full.
//! * Take all file descriptors: the oldest stranger ends then, too.

use mainstay_formats::destination::{is_loopback, neighbourhood};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many connections a port has at one time, and of whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Connections at one time.
    most: usize,
    /// Of those, connections that have proved nothing.
    strangers: usize,
    /// Of those, connections of one network of peers.
    peer: usize,
    /// Whether a stranger that asks for something is young again.
    active_last: bool,
}

impl Room {
    /// For a port whose clients say who they are: half of the room is theirs alone.
    pub fn guarded(most: usize) -> Self {
        let strangers = (most / 2).max(1);
        Self { most: most.max(1), strangers, peer: (strangers / 2).max(1), active_last: false }
    }

    /// For a port at which nobody says who it is: the connection that asked for nothing for the longest
    /// time goes for a newcomer.
    pub fn open(most: usize) -> Self {
        let most = most.max(1);
        Self { most, strangers: most, peer: (most / 2).max(1), active_last: true }
    }
}

/// The place of one connection at a port. Clones are of the same connection.
#[derive(Clone, Debug, Default)]
pub struct Seat(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    peer: IpAddr,
    /// Its age among the others of its class; changed under the lock only.
    order: AtomicU64,
    proven: AtomicBool,
    /// Requests under way.
    busy: AtomicUsize,
    /// Cancelled when the connection has to go.
    evicted: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Shared {
    room: Room,
    state: Mutex<State>,
    /// Somebody left.
    left: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    strangers: BTreeMap<u64, Arc<Inner>>,
    proven: BTreeMap<u64, Arc<Inner>>,
    /// The strangers of each network of peers.
    peers: HashMap<IpAddr, BTreeSet<u64>>,
}

impl State {
    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add_stranger(&mut self, inner: &Arc<Inner>) {
        let order = self.order();
        inner.order.store(order, Ordering::Relaxed);
        self.strangers.insert(order, Arc::clone(inner));
        self.peers.entry(inner.peer).or_default().insert(order);
    }

    /// Takes a connection out of its class; false if it was in none, as one that was evicted.
    fn take(&mut self, inner: &Inner) -> bool {
        let order = inner.order.load(Ordering::Relaxed);
        if self.proven.remove(&order).is_some() {
            return true;
        }
        if let Some(own) = self.peers.get_mut(&inner.peer) {
            own.remove(&order);
            if own.is_empty() {
                self.peers.remove(&inner.peer);
            }
        }
        self.strangers.remove(&order).is_some()
    }

    fn evict(&mut self, inner: &Inner) {
        self.take(inner);
        inner.evicted.cancel();
    }

    /// Ends the oldest stranger, of a network of peers or of all.
    fn evict_stranger(&mut self, peer: Option<IpAddr>) -> bool {
        let oldest = match peer {
            Some(peer) => self.peers.get(&peer).and_then(|own| own.first()).copied(),
            None => self.strangers.first_key_value().map(|(order, _)| *order),
        };
        let oldest = oldest.and_then(|order| self.strangers.get(&order)).cloned();
        oldest.inspect(|inner| self.evict(inner)).is_some()
    }

    /// Ends the connection of a proven client that has been idle for the longest time.
    fn evict_idle(&mut self) -> bool {
        let idle = |inner: &&Arc<Inner>| inner.busy.load(Ordering::Relaxed) == 0;
        let oldest = self.proven.values().find(idle).cloned();
        oldest.inspect(|inner| self.evict(inner)).is_some()
    }

    fn is_full(&self, room: Room) -> bool {
        self.strangers.len() + self.proven.len() >= room.most
    }
}

impl Shared {
    pub(crate) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, state: Mutex::default(), left: Notify::new() })
    }

    /// Returns when somebody who is there already has room, if need be that of an idle client.
    pub(crate) async fn room(&self) {
        loop {
            let left = self.left.notified();
            let mut left = std::pin::pin!(left);
            left.as_mut().enable();
            {
                let mut state = self.state.lock();
                if !state.is_full(self.room) || !state.strangers.is_empty() || state.evict_idle() {
                    return;
                }
            }
            left.await;
        }
    }

    /// Ends a stranger because the process has no file descriptors left; the client that has been idle
    /// for the longest time if there is no stranger.
    pub(crate) fn relieve(&self) -> bool {
        let mut state = self.state.lock();
        state.evict_stranger(None) || state.evict_idle()
    }

    /// Gives a newcomer its place, and ends who has to go for it.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Place {
        let (room, network) = (self.room, neighbourhood(peer));
        let inner = Arc::new(Inner {
            shared: Arc::clone(self),
            peer: network,
            order: AtomicU64::default(),
            proven: AtomicBool::default(),
            busy: AtomicUsize::default(),
            evicted: CancellationToken::new(),
        });
        let mut state = self.state.lock();
        let own = state.peers.get(&network).map_or(0, BTreeSet::len);
        let evicted = if own >= room.peer && !is_loopback(peer) {
            state.evict_stranger(Some(network))
        } else if state.strangers.len() >= room.strangers || state.is_full(room) {
            state.evict_stranger(None)
        } else {
            false
        };
        state.add_stranger(&inner);
        drop(state);
        if evicted {
            tracing::debug!(%peer, "the oldest connection that proved nothing ends for a newcomer");
        }
        Place(inner)
    }
}

/// The place of a connection while it lasts.
pub(crate) struct Place(Arc<Inner>);

impl Place {
    pub(crate) fn seat(&self) -> Seat {
        Seat(Some(Arc::clone(&self.0)))
    }

    pub(crate) fn evicted(&self) -> CancellationToken {
        self.0.evicted.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        shared.state.lock().take(&self.0);
        shared.left.notify_one();
    }
}

impl Seat {
    /// The client has proved who it is: its connection no longer goes for strangers.
    pub fn prove(&self) {
        let Some(inner) = &self.0 else { return };
        if inner.proven.load(Ordering::Relaxed) {
            return;
        }
        let mut state = inner.shared.state.lock();
        if inner.proven.swap(true, Ordering::Relaxed) || !state.take(inner) {
            return;
        }
        let order = state.order();
        inner.order.store(order, Ordering::Relaxed);
        state.proven.insert(order, Arc::clone(inner));
    }

    /// Whether the client has proved who it is.
    pub fn is_proven(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.proven.load(Ordering::Relaxed))
    }

    /// Notes that a request is under way until what is returned is dropped.
    pub fn begin(&self) -> Request {
        if let Some(inner) = &self.0 {
            inner.busy.fetch_add(1, Ordering::Relaxed);
            // A connection that works does not go; its age counts from the end of its work.
            if !inner.proven.load(Ordering::Relaxed) {
                inner.touch();
            }
        }
        Request(self.clone())
    }
}

impl Inner {
    /// The connection is used: it is the youngest of its class now, where that counts.
    fn touch(self: &Arc<Self>) {
        let proven = self.proven.load(Ordering::Relaxed);
        if !proven && !self.shared.room.active_last {
            return;
        }
        let mut state = self.shared.state.lock();
        if !state.take(self) {
            return;
        }
        if self.proven.load(Ordering::Relaxed) {
            let order = state.order();
            self.order.store(order, Ordering::Relaxed);
            state.proven.insert(order, Arc::clone(self));
        } else {
            state.add_stranger(self);
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub struct Request(Seat);

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(inner) = &self.0.0 {
            inner.busy.fetch_sub(1, Ordering::Relaxed);
            inner.touch();
            // It may be what somebody waits for.
            if inner.proven.load(Ordering::Relaxed) {
                inner.shared.left.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn gone(places: &[Place]) -> Vec<usize> {
        let gone = places.iter().enumerate().filter(|(_, place)| place.evicted().is_cancelled());
        gone.map(|(at, _)| at).collect()
    }

    #[test]
    fn the_oldest_stranger_goes_for_a_newcomer_and_who_has_proved_itself_stays() {
        let room = Shared::new(Room::guarded(8));
        let first = room.admit(HERE);
        first.seat().prove();
        let places: Vec<Place> = (0..6).map(|_| room.admit(HERE)).collect();
        // Asking for what anybody may ask makes nobody younger.
        drop(places[2].seat().begin());
        let more = room.admit(HERE);
        assert_eq!(gone(&places), [0, 1, 2]);
        assert!(!first.evicted().is_cancelled() && !more.evicted().is_cancelled());
        // A place that was given away is not proved back, and leaving it takes nothing from anybody.
        places[0].seat().prove();
        drop(places);
        assert_eq!(room.state.lock().strangers.len(), 1);
        assert_eq!(room.state.lock().proven.len(), 1);
        drop((first, more));
        let state = room.state.lock();
        assert!(state.strangers.is_empty() && state.proven.is_empty() && state.peers.is_empty());
    }

    #[test]
    fn strangers_leave_half_of_the_room_to_those_who_prove_themselves() {
        let room = Shared::new(Room::guarded(8));
        let strangers: Vec<Place> = (0..100).map(|_| room.admit(HERE)).collect();
        assert_eq!(gone(&strangers).len(), 96);
        let proven: Vec<Place> = (0..6)
            .map(|_| {
                let place = room.admit(HERE);
                place.seat().prove();
                place
            })
            .collect();
        assert_eq!(gone(&proven), [0; 0]);
        let state = room.state.lock();
        assert_eq!((state.proven.len(), state.strangers.len()), (6, 2));
    }

    #[test]
    fn a_network_of_peers_has_its_share_and_this_machine_has_none() {
        let room = Shared::new(Room::guarded(16));
        let here: Vec<Place> = (0..3).map(|_| room.admit(HERE)).collect();
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut far = Vec::new();
        for last in 1..=10 {
            far.push(room.admit(at(&format!("2001:db8::{last}"))));
        }
        assert_eq!((gone(&far), gone(&here)), ((0..6).collect(), vec![]));
        // The same machine in another form of its address.
        let room = Shared::new(Room::guarded(16));
        let both: Vec<Place> =
            ["10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "10.0.0.1"]
                .into_iter()
                .map(|text| room.admit(at(text)))
                .collect();
        assert_eq!(gone(&both), [0]);
        let room = Shared::new(Room::guarded(16));
        let mapped: Vec<Place> = (0..8).map(|_| room.admit(at("::ffff:127.0.0.1"))).collect();
        assert_eq!(gone(&mapped).len(), 0, "loopback has the whole share, in whatever form");
    }

    #[test]
    fn who_asked_last_stays_where_nobody_says_who_it_is() {
        let room = Shared::new(Room::open(3));
        let places: Vec<Place> = (0..3).map(|_| room.admit(HERE)).collect();
        let seat = places[0].seat();
        let request = seat.begin();
        let fourth = room.admit(HERE);
        assert_eq!(gone(&places), [1]);
        // An answer under way keeps no place for ever: it is the oldest when others have asked since.
        drop(places[2].seat().begin());
        drop(fourth.seat().begin());
        let fifth = room.admit(HERE);
        assert_eq!(gone(&places), [0, 1]);
        drop(request);
        assert!(!fourth.evicted().is_cancelled() && !fifth.evicted().is_cancelled());
    }

    #[test]
    fn a_room_full_of_proven_connections_gives_away_the_longest_idle_one() {
        let room = Shared::new(Room::guarded(3));
        let (places, requests): (Vec<Place>, Vec<Request>) = (0..3)
            .map(|_| {
                let place = room.admit(HERE);
                place.seat().prove();
                let request = place.seat().begin();
                (place, request)
            })
            .unzip();
        assert!(room.room().now_or_never().is_none(), "all of them work");
        drop(requests);
        assert!(room.room().now_or_never().is_some());
        assert_eq!(gone(&places), [0]);
        assert!(room.relieve(), "where there are no strangers, the next idle client goes");
        assert_eq!(gone(&places), [0, 1]);
    }
}
