//! The content of every catalog, loaded and kept.
//!
//! ```text
//! folder ── change ─► wait until quiet ─► load (own thread) ─┬─ good ─► content, copy on disk
//!                                                            └─ bad ──► message, content stays
//! ```
//!
//! Readers take an `Arc` and never wait. A folder that cannot be loaded keeps its last good
//! content, after a restart too: that is what the copy on disk is for.

use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_clock::Clock;
use mainstay_object::NamespacedName;
use mainstay_registry::{Index, Served, reload};
use mainstay_resolver::Snapshot;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// A catalog in a folder, and the CatalogSource that names it.
#[derive(Clone, Debug)]
pub struct FolderCatalog {
    /// Namespace of the CatalogSource.
    pub namespace: String,
    /// Name of the CatalogSource.
    pub name: String,
    /// The folder with the catalog.
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

/// What a catalog offers, in the forms that are asked for.
pub(crate) struct Content {
    /// Packages, channels, bundles, in the form that is served.
    pub(crate) index: Arc<Index>,
    /// What resolution asks of them.
    pub(crate) snapshot: Snapshot,
}

/// How a catalog stands.
#[derive(Clone, Default)]
pub(crate) struct State {
    /// The last good content; none if there has not been any.
    pub(crate) content: Option<Arc<Content>>,
    /// Why the folder could not be loaded the last time.
    pub(crate) failure: Option<String>,
    /// Where others get the content.
    pub(crate) address: Option<Arc<str>>,
}

impl Content {
    /// Packages, channels, bundles.
    pub(crate) fn catalog(&self) -> &Catalog {
        self.index.catalog()
    }
}

impl State {
    /// Whether the folder is bad and what it was before is served.
    pub(crate) const fn is_stale(&self) -> bool {
        self.content.is_some() && self.failure.is_some()
    }

    /// Whether nothing is known yet.
    pub(crate) const fn is_loading(&self) -> bool {
        self.content.is_none() && self.failure.is_none()
    }
}

type Subscriber = Box<dyn Fn(&NamespacedName) + Send + Sync>;

/// Every catalog that the process was told of. Cheap to clone; clones are the same store.
#[derive(Clone)]
pub(crate) struct CatalogStore {
    inner: Arc<Inner>,
}

struct Inner {
    states: RwLock<BTreeMap<NamespacedName, State>>,
    subscribers: RwLock<Vec<Subscriber>>,
    cache: Option<PathBuf>,
    clock: Clock,
}

impl CatalogStore {
    /// A store of these catalogs that keeps copies in `cache`, if that is given.
    pub(crate) fn new(catalogs: &[FolderCatalog], cache: Option<PathBuf>, clock: Clock) -> Self {
        let states = catalogs
            .iter()
            .map(|it| {
                let address = it.served.as_ref().map(|served| Arc::clone(&served.address));
                let key = NamespacedName::new(&*it.namespace, &*it.name);
                (key, State { address, ..State::default() })
            })
            .collect();
        Self {
            inner: Arc::new(Inner {
                states: RwLock::new(states),
                subscribers: RwLock::default(),
                cache,
                clock,
            }),
        }
    }

    /// Calls `hear` whenever a catalog changes how it stands.
    pub(crate) fn subscribe(&self, hear: impl Fn(&NamespacedName) + Send + Sync + 'static) {
        self.inner.subscribers.write().push(Box::new(hear));
    }

    /// How a catalog stands; none if the process was not told of it.
    pub(crate) fn state(&self, key: &NamespacedName) -> Option<State> {
        self.inner.states.read().get(key).cloned()
    }

    /// Starts to load and follow a folder until the token is cancelled.
    pub(crate) fn follow(&self, catalog: &FolderCatalog, stop: CancellationToken) {
        let store = self.clone();
        let key = NamespacedName::new(&*catalog.namespace, &*catalog.name);
        let folder = catalog.folder.clone();
        let served = catalog.served.as_ref().map(|served| Arc::clone(&served.content));
        tokio::spawn(async move {
            stop.run_until_cancelled(store.run(&key, &folder, served.as_deref())).await;
        });
    }

    async fn run(&self, key: &NamespacedName, folder: &Path, served: Option<&Served>) {
        let blind = |error| {
            tracing::warn!(%key, folder = %folder.display(), error, "changes of this catalog will not be noticed");
        };
        reload::follow(folder, self.inner.clock, blind, || self.load(key, folder, served)).await;
    }

    async fn load(&self, key: &NamespacedName, folder: &Path, served: Option<&Served>) {
        let (folder, copy, name) = (folder.to_owned(), self.copy_of(key), key.clone());
        let is_served = served.is_some();
        let before = self.state(key).and_then(|it| it.content);
        let first = before.is_none();
        let now = self.inner.clock.now().into();
        let modified = reload::modified(now, before.as_deref().map(|content| &*content.index));
        let loaded = tokio::task::spawn_blocking(move || {
            let state = read(&name, &folder, copy.as_deref(), first, modified);
            if let Some(content) = state.content.as_ref().filter(|_| is_served) {
                // The first who asks shall not wait for the tables.
                content.index.warm();
            }
            state
        });
        let new = loaded.await.unwrap_or_else(|error| State {
            failure: Some(format!("loading the catalog ended unexpectedly: {error}")),
            ..State::default()
        });
        let changed = {
            let mut states = self.inner.states.write();
            let state = states.entry(key.clone()).or_default();
            let content = match (&new.content, &state.content) {
                (None, _) => false,
                (Some(new), Some(old)) => new.catalog().digest() != old.catalog().digest(),
                (Some(_), None) => true,
            };
            let changed = content || new.failure != state.failure;
            if content {
                state.content = new.content;
            }
            state.failure = new.failure;
            if let Some(served) = served.filter(|_| changed) {
                serve(served, state);
            }
            changed
        };
        if changed {
            for hear in self.inner.subscribers.read().iter() {
                hear(key);
            }
        }
    }

    fn copy_of(&self, key: &NamespacedName) -> Option<PathBuf> {
        let cache = self.inner.cache.as_ref()?;
        Some(cache.join(format!("{}.{}.catalog", key.namespace, key.name)))
    }
}

/// Reads a folder, or, if that fails for the first time, the copy of what it last was. Blocks.
fn read(
    key: &NamespacedName,
    folder: &Path,
    copy: Option<&Path>,
    first: bool,
    modified: SystemTime,
) -> State {
    let content = |catalog| content(catalog, modified);
    // Problems name files as people find them on the disk, not only below the folder.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    match Catalog::load(&folder, &LoadOptions::default()) {
        Ok(catalog) => {
            if let Some(copy) = copy {
                keep(key, &catalog, copy);
            }
            State { content: Some(content(catalog)), ..State::default() }
        }
        Err(mut error) => {
            for problem in &mut error.problems {
                problem.file = folder.join(&*problem.file).display().to_string().into();
                tracing::warn!(catalog = %key, %problem, "a catalog has a problem");
            }
            let failure = Some(error.headline());
            let kept = copy.filter(|it| first && it.exists()).and_then(|copy| {
                Catalog::load_snapshot(copy)
                    .inspect_err(
                        |error| tracing::warn!(catalog = %key, %error, "the kept content is lost"),
                    )
                    .ok()
            });
            State { content: kept.map(content), failure, ..State::default() }
        }
    }
}

fn keep(key: &NamespacedName, catalog: &Catalog, copy: &Path) {
    let made = copy.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = made
        .map_err(|error| error.to_string())
        .and_then(|()| catalog.save(copy).map_err(|error| error.to_string()));
    if let Err(error) = written {
        tracing::warn!(catalog = %key, error, "the content is not kept for a restart");
    }
}

fn content(catalog: Arc<Catalog>, modified: SystemTime) -> Arc<Content> {
    let snapshot = Snapshot::of(&catalog);
    Arc::new(Content { index: Arc::new(Index::new(catalog, modified)), snapshot })
}

/// Serves what there is, and says what is wrong with what should be there.
fn serve(served: &Served, state: &State) {
    if let Some(content) = &state.content {
        served.put(Arc::clone(&content.index));
    }
    if let Some(failure) = &state.failure {
        served.fail(failure.as_str());
    }
}
