//! The content of every catalog, loaded and kept.
//!
//! ```text
//! folder ── change ─► wait until quiet ─► load (own thread) ─┬─ good ─► content, copy on disk
//!                                                            └─ bad ──► message, content stays
//! ```
//!
//! Readers take an `Arc` and never wait. A folder that cannot be loaded keeps its last good
//! content, after a restart too: that is what the copy on disk is for. What comes as an image takes
//! the same way (`images`).

use crate::config_map::ReadConfigMap;
use crate::follow::Followers;
use crate::mode::CatalogPods;
use futures::future::BoxFuture;
use jiff::Timestamp;
use mainstay_api::LastObservedState;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_files::Durability;
use mainstay_image::registry::Proxies;
use mainstay_images::Puller;
use mainstay_object::NamespacedName;
use mainstay_registry::{Index, Served, reload};
use mainstay_resolver::Snapshot;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long the file may be that says what a copy is of, in bytes.
const LONGEST_NAME: u64 = 64 << 10;

/// A catalog in a folder or a database, and the CatalogSource that names it.
#[derive(Clone, Debug)]
pub struct FolderCatalog {
    /// Namespace of the CatalogSource.
    pub namespace: String,
    /// Name of the CatalogSource.
    pub name: String,
    /// The folder with the catalog, or the file with its database.
    pub folder: PathBuf,
    /// Where others get its content, if they do.
    pub served: Option<ServedAt>,
}

/// A catalog that is served to others from this process.
#[derive(Clone, Debug)]
pub struct ServedAt {
    /// What is served: the store puts its content there.
    pub content: Arc<Served>,
    /// Where the registry API of it is, as its CatalogSource shall say.
    pub address: Arc<str>,
}

/// Makes places where others get catalogs by image and by ConfigMap.
pub trait Serve: Send + Sync {
    /// A place for the content of a catalog, at the address that it had `before` if that can be;
    /// none if there is no place. Asked again for the same catalog, the same place is given.
    fn open<'a>(
        &'a self,
        catalog: &'a NamespacedName,
        before: Option<&'a str>,
    ) -> BoxFuture<'a, Option<ServedAt>>;

    /// Closes the place of a catalog that is gone.
    fn close(&self, catalog: &NamespacedName);
}

/// What a catalog offers, in the forms that are asked for.
pub struct CatalogContent {
    /// Packages, channels, bundles, in the form that is served.
    pub index: Arc<Index>,
    /// What resolution asks of them.
    pub snapshot: Snapshot,
}

/// What the store knows of a catalog.
#[derive(Clone, Default)]
pub struct CatalogState {
    /// The last good content; none if there has not been any.
    pub content: Option<Arc<CatalogContent>>,
    /// Why the folder could not be loaded the last time.
    pub(crate) failure: Option<String>,
    /// Whether the failure is only that parts of the content are left out.
    pub(crate) incomplete: bool,
    /// Where others get the content.
    pub(crate) address: Option<Arc<str>>,
    /// When an image was last looked at that is looked at regularly.
    pub(crate) polled: Option<Timestamp>,
    /// How the connection to a registry server is; none if the content comes without one.
    pub(crate) observed: Option<LastObservedState>,
    /// The ConfigMap that the content is made of.
    pub(crate) config_map: Option<ReadConfigMap>,
    /// That the ConfigMap is not there.
    pub(crate) missing: Option<String>,
    /// How often content was taken up.
    pub(crate) snapshots: u64,
}

impl CatalogContent {
    /// Packages, channels, bundles.
    pub fn catalog(&self) -> &Catalog {
        self.index.catalog()
    }
}

impl CatalogState {
    /// Whether the folder or image is bad and what it was before is served. Of registry servers this is
    /// not said: that one is away for a while changes nothing for who has read it.
    pub const fn is_stale(&self) -> bool {
        let failed = self.failure.is_some() && !self.incomplete;
        self.content.is_some() && failed && self.observed.is_none()
    }

    /// Whether the catalog is being read for the first time: neither content nor a failure is known.
    pub const fn is_loading(&self) -> bool {
        self.content.is_none() && self.failure.is_none()
    }
}

type Subscriber = Box<dyn Fn(&NamespacedName) + Send + Sync>;

/// Every catalog that the process was told of. Cheap to clone; clones are the same store.
#[derive(Clone)]
pub struct CatalogStore {
    inner: Arc<Inner>,
}

struct Inner {
    states: RwLock<BTreeMap<NamespacedName, CatalogState>>,
    subscribers: RwLock<Vec<Subscriber>>,
    /// How often a catalog has changed how it stands.
    changes: watch::Sender<u64>,
    cache: Option<PathBuf>,
    clock: Clock,
    /// The catalogs that are folders.
    folders: BTreeSet<NamespacedName>,
    /// Where content of catalogs by image and by ConfigMap goes for others.
    served: RwLock<BTreeMap<NamespacedName, Arc<Served>>>,
    puller: Option<Puller>,
    serve: Option<Arc<dyn Serve>>,
    cluster: Option<Cluster>,
    pods: CatalogPods,
    proxies: Proxies,
    followers: Followers,
    stop: CancellationToken,
}

/// Where catalogs that are no folders come from, and where they are served.
pub struct StoreOptions {
    /// Pulls images of catalogs; without it, no image is read in this process.
    pub puller: Option<Puller>,
    /// Makes the places where others get catalogs that this process reads, if it serves them.
    pub serve: Option<Arc<dyn Serve>>,
    /// The cluster with the `ConfigMaps` and pods of catalogs; without it, none of them is read.
    pub cluster: Option<Cluster>,
    /// How catalogs run as pods.
    pub pods: CatalogPods,
    /// The proxies that lead to registry servers at an address.
    pub proxies: Proxies,
    /// Ends all followers.
    pub stop: CancellationToken,
}

impl CatalogStore {
    /// A store of these catalogs in folders that keeps copies in `cache`, if that is given. Nothing is
    /// loaded before [`Self::follow_folder`] and [`Self::follow_source`].
    pub fn new(
        catalogs: &[FolderCatalog],
        cache: Option<PathBuf>,
        clock: Clock,
        options: StoreOptions,
    ) -> Self {
        let states: BTreeMap<NamespacedName, CatalogState> = catalogs
            .iter()
            .map(|catalog| {
                let address = catalog.served.as_ref().map(|served| Arc::clone(&served.address));
                let key = NamespacedName::new(&*catalog.namespace, &*catalog.name);
                (key, CatalogState { address, ..CatalogState::default() })
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
                served: RwLock::default(),
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

    /// Opens the place where others get a catalog that this process reads, at the address that it had
    /// `before` if that can be.
    pub(crate) async fn open_place(&self, key: &NamespacedName, before: Option<&str>) {
        let Some(serve) = &self.inner.serve else { return };
        let Some(ServedAt { content, address }) = serve.open(key, before).await else { return };
        self.inner.served.write().insert(key.clone(), content);
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

    /// What leads to servers at an address.
    pub(crate) fn proxies(&self) -> &Proxies {
        &self.inner.proxies
    }

    /// Notes what is on the ConfigMap of a catalog whose content is the same.
    pub(crate) fn note(&self, key: &NamespacedName, read: &ReadConfigMap) {
        let changed = {
            let mut states = self.inner.states.write();
            let Some(state) = states.get_mut(key) else { return };
            let changed = state.missing.is_some() || state.config_map.as_ref() != Some(read);
            state.config_map = Some(read.clone());
            changed
        };
        if changed {
            self.tell(key);
        }
    }

    pub(crate) fn is_folder(&self, key: &NamespacedName) -> bool {
        self.inner.folders.contains(key)
    }

    /// A token for a follower.
    pub(crate) fn child(&self) -> CancellationToken {
        self.inner.stop.child_token()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Notes that an image was looked at again, and is what it was.
    pub(crate) fn polled(&self, key: &NamespacedName) {
        if let Some(state) = self.inner.states.write().get_mut(key) {
            state.polled = Some(self.now());
        }
        self.tell(key);
    }

    /// Makes a catalog known, without content if it is new.
    pub(crate) fn begin(&self, key: &NamespacedName, observed: Option<LastObservedState>) {
        let mut states = self.inner.states.write();
        let state = states.entry(key.clone()).or_default();
        if observed.is_some() || state.observed.is_some() {
            state.failure = None;
        }
        state.observed = observed;
        (state.config_map, state.missing) = (None, None);
    }

    /// Says how the connection to a registry server is.
    pub(crate) fn observe(&self, key: &NamespacedName, observed: LastObservedState) {
        let Some(failure) = self.state(key).map(|state| state.failure) else { return };
        self.take(
            key,
            CatalogState { failure, observed: Some(observed), ..CatalogState::default() },
            None,
        );
    }

    /// Closes the place where others got a catalog.
    pub(crate) fn close(&self, key: &NamespacedName) {
        if let Some(serve) = &self.inner.serve {
            serve.close(key);
        }
        self.inner.served.write().remove(key);
        if let Some(state) = self.inner.states.write().get_mut(key) {
            state.address = None;
        }
    }

    /// Removes the copy of a catalog.
    pub(crate) fn drop_copy(&self, key: &NamespacedName) {
        if let Some(copy) = self.copy_of(key) {
            for file in [name_of(&copy), copy] {
                // What is not there is gone as well.
                let _ = std::fs::remove_file(file);
            }
        }
    }

    /// Forgets a catalog.
    pub(crate) fn forget(&self, key: &NamespacedName) {
        self.inner.states.write().remove(key);
        self.inner.served.write().remove(key);
        self.tell(key);
    }

    /// Changes whenever a catalog changes how it stands.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    fn tell(&self, key: &NamespacedName) {
        self.inner.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        for hear in self.inner.subscribers.read().iter() {
            hear(key);
        }
    }

    /// When new content of a catalog counts as made.
    pub(crate) fn modified(&self, key: &NamespacedName) -> SystemTime {
        let before = self.state(key).and_then(|state| state.content);
        let now = self.inner.clock.now().into();
        reload::modified(now, before.as_deref().map(|content| &*content.index))
    }

    /// Calls `hear` whenever a catalog changes how it stands.
    pub fn subscribe(&self, hear: impl Fn(&NamespacedName) + Send + Sync + 'static) {
        self.inner.subscribers.write().push(Box::new(hear));
    }

    /// How a catalog stands; none if the process was not told of it.
    pub fn state(&self, key: &NamespacedName) -> Option<CatalogState> {
        self.inner.states.read().get(key).cloned()
    }

    /// How often the content of a catalog was taken up since it is known.
    pub fn snapshots(&self, key: &NamespacedName) -> u64 {
        self.inner.states.read().get(key).map_or(0, |state| state.snapshots)
    }

    /// Starts to load and follow a folder until the token is cancelled. Must be called inside a tokio
    /// runtime.
    pub fn follow_folder(&self, catalog: &FolderCatalog, stop: CancellationToken) {
        let store = self.clone();
        let key = NamespacedName::new(&*catalog.namespace, &*catalog.name);
        let folder = catalog.folder.clone();
        let served = catalog.served.as_ref().map(|served| Arc::clone(&served.content));
        tokio::spawn(async move {
            stop.run_until_cancelled(store.run(&key, &folder, served.as_deref())).await;
        });
    }

    async fn run(&self, key: &NamespacedName, folder: &Path, served: Option<&Served>) {
        let unseen = |error: &str| {
            tracing::warn!(%key, folder = %folder.display(), error, "changes of this catalog are noticed late");
        };
        reload::follow(folder, self.inner.clock, unseen, || self.load(key, folder, served)).await;
    }

    async fn load(&self, key: &NamespacedName, folder: &Path, served: Option<&Served>) {
        let (folder, copy, name) = (folder.to_owned(), self.copy_of(key), key.clone());
        let is_served = served.is_some();
        let first = self.state(key).is_none_or(|state| state.content.is_none());
        let modified = self.modified(key);
        let loaded = tokio::task::spawn_blocking(move || {
            let state = read(&name, &folder, copy.as_deref(), first, modified);
            if let Some(content) = state.content.as_ref().filter(|_| is_served) {
                // The first who asks shall not wait for the tables.
                content.index.warm();
            }
            state
        });
        let new = loaded.await.unwrap_or_else(|error| CatalogState {
            failure: Some(format!("loading the catalog ended unexpectedly: {error}")),
            ..CatalogState::default()
        });
        self.take(key, new, served);
    }

    /// Takes what loading brought, without what it did not bring, and tells of what is new.
    pub(crate) fn take(
        &self,
        key: &NamespacedName,
        mut new: CatalogState,
        served: Option<&Served>,
    ) {
        let place = self.inner.served.read().get(key).cloned();
        let served = served.or(place.as_deref());
        let changed = {
            let mut states = self.inner.states.write();
            // One that was forgotten meanwhile stays so.
            let Some(state) = states.get_mut(key) else { return };
            let content = match (&new.content, &state.content) {
                (None, _) => false,
                (Some(new), Some(old)) => new.catalog().digest() != old.catalog().digest(),
                (Some(_), None) => true,
            };
            let polled = new.polled.is_some() && new.polled != state.polled;
            // Of a pod that serves a ConfigMap, one tells of the pod, and another of the ConfigMap.
            let map = new.missing.is_some() || new.config_map.is_some();
            let of_map =
                map && (new.config_map != state.config_map || new.missing != state.missing);
            if map {
                state.config_map = new.config_map;
                state.missing = new.missing;
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
                state.polled = new.polled;
            }
            if observed {
                state.observed = new.observed;
            }
            state.failure = new.failure;
            state.incomplete = new.incomplete;
            if let Some(served) = served.filter(|_| changed) {
                serve(served, state);
            }
            changed || polled
        };
        if changed {
            self.tell(key);
        }
    }

    pub(crate) fn copy_of(&self, key: &NamespacedName) -> Option<PathBuf> {
        let cache = self.inner.cache.as_ref()?;
        Some(cache.join(format!("{}.{}.catalog", key.namespace, key.name)))
    }
}

/// Reads a folder or a database, or, if that fails for the first time, the copy of what it last was.
/// Blocks.
fn read(
    key: &NamespacedName,
    folder: &Path,
    copy: Option<&Path>,
    first: bool,
    modified: SystemTime,
) -> CatalogState {
    // Problems name files as people find them on the disk, not only below the folder.
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
                keep(key, &catalog, copy);
            }
            CatalogState { content: Some(content(catalog, modified)), ..CatalogState::default() }
        }
        Err(failure) => {
            let failure = Some(failure);
            let content = copy.filter(|_| first).and_then(|copy| load_copy(key, copy, modified));
            CatalogState { content, failure, ..CatalogState::default() }
        }
    }
}

/// The copy of what a catalog last was, if there is one.
fn load_copy(
    key: &NamespacedName,
    copy: &Path,
    modified: SystemTime,
) -> Option<Arc<CatalogContent>> {
    if !copy.exists() {
        return None;
    }
    Catalog::load_snapshot(copy)
        .inspect_err(|error| tracing::warn!(catalog = %key, %error, "the kept content is lost"))
        .ok()
        .map(|catalog| content(catalog, modified))
}

/// Keeps a copy of a catalog for a restart.
fn keep(key: &NamespacedName, catalog: &Catalog, copy: &Path) {
    // The folder above is that of the data, which is there; this one's name is the program's own.
    let made = copy.parent().map_or(Ok(()), mainstay_files::claim_inner);
    let written = made
        .map_err(|error| error.to_string())
        .and_then(|()| catalog.save(copy).map_err(|error| error.to_string()));
    if let Err(error) = written {
        tracing::warn!(catalog = %key, error, "the content is not kept for a restart");
    }
}

/// The file that says what a copy is of.
fn name_of(copy: &Path) -> PathBuf {
    copy.with_extension("image")
}

/// Keeps a copy of what an image or a server had: first its name goes, so that no copy is taken for
/// another's.
pub(crate) fn keep_named(key: &NamespacedName, source: &str, copy: &Path, catalog: &Catalog) {
    let name = name_of(copy);
    let _ = std::fs::remove_file(&name);
    keep(key, catalog, copy);
    let written = mainstay_files::replace(&name, source.as_bytes(), Durability::Process);
    if let Err(error) = written {
        tracing::warn!(catalog = %key, %error, "the content is not kept for a restart");
    }
}

/// The copy of what that image or server had, if there is one.
pub(crate) fn load_copy_of(
    key: &NamespacedName,
    source: &str,
    copy: &Path,
    modified: SystemTime,
) -> Option<Arc<CatalogContent>> {
    let is_of =
        mainstay_files::read_text(&name_of(copy), LONGEST_NAME).is_ok_and(|name| name == source);
    is_of.then(|| load_copy(key, copy, modified)).flatten()
}

/// A catalog in the forms that are asked for.
pub(crate) fn content(catalog: Arc<Catalog>, modified: SystemTime) -> Arc<CatalogContent> {
    let snapshot = Snapshot::of(&catalog);
    Arc::new(CatalogContent { index: Arc::new(Index::new(catalog, modified)), snapshot })
}

/// Serves what there is, and says what is wrong with what should be there.
fn serve(served: &Served, state: &CatalogState) {
    if let Some(content) = &state.content {
        served.put(Arc::clone(&content.index));
    }
    if let Some(failure) = &state.failure {
        served.fail(failure.as_str());
    }
}
