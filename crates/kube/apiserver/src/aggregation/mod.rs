//! Groups that others serve: `APIService` objects, and the requests that go where they say.
//!
//! ```text
//! APIService ─► Services (which group and version is whose) ─► request ─► the other server
//!     ▲                                                  └─► discovery: its groups among ours
//!     └── condition Available ◄── a look at Service, endpoints and discovery, every 30 s and on change
//! ```
//!
//! Each remote group-version is looked after by a task of its own: one that stalls holds up nobody,
//! and discovery and documents are answered from what was found last. Behind a Service there may be
//! a process on the host or its network, a handler of this process ([`NativeGroup`]), or a simulated
//! pod, which says that its group-version is there and has no kinds.

mod available;
pub(crate) mod controller;
mod discovery;
pub(crate) mod documents;
mod error;
mod found;
pub(crate) mod local;
mod native;
mod priority;
pub(crate) mod proxy;
mod remote;
mod wire;

pub use self::native::NativeGroup;

use self::found::{Documents, Found, Swagger};
use self::remote::{Remote, STORAGE, has_service};
use arc_swap::ArcSwap;
use mainstay_auth::pki::FrontProxy;
use mainstay_store::Store;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore};

/// The groups of one server that others serve.
#[derive(Debug)]
pub(crate) struct Aggregation {
    current: ArcSwap<Services>,
    natives: RwLock<BTreeMap<String, Arc<dyn NativeGroup>>>,
    /// Rung when a handler was put behind a Service.
    put: Arc<Notify>,
    /// What the server shows others to be believed whom it speaks for.
    front: OnceLock<FrontProxy>,
    /// What the discovery of remote group-versions said last, by the name of their `APIService`.
    found: Mutex<BTreeMap<Arc<str>, Found>>,
    /// What their documents say, by the same name.
    documents: Mutex<BTreeMap<Arc<str>, Documents>>,
    /// The documents of version 2 that were made last, with theirs in them.
    swagger: Mutex<Vec<Swagger>>,
    /// Connections that speak something else to remote servers.
    tunnels: Arc<Semaphore>,
}

/// Streams to remote servers at one time.
const TUNNELS: usize = 1000;

impl Default for Aggregation {
    fn default() -> Self {
        Self {
            current: ArcSwap::default(),
            natives: RwLock::default(),
            put: Arc::default(),
            front: OnceLock::new(),
            found: Mutex::default(),
            documents: Mutex::default(),
            swagger: Mutex::default(),
            tunnels: Arc::new(Semaphore::new(TUNNELS)),
        }
    }
}

/// The `APIService` objects as they are now.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// Those with a Service.
    remotes: Vec<Arc<Remote>>,
}

impl Aggregation {
    /// Puts a handler of this process behind a Service.
    pub(crate) fn put_native(&self, namespace: &str, service: &str, group: Arc<dyn NativeGroup>) {
        self.natives.write().insert(format!("{namespace}/{service}"), group);
        self.put.notify_one();
    }

    /// Gives the server the certificate by which remote servers know it. Only the first one counts.
    pub(crate) fn show(&self, front: FrontProxy) {
        // A second one was a mistake of the program; the first goes on.
        let _ = self.front.set(front);
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

    /// Whether there are none: most servers have none, and need not look further.
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

    /// Reads the `APIService` objects that are stored.
    fn read(&self, store: &Store) {
        let objects = store.list(STORAGE, None);
        let mut remotes: Vec<Arc<Remote>> = objects
            .iter()
            .filter(|stored| has_service(&stored.bytes()))
            .filter_map(|stored| Remote::read(&stored.object()))
            .map(Arc::new)
            .collect();
        // As discovery lists them: groups by priority, versions by theirs.
        remotes.sort_by(|a, b| {
            (b.group_priority.cmp(&a.group_priority))
                .then_with(|| a.group.cmp(&b.group))
                .then_with(|| b.version_priority.cmp(&a.version_priority))
                .then_with(|| a.name.cmp(&b.name))
        });
        let mut found = self.found.lock();
        found.retain(|name, _| remotes.iter().any(|remote| remote.name == *name));
        drop(found);
        let mut documents = self.documents.lock();
        documents.retain(|name, _| remotes.iter().any(|remote| remote.name == *name));
        drop(documents);
        self.current.store(Arc::new(Services { remotes }));
    }
}
