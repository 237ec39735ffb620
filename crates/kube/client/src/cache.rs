//! A projection of each object of a selection, kept up to date by a [`Reflector`].
//!
//! ```text
//! list (pages) ─► project ─► watch ─► event ─► project ─► entries + index ─► subscribers
//!    ▲                          │ end, error: again from the last revision
//!    └──────── 410 ─────────────┘
//! ```

use crate::reflector::{Listing, Reflector, ReflectorTarget};
use crate::{Cluster, Selection};
use mainstay_object::{NamespacedName, Object};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

type Project<T> = Box<dyn Fn(&Object) -> Option<T> + Send + Sync>;
type Index<T> = Box<dyn Fn(&T) -> Vec<Arc<str>> + Send + Sync>;
type Subscriber<T> = Arc<dyn Fn(&Changed<'_, T>) + Send + Sync>;

/// A change of one entry.
#[derive(Debug)]
pub struct Changed<'a, T> {
    /// Whose.
    pub key: &'a NamespacedName,
    /// What was known before; none if it is new.
    pub before: Option<&'a Arc<T>>,
    /// What is known now; none if it is gone.
    pub after: Option<&'a Arc<T>>,
}

/// A cache of projections of the objects of one kind. Cheap to clone; clones are the same cache.
///
/// Subscribers hear of an object only if its projection changed.
pub struct Cache<T> {
    inner: Arc<Inner<T>>,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct Inner<T> {
    project: Project<T>,
    index: Option<Index<T>>,
    entries: RwLock<Entries<T>>,
    subscribers: RwLock<Vec<Subscriber<T>>>,
    /// The last revision seen; zero before the first list is complete.
    revision: Arc<watch::Sender<u64>>,
}

struct Entries<T> {
    objects: BTreeMap<NamespacedName, Arc<T>>,
    by_index: KeysByValue,
}

/// What a cache shall do, before it starts.
pub struct CacheBuilder<T> {
    selection: Selection,
    project: Project<T>,
    index: Option<Index<T>>,
    subscribers: Vec<Subscriber<T>>,
}

/// Caches that belong together: who waits for the set waits for every cache that it has started.
pub struct CacheSet {
    cluster: Cluster,
    stop: CancellationToken,
    revisions: Vec<watch::Receiver<u64>>,
}

impl CacheSet {
    /// An empty set, whose caches list and watch in a cluster until the token is cancelled.
    pub const fn new(cluster: Cluster, stop: CancellationToken) -> Self {
        Self { cluster, stop, revisions: Vec::new() }
    }

    /// An empty set of the same cluster, whose caches end with those of this one.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self::new(self.cluster.clone(), self.stop.clone())
    }

    /// Starts a cache. Must be called inside a tokio runtime.
    pub fn start<T: PartialEq + Send + Sync + 'static>(
        &mut self,
        cache: CacheBuilder<T>,
    ) -> Cache<T> {
        let cache = cache.start(&self.cluster, self.stop.clone());
        self.revisions.push(cache.inner.revision.subscribe());
        cache
    }

    /// Returns once the first list of each is complete and its entries were told to subscribers.
    pub async fn synced(&self) {
        for revision in &self.revisions {
            // One that nobody holds any more is waited for by nobody.
            let _ = revision.clone().wait_for(|seen| *seen > 0).await;
        }
    }
}

impl<T: PartialEq + Send + Sync + 'static> CacheBuilder<T> {
    /// Adds an index: each entry can be found by each of the values that `values` gives for it.
    #[must_use]
    pub fn index(mut self, values: impl Fn(&T) -> Vec<Arc<str>> + Send + Sync + 'static) -> Self {
        self.index = Some(Box::new(values));
        self
    }

    /// Adds a subscriber from the start; see [`Cache::subscribe`].
    #[must_use]
    pub fn subscribe(mut self, hear: impl Fn(&Changed<'_, T>) + Send + Sync + 'static) -> Self {
        self.subscribers.push(Arc::new(hear));
        self
    }

    /// Starts to list and watch until the token is cancelled. Must be called inside a tokio runtime.
    pub fn start(self, cluster: &Cluster, stop: CancellationToken) -> Cache<T> {
        let revision = Arc::new(watch::Sender::new(0));
        let cache = Cache {
            inner: Arc::new(Inner {
                project: self.project,
                index: self.index,
                entries: RwLock::new(Entries {
                    objects: BTreeMap::new(),
                    by_index: KeysByValue::default(),
                }),
                subscribers: RwLock::new(self.subscribers),
                revision: Arc::clone(&revision),
            }),
        };
        let reflector =
            Reflector::new(cluster.clone(), self.selection, revision, Box::new(cache.clone()));
        reflector.start(stop);
        cache
    }
}

impl<T: PartialEq + Send + Sync + 'static> Cache<T> {
    /// A cache of what `project` keeps of each object. It forgets objects that `project` gives
    /// nothing for.
    pub fn builder(
        selection: Selection,
        project: impl Fn(&Object) -> Option<T> + Send + Sync + 'static,
    ) -> CacheBuilder<T> {
        CacheBuilder { selection, project: Box::new(project), index: None, subscribers: Vec::new() }
    }

    /// [`Cache::builder`] and [`CacheBuilder::start`] in one.
    pub fn start(
        cluster: &Cluster,
        selection: Selection,
        project: impl Fn(&Object) -> Option<T> + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Self {
        Self::builder(selection, project).start(cluster, stop)
    }

    /// The entry of a name.
    pub fn get(&self, key: &NamespacedName) -> Option<Arc<T>> {
        self.inner.entries.read().objects.get(key).cloned()
    }

    /// The entries of one namespace, or all, in order.
    pub fn list(&self, namespace: Option<&str>) -> Vec<(NamespacedName, Arc<T>)> {
        let entries = self.inner.entries.read();
        let copy = |(key, entry): (&NamespacedName, &Arc<T>)| (key.clone(), Arc::clone(entry));
        match namespace {
            None => entries.objects.iter().map(copy).collect(),
            Some(namespace) => entries
                .objects
                .range((Bound::Included(NamespacedName::new(namespace, "")), Bound::Unbounded))
                .take_while(|(key, _)| &*key.namespace == namespace)
                .map(copy)
                .collect(),
        }
    }

    /// The entries that the index lists under a value, in order; none without an index.
    pub fn indexed(&self, value: &str) -> Vec<(NamespacedName, Arc<T>)> {
        let entries = self.inner.entries.read();
        let keys = entries.by_index.get(value).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), Arc::clone(entries.objects.get(key)?)))).collect()
    }

    /// How many entries the index lists under a value.
    pub fn count(&self, value: &str) -> usize {
        self.inner.entries.read().by_index.get(value).map_or(0, BTreeSet::len)
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.inner.entries.read().objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `hear` for every entry there is and then for every change, in the order of changes for
    /// each object. It runs in the cache's task and must be quick: typically it adds a key to a
    /// [`crate::Queue`]. An entry that arrives meanwhile may be told twice.
    pub fn subscribe(&self, hear: impl Fn(&Changed<'_, T>) + Send + Sync + 'static) {
        let hear: Subscriber<T> = Arc::new(hear);
        self.inner.subscribers.write().push(Arc::clone(&hear));
        for (key, entry) in self.list(None) {
            hear(&Changed { key: &key, before: None, after: Some(&entry) });
        }
    }

    /// Returns once the first list is complete and its entries were told to subscribers.
    pub async fn synced(&self) {
        self.reached(1).await;
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.inner.revision.borrow() > 0
    }

    /// Returns once the cache has everything up to a revision: that of an object *of this
    /// selection* that was just written. (The revision of anything else may only come with the
    /// next bookmark, a minute later.) Waits for as long as the server is away.
    pub async fn seen(&self, resource_version: &str) {
        // What is not a number cannot be compared, and no server known sends it.
        if let Ok(revision) = resource_version.parse() {
            self.reached(revision).await;
        }
    }

    /// Returns once something holds that changes of this cache bring about.
    pub async fn until(&self, mut good: impl FnMut() -> bool) {
        let mut seen = self.inner.revision.subscribe();
        // The sender lives in `self`.
        while !good() && seen.changed().await.is_ok() {}
    }

    async fn reached(&self, revision: u64) {
        let mut seen = self.inner.revision.subscribe();
        // The sender lives in `self`, so this ends only with success.
        let _ = seen.wait_for(|seen| *seen >= revision).await;
    }

    fn exchange(&self, key: &NamespacedName, after: Option<&Arc<T>>) {
        let before = {
            let mut entries = self.inner.entries.write();
            let before = entries.objects.get(key).cloned();
            if before.as_ref() == after {
                return;
            }
            if let Some(index) = &self.inner.index {
                let old = before.as_deref().map(index).unwrap_or_default();
                let new = after.map(|entry| index(entry)).unwrap_or_default();
                entries.by_index.update(key, &old, &new);
            }
            match after {
                Some(entry) => {
                    entries.objects.insert(key.clone(), Arc::clone(entry));
                }
                None => {
                    entries.objects.remove(key);
                }
            }
            before
        };
        let change = Changed { key, before: before.as_ref(), after };
        let subscribers = self.inner.subscribers.read();
        for hear in subscribers.iter() {
            hear(&change);
        }
    }
}

impl<T: PartialEq + Send + Sync + 'static> ReflectorTarget for Cache<T> {
    fn begin_list(&self) -> Box<dyn Listing> {
        Box::new(ListedEntries { cache: self.clone(), entries: BTreeMap::new() })
    }

    fn put(&self, object: &Object) {
        let entry = (self.inner.project)(object).map(Arc::new);
        self.exchange(&object.key(), entry.as_ref());
    }

    fn remove(&self, key: &NamespacedName) {
        self.exchange(key, None);
    }
}

/// What a list has so far; the cache stays as it is until the list is complete.
struct ListedEntries<T> {
    cache: Cache<T>,
    entries: BTreeMap<NamespacedName, Option<Arc<T>>>,
}

impl<T: PartialEq + Send + Sync + 'static> Listing for ListedEntries<T> {
    fn add(&mut self, object: &Object) {
        let entry = (self.cache.inner.project)(object).map(Arc::new);
        self.entries.insert(object.key(), entry);
    }

    fn finish(self: Box<Self>) {
        let gone: Vec<NamespacedName> = {
            let known = self.cache.inner.entries.read();
            known.objects.keys().filter(|key| !self.entries.contains_key(key)).cloned().collect()
        };
        for key in gone {
            self.cache.exchange(&key, None);
        }
        for (key, entry) in &self.entries {
            self.cache.exchange(key, entry.as_ref());
        }
    }
}

/// The keys of entries by the values that the index gives for them.
#[derive(Default)]
struct KeysByValue(FxHashMap<Arc<str>, BTreeSet<NamespacedName>>);

impl KeysByValue {
    fn update(&mut self, key: &NamespacedName, old: &[Arc<str>], new: &[Arc<str>]) {
        if old == new {
            return;
        }
        for value in old {
            if let Some(keys) = self.0.get_mut(value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.0.remove(value);
                }
            }
        }
        for value in new {
            self.0.entry(Arc::clone(value)).or_default().insert(key.clone());
        }
    }

    fn get(&self, value: &str) -> Option<&BTreeSet<NamespacedName>> {
        self.0.get(value)
    }
}
