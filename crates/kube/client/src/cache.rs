//! Cache: a projection of each selected object, kept up to date by a [`Reflector`].
//!
//! ```text
//! list (pages) ─► project ─► watch ─► event ─► project ─► entries + index ─► subscribers
//!    ▲                          │ end, error: again from the last revision
//!    └──────── 410 ─────────────┘
//! ```

use crate::reflector::{CacheProgress, Listing, Reflector, ReflectorState, ReflectorTarget};
use crate::{Cluster, Selection};
use mainstay_object::{NamespacedName, Object};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// A projection without its type, so that the code of all caches is compiled once. The methods of
/// [`Cache`] restore the type, which is always the one that the cache was built with.
type Entry = Arc<dyn Any + Send + Sync>;
type Project = Box<dyn Fn(&Object) -> Option<Entry> + Send + Sync>;
type Index = Box<dyn Fn(&Entry) -> Vec<Arc<str>> + Send + Sync>;
type Subscriber = Box<dyn Fn(&NamespacedName, Option<&Entry>, Option<&Entry>) + Send + Sync>;

/// A change of one entry.
#[derive(Debug)]
pub struct Changed<'a, T> {
    /// The key of the object.
    pub key: &'a NamespacedName,
    /// The projection before the change; none if the object is new.
    pub before: Option<&'a Arc<T>>,
    /// The projection after the change; none if the object is gone.
    pub after: Option<&'a Arc<T>>,
}

/// A cache of projections of the objects of one kind. Cheap to clone; clones are the same cache.
///
/// Subscribers are called for an object only if its projection has changed.
pub struct Cache<T> {
    entries: Arc<Entries>,
    projection: PhantomData<fn() -> T>,
}

impl<T> Clone for Cache<T> {
    fn clone(&self) -> Self {
        Self { entries: Arc::clone(&self.entries), projection: PhantomData }
    }
}

/// The entries of a cache, its indexes and its subscribers.
struct Entries {
    project: Project,
    /// Whether two entries are equal.
    same: fn(&Entry, &Entry) -> bool,
    index: Option<Index>,
    contents: RwLock<Contents>,
    subscribers: RwLock<Vec<Subscriber>>,
    state: Arc<ReflectorState>,
}

#[derive(Default)]
struct Contents {
    objects: BTreeMap<NamespacedName, Entry>,
    by_index: KeysByValue,
}

/// The configuration of a cache before it starts.
pub struct CacheBuilder<T> {
    selection: Selection,
    project: Project,
    index: Option<Index>,
    subscribers: Vec<Subscriber>,
    projection: PhantomData<fn() -> T>,
}

/// Caches with one lifetime: waiting for the set waits for every cache that it has started.
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
        self.revisions.push(cache.entries.state.revision.subscribe());
        cache
    }

    /// Returns once the first list of each is complete and subscribers were called for its entries.
    pub async fn synced(&self) {
        for revision in &self.revisions {
            // A dropped cache is not waited for.
            let _ = revision.clone().wait_for(|current| *current > 0).await;
        }
    }
}

impl<T: PartialEq + Send + Sync + 'static> CacheBuilder<T> {
    /// Adds an index: each entry is indexed under each of the values that `values` returns for it.
    #[must_use]
    pub fn index(mut self, values: impl Fn(&T) -> Vec<Arc<str>> + Send + Sync + 'static) -> Self {
        self.index =
            Some(Box::new(move |entry| entry.downcast_ref().map(&values).unwrap_or_default()));
        self
    }

    /// Adds a subscriber from the start; see [`Cache::subscribe`].
    #[must_use]
    pub fn subscribe(mut self, callback: impl Fn(&Changed<'_, T>) + Send + Sync + 'static) -> Self {
        self.subscribers.push(subscriber(callback));
        self
    }

    /// Starts to list and watch until the token is cancelled. Must be called inside a tokio runtime.
    pub fn start(self, cluster: &Cluster, stop: CancellationToken) -> Cache<T> {
        let state = Arc::<ReflectorState>::default();
        let entries = Arc::new(Entries {
            project: self.project,
            same: |one, other| one.downcast_ref::<T>() == other.downcast_ref(),
            index: self.index,
            contents: RwLock::default(),
            subscribers: RwLock::new(self.subscribers),
            state: Arc::clone(&state),
        });
        let target = Box::new(Arc::clone(&entries));
        let reflector = Reflector::new(cluster.clone(), self.selection, state, target);
        reflector.start(stop);
        Cache { entries, projection: PhantomData }
    }
}

/// Wraps a subscriber so that it gets entries of its type.
fn subscriber<T: Send + Sync + 'static>(
    callback: impl Fn(&Changed<'_, T>) + Send + Sync + 'static,
) -> Subscriber {
    Box::new(move |key, before, after| {
        let (before, after) = (before.and_then(typed), after.and_then(typed));
        callback(&Changed { key, before: before.as_ref(), after: after.as_ref() });
    })
}

impl<T: PartialEq + Send + Sync + 'static> Cache<T> {
    /// A cache of the projections of objects. Objects for which `project` returns none are left
    /// out.
    pub fn builder(
        selection: Selection,
        project: impl Fn(&Object) -> Option<T> + Send + Sync + 'static,
    ) -> CacheBuilder<T> {
        CacheBuilder {
            selection,
            project: Box::new(move |object| Some(Arc::new(project(object)?))),
            index: None,
            subscribers: Vec::new(),
            projection: PhantomData,
        }
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

    /// The entry of a key.
    pub fn get(&self, key: &NamespacedName) -> Option<Arc<T>> {
        typed(self.entries.contents.read().objects.get(key)?)
    }

    /// The entries of one namespace, or all, in order of keys.
    pub fn list(&self, namespace: Option<&str>) -> Vec<(NamespacedName, Arc<T>)> {
        let contents = self.entries.contents.read();
        let copy = |(key, entry): (&NamespacedName, &Entry)| Some((key.clone(), typed(entry)?));
        match namespace {
            None => contents.objects.iter().filter_map(copy).collect(),
            Some(namespace) => contents
                .objects
                .range((Bound::Included(NamespacedName::new(namespace, "")), Bound::Unbounded))
                .take_while(|(key, _)| &*key.namespace == namespace)
                .filter_map(copy)
                .collect(),
        }
    }

    /// The entries that are indexed under a value, in order; none without an index.
    pub fn indexed(&self, value: &str) -> Vec<(NamespacedName, Arc<T>)> {
        let contents = self.entries.contents.read();
        let keys = contents.by_index.get(value).into_iter().flatten();
        keys.filter_map(|key| Some((key.clone(), typed(contents.objects.get(key)?)?))).collect()
    }

    /// The number of entries that are indexed under a value.
    pub fn count(&self, value: &str) -> usize {
        self.entries.contents.read().by_index.get(value).map_or(0, BTreeSet::len)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.entries.contents.read().objects.len()
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `callback` for every existing entry and then for every change, in the order of changes
    /// for each object. It runs in the cache's task and must be quick: typically it adds a key to a
    /// [`crate::Queue`]. For an entry that arrives meanwhile it may be called twice.
    pub fn subscribe(&self, callback: impl Fn(&Changed<'_, T>) + Send + Sync + 'static) {
        let callback = Arc::new(callback);
        let for_changes = Arc::clone(&callback);
        self.entries.subscribers.write().push(subscriber(move |change| for_changes(change)));
        for (key, entry) in self.list(None) {
            callback(&Changed { key: &key, before: None, after: Some(&entry) });
        }
    }

    /// Returns once the first list is complete and subscribers were called for its entries.
    pub async fn synced(&self) {
        self.reached(1).await;
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.entries.state.revision.borrow() > 0
    }

    /// Whether the cache has everything up to a revision, as [`Self::wait_for_revision`] waits for it.
    pub fn has_revision(&self, resource_version: &str) -> bool {
        let current = *self.entries.state.revision.borrow();
        resource_version.parse().is_ok_and(|revision: u64| current >= revision)
    }

    /// How far the cache is, with each change from now on.
    pub fn progress(&self) -> watch::Receiver<CacheProgress> {
        self.entries.state.progress.subscribe()
    }

    /// Ends the pause after a failed request, but not within its first second: for a caller who knows that the
    /// reason may be gone, such as a missing permission.
    pub fn retry_now(&self) {
        self.entries.state.retry.notify_one();
    }

    /// Returns once the cache has everything up to a revision: that of an object *of this
    /// selection* that was just written. (The revision of another object may only arrive with the
    /// next bookmark, a minute later.) Waits for as long as the server is unavailable.
    pub async fn wait_for_revision(&self, resource_version: &str) {
        // A revision that is not a number cannot be compared, and no known server sends one.
        if let Ok(revision) = resource_version.parse() {
            self.reached(revision).await;
        }
    }

    /// Returns once a condition holds that changes of this cache bring about.
    pub async fn until(&self, mut condition: impl FnMut() -> bool) {
        let mut receiver = self.entries.state.revision.subscribe();
        // The sender lives in `self`.
        while !condition() && receiver.changed().await.is_ok() {}
    }

    async fn reached(&self, revision: u64) {
        let mut receiver = self.entries.state.revision.subscribe();
        // The sender lives in `self`, so this ends only with success.
        let _ = receiver.wait_for(|current| *current >= revision).await;
    }
}

/// An entry with the type that its cache was built with.
fn typed<T: Send + Sync + 'static>(entry: &Entry) -> Option<Arc<T>> {
    Arc::clone(entry).downcast().ok()
}

impl Entries {
    fn exchange(&self, key: &NamespacedName, after: Option<&Entry>) {
        let before = {
            let mut contents = self.contents.write();
            let before = contents.objects.get(key).cloned();
            match (&before, after) {
                (None, None) => return,
                (Some(before), Some(after)) if (self.same)(before, after) => return,
                _ => {}
            }
            if let Some(index) = &self.index {
                let old = before.as_ref().map(index).unwrap_or_default();
                let new = after.map(index).unwrap_or_default();
                contents.by_index.update(key, &old, &new);
            }
            match after {
                Some(entry) => {
                    contents.objects.insert(key.clone(), Arc::clone(entry));
                }
                None => {
                    contents.objects.remove(key);
                }
            }
            before
        };
        for callback in self.subscribers.read().iter() {
            callback(key, before.as_ref(), after);
        }
    }
}

impl ReflectorTarget for Arc<Entries> {
    fn begin_list(&self) -> Box<dyn Listing> {
        Box::new(ListedEntries { target: Self::clone(self), listed_entries: BTreeMap::new() })
    }

    fn put(&self, object: &Object) {
        self.exchange(&object.key(), (self.project)(object).as_ref());
    }

    fn remove(&self, key: &NamespacedName) {
        self.exchange(key, None);
    }
}

/// The entries of an incomplete list; the cache does not change until the list is complete.
struct ListedEntries {
    target: Arc<Entries>,
    listed_entries: BTreeMap<NamespacedName, Option<Entry>>,
}

impl Listing for ListedEntries {
    fn add(&mut self, object: &Object) {
        self.listed_entries.insert(object.key(), (self.target.project)(object));
    }

    fn finish(self: Box<Self>) {
        let removed_keys: Vec<NamespacedName> = {
            let contents = self.target.contents.read();
            contents
                .objects
                .keys()
                .filter(|key| !self.listed_entries.contains_key(key))
                .cloned()
                .collect()
        };
        for key in removed_keys {
            self.target.exchange(&key, None);
        }
        for (key, entry) in &self.listed_entries {
            self.target.exchange(key, entry.as_ref());
        }
    }
}

/// The keys of entries by their index values.
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
