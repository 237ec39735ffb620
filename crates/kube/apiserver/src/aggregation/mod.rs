//! API aggregation: `APIService` objects, and the proxy to the API servers that they name.
//!
//! ```text
//! APIService ─► RemoteServices (which server has which group-version) ─► request ─► the other server
//!     ▲                                                  └─► discovery: its groups among ours
//!     └── condition Available ◄── check of Service, endpoints and discovery, every 30 s and on change
//! ```
//!
//! A separate task monitors each remote group-version, so that a stalled server delays no other.
//! Discovery and documents come from the last check. Behind a Service there may be a process on the
//! host or its network, an in-process handler ([`NativeGroup`]), or a simulated pod, which serves its
//! group-version without any kinds.

mod available;
pub(crate) mod controller;
mod discovery;
pub(crate) mod documents;
mod error;
pub(crate) mod local;
mod native;
mod observed;
mod priority;
pub(crate) mod proxy;
mod remote;
mod transport;

pub use self::native::NativeGroup;

use self::observed::{CachedSwagger, ObservedDiscovery, ObservedDocuments};
use self::remote::{Remote, STORAGE, has_service};
use arc_swap::ArcSwap;
use mainstay_auth::pki::FrontProxy;
use mainstay_store::Store;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore};

/// The aggregated groups of one server.
#[derive(Debug)]
pub(crate) struct Aggregation {
    current: ArcSwap<RemoteServices>,
    natives: RwLock<BTreeMap<String, Arc<dyn NativeGroup>>>,
    /// Notified when an in-process handler was put behind a Service.
    backend_added: Arc<Notify>,
    /// The client certificate by which aggregated servers trust the identity headers of this
    /// server.
    front_proxy: OnceLock<FrontProxy>,
    /// The last observed discovery of remote group-versions, by the name of their `APIService`.
    discovered: Mutex<BTreeMap<Arc<str>, ObservedDiscovery>>,
    /// Their last observed OpenAPI documents, by the same name.
    documents: Mutex<BTreeMap<Arc<str>, ObservedDocuments>>,
    /// Cached version 2 documents, including the parts of remote groups.
    swagger: Mutex<Vec<CachedSwagger>>,
    /// Limits the upgraded connections to remote servers.
    tunnels: Arc<Semaphore>,
}

/// Upgraded connections to remote servers at one time.
const TUNNELS: usize = 1000;

impl Default for Aggregation {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            natives: RwLock::default(),
            backend_added: Arc::default(),
            front_proxy: OnceLock::new(),
            discovered: Mutex::default(),
            documents: Mutex::default(),
            swagger: Mutex::default(),
            tunnels: Arc::new(Semaphore::new(TUNNELS)),
        }
    }
}

/// The `APIService` objects at one revision.
#[derive(Debug, Default)]
pub(crate) struct RemoteServices {
    /// Those that name a Service.
    remotes: Vec<Arc<Remote>>,
}

impl Aggregation {
    /// Puts an in-process handler behind a Service.
    pub(crate) fn put_native(&self, namespace: &str, service: &str, group: Arc<dyn NativeGroup>) {
        self.natives.write().insert(format!("{namespace}/{service}"), group);
        self.backend_added.notify_one();
    }

    /// Sets the client certificate for remote servers. Only the first call has an effect.
    pub(crate) fn set_front_proxy(&self, front_proxy: FrontProxy) {
        // A second call is a mistake of the program; the first certificate stays.
        let _ = self.front_proxy.set(front_proxy);
    }

    /// The remote server of a group-version, if it has one.
    pub(crate) fn remote(&self, group: &str, version: &str) -> Option<Arc<Remote>> {
        let services = self.current.load();
        services
            .remotes
            .iter()
            .find(|remote| remote.group == group && remote.version == version)
            .cloned()
    }

    /// Whether there is no remote group-version, which is the usual case.
    pub(crate) fn is_empty(&self) -> bool {
        self.current.load().remotes.is_empty()
    }

    /// The names of all `APIService` objects, and whether they are available.
    pub(crate) fn availability(&self, store: &Store) -> Vec<(String, bool)> {
        let services = self.current.load();
        let all = store.list(STORAGE, None);
        let available = |name: &str| {
            let remote = services.remotes.iter().find(|remote| *remote.name == *name);
            remote.is_none_or(|remote| remote.available)
        };
        let names = all.iter().map(|stored| stored.object().name().to_owned());
        names.map(|name| (available(&name), name)).map(|(is, name)| (name, is)).collect()
    }

    fn native(&self, remote: &Remote) -> Option<Arc<dyn NativeGroup>> {
        let natives = self.natives.read();
        natives.get(&format!("{}/{}", remote.namespace, remote.service)).cloned()
    }

    /// Reads the stored `APIService` objects.
    fn read(&self, store: &Store) {
        let objects = store.list(STORAGE, None);
        let mut remotes: Vec<Arc<Remote>> = objects
            .iter()
            .filter(|stored| has_service(&stored.bytes()))
            .filter_map(|stored| Remote::read(&stored.object()))
            .map(Arc::new)
            .collect();
        // In the order of discovery: groups by priority, then versions by priority.
        remotes.sort_by(|a, b| {
            (b.group_priority.cmp(&a.group_priority))
                .then_with(|| a.group.cmp(&b.group))
                .then_with(|| b.version_priority.cmp(&a.version_priority))
                .then_with(|| a.name.cmp(&b.name))
        });
        let mut discovered = self.discovered.lock();
        discovered.retain(|name, _| remotes.iter().any(|remote| remote.name == *name));
        drop(discovered);
        let mut documents = self.documents.lock();
        documents.retain(|name, _| remotes.iter().any(|remote| remote.name == *name));
        drop(documents);
        self.current.store(Arc::new(RemoteServices { remotes }));
    }
}
