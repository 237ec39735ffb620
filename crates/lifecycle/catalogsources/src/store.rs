//! Catalog store: the content and the state of every catalog.
//!
//! ```text
//! folder ── change ─► wait until quiet ─► load (own thread) ─┬─ good ─► content, copy on disk
//!                                                            └─ bad ──► message, content stays
//! ```
//!
//! Readers take an `Arc` and never wait. A folder that cannot be loaded keeps its last good
//! content, after a restart too, from a copy on disk. Images are loaded in the same way (`images`).

use crate::config_map::ConfigMapMetadata;
use crate::follow::Followers;
use crate::mode::CatalogPods;
use crate::store_options::{FolderCatalog, RegistryEndpoints, ServedAt, StoreOptions};
use jiff::Timestamp;
use mainstay_api::LastObservedState;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_files::Durability;
use mainstay_image::registry::Proxies;
use mainstay_images::Puller;
use mainstay_object::NamespacedName;
use mainstay_registry::{RegistryIndex, ServedCatalog, reload};
use mainstay_resolver::Snapshot;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The largest size of the file that names the source of a copy, in bytes.
const MAX_SOURCE_FILE_SIZE: u64 = 64 << 10;

/// The content of a catalog, for registry clients and for resolution.
pub struct SourceContent {
    /// Packages, channels and bundles for registry clients.
    pub index: Arc<RegistryIndex>,
    /// Packages, channels and bundles for resolution.
    pub snapshot: Snapshot,
}

/// The state of a catalog in the store.
#[derive(Clone, Default)]
pub struct SourceState {
    /// The last good content; none before the first.
    pub content: Option<Arc<SourceContent>>,
    /// Why the last load failed.
    pub(crate) failure: Option<String>,
    /// Whether the failure is only that parts of the catalog are left out.
    pub(crate) incomplete: bool,
    /// The address at which registry clients get the content.
    pub(crate) address: Option<Arc<str>>,
    /// The time of the last poll of a polled image.
    pub(crate) last_poll: Option<Timestamp>,
    /// The state of the connection to a registry server; none if the content needs no connection.
    pub(crate) observed: Option<LastObservedState>,
    /// The ConfigMap with the content.
    pub(crate) config_map: Option<ConfigMapMetadata>,
    /// The message for a missing ConfigMap.
    pub(crate) missing_config_map: Option<String>,
    /// How often the content was replaced.
    pub(crate) snapshots: u64,
}

impl SourceContent {
    /// Packages, channels and bundles.
    pub fn catalog(&self) -> &Catalog {
        self.index.catalog()
    }
}

impl SourceState {
    /// Whether the folder or image cannot be loaded and earlier content is served. Content of
    /// registry servers is never stale: a lost connection changes nothing for content that was
    /// read.
    pub const fn is_stale(&self) -> bool {
        let failed = self.failure.is_some() && !self.incomplete;
        self.content.is_some() && failed && self.observed.is_none()
    }

    /// Whether the first load is running: the state has neither content nor a failure.
    pub const fn is_loading(&self) -> bool {
        self.content.is_none() && self.failure.is_none()
    }
}

type Subscriber = Box<dyn Fn(&NamespacedName) + Send + Sync>;

/// Every catalog that the process follows. Cheap to clone; clones share the store.
#[derive(Clone)]
pub struct CatalogStore {
    inner: Arc<Inner>,
}

struct Inner {
    states: RwLock<BTreeMap<NamespacedName, SourceState>>,
    subscribers: RwLock<Vec<Subscriber>>,
    /// The number of state changes of all catalogs.
    changes: watch::Sender<u64>,
    cache: Option<PathBuf>,
    clock: Clock,
    /// The catalogs in folders.
    folders: BTreeSet<NamespacedName>,
    /// The endpoints of catalogs in images and ConfigMaps.
    endpoints: RwLock<BTreeMap<NamespacedName, Arc<ServedCatalog>>>,
    puller: Option<Puller>,
    serve: Option<Arc<dyn RegistryEndpoints>>,
    cluster: Option<Cluster>,
    pods: CatalogPods,
    proxies: Proxies,
    followers: Followers,
    stop: CancellationToken,
}

impl CatalogStore {
    /// A store for these folder catalogs, with copies in the folder `cache` if given.
    /// [`Self::follow_folder`] and [`Self::follow_source`] start to load.
    pub fn new(
        catalogs: &[FolderCatalog],
        cache: Option<PathBuf>,
        clock: Clock,
        options: StoreOptions,
    ) -> Self {
        let states: BTreeMap<NamespacedName, SourceState> = catalogs
            .iter()
            .map(|catalog| {
                let address = catalog.address.clone();
                let key = NamespacedName::new(&*catalog.namespace, &*catalog.name);
                (key, SourceState { address, ..SourceState::default() })
            })
            .collect();
        Self {
            inner: Arc::new(Inner {
                folders: states.keys().cloned().collect(),
                states: RwLock::new(states),
                subscribers: RwLock::default(),
                changes: watch::Sender::new(0),
                cache,
                clock,
                endpoints: RwLock::default(),
                puller: options.puller,
                serve: options.serve,
                cluster: options.cluster,
                pods: options.pods,
                proxies: options.proxies,
                followers: Followers::default(),
                stop: options.stop,
            }),
        }
    }

    pub(crate) fn followers(&self) -> &Followers {
        &self.inner.followers
    }

    pub(crate) fn puller(&self) -> Option<Puller> {
        self.inner.puller.clone()
    }

    /// Opens the endpoint of a catalog that this process reads, if possible at the address that it
    /// had `before`.
    pub(crate) async fn open_endpoint(&self, key: &NamespacedName, before: Option<&str>) {
        let Some(serve) = &self.inner.serve else { return };
        let Some(ServedAt { content, address }) = serve.open(key, before).await else { return };
        self.inner.endpoints.write().insert(key.clone(), content);
        if let Some(state) = self.inner.states.write().get_mut(key) {
            state.address = Some(address);
        }
    }

    pub(crate) fn cluster(&self) -> Option<Cluster> {
        self.inner.cluster.clone()
    }

    /// How catalogs run as pods.
    pub(crate) fn pods(&self) -> &CatalogPods {
        &self.inner.pods
    }

    /// The proxies for registry servers at an address.
    pub(crate) fn proxies(&self) -> &Proxies {
        &self.inner.proxies
    }

    /// Records new metadata of a ConfigMap with unchanged content.
    pub(crate) fn record_config_map(&self, key: &NamespacedName, read: &ConfigMapMetadata) {
        let changed = {
            let mut states = self.inner.states.write();
            let Some(state) = states.get_mut(key) else { return };
            let changed =
                state.missing_config_map.is_some() || state.config_map.as_ref() != Some(read);
            state.config_map = Some(read.clone());
            changed
        };
        if changed {
            self.notify_subscribers(key);
        }
    }

    pub(crate) fn is_folder(&self, key: &NamespacedName) -> bool {
        self.inner.folders.contains(key)
    }

    /// The cancellation token for a new follower.
    pub(crate) fn follower_token(&self) -> CancellationToken {
        self.inner.stop.child_token()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Records a poll of an unchanged image.
    pub(crate) fn record_poll(&self, key: &NamespacedName) {
        if let Some(state) = self.inner.states.write().get_mut(key) {
            state.last_poll = Some(self.now());
        }
        self.notify_subscribers(key);
    }

    /// Adds a catalog without content, or resets the connection of an existing one.
    pub(crate) fn register_catalog(
        &self,
        key: &NamespacedName,
        observed: Option<LastObservedState>,
    ) {
        let mut states = self.inner.states.write();
        let state = states.entry(key.clone()).or_default();
        if observed.is_some() || state.observed.is_some() {
            state.failure = None;
        }
        state.observed = observed;
        (state.config_map, state.missing_config_map) = (None, None);
    }

    /// Sets the state of the connection to a registry server.
    pub(crate) fn set_connection_state(&self, key: &NamespacedName, observed: LastObservedState) {
        let Some(failure) = self.state(key).map(|state| state.failure) else { return };
        self.update_state(
            key,
            SourceState { failure, observed: Some(observed), ..SourceState::default() },
            None,
        );
    }

    /// Closes the endpoint of a catalog.
    pub(crate) fn close_endpoint(&self, key: &NamespacedName) {
        if let Some(serve) = &self.inner.serve {
            serve.close(key);
        }
        self.inner.endpoints.write().remove(key);
        if let Some(state) = self.inner.states.write().get_mut(key) {
            state.address = None;
        }
    }

    /// Deletes the copy of a catalog on disk.
    pub(crate) fn delete_copy(&self, key: &NamespacedName) {
        if let Some(copy) = self.copy_path(key) {
            for file in [source_file_of(&copy), copy] {
                // A missing file is deleted already.
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// Removes the state of a catalog.
    pub(crate) fn remove_state(&self, key: &NamespacedName) {
        self.inner.states.write().remove(key);
        self.inner.endpoints.write().remove(key);
        self.notify_subscribers(key);
    }

    /// A counter that changes with the state of any catalog.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    fn notify_subscribers(&self, key: &NamespacedName) {
        self.inner.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        for subscriber in self.inner.subscribers.read().iter() {
            subscriber(key);
        }
    }

    /// The modification time for new content of a catalog.
    pub(crate) fn modification_time(&self, key: &NamespacedName) -> SystemTime {
        let before = self.state(key).and_then(|state| state.content);
        let now = self.inner.clock.now().into();
        reload::modified(now, before.as_deref().map(|content| &*content.index))
    }

    /// Calls `subscriber` whenever the state of a catalog changes.
    pub fn subscribe(&self, subscriber: impl Fn(&NamespacedName) + Send + Sync + 'static) {
        self.inner.subscribers.write().push(Box::new(subscriber));
    }

    /// The state of a catalog; none if the store does not follow it.
    pub fn state(&self, key: &NamespacedName) -> Option<SourceState> {
        self.inner.states.read().get(key).cloned()
    }

    /// How often the content of a catalog was replaced.
    pub fn snapshots(&self, key: &NamespacedName) -> u64 {
        self.inner.states.read().get(key).map_or(0, |state| state.snapshots)
    }

    /// Loads and follows a folder until the token is cancelled. Must be called inside a tokio
    /// runtime.
    pub fn follow_folder(&self, catalog: &FolderCatalog, stop: CancellationToken) {
        let store = self.clone();
        let key = NamespacedName::new(&*catalog.namespace, &*catalog.name);
        let folder = catalog.folder.clone();
        let served = catalog.served.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(store.run_folder(&key, &folder, served.as_deref())).await;
        });
    }

    async fn run_folder(
        &self,
        key: &NamespacedName,
        folder: &Path,
        served: Option<&ServedCatalog>,
    ) {
        let on_watch_error = |error: &str| {
            tracing::warn!(%key, folder = %folder.display(), error, "changes of this catalog are noticed late");
        };
        reload::follow(folder, self.inner.clock, on_watch_error, || {
            self.load_folder(key, folder, served)
        })
        .await;
    }

    async fn load_folder(
        &self,
        key: &NamespacedName,
        folder: &Path,
        served: Option<&ServedCatalog>,
    ) {
        let (folder, copy, name) = (folder.to_owned(), self.copy_path(key), key.clone());
        let is_served = served.is_some();
        let first = self.state(key).is_none_or(|state| state.content.is_none());
        let modified = self.modification_time(key);
        let loaded = tokio::task::spawn_blocking(move || {
            let state = read_folder(&name, &folder, copy.as_deref(), first, modified);
            if let Some(content) = state.content.as_ref().filter(|_| is_served) {
                // The first registry client must not wait for the index tables.
                content.index.warm();
            }
            state
        });
        let new = loaded.await.unwrap_or_else(|error| SourceState {
            failure: Some(format!("loading the catalog ended unexpectedly: {error}")),
            ..SourceState::default()
        });
        self.update_state(key, new, served);
    }

    /// Merges the result of a load into the state, and notifies subscribers of changes.
    pub(crate) fn update_state(
        &self,
        key: &NamespacedName,
        mut new: SourceState,
        served: Option<&ServedCatalog>,
    ) {
        let endpoint = self.inner.endpoints.read().get(key).cloned();
        let served = served.or(endpoint.as_deref());
        let changed = {
            let mut states = self.inner.states.write();
            // A catalog that was removed meanwhile stays removed.
            let Some(state) = states.get_mut(key) else { return };
            let content = match (&new.content, &state.content) {
                (None, _) => false,
                (Some(new), Some(old)) => new.catalog().digest() != old.catalog().digest(),
                (Some(_), None) => true,
            };
            let polled = new.last_poll.is_some() && new.last_poll != state.last_poll;
            // A catalog pod for a ConfigMap has two followers: one for the connection and one for
            // the ConfigMap.
            let map = new.missing_config_map.is_some() || new.config_map.is_some();
            let of_map = map
                && (new.config_map != state.config_map
                    || new.missing_config_map != state.missing_config_map);
            if map {
                state.config_map = new.config_map;
                state.missing_config_map = new.missing_config_map;
            }
            if map && state.observed.is_some() {
                new.failure.clone_from(&state.failure);
            }
            let observed = new.observed.is_some() && new.observed != state.observed;
            let changed = content || observed || of_map || new.failure != state.failure;
            let is_mended = state.failure.is_some() && new.failure.is_none();
            if is_mended && state.observed.is_none() && new.observed.is_none() {
                tracing::info!(catalog = %key, "the problem of a catalog is gone");
            }
            if content {
                state.content = new.content;
                state.snapshots += 1;
            }
            if polled {
                state.last_poll = new.last_poll;
            }
            if observed {
                state.observed = new.observed;
            }
            state.failure = new.failure;
            state.incomplete = new.incomplete;
            if let Some(served) = served.filter(|_| changed) {
                publish_content(served, state);
            }
            changed || polled
        };
        if changed {
            self.notify_subscribers(key);
        }
    }

    pub(crate) fn copy_path(&self, key: &NamespacedName) -> Option<PathBuf> {
        let cache = self.inner.cache.as_ref()?;
        Some(cache.join(format!("{}.{}.catalog", key.namespace, key.name)))
    }
}

/// Reads a folder or a database file; if the first read fails, the copy of the last good content.
/// Blocks.
fn read_folder(
    key: &NamespacedName,
    folder: &Path,
    copy: Option<&Path>,
    first: bool,
    modified: SystemTime,
) -> SourceState {
    // Problems name files by their absolute path.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let loaded = if folder.is_file() {
        mainstay_database::load(&folder).map_err(|error| {
            tracing::warn!(catalog = %key, %error, "a catalog has a problem");
            error.to_string()
        })
    } else {
        Catalog::load(&folder, &LoadOptions::default()).map_err(|mut error| {
            for problem in &mut error.problems {
                problem.file = folder.join(&*problem.file).display().to_string().into();
                tracing::warn!(catalog = %key, %problem, "a catalog has a problem");
            }
            error.headline()
        })
    };
    match loaded {
        Ok(catalog) => {
            if let Some(copy) = copy {
                save_copy(key, &catalog, copy);
            }
            SourceState { content: Some(content(catalog, modified)), ..SourceState::default() }
        }
        Err(failure) => {
            let failure = Some(failure);
            let content = copy.filter(|_| first).and_then(|copy| load_copy(key, copy, modified));
            SourceState { content, failure, ..SourceState::default() }
        }
    }
}

/// The copy of the last good content, if there is one.
fn load_copy(
    key: &NamespacedName,
    copy: &Path,
    modified: SystemTime,
) -> Option<Arc<SourceContent>> {
    if !copy.exists() {
        return None;
    }
    Catalog::load_snapshot(copy)
        .inspect_err(|error| tracing::warn!(catalog = %key, %error, "the kept content is lost"))
        .ok()
        .map(|catalog| content(catalog, modified))
}

/// Saves a copy of a catalog for a restart.
fn save_copy(key: &NamespacedName, catalog: &Catalog, copy: &Path) {
    // The parent is the data folder, which exists; the name of this folder belongs to Mainstay.
    let folder = copy.parent().map_or(Ok(()), mainstay_files::claim_private_folder);
    let written = folder
        .map_err(|error| error.to_string())
        .and_then(|()| catalog.save(copy).map_err(|error| error.to_string()));
    if let Err(error) = written {
        tracing::warn!(catalog = %key, error, "the content is not kept for a restart");
    }
}

/// The file that names the source of a copy.
fn source_file_of(copy: &Path) -> PathBuf {
    copy.with_extension("image")
}

/// Saves a copy of the content of an image or a server. The file with its source is deleted first,
/// so that no copy has the source of another.
pub(crate) fn save_copy_of(key: &NamespacedName, source: &str, copy: &Path, catalog: &Catalog) {
    let name = source_file_of(copy);
    let _ = std::fs::remove_file(&name);
    save_copy(key, catalog, copy);
    let written = mainstay_files::replace(&name, source.as_bytes(), Durability::Process);
    if let Err(error) = written {
        tracing::warn!(catalog = %key, %error, "the content is not kept for a restart");
    }
}

/// The copy of the content of this image or server, if there is one.
pub(crate) fn load_copy_of(
    key: &NamespacedName,
    source: &str,
    copy: &Path,
    modified: SystemTime,
) -> Option<Arc<SourceContent>> {
    let is_same_source = mainstay_files::read_text(&source_file_of(copy), MAX_SOURCE_FILE_SIZE)
        .is_ok_and(|name| name == source);
    is_same_source.then(|| load_copy(key, copy, modified)).flatten()
}

/// The content of a catalog, for registry clients and for resolution.
pub(crate) fn content(catalog: Arc<Catalog>, modified: SystemTime) -> Arc<SourceContent> {
    let snapshot = Snapshot::of(&catalog);
    Arc::new(SourceContent { index: Arc::new(RegistryIndex::new(catalog, modified)), snapshot })
}

/// Publishes the content and the failure at the endpoint.
fn publish_content(served: &ServedCatalog, state: &SourceState) {
    if let Some(content) = &state.content {
        served.put(Arc::clone(&content.index));
    }
    if let Some(failure) = &state.failure {
        served.fail(failure.as_str());
    }
}
