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
use mainstay_registry::reload;
use mainstay_resolver::Snapshot;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A catalog in a folder, and the CatalogSource that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderCatalog {
    /// Namespace of the CatalogSource.
    pub namespace: String,
    /// Name of the CatalogSource.
    pub name: String,
    /// The folder with the catalog.
    pub folder: PathBuf,
}

/// What a catalog offers, in the forms that are asked for.
pub(crate) struct Content {
    /// Packages, channels, bundles.
    pub(crate) catalog: Arc<Catalog>,
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
            .map(|it| (NamespacedName::new(&*it.namespace, &*it.name), State::default()))
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
        tokio::spawn(async move {
            stop.run_until_cancelled(store.run(&key, &folder)).await;
        });
    }

    async fn run(&self, key: &NamespacedName, folder: &Path) {
        let blind = |error| {
            tracing::warn!(%key, folder = %folder.display(), error, "changes of this catalog will not be noticed");
        };
        reload::follow(folder, self.inner.clock, blind, || self.load(key, folder)).await;
    }

    async fn load(&self, key: &NamespacedName, folder: &Path) {
        let (folder, copy, name) = (folder.to_owned(), self.copy_of(key), key.clone());
        let first = self.state(key).is_none_or(|it| it.content.is_none());
        let loaded =
            tokio::task::spawn_blocking(move || read(&name, &folder, copy.as_deref(), first)).await;
        let new = loaded.unwrap_or_else(|error| State {
            content: None,
            failure: Some(format!("loading the catalog ended unexpectedly: {error}")),
        });
        let changed = {
            let mut states = self.inner.states.write();
            let state = states.entry(key.clone()).or_default();
            let content = match (&new.content, &state.content) {
                (None, _) => false,
                (Some(new), Some(old)) => new.catalog.digest() != old.catalog.digest(),
                (Some(_), None) => true,
            };
            let changed = content || new.failure != state.failure;
            if content {
                state.content = new.content;
            }
            state.failure = new.failure;
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
fn read(key: &NamespacedName, folder: &Path, copy: Option<&Path>, first: bool) -> State {
    // Problems name files as people find them on the disk, not only below the folder.
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    match Catalog::load(&folder, &LoadOptions::default()) {
        Ok(catalog) => {
            if let Some(copy) = copy {
                keep(key, &catalog, copy);
            }
            State { content: Some(content(catalog)), failure: None }
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
            State { content: kept.map(content), failure }
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

fn content(catalog: Arc<Catalog>) -> Arc<Content> {
    let snapshot = Snapshot::of(&catalog);
    Arc::new(Content { catalog, snapshot })
}
