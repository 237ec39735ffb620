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
//! * Send long heads and never end them: when strangers have sent more than 32 MiB of requests that are not
//!   complete, the oldest one with more than its share of that ends.
//! * Come with good credentials: when the room is full, the connection that has been idle for the longest
//!   time goes. When all of them work, the client with the most connections loses its oldest one
//!   ([`Client::User`]), so that it keeps nobody out but itself. Those of administrators go only when idle.
//! * Take all file descriptors: the same order decides who ends then. A room is never larger than half of
//!   the files that the process may open.

use mainstay_formats::destination::{is_loopback, peer_network};
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many bytes of requests that are not complete strangers may have sent together.
const UNREAD: usize = 32 << 20;

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
        let most = within_open_files(most);
        let strangers = (most / 2).max(1);
        Self { most, strangers, peer: (strangers / 2).max(1), active_last: false }
    }

    /// For a port at which nobody says who it is: the connection that asked for nothing for the longest
    /// time goes for a newcomer.
    pub fn open(most: usize) -> Self {
        let most = within_open_files(most);
        Self { most, strangers: most, peer: (most / 2).max(1), active_last: true }
    }
}

/// As many of so many connections as half of the files allow that the process may open; at least one.
fn within_open_files(most: usize) -> usize {
    let files = getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    most.min(files / 2).max(1)
}

/// Who a proven connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client<'a> {
    /// Keeps its connections as long as they work.
    Administrator,
    /// One of the users, who share the room: whoever has the most connections loses one when all of
    /// them work and there is no room for a newcomer.
    User(&'a str),
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
    /// Whose it is, once that is proven; none for an administrator.
    user: OnceLock<Arc<str>>,
    /// Requests under way.
    busy: AtomicUsize,
    /// Bytes that came since the last request, while it is a stranger.
    unread: AtomicUsize,
    /// Cancelled when the connection has to go.
    evicted: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct Shared {
    room: Room,
    state: Mutex<State>,
    /// Bytes of requests of strangers that are not complete.
    unread: AtomicUsize,
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
    /// The proven connections of each user, without those of administrators.
    users: HashMap<Arc<str>, BTreeSet<u64>>,
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

    fn add_proven(&mut self, inner: &Arc<Inner>) {
        let order = self.order();
        inner.order.store(order, Ordering::Relaxed);
        self.proven.insert(order, Arc::clone(inner));
        if let Some(user) = inner.user.get() {
            self.users.entry(Arc::clone(user)).or_default().insert(order);
        }
    }

    /// Takes a connection out of its class; false if it was in none, as one that was evicted.
    fn take(&mut self, inner: &Inner) -> bool {
        let order = inner.order.load(Ordering::Relaxed);
        if self.proven.remove(&order).is_some() {
            if let Some(user) = inner.user.get()
                && let Some(own) = self.users.get_mut(user)
            {
                own.remove(&order);
                if own.is_empty() {
                    self.users.remove(user);
                }
            }
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
        inner.forget_unread();
        inner.evicted.cancel();
    }

    /// Ends the oldest stranger that has sent more of a request than a share of all that may be unread.
    fn evict_unread(&mut self, share: usize) {
        let long = |inner: &&Arc<Inner>| inner.unread.load(Ordering::Relaxed) > share;
        if let Some(inner) = self.strangers.values().find(long).cloned() {
            tracing::debug!(peer = %inner.peer, "the head of a stranger's request is too long for the room");
            self.evict(&inner);
        }
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

    /// Ends the oldest connection of the user who has the most.
    fn evict_largest_user(&mut self) -> bool {
        let age = |own: &BTreeSet<u64>| own.first().copied();
        let largest = self.users.values().max_by_key(|own| (own.len(), Reverse(age(own))));
        let oldest = largest.and_then(age).and_then(|order| self.proven.get(&order)).cloned();
        oldest.inspect(|inner| self.evict(inner)).is_some()
    }

    /// Ends a connection of a proven client: an idle one, or else one of the largest user.
    fn evict_proven(&mut self) -> bool {
        self.evict_idle() || self.evict_largest_user()
    }

    fn is_full(&self, room: Room) -> bool {
        self.strangers.len() + self.proven.len() >= room.most
    }
}

impl Shared {
    pub(crate) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self {
            room,
            state: Mutex::default(),
            unread: AtomicUsize::new(0),
            left: Notify::new(),
        })
    }

    /// Returns when there is room for a newcomer, or somebody has to go for it. It waits only while all
    /// connections belong to administrators who work.
    pub(crate) async fn room(&self) {
        loop {
            let left = self.left.notified();
            let mut left = std::pin::pin!(left);
            left.as_mut().enable();
            {
                let mut state = self.state.lock();
                if !state.is_full(self.room) || !state.strangers.is_empty() || state.evict_proven()
                {
                    return;
                }
            }
            left.await;
        }
    }

    /// Ends a stranger because the process has no file descriptors left; a proven client's connection if
    /// there is no stranger.
    pub(crate) fn relieve(&self) -> bool {
        let mut state = self.state.lock();
        state.evict_stranger(None) || state.evict_proven()
    }

    /// Gives a newcomer its place, and ends who has to go for it.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Place {
        let (room, network) = (self.room, peer_network(peer));
        let inner = Arc::new(Inner {
            shared: Arc::clone(self),
            peer: network,
            order: AtomicU64::default(),
            proven: AtomicBool::default(),
            user: OnceLock::new(),
            busy: AtomicUsize::default(),
            unread: AtomicUsize::default(),
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
        self.0.forget_unread();
        shared.left.notify_one();
    }
}

impl Seat {
    /// The client has proved who it is: its connection no longer goes for strangers.
    /// It belongs to the client that proved itself first.
    pub fn prove(&self, client: Client<'_>) {
        let Some(inner) = &self.0 else { return };
        if inner.proven.load(Ordering::Relaxed) {
            return;
        }
        let mut state = inner.shared.state.lock();
        if inner.proven.swap(true, Ordering::Relaxed) || !state.take(inner) {
            return;
        }
        if let Client::User(user) = client {
            let known = state.users.get_key_value(user).map(|(user, _)| Arc::clone(user));
            inner.user.get_or_init(|| known.unwrap_or_else(|| user.into()));
        }
        state.add_proven(inner);
        inner.forget_unread();
    }

    /// Notes that so many bytes came. What strangers send counts until a request of theirs is complete.
    pub fn received(&self, bytes: usize) {
        let Some(inner) = &self.0 else { return };
        if bytes == 0 || inner.proven.load(Ordering::Relaxed) {
            return;
        }
        let (shared, room) = (&inner.shared, inner.shared.room);
        // First the sum: it is never less than its parts.
        let sum = shared.unread.fetch_add(bytes, Ordering::Relaxed) + bytes;
        inner.unread.fetch_add(bytes, Ordering::Relaxed);
        if sum > UNREAD {
            shared.state.lock().evict_unread(UNREAD / room.strangers);
        }
    }

    /// Whether the client has proved who it is.
    pub fn is_proven(&self) -> bool {
        self.0.as_ref().is_some_and(|inner| inner.proven.load(Ordering::Relaxed))
    }

    /// Notes that a request is under way until what is returned is dropped.
    pub fn begin(&self) -> Request {
        if let Some(inner) = &self.0 {
            inner.busy.fetch_add(1, Ordering::Relaxed);
            inner.forget_unread();
            // A connection that works does not go; its age counts from the end of its work.
            if !inner.proven.load(Ordering::Relaxed) {
                inner.touch();
            }
        }
        Request(self.clone())
    }
}

impl Inner {
    fn forget_unread(&self) {
        let bytes = self.unread.swap(0, Ordering::Relaxed);
        self.shared.unread.fetch_sub(bytes, Ordering::Relaxed);
    }

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
            state.add_proven(self);
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
        first.seat().prove(Client::Administrator);
        let places: Vec<Place> = (0..6).map(|_| room.admit(HERE)).collect();
        // Asking for what anybody may ask makes nobody younger.
        drop(places[2].seat().begin());
        let more = room.admit(HERE);
        assert_eq!(gone(&places), [0, 1, 2]);
        assert!(!first.evicted().is_cancelled() && !more.evicted().is_cancelled());
        // A place that was given away is not proved back, and leaving it takes nothing from anybody.
        places[0].seat().prove(Client::Administrator);
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
                place.seat().prove(Client::Administrator);
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
                place.seat().prove(Client::Administrator);
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

    #[test]
    fn a_user_whose_connections_all_work_keeps_nobody_else_out() {
        let room = Shared::new(Room::guarded(6));
        let mut requests = Vec::new();
        let mut busy = |client: Client<'_>| {
            assert!(room.room().now_or_never().is_some(), "{client:?} is let in");
            let place = room.admit(HERE);
            place.seat().prove(client);
            requests.push(place.seat().begin());
            place
        };
        let administrator = busy(Client::Administrator);
        let other = busy(Client::User("system:serviceaccount:a"));
        let greedy: Vec<Place> = (0..8).map(|_| busy(Client::User("greedy"))).collect();
        assert_eq!(gone(&greedy), [0, 1, 2, 3], "its own connections end for its own");
        let newcomers = [busy(Client::User("b")), busy(Client::Administrator)];
        assert_eq!(gone(&greedy), [0, 1, 2, 3, 4, 5]);
        assert_eq!(gone(&[administrator, other]), [0; 0]);
        assert_eq!(gone(&newcomers), [0; 0]);
        assert!(room.relieve(), "also when no file descriptors are left");
        drop((greedy, newcomers, requests));
        let state = room.state.lock();
        assert!(state.proven.is_empty() && state.users.is_empty());
    }

    #[test]
    fn long_heads_of_strangers_end_their_own_connections() {
        let room = Shared::new(Room::guarded(2048));
        let quiet = room.admit(HERE);
        quiet.seat().received(1000);
        let known = room.admit(HERE);
        known.seat().prove(Client::User("known"));
        known.seat().received(2 * UNREAD);
        let places: Vec<Place> = (0..200).map(|_| room.admit(HERE)).collect();
        for place in &places {
            place.seat().received(256 << 10);
        }
        let most = (UNREAD - 1000) / (256 << 10);
        assert_eq!(gone(&places), (0..200 - most).collect::<Vec<_>>(), "the oldest of them");
        assert_eq!(gone(&[quiet, known]), [0; 0]);
        // A head that is complete counts no more, nor does a connection that has ended.
        drop(places[199].seat().begin());
        drop(places);
        assert_eq!(room.unread.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_room_is_no_larger_than_half_of_the_files_allow() {
        let files =
            getrlimit(Resource::Nofile).current.map(|files| usize::try_from(files).unwrap());
        let Room { most, .. } = Room::open(usize::MAX);
        assert_eq!(Some(most), files.map(|files| files / 2).or(Some(usize::MAX)));
        assert_eq!(Room::guarded(0).most, 1);
    }
}
