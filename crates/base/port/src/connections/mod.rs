//! Connection admission: how many connections a listener has, and which one ends for a newcomer.
//!
//! A listener has a limit of connections ([`ConnectionLimit`]). Half of it is for clients that have
//! authenticated: connections that have not are never more than the other half. A newcomer is
//! accepted at once; when its share is full, the oldest unauthenticated connection ends for it. So a
//! program that opens connections and sends nothing, or sends slowly, ends its own connections and
//! keeps nobody out: a client that authenticates needs one round trip, and leaves that share then.
//!
//! What an attacker can do, and what happens:
//!
//! * Fill the listener with silence, half-sent heads or half-done handshakes: the oldest of them ends
//!   for each newcomer.
//! * Send requests that need no authentication, again and again, to look young: where clients
//!   authenticate, requests do not renew the age of an unauthenticated connection.
//! * Come from one address: a network of peers (an address of IPv4, a `/64` of IPv6) has half of the
//!   unauthenticated share. Loopback peers all have one address, so that rule does not hold for them.
//! * Come from very many addresses: the oldest still ends first, and a newcomer is the youngest.
//! * Send long heads and never end them: when unauthenticated connections have sent more than 32 MiB of
//!   incomplete requests, the oldest one with more than its share of that ends.
//! * Come with valid credentials: at the limit, the connection that has been idle for the longest time
//!   ends. When none is idle, the user with the most connections loses its oldest one
//!   ([`ConnectionOwner::User`]), so that it keeps nobody out but itself. Connections of administrators
//!   end only when idle.
//! * Take all file descriptors: the same order decides which connection ends then. A limit is never
//!   larger than half of the files that the process may open.

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

/// Bytes of incomplete requests that unauthenticated connections may have sent together.
const MAX_UNREAD: usize = 32 << 20;

/// How many connections a listener has at one time, and their shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimit {
    /// Connections at one time.
    max: usize,
    /// Of those, unauthenticated connections.
    unauthenticated: usize,
    /// Of those, connections of one network of peers.
    peer: usize,
    /// Whether a request renews the age of an unauthenticated connection.
    requests_renew_age: bool,
}

impl ConnectionLimit {
    /// For a listener whose clients authenticate: half of the connections are theirs alone.
    pub fn authenticated(max: usize) -> Self {
        let max = within_open_files(max);
        let unauthenticated = (max / 2).max(1);
        Self { max, unauthenticated, peer: (unauthenticated / 2).max(1), requests_renew_age: false }
    }

    /// For a listener without authentication: the connection whose last request is the oldest ends for
    /// a newcomer.
    pub fn anonymous(max: usize) -> Self {
        let max = within_open_files(max);
        Self { max, unauthenticated: max, peer: (max / 2).max(1), requests_renew_age: true }
    }
}

/// `max`, but no more than half of the files that the process may open; at least one.
fn within_open_files(max: usize) -> usize {
    let files = getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    max.min(files / 2).max(1)
}

/// The client that an authenticated connection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionOwner<'a> {
    /// Its connections end only when they are idle.
    Administrator,
    /// A user, by name. At the limit, when no connection is idle, the user with the most connections
    /// loses one for a newcomer.
    User(&'a str),
}

/// A handle of one connection of a listener. Clones are of the same connection.
#[derive(Clone, Debug, Default)]
pub struct ConnectionHandle(Option<Arc<Connection>>);

#[derive(Debug)]
struct Connection {
    shared: Arc<ConnectionTable>,
    peer: IpAddr,
    /// Its age among the others of its share; changed under the lock only.
    order: AtomicU64,
    authenticated: AtomicBool,
    /// The user it belongs to, once authenticated; none for an administrator.
    user: OnceLock<Arc<str>>,
    /// Requests in progress.
    busy: AtomicUsize,
    /// Bytes received since the last request, while it is unauthenticated.
    unread: AtomicUsize,
    /// Cancelled when the connection must end.
    evicted: CancellationToken,
}

#[derive(Debug)]
pub(crate) struct ConnectionTable {
    limit: ConnectionLimit,
    state: Mutex<State>,
    /// Bytes of incomplete requests of unauthenticated connections.
    unread: AtomicUsize,
    /// A connection or a request has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    unauthenticated: BTreeMap<u64, Arc<Connection>>,
    authenticated: BTreeMap<u64, Arc<Connection>>,
    /// The unauthenticated connections of each network of peers.
    peers: HashMap<IpAddr, BTreeSet<u64>>,
    /// The authenticated connections of each user, without those of administrators.
    users: HashMap<Arc<str>, BTreeSet<u64>>,
}

impl State {
    fn order(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add_unauthenticated(&mut self, connection: &Arc<Connection>) {
        let order = self.order();
        connection.order.store(order, Ordering::Relaxed);
        self.unauthenticated.insert(order, Arc::clone(connection));
        self.peers.entry(connection.peer).or_default().insert(order);
    }

    fn add_authenticated(&mut self, connection: &Arc<Connection>) {
        let order = self.order();
        connection.order.store(order, Ordering::Relaxed);
        self.authenticated.insert(order, Arc::clone(connection));
        if let Some(user) = connection.user.get() {
            self.users.entry(Arc::clone(user)).or_default().insert(order);
        }
    }

    /// Removes a connection from its share; false if it was in none, such as one that was evicted.
    fn take(&mut self, connection: &Connection) -> bool {
        let order = connection.order.load(Ordering::Relaxed);
        if self.authenticated.remove(&order).is_some() {
            if let Some(user) = connection.user.get()
                && let Some(own) = self.users.get_mut(user)
            {
                own.remove(&order);
                if own.is_empty() {
                    self.users.remove(user);
                }
            }
            return true;
        }
        if let Some(own) = self.peers.get_mut(&connection.peer) {
            own.remove(&order);
            if own.is_empty() {
                self.peers.remove(&connection.peer);
            }
        }
        self.unauthenticated.remove(&order).is_some()
    }

    fn evict(&mut self, connection: &Connection) {
        self.take(connection);
        connection.forget_unread();
        connection.evicted.cancel();
    }

    /// Ends the oldest unauthenticated connection that has sent more than `share` bytes of a request.
    fn evict_unread(&mut self, share: usize) {
        let long =
            |connection: &&Arc<Connection>| connection.unread.load(Ordering::Relaxed) > share;
        if let Some(connection) = self.unauthenticated.values().find(long).cloned() {
            tracing::debug!(peer = %connection.peer, "the request head of an unauthenticated connection is too long");
            self.evict(&connection);
        }
    }

    /// Ends the oldest unauthenticated connection, of a network of peers or of all.
    fn evict_unauthenticated(&mut self, peer: Option<IpAddr>) -> bool {
        let oldest = match peer {
            Some(peer) => self.peers.get(&peer).and_then(|own| own.first()).copied(),
            None => self.unauthenticated.first_key_value().map(|(order, _)| *order),
        };
        let oldest = oldest.and_then(|order| self.unauthenticated.get(&order)).cloned();
        oldest.inspect(|connection| self.evict(connection)).is_some()
    }

    /// Ends the authenticated connection that has been idle for the longest time.
    fn evict_idle(&mut self) -> bool {
        let idle = |connection: &&Arc<Connection>| connection.busy.load(Ordering::Relaxed) == 0;
        let oldest = self.authenticated.values().find(idle).cloned();
        oldest.inspect(|connection| self.evict(connection)).is_some()
    }

    /// Ends the oldest connection of the user with the most connections.
    fn evict_largest_user(&mut self) -> bool {
        let age = |own: &BTreeSet<u64>| own.first().copied();
        let largest = self.users.values().max_by_key(|own| (own.len(), Reverse(age(own))));
        let oldest =
            largest.and_then(age).and_then(|order| self.authenticated.get(&order)).cloned();
        oldest.inspect(|connection| self.evict(connection)).is_some()
    }

    /// Ends an authenticated connection: an idle one, or else one of the user with the most.
    fn evict_authenticated(&mut self) -> bool {
        self.evict_idle() || self.evict_largest_user()
    }

    fn is_full(&self, limit: ConnectionLimit) -> bool {
        self.unauthenticated.len() + self.authenticated.len() >= limit.max
    }
}

impl ConnectionTable {
    pub(crate) fn new(limit: ConnectionLimit) -> Arc<Self> {
        Arc::new(Self {
            limit,
            state: Mutex::default(),
            unread: AtomicUsize::new(0),
            ended: Notify::new(),
        })
    }

    /// Returns when a newcomer can be admitted; ends an authenticated connection if that is needed.
    /// Waits only while all connections belong to administrators and have requests in progress.
    pub(crate) async fn wait_for_capacity(&self) {
        loop {
            let ended = self.ended.notified();
            let mut ended = std::pin::pin!(ended);
            ended.as_mut().enable();
            {
                let mut state = self.state.lock();
                if !state.is_full(self.limit)
                    || !state.unauthenticated.is_empty()
                    || state.evict_authenticated()
                {
                    return;
                }
            }
            ended.await;
        }
    }

    /// Ends a connection because the process has no file descriptors left: an unauthenticated one,
    /// or else an authenticated one. Returns whether one ended.
    pub(crate) fn free_descriptor(&self) -> bool {
        let mut state = self.state.lock();
        state.evict_unauthenticated(None) || state.evict_authenticated()
    }

    /// Admits a newcomer, and ends the connection that must end for it.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> AdmittedConnection {
        let (limit, network) = (self.limit, peer_network(peer));
        let connection = Arc::new(Connection {
            shared: Arc::clone(self),
            peer: network,
            order: AtomicU64::default(),
            authenticated: AtomicBool::default(),
            user: OnceLock::new(),
            busy: AtomicUsize::default(),
            unread: AtomicUsize::default(),
            evicted: CancellationToken::new(),
        });
        let mut state = self.state.lock();
        let own = state.peers.get(&network).map_or(0, BTreeSet::len);
        let evicted = if own >= limit.peer && !is_loopback(peer) {
            state.evict_unauthenticated(Some(network))
        } else if state.unauthenticated.len() >= limit.unauthenticated || state.is_full(limit) {
            state.evict_unauthenticated(None)
        } else {
            false
        };
        state.add_unauthenticated(&connection);
        drop(state);
        if evicted {
            tracing::debug!(%peer, "the oldest unauthenticated connection ends for a newcomer");
        }
        AdmittedConnection(connection)
    }
}

/// An admitted connection; dropped when it ends.
pub(crate) struct AdmittedConnection(Arc<Connection>);

impl AdmittedConnection {
    pub(crate) fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(Some(Arc::clone(&self.0)))
    }

    pub(crate) fn evicted(&self) -> CancellationToken {
        self.0.evicted.clone()
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        shared.state.lock().take(&self.0);
        self.0.forget_unread();
        shared.ended.notify_one();
    }
}

impl ConnectionHandle {
    /// Records that the client has authenticated: its connection no longer ends for unauthenticated
    /// ones. It belongs to the client that authenticated first.
    pub fn mark_authenticated(&self, client: ConnectionOwner<'_>) {
        let Some(connection) = &self.0 else { return };
        if connection.authenticated.load(Ordering::Relaxed) {
            return;
        }
        let mut state = connection.shared.state.lock();
        if connection.authenticated.swap(true, Ordering::Relaxed) || !state.take(connection) {
            return;
        }
        if let ConnectionOwner::User(user) = client {
            let existing = state.users.get_key_value(user).map(|(user, _)| Arc::clone(user));
            connection.user.get_or_init(|| existing.unwrap_or_else(|| user.into()));
        }
        state.add_authenticated(connection);
        connection.forget_unread();
    }

    /// Counts received bytes. Those of unauthenticated connections count until a request is complete.
    pub fn count_received(&self, bytes: usize) {
        let Some(connection) = &self.0 else { return };
        if bytes == 0 || connection.authenticated.load(Ordering::Relaxed) {
            return;
        }
        let (shared, limit) = (&connection.shared, connection.shared.limit);
        // The sum first, so that it is never less than its parts.
        let sum = shared.unread.fetch_add(bytes, Ordering::Relaxed) + bytes;
        connection.unread.fetch_add(bytes, Ordering::Relaxed);
        if sum > MAX_UNREAD {
            shared.state.lock().evict_unread(MAX_UNREAD / limit.unauthenticated);
        }
    }

    /// Whether the client has authenticated.
    pub fn is_authenticated(&self) -> bool {
        self.0.as_ref().is_some_and(|connection| connection.authenticated.load(Ordering::Relaxed))
    }

    /// Counts a request as in progress until the guard is dropped.
    pub fn begin_request(&self) -> RequestGuard {
        if let Some(connection) = &self.0 {
            connection.busy.fetch_add(1, Ordering::Relaxed);
            connection.forget_unread();
            // An authenticated connection with a request does not end; its age counts from the end of
            // the request.
            if !connection.authenticated.load(Ordering::Relaxed) {
                connection.renew_age();
            }
        }
        RequestGuard(self.clone())
    }
}

impl Connection {
    fn forget_unread(&self) {
        let bytes = self.unread.swap(0, Ordering::Relaxed);
        self.shared.unread.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Makes the connection the youngest of its share, where requests renew the age.
    fn renew_age(self: &Arc<Self>) {
        let authenticated = self.authenticated.load(Ordering::Relaxed);
        if !authenticated && !self.shared.limit.requests_renew_age {
            return;
        }
        let mut state = self.shared.state.lock();
        if !state.take(self) {
            return;
        }
        if self.authenticated.load(Ordering::Relaxed) {
            state.add_authenticated(self);
        } else {
            state.add_unauthenticated(self);
        }
    }
}

/// A request in progress.
#[derive(Debug)]
pub struct RequestGuard(ConnectionHandle);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        if let Some(connection) = &self.0.0 {
            connection.busy.fetch_sub(1, Ordering::Relaxed);
            connection.renew_age();
            // A newcomer may wait for an idle connection.
            if connection.authenticated.load(Ordering::Relaxed) {
                connection.shared.ended.notify_one();
            }
        }
    }
}

#[cfg(test)]
mod tests;
