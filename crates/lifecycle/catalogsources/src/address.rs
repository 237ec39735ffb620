//! Catalogs at an address: the content of a registry server that users run, read as a whole.
//!
//! ```text
//!      ┌───────────── the connection ends ◄──────────────┐
//!      ▼                                                 │
//! connect ─► read everything ─► content, READY ─► listen ┴► the server has something new ─► read
//!      │
//!      └─► TRANSIENT_FAILURE, a short pause, connect
//! ```
//!
//! As in upstream, connections to servers that `NO_PROXY` does not name go through `GRPC_PROXY`.
//!
//! The store does not poll servers. The content changes when another server takes the address,
//! which ends the connection, or when a server reports a change to clients that watch its health,
//! as Mainstay's registry does. An ended connection is opened again at once. A failed connection is
//! retried after pauses that stay below a second, so a server that returns is noticed within a
//! second. Each retry is one connection attempt. Until the server returns, its last good content
//! stays in use.

use crate::simulated::{self, ClusterEndpoints, PodReadEnd};
use crate::store::{self, CatalogStore, SourceState};
use futures::future::BoxFuture;
use jiff::SignedDuration;
use mainstay_api::LastObservedState;
use mainstay_catalog::Catalog;
use mainstay_client::Backoff;
use mainstay_image::registry::{Dialer, RegistryStream};
use mainstay_object::NamespacedName;
use mainstay_registry::client::{self, Address, ReadCatalogError, RegistryConnection, RpcError};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The first and the longest pause between connection attempts.
const CONNECT_BACKOFF: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_millis(800));
/// The first and the longest pause before the store reads again from a server that answered without
/// a catalog.
const READ_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// Timeout of opening a connection and of each message.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// A connection that lasted this long is opened again at once when it ends.
const STABLE_CONNECTION: SignedDuration = SignedDuration::from_secs(1);
/// How long a connection may be lost before the status says so: a server that restarts returns
/// sooner.
const RECONNECT_GRACE: Duration = Duration::from_millis(200);
/// How long resolution waits for the first content of a server: a server that accepts connections
/// and sends nothing must not delay Subscriptions to other catalogs.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(2);
/// How long resolution waits for the first content of a catalog in a simulated pod.
pub(crate) const SIMULATED_READ_TIMEOUT: Duration = Duration::from_secs(10);

impl CatalogStore {
    /// Follows the registry at an address; never returns.
    pub(crate) async fn run_address(&self, key: &NamespacedName, address: &str) {
        let mut following = std::pin::pin!(self.follow_address(key, address));
        if tokio::time::timeout(FIRST_READ_TIMEOUT, &mut following).await.is_err() {
            self.report_slow_read(key, address);
            following.await;
        }
    }

    async fn follow_address(&self, key: &NamespacedName, address: &str) {
        let parsed: Address = match address.parse() {
            Ok(parsed) => parsed,
            // An edited address gets a new follower.
            Err(fault) => {
                return self
                    .report_unreachable(key, address, format!("{LIST_ERROR_PREFIX}{fault}"))
                    .await;
            }
        };
        // With simulated pods, no process listens at a pod IP or behind a Service.
        let cluster_address =
            simulated::ClusterAddress::of(parsed.host()).filter(|_| self.pods().simulated);
        let mut endpoints =
            cluster_address.zip(self.cluster()).map(|(cluster_address, cluster)| {
                ClusterEndpoints::watch(&cluster, cluster_address, parsed.port())
            });
        let mut backoff = Backoff::new(CONNECT_BACKOFF.0, CONNECT_BACKOFF.1);
        let mut refused = Backoff::new(READ_BACKOFF.0, READ_BACKOFF.1);
        loop {
            let since = self.now();
            if let Some(endpoints) = &mut endpoints {
                match self.follow_simulated_pod(key, address, endpoints).await {
                    PodReadEnd::NotSimulated => {}
                    PodReadEnd::Ended => {
                        refused.reset();
                        continue;
                    }
                    PodReadEnd::NoPod(why) => {
                        self.report_unreachable(key, address, why).await;
                        endpoints.changed().await;
                        continue;
                    }
                    PodReadEnd::Unreadable(why) => {
                        self.report_unreachable(key, address, why).await;
                        // The ConfigMap or image of the Pod may appear without a change of the Pod.
                        let _ = tokio::time::timeout(refused.fail(), endpoints.changed()).await;
                        continue;
                    }
                }
            }
            if let Some(sibling) = self.catalog_source_at(key, &parsed) {
                self.follow_catalog_source(key, address, &sibling).await;
                continue;
            }
            match self.connect(key, &parsed).await {
                Err(error) => self.report_unreachable(key, address, error.to_string()).await,
                Ok(connection) => {
                    match self.read_until_disconnected(key, address, &connection).await {
                        Some(failure) => self.report_unreachable(key, address, failure).await,
                        // A server whose connections end at once is retried with growing pauses.
                        None if self.now().duration_since(since) >= STABLE_CONNECTION => {
                            backoff.reset();
                            continue;
                        }
                        None => {}
                    }
                }
            }
            tokio::time::sleep(backoff.fail()).await;
        }
    }

    /// Opens a connection; the state becomes `CONNECTING` if that takes longer than
    /// [`RECONNECT_GRACE`].
    async fn connect(
        &self,
        key: &NamespacedName,
        address: &Address,
    ) -> Result<RegistryConnection, ConnectionError> {
        let (host, port) = (address.host(), address.port());
        let mut connecting = std::pin::pin!(async {
            // Upstream dials registries without TLS, so the proxy for plain connections applies.
            match self.proxies().of(false, host, port) {
                None => RegistryConnection::open(address, CONNECTION_TIMEOUT).await,
                Some(proxy) => {
                    let dial: Arc<dyn Dialer> = Arc::new(KeepAliveDial);
                    let tunnel = proxy.lead(&dial, host, port);
                    RegistryConnection::open_through(address, tunnel, CONNECTION_TIMEOUT).await
                }
            }
        });
        let connection =
            if let Ok(connection) = tokio::time::timeout(RECONNECT_GRACE, &mut connecting).await {
                connection
            } else {
                let observed = self.state(key).and_then(|state| state.observed);
                if observed == Some(LastObservedState::Ready) {
                    self.set_connection_state(key, LastObservedState::Connecting);
                }
                connecting.await
            };
        connection.map_err(ConnectionError)
    }

    /// Reads the catalog, and again whenever the server reports a change, until the connection
    /// ends. Returns the failure if no content was read over this connection.
    async fn read_until_disconnected(
        &self,
        key: &NamespacedName,
        address: &str,
        connection: &RegistryConnection,
    ) -> Option<String> {
        let mut backoff = Backoff::new(READ_BACKOFF.0, READ_BACKOFF.1);
        let mut watch = connection.watch().await;
        let mut failure_before_read = Some(String::new());
        loop {
            let again = match connection.catalog().await {
                Ok((catalog, left_out)) => {
                    failure_before_read = None;
                    backoff.reset();
                    let failure = left_out.map(|problems| {
                        format!("what is unsound is left out: {}", problems.headline())
                    });
                    self.update_content(key, address, catalog, failure).await;
                    None
                }
                Err(ReadCatalogError::Fault(fault)) if !fault.is_from_server() => {
                    let failure = format!("{LIST_ERROR_PREFIX}{fault}");
                    if !connection.is_closed() {
                        self.report_unreachable(key, address, failure.clone()).await;
                    }
                    failure_before_read = failure_before_read.map(|_| failure);
                    Some(backoff.fail())
                }
                Err(why) => {
                    let failure = format!("{LIST_ERROR_PREFIX}{why}");
                    failure_before_read = failure_before_read.map(|_| failure.clone());
                    let state = SourceState {
                        content: self.load_last_copy(key, address).await,
                        failure: Some(failure),
                        observed: Some(LastObservedState::Ready),
                        ..SourceState::default()
                    };
                    self.update_state(key, state, None);
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
                return failure_before_read;
            }
        }
    }

    pub(crate) async fn update_content(
        &self,
        key: &NamespacedName,
        address: &str,
        catalog: Arc<Catalog>,
        failure: Option<String>,
    ) {
        let known = self.state(key).and_then(|state| state.content);
        let observed = Some(LastObservedState::Ready);
        if known.is_some_and(|content| content.catalog().digest() == catalog.digest()) {
            return self.update_state(
                key,
                SourceState { failure, observed, ..SourceState::default() },
                None,
            );
        }
        let (copy, modified) = (self.copy_path(key), self.modification_time(key));
        let (name, address) = (key.clone(), address.to_owned());
        let indexed = tokio::task::spawn_blocking(move || {
            if let Some(copy) = &copy {
                store::save_copy_of(&name, &address, copy, &catalog);
            }
            store::content(catalog, modified)
        });
        if let Ok(content) = indexed.await {
            self.update_state(
                key,
                SourceState { content: Some(content), failure, observed, ..SourceState::default() },
                None,
            );
        }
    }

    /// Reports that the registry cannot be reached; its last content stays in use, after a restart
    /// too.
    async fn report_unreachable(&self, key: &NamespacedName, address: &str, failure: String) {
        let state = SourceState {
            content: self.load_last_copy(key, address).await,
            failure: Some(failure),
            observed: Some(LastObservedState::TransientFailure),
            ..SourceState::default()
        };
        self.update_state(key, state, None);
    }

    /// The content that the registry at this address had before a restart; none if the store
    /// already has content.
    async fn load_last_copy(
        &self,
        key: &NamespacedName,
        address: &str,
    ) -> Option<Arc<store::SourceContent>> {
        let copy = self.copy_path(key)?;
        if self.state(key).is_none_or(|state| state.content.is_some()) {
            return None;
        }
        let (name, address, modified) =
            (key.clone(), address.to_owned(), self.modification_time(key));
        let read = move || store::load_copy_of(&name, &address, &copy, modified);
        tokio::task::spawn_blocking(read).await.ok().flatten()
    }

    /// Reports that the first read takes long, so that resolution stops waiting for it.
    pub(crate) fn report_slow_read(&self, key: &NamespacedName, address: &str) {
        if self.state(key).is_some_and(|state| state.is_loading()) {
            let failure =
                Some(format!("{LIST_ERROR_PREFIX}the registry at {address} is still being read"));
            let observed = Some(LastObservedState::Connecting);
            self.update_state(
                key,
                SourceState { failure, observed, ..SourceState::default() },
                None,
            );
        }
    }
}

/// Dials proxies with the socket options of long-lived connections.
struct KeepAliveDial;

impl Dialer for KeepAliveDial {
    fn dial(
        &self,
        host: String,
        port: u16,
    ) -> BoxFuture<'static, io::Result<Box<dyn RegistryStream>>> {
        Box::pin(async move {
            let host = host.trim_matches(['[', ']']);
            let stream = TcpStream::connect((host, port)).await?;
            client::prepare(&stream);
            Ok(Box::new(stream) as Box<dyn RegistryStream>)
        })
    }
}

/// Start of upstream's message for an unreadable catalog.
pub(crate) const LIST_ERROR_PREFIX: &str = "failed to list bundles: ";

/// A registry cannot be connected to.
#[derive(Debug, thiserror::Error)]
#[error("{LIST_ERROR_PREFIX}{0}")]
struct ConnectionError(RpcError);
