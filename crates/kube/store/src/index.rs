//! The in-memory index: live objects, and the views that readers hold.

use crate::commit::NAMESPACES;
use crate::key::{At, Entry, Position, by_path};
use crate::ring::Ring;
use crate::{EngineError, Event, EventKind, Expired, Key, Options, Stored};
use imbl::OrdSet;
use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The state that the writer, the readers and the watchers of one store share.
pub(crate) struct Shared {
    pub(crate) index: RwLock<Index>,
    pub(crate) options: Options,
    /// The error of the last write; none if it was saved.
    pub(crate) trouble: Mutex<Option<EngineError>>,
    /// The last error of any write, even if later writes were saved.
    pub(crate) refusal: watch::Sender<Option<EngineError>>,
    closed: AtomicBool,
}

impl Shared {
    pub(crate) fn new(index: Index, options: Options) -> Self {
        Self {
            index: RwLock::new(index),
            options,
            trouble: Mutex::new(None),
            refusal: watch::Sender::new(None),
            closed: AtomicBool::new(false),
        }
    }

    /// Ends every watch; no more events follow.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for resource_state in self.index.read().resource_states.values() {
            resource_state.topic.wake();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The topic of a resource; created on first use.
    pub(crate) fn topic(&self, resource: &str) -> Arc<Topic> {
        if let Some(resource_state) = self.index.read().resource_states.get(resource) {
            return Arc::clone(&resource_state.topic);
        }
        Arc::clone(&self.index.write().resource_state(&Arc::from(resource)).topic)
    }
}

/// All live objects, at one revision.
pub(crate) struct Index {
    /// The revision of the newest change; lists and bookmarks carry it.
    pub(crate) revision: u64,
    /// The history before this revision is unknown to this process.
    base: u64,
    pub(crate) resource_states: HashMap<Arc<str>, ResourceState>,
    kept_views: VecDeque<KeptView>,
}

/// The live objects and the events of one resource.
pub(crate) struct ResourceState {
    pub(crate) objects: OrdSet<Entry>,
    pub(crate) topic: Arc<Topic>,
}

/// The events of one resource, and the channel that signals new ones.
pub(crate) struct Topic {
    pub(crate) resource: Arc<str>,
    pub(crate) ring: Mutex<Ring>,
    wakeup: watch::Sender<()>,
}

impl Topic {
    pub(crate) fn new(resource: Arc<str>, ring: Ring) -> Self {
        Self { resource, ring: Mutex::new(ring), wakeup: watch::Sender::new(()) }
    }

    pub(crate) fn wake(&self) {
        self.wakeup.send_replace(());
    }

    pub(crate) fn listen(&self) -> watch::Receiver<()> {
        self.wakeup.subscribe()
    }
}

/// A view that is kept for later pages of a list.
struct KeptView {
    resource: Arc<str>,
    revision: u64,
    objects: OrdSet<Entry>,
    at: Duration,
}

impl Index {
    pub(crate) fn new(
        revision: u64,
        base: u64,
        resource_states: HashMap<Arc<str>, ResourceState>,
    ) -> Self {
        Self { revision, base, resource_states, kept_views: VecDeque::new() }
    }

    pub(crate) fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<&Arc<Stored>> {
        let at = At { namespace, name };
        Some(&self.resource_states.get(resource)?.objects.get(&at as &dyn Position)?.0)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.find(&key.resource, &key.namespace, &key.name)
    }

    /// The same key with its parts shared with live objects.
    pub(crate) fn intern(&self, key: &Key) -> Key {
        let resource = self
            .resource_states
            .get_key_value(&key.resource)
            .map_or(&key.resource, |entry| entry.0);
        let namespace = match self.find(NAMESPACES, "", &key.namespace) {
            Some(namespace) => &namespace.key.name,
            None => &key.namespace,
        };
        let (resource, namespace) = (Arc::clone(resource), Arc::clone(namespace));
        Key { resource, namespace, name: Arc::clone(&key.name) }
    }

    pub(crate) fn resource_state(&mut self, resource: &Arc<str>) -> &mut ResourceState {
        let base = self.base;
        self.resource_states.entry(Arc::clone(resource)).or_insert_with(|| ResourceState {
            objects: OrdSet::new(),
            topic: Arc::new(Topic::new(Arc::clone(resource), Ring::new(base))),
        })
    }

    /// Makes one event visible to readers and watchers; the caller wakes them.
    pub(crate) fn publish(&mut self, event: &Arc<Event>, now: Duration, options: &Options) {
        let object = &event.object;
        let resource_state = self.resource_state(&object.key.resource);
        if event.kind == EventKind::Deleted {
            resource_state.objects.remove(&Entry(Arc::clone(object)) as &dyn Position);
        } else {
            resource_state.objects.insert(Entry(Arc::clone(object)));
        }
        resource_state.topic.ring.lock().push(Arc::clone(event), now, &options.history);
        self.revision = event.revision;
    }

    /// Drops old events and views. Returns whether more will expire later.
    pub(crate) fn trim(&mut self, now: Duration, options: &Options) -> bool {
        while let Some(kept_view) = self.kept_views.front() {
            let aged = now.saturating_sub(kept_view.at) > options.views.max_age;
            if !aged && self.kept_views.len() <= options.views.max_count {
                break;
            }
            self.kept_views.pop_front();
        }
        let mut more = !self.kept_views.is_empty();
        for resource_state in self.resource_states.values() {
            let mut ring = resource_state.topic.ring.lock();
            ring.trim(now, &options.history);
            more |= ring.is_above_floor(&options.history);
        }
        more
    }

    pub(crate) fn keep_view(&mut self, list: &ListSnapshot, now: Duration, options: &Options) {
        let is_same_view = |kept_view: &KeptView| {
            kept_view.revision == list.revision && kept_view.resource == list.resource
        };
        if let Some(at) = self.kept_views.iter().position(is_same_view) {
            self.kept_views.remove(at);
        }
        self.kept_views.push_back(KeptView {
            resource: Arc::clone(&list.resource),
            revision: list.revision,
            objects: list.objects.clone(),
            at: now,
        });
        self.trim(now, options);
    }

    /// A view of every live object.
    pub(crate) fn view(&self) -> View {
        let mut resource_states: Vec<_> = self
            .resource_states
            .iter()
            .map(|(name, resource_state)| (Arc::clone(name), resource_state.objects.clone()))
            .collect();
        resource_states.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        View { revision: self.revision, resource_states }
    }
}

/// All live objects at one revision. Taking a view costs nothing per object; it never changes.
pub struct View {
    /// The revision of the newest change that it shows.
    pub revision: u64,
    resource_states: Vec<(Arc<str>, OrdSet<Entry>)>,
}

impl View {
    /// The objects by resource, then namespace, then name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.resource_states.iter().flat_map(|(_, objects)| objects).map(|entry| &entry.0)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.resource_states.iter().map(|(_, objects)| objects.len()).sum()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.resource_states.iter().all(|(_, objects)| objects.is_empty())
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} objects @{}", self.len(), self.revision)
    }
}

/// The objects of one resource at one revision: a consistent view that never changes.
///
/// Taking one costs the same for ten objects and for a million. It keeps its objects in memory, so
/// do not hold it longer than a response takes.
#[derive(Clone)]
pub struct ListSnapshot {
    resource: Arc<str>,
    revision: u64,
    namespace: Option<Box<str>>,
    objects: OrdSet<Entry>,
}

impl ListSnapshot {
    /// The revision of the view: the list's `metadata.resourceVersion`, from which a watch
    /// continues without a gap.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The objects by namespace, then by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.from(Bound::Included(At { namespace: self.first_namespace(), name: "" }))
    }

    /// The objects after a namespace and name, which need not exist.
    pub fn after<'a>(
        &'a self,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        // A position before the listed namespace starts at that namespace.
        let start = if by_path(namespace, self.first_namespace()).is_lt() {
            Bound::Included(At { namespace: self.first_namespace(), name: "" })
        } else {
            Bound::Excluded(At { namespace, name })
        };
        self.from(start)
    }

    /// The number of objects. Counts them if the list is of one namespace.
    pub fn len(&self) -> usize {
        if self.namespace.is_none() { self.objects.len() } else { self.iter().count() }
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    fn first_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    fn from<'a>(&'a self, start: Bound<At<'_>>) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let start = start.as_ref().map(|at| at as &dyn Position);
        self.objects
            .range::<_, dyn Position + '_>((start, Bound::Unbounded))
            .map(|entry| &entry.0)
            .take_while(|stored| {
                self.namespace.as_deref().is_none_or(|one| *one == *stored.key.namespace)
            })
    }
}

impl fmt::Debug for ListSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} @{}", self.len(), self.resource, self.revision)
    }
}

impl Index {
    pub(crate) fn list(&self, resource: &str, namespace: Option<&str>) -> ListSnapshot {
        let (resource, objects) = match self.resource_states.get(resource) {
            Some(resource_state) => {
                (Arc::clone(&resource_state.topic.resource), resource_state.objects.clone())
            }
            None => (resource.into(), OrdSet::new()),
        };
        ListSnapshot {
            resource,
            revision: self.revision,
            namespace: namespace.map(Into::into),
            objects,
        }
    }

    /// The list at a past revision, with the changes that must be undone to get there.
    pub(crate) fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<(ListSnapshot, Vec<Arc<Event>>), Expired> {
        let mut list = self.list(resource, namespace);
        list.revision = revision;
        let is_same_view = |kept_view: &&KeptView| {
            kept_view.revision == revision && *kept_view.resource == *resource
        };
        if let Some(kept_view) = self.kept_views.iter().find(is_same_view) {
            list.objects.clone_from(&kept_view.objects);
            return Ok((list, Vec::new()));
        }
        let (undo, oldest) = match self.resource_states.get(resource) {
            Some(resource_state) => {
                let ring = resource_state.topic.ring.lock();
                (ring.undo_to(revision), ring.complete_after())
            }
            None => ((revision >= self.base).then(Vec::new), self.base),
        };
        let expired = Expired { requested: revision, oldest };
        if revision > self.revision { Err(expired) } else { Ok((list, undo.ok_or(expired)?)) }
    }
}

impl ListSnapshot {
    /// Undoes changes, newest first.
    pub(crate) fn undo(&mut self, events: &[Arc<Event>]) {
        for event in events {
            match &event.previous {
                Some(previous) => self.objects.insert(Entry(Arc::clone(previous))),
                None => self.objects.remove(&Entry(Arc::clone(&event.object)) as &dyn Position),
            };
        }
    }
}
