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
mod discovery;
mod documents;
mod error;
mod local;
mod proxy;
mod wire;

pub use wire::NativeGroup;

pub(crate) use documents::{Remotes, document, index};
pub(crate) use local::seed;
pub(crate) use proxy::proxied;

use self::available::Looked;
use self::documents::{Documents, Swagger};
use crate::server::ApiServer;
use arc_swap::ArcSwap;
use mainstay_auth::pki::FrontProxy;
use mainstay_object::{Object, Status};
use mainstay_store::{Watch, WatchError};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::{Notify, Semaphore};

/// Where `APIService` objects are stored.
pub(crate) const STORAGE: &str = "apiregistration.k8s.io/apiservices";
const SLICES: &str = "discovery.k8s.io/endpointslices";

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

/// What is known of a group-version's kinds.
#[derive(Clone, Debug)]
struct Found {
    /// An `APIVersionDiscovery`; null if nothing was ever found.
    version: Value,
    /// Whether the last look failed.
    stale: bool,
}

/// The `APIService` objects as they are now.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// Those with a Service.
    remotes: Vec<Arc<Remote>>,
}

/// A group-version that another server has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    name: Arc<str>,
    group: String,
    version: String,
    namespace: String,
    service: String,
    port: u16,
    /// PEM of who signs for the server; empty for nobody.
    ca: Arc<str>,
    insecure: bool,
    /// Whether its condition says that it can be asked.
    available: bool,
    group_priority: i64,
    version_priority: i64,
}

impl Remote {
    fn read(object: &Object) -> Option<Self> {
        let service = object.get(&["spec", "service"]).filter(|service| service.is_object())?;
        let text = |value: &Value, field: &str| {
            value.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let spec = object.get(&["spec"])?;
        let port = service.get("port").and_then(Value::as_u64).unwrap_or(443);
        Some(Self {
            name: object.name().into(),
            group: text(spec, "group"),
            version: text(spec, "version"),
            namespace: text(service, "namespace"),
            service: text(service, "name"),
            port: u16::try_from(port).ok()?,
            ca: wire::bundle(&text(spec, "caBundle")),
            insecure: spec.get("insecureSkipTLSVerify") == Some(&Value::Bool(true)),
            available: available::condition(object)
                .is_some_and(|condition| condition["status"] == "True"),
            group_priority: object.i64(&["spec", "groupPriorityMinimum"]).unwrap_or_default(),
            version_priority: object.i64(&["spec", "versionPriority"]).unwrap_or_default(),
        })
    }

    /// The path of its discovery.
    fn path(&self) -> String {
        if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        }
    }
}

impl Aggregation {
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
    pub(crate) fn availability(&self, store: &mainstay_store::Store) -> Vec<(String, bool)> {
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

    fn read(&self, server: &ApiServer) {
        let objects = server.store.list(STORAGE, None);
        let mut remotes: Vec<Arc<Remote>> = objects
            .iter()
            .filter(|stored| local::has_service(&stored.bytes()))
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

impl ApiServer {
    /// Puts a handler of this process behind a Service: group-versions whose `APIService` names that
    /// Service are asked of the handler, without a socket, and are available without endpoints.
    pub fn put_native_group(&self, namespace: &str, service: &str, group: Arc<dyn NativeGroup>) {
        self.aggregation.natives.write().insert(format!("{namespace}/{service}"), group);
        self.aggregation.put.notify_one();
    }

    /// Tells servers of aggregated groups, in the ConfigMap where they look for it, whose certificates
    /// prove who a client is, and by which headers this server says for whom it asks.
    pub async fn publish_authority(self: &Arc<Self>, authority_pem: &str) -> Result<(), Status> {
        let data = serde_json::json!({
            "client-ca-file": authority_pem, "requestheader-client-ca-file": authority_pem,
            "requestheader-allowed-names": "[\"front-proxy\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
        });
        crate::handlers::bootstrap::authentication(self, data).await
    }

    /// Gives the server the certificate by which servers of aggregated groups know it. Only the
    /// first one counts.
    pub fn show_to_backends(&self, front: FrontProxy) {
        // A second one was a mistake of the program; the first goes on.
        let _ = self.aggregation.front.set(front);
    }
}

/// Reads what there is and follows it until the server's end.
pub(crate) fn start(server: &Arc<ApiServer>) -> Result<(), Status> {
    let revision = server.store.revision();
    server.aggregation.read(server);
    let watch = |storage| server.store.watch(storage, revision).map_err(Status::internal);
    let watches = Watches {
        registered: watch(STORAGE)?,
        services: watch("services")?,
        slices: watch(SLICES)?,
        definitions: watch(crate::handlers::definitions::STORAGE)?,
        put: server.aggregation.put.clone(),
    };
    let stop = server.stop.clone();
    let followed = follow(Arc::downgrade(server), watches);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = followed => {}
        }
    });
    Ok(())
}

struct Watches {
    registered: Watch,
    services: Watch,
    slices: Watch,
    definitions: Watch,
    put: Arc<Notify>,
}

/// What has changed.
enum Changed {
    Registered,
    Endpoints,
    Definitions,
}

impl Watches {
    async fn next(&mut self) -> Result<Changed, WatchError> {
        const MANY: usize = 256;
        tokio::select! {
            batch = self.registered.next_batch(MANY) => batch.map(|_| Changed::Registered),
            batch = self.services.next_batch(MANY) => batch.map(|_| Changed::Endpoints),
            batch = self.slices.next_batch(MANY) => batch.map(|_| Changed::Endpoints),
            () = self.put.notified() => Ok(Changed::Endpoints),
            batch = self.definitions.next_batch(MANY) => batch.map(|_| Changed::Definitions),
        }
    }

    fn again(server: &ApiServer) -> Option<Self> {
        let revision = server.store.revision();
        let watch = |storage| server.store.watch(storage, revision).ok();
        Some(Self {
            registered: watch(STORAGE)?,
            services: watch("services")?,
            slices: watch(SLICES)?,
            definitions: watch(crate::handlers::definitions::STORAGE)?,
            put: server.aggregation.put.clone(),
        })
    }
}

/// Ends with the store or the server.
async fn follow(server: Weak<ApiServer>, mut watches: Watches) {
    // Who looks after which remote group-version; ended by being dropped.
    let mut keepers: HashMap<Arc<str>, (Arc<Notify>, Looked)> = HashMap::new();
    let mut known = local::Known::default();
    let mut changed = Changed::Definitions;
    loop {
        {
            let Some(server) = server.upgrade() else { return };
            let empty = keepers.is_empty() && server.aggregation.is_empty();
            match changed {
                Changed::Endpoints if empty => {}
                Changed::Endpoints => keepers.values().for_each(|(bell, _)| bell.notify_one()),
                Changed::Registered => server.aggregation.read(&server),
                Changed::Definitions => {
                    known.settle(&server).await;
                    server.aggregation.read(&server);
                }
            }
            if !matches!(changed, Changed::Endpoints) {
                known.tell(&server).await;
                look_after(&server, &mut keepers);
            }
        }
        changed = match watches.next().await {
            Ok(changed) => changed,
            Err(WatchError::Closed) => return,
            Err(WatchError::Expired(_)) => {
                let Some(server) = server.upgrade() else { return };
                let Some(again) = Watches::again(&server) else { return };
                watches = again;
                Changed::Definitions
            }
        };
    }
}

/// Begins to look after what is new, and ends with what is gone.
fn look_after(server: &Arc<ApiServer>, keepers: &mut HashMap<Arc<str>, (Arc<Notify>, Looked)>) {
    let services = server.aggregation.current.load_full();
    keepers.retain(|name, _| services.remotes.iter().any(|remote| remote.name == *name));
    for remote in &services.remotes {
        if let Some((bell, seen)) = keepers.get_mut(&remote.name) {
            if seen.differs(remote) {
                seen.now(remote);
                bell.notify_one();
            }
        } else {
            let bell = Arc::new(Notify::new());
            let looked = Looked::begin(server, remote, bell.clone());
            keepers.insert(remote.name.clone(), (bell, looked));
        }
    }
}
