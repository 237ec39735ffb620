//! Catalogs behind an address: a registry server that somebody else runs, read as a whole.
//!
//! ```text
//!      ┌───────────── the connection ends ◄──────────────┐
//!      ▼                                                 │
//! connect ─► read everything ─► content, READY ─► listen ┴► the server has something new ─► read
//!      │
//!      └─► TRANSIENT_FAILURE, a short pause, connect
//! ```
//!
//! `GRPC_PROXY` leads to servers that `NO_PROXY` does not name, as upstream has it.
//!
//! Nothing is asked while nothing happens. What a server has changes when it is another server, and
//! then the connection ends; or it tells those who watch its health, as ours does. An ended
//! connection is made again at once; one that cannot be made is tried again after pauses that grow to
//! less than a second, each a connection attempt and nothing more, so that a server that comes back is
//! noticed within a second. Until then its last good content goes on counting.

use crate::simulated::{self, ClusterEndpoints, Looked};
use crate::store::{self, CatalogState, CatalogStore};
use futures::future::BoxFuture;
use jiff::SignedDuration;
use mainstay_api::LastObservedState;
use mainstay_catalog::Catalog;
use mainstay_client::Backoff;
use mainstay_image::registry::{Dial, Stream};
use mainstay_object::NamespacedName;
use mainstay_registry::client::{self, Address, Connection, Fault, Unread};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The pauses between attempts to connect.
const CONNECT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(800));
/// The pauses before a server that answers, but not with a catalog, is asked again.
const REFUSED: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// How long a connection, and each message, may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection that lasted so long is made again at once when it ends.
const LASTED: SignedDuration = SignedDuration::from_secs(1);
/// How long a connection may be away before this is told: servers that restart are back sooner.
const BLINK: Duration = Duration::from_millis(200);
/// How long others wait for what a server says for the first time: one that accepts connections and says
/// nothing must not hold up Subscriptions to other catalogs.
const FIRST: Duration = Duration::from_secs(2);
/// How long others wait for what a simulated catalog says for the first time.
pub(crate) const WAITED_FOR: Duration = Duration::from_secs(10);

impl CatalogStore {
    /// Follows the registry at an address; never returns.
    pub(crate) async fn run_address(&self, key: &NamespacedName, address: &str) {
        let mut following = std::pin::pin!(self.follow_address(key, address));
        if tokio::time::timeout(FIRST, &mut following).await.is_err() {
            self.late(key, address);
            following.await;
        }
    }

    async fn follow_address(&self, key: &NamespacedName, address: &str) {
        let parsed: Address = match address.parse() {
            Ok(parsed) => parsed,
            // The next one has another follower.
            Err(fault) => return self.lost(key, address, format!("{LISTING}{fault}")).await,
        };
        // Where pods run nowhere, nobody listens in one or behind a Service.
        let place = simulated::ClusterAddress::of(parsed.host()).filter(|_| self.pods().simulated);
        let mut behind = place
            .zip(self.cluster())
            .map(|(place, cluster)| ClusterEndpoints::begin(&cluster, place, parsed.port()));
        let mut backoff = Backoff::new(CONNECT.0, CONNECT.1);
        let mut refused = Backoff::new(REFUSED.0, REFUSED.1);
        loop {
            let since = self.now();
            if let Some(behind) = &mut behind {
                match self.look_behind(key, address, behind).await {
                    Looked::Elsewhere => {}
                    Looked::Ended => {
                        refused.reset();
                        continue;
                    }
                    Looked::Nobody(why) => {
                        self.lost(key, address, why).await;
                        behind.changed().await;
                        continue;
                    }
                    Looked::Unread(why) => {
                        self.lost(key, address, why).await;
                        // What the Pod has may come without a change of it.
                        let _ = tokio::time::timeout(refused.fail(), behind.changed()).await;
                        continue;
                    }
                }
            }
            if let Some(sibling) = self.sibling(key, &parsed) {
                self.follow_sibling(key, address, &sibling).await;
                continue;
            }
            match self.connect(key, &parsed).await {
                Err(error) => self.lost(key, address, error.to_string()).await,
                Ok(connection) => match self.stay(key, address, &connection).await {
                    Some(failure) => self.lost(key, address, failure).await,
                    // One that comes and goes is not read without end.
                    None if self.now().duration_since(since) >= LASTED => {
                        backoff.reset();
                        continue;
                    }
                    None => {}
                },
            }
            tokio::time::sleep(backoff.fail()).await;
        }
    }

    /// Connects, and says so if that takes longer than a blink.
    async fn connect(
        &self,
        key: &NamespacedName,
        address: &Address,
    ) -> Result<Connection, ConnectionError> {
        let (host, port) = (address.host(), address.port());
        let mut opening = std::pin::pin!(async {
            // gRPC has no TLS here, so the proxy of plain connections is the one.
            match self.proxies().of(false, host, port) {
                None => Connection::open(address, PATIENCE).await,
                Some(proxy) => {
                    let dial: Arc<dyn Dial> = Arc::new(Lasting);
                    let way = proxy.lead(&dial, host, port);
                    Connection::open_through(address, way, PATIENCE).await
                }
            }
        });
        let opened = if let Ok(opened) = tokio::time::timeout(BLINK, &mut opening).await {
            opened
        } else {
            let observed = self.state(key).and_then(|state| state.observed);
            if observed == Some(LastObservedState::Ready) {
                self.observe(key, LastObservedState::Connecting);
            }
            opening.await
        };
        opened.map_err(ConnectionError)
    }

    /// Reads what is there, and again whenever it may have changed, until the connection ends. Says
    /// why nothing was ever read, if nothing was.
    async fn stay(
        &self,
        key: &NamespacedName,
        address: &str,
        connection: &Connection,
    ) -> Option<String> {
        let mut backoff = Backoff::new(REFUSED.0, REFUSED.1);
        let mut watch = connection.watch().await;
        let mut unread = Some(String::new());
        loop {
            let again = match connection.catalog().await {
                Ok((catalog, left_out)) => {
                    unread = None;
                    backoff.reset();
                    let failure = left_out.map(|problems| {
                        format!("what is unsound is left out: {}", problems.headline())
                    });
                    self.read(key, address, catalog, failure).await;
                    None
                }
                Err(Unread::Fault(fault)) if !fault.is_answer() => {
                    let failure = format!("{LISTING}{fault}");
                    if !connection.is_over() {
                        self.lost(key, address, failure.clone()).await;
                    }
                    unread = unread.map(|_| failure);
                    Some(backoff.fail())
                }
                Err(why) => {
                    let failure = format!("{LISTING}{why}");
                    unread = unread.map(|_| failure.clone());
                    let state = CatalogState {
                        content: self.copy(key, address).await,
                        failure: Some(failure),
                        observed: Some(LastObservedState::Ready),
                        ..CatalogState::default()
                    };
                    self.take(key, state, None);
                    Some(backoff.fail())
                }
            };
            let changed = match again {
                None => watch.changed().await,
                Some(pause) => {
                    let changed = tokio::time::timeout(pause, watch.changed()).await;
                    changed.unwrap_or(true)
                }
            };
            if !changed {
                return unread;
            }
        }
    }

    pub(crate) async fn read(
        &self,
        key: &NamespacedName,
        address: &str,
        catalog: Arc<Catalog>,
        failure: Option<String>,
    ) {
        let known = self.state(key).and_then(|state| state.content);
        let observed = Some(LastObservedState::Ready);
        if known.is_some_and(|content| content.catalog().digest() == catalog.digest()) {
            return self.take(
                key,
                CatalogState { failure, observed, ..CatalogState::default() },
                None,
            );
        }
        let (copy, modified) = (self.copy_of(key), self.modified(key));
        let (name, address) = (key.clone(), address.to_owned());
        let made = tokio::task::spawn_blocking(move || {
            if let Some(copy) = &copy {
                store::keep_named(&name, &address, copy, &catalog);
            }
            store::content(catalog, modified)
        });
        if let Ok(content) = made.await {
            self.take(
                key,
                CatalogState {
                    content: Some(content),
                    failure,
                    observed,
                    ..CatalogState::default()
                },
                None,
            );
        }
    }

    /// The registry cannot be reached: what it last had goes on counting, after a restart too.
    async fn lost(&self, key: &NamespacedName, address: &str, failure: String) {
        let state = CatalogState {
            content: self.copy(key, address).await,
            failure: Some(failure),
            observed: Some(LastObservedState::TransientFailure),
            ..CatalogState::default()
        };
        self.take(key, state, None);
    }

    /// What the registry at that address had before a restart, unless something is known already.
    async fn copy(
        &self,
        key: &NamespacedName,
        address: &str,
    ) -> Option<Arc<store::CatalogContent>> {
        let copy = self.copy_of(key)?;
        if self.state(key).is_none_or(|state| state.content.is_some()) {
            return None;
        }
        let (name, address, modified) = (key.clone(), address.to_owned(), self.modified(key));
        let read = move || store::load_copy_of(&name, &address, &copy, modified);
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    /// Says that reading takes long, so that nobody waits for it any more.
    pub(crate) fn late(&self, key: &NamespacedName, address: &str) {
        if self.state(key).is_some_and(|state| state.is_loading()) {
            let failure = Some(format!("{LISTING}the registry at {address} is still being read"));
            let observed = Some(LastObservedState::Connecting);
            self.take(key, CatalogState { failure, observed, ..CatalogState::default() }, None);
        }
    }
}

/// TCP connections to proxies, which are to last.
struct Lasting;

impl Dial for Lasting {
    fn dial(&self, host: String, port: u16) -> BoxFuture<'static, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let host = host.trim_matches(['[', ']']);
            let stream = TcpStream::connect((host, port)).await?;
            client::prepare(&stream);
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

/// How upstream begins to say that a catalog cannot be read.
pub(crate) const LISTING: &str = "failed to list bundles: ";

/// A registry cannot be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{LISTING}{0}")]
struct ConnectionError(Fault);
