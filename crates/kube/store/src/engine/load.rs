//! The loader: builds the index in memory from an engine's records.

use crate::index::{Index, ResourceState, Topic};
use crate::key::{At, Entry, Position};
use crate::ring::Ring;
use crate::text::Parts;
use crate::{Event, EventKind, History, Key, Labels, Pool, Stored};
use imbl::OrdSet;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// A stored object in the form that an engine keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// [`Key::resource`].
    pub resource: &'a str,
    /// [`Key::namespace`].
    pub namespace: &'a str,
    /// [`Key::name`].
    pub name: &'a str,
    /// [`Stored::revision`].
    pub revision: u64,
    /// [`Stored::terminating`].
    pub terminating: bool,
    /// The offset of the revision's digits in `value`.
    pub slot: u32,
    /// The labels in encoded form.
    pub labels: &'a [u8],
    /// [`Stored::bytes`].
    pub value: Cow<'a, [u8]>,
}

impl<'a> Record<'a> {
    /// The fields that an engine must keep of an object.
    pub fn of(object: &'a Stored) -> Self {
        Self {
            resource: &object.key.resource,
            namespace: &object.key.namespace,
            name: &object.key.name,
            revision: object.revision,
            terminating: object.terminating,
            // Longer texts than four gibibytes are refused before they are stored.
            slot: u32::try_from(object.slot()).unwrap_or(u32::MAX),
            labels: object.labels.block(),
            value: if object.text.is_whole() {
                Cow::Borrowed(object.start())
            } else {
                Cow::Owned(object.bytes().into())
            },
        }
    }
}

/// Builds the index of a store that is being opened.
///
/// An engine first passes the objects of its snapshot, if it has one, then
/// [`Loader::begin_history`], then the later changes in order of their revisions. Those become
/// events again, so that a watch from before the restart continues if the history reaches back far
/// enough.
#[derive(Debug)]
pub struct Loader {
    resource_states: HashMap<Arc<str>, LoadingResource>,
    namespaces: HashSet<Arc<str>>,
    /// The revision after which the history is complete; none while the snapshot is being read.
    history: Option<u64>,
    revision: u64,
    limits: History,
    /// The time that counts as that of the history's events.
    now: Duration,
    /// The labels of the last record: neighbours often have the same ones.
    labels: Labels,
    pool: Pool,
}

struct LoadingResource {
    resource: Arc<str>,
    objects: OrdSet<Entry>,
    ring: Ring,
}

impl std::fmt::Debug for LoadingResource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.objects.len(), self.resource)
    }
}

impl Loader {
    pub(crate) fn new(limits: History, now: Duration) -> Self {
        Self {
            resource_states: HashMap::new(),
            namespaces: HashSet::new(),
            history: None,
            revision: FIRST_REVISION,
            limits,
            now,
            labels: Labels::default(),
            pool: Pool::default(),
        }
    }

    /// Ends the snapshot, which contains the state at `revision`.
    pub fn begin_history(&mut self, revision: u64) {
        self.history = Some(revision);
        self.revision = self.revision.max(revision);
        for resource_state in self.resource_states.values_mut() {
            resource_state.ring = Ring::new(revision);
        }
    }

    /// Whether the snapshot is complete and changes are being read.
    pub(crate) const fn has_history(&self) -> bool {
        self.history.is_some()
    }

    /// The newest revision so far.
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// The number of live objects.
    pub fn objects(&self) -> usize {
        self.resource_states.values().map(|resource_state| resource_state.objects.len()).sum()
    }

    /// Adds a live object: from the snapshot, or as a change of the history.
    pub fn put(&mut self, record: &Record<'_>) {
        let object = self.stored(record);
        self.revision = self.revision.max(record.revision);
        let (history, limits, now) = (self.history, self.limits, self.now);
        let resource_state = self.resource_state(record.resource);
        let object = Arc::new(Stored {
            key: Key { resource: Arc::clone(&resource_state.resource), ..object.key },
            ..object
        });
        let previous =
            resource_state.objects.insert(Entry(Arc::clone(&object))).map(|entry| entry.0);
        if history.is_some() {
            let kind = if previous.is_some() { EventKind::Modified } else { EventKind::Added };
            resource_state.ring.push(Event::new(kind, object, previous), now, &limits);
        }
    }

    /// Adds a deletion from the history.
    pub fn delete(&mut self, resource: &str, namespace: &str, name: &str, revision: u64) {
        self.revision = self.revision.max(revision);
        let (history, limits, now) = (self.history, self.limits, self.now);
        let resource_state = self.resource_state(resource);
        let Some(removed) = resource_state.objects.remove(&At { namespace, name } as &dyn Position)
        else {
            return;
        };
        if history.is_some() {
            let object = Arc::new(removed.0.deleted_at(revision));
            let event = Event::new(EventKind::Deleted, object, Some(removed.0));
            resource_state.ring.push(event, now, &limits);
        }
    }

    /// The index at the newest revision.
    pub(crate) fn finish(self) -> (Index, Pool) {
        let base = self.history.unwrap_or(self.revision);
        let resource_states = self
            .resource_states
            .into_values()
            .map(|resource_state| {
                let topic =
                    Arc::new(Topic::new(Arc::clone(&resource_state.resource), resource_state.ring));
                (resource_state.resource, ResourceState { objects: resource_state.objects, topic })
            })
            .collect();
        (Index::new(self.revision, base, resource_states), self.pool)
    }

    fn stored(&mut self, record: &Record<'_>) -> Stored {
        if self.labels.block() != record.labels {
            self.labels = Labels::from_block(record.labels);
        }
        let (text, slot) = Parts::of(record.value.to_vec(), record.slot as usize);
        Stored {
            key: Key {
                resource: "".into(),
                namespace: self.namespace(record.namespace),
                name: record.name.into(),
            },
            revision: record.revision,
            terminating: record.terminating,
            labels: self.labels.clone(),
            text: text.complete(&mut self.pool),
            slot,
        }
    }

    fn namespace(&mut self, name: &str) -> Arc<str> {
        if let Some(interned) = self.namespaces.get(name) {
            return Arc::clone(interned);
        }
        let name: Arc<str> = name.into();
        self.namespaces.insert(Arc::clone(&name));
        name
    }

    fn resource_state(&mut self, resource: &str) -> &mut LoadingResource {
        if !self.resource_states.contains_key(resource) {
            let resource: Arc<str> = resource.into();
            let ring = Ring::new(self.history.unwrap_or(self.revision));
            let resource_state =
                LoadingResource { resource: Arc::clone(&resource), objects: OrdSet::new(), ring };
            self.resource_states.insert(resource, resource_state);
        }
        match self.resource_states.get_mut(resource) {
            Some(resource_state) => resource_state,
            None => unreachable!("inserted above"),
        }
    }
}

/// The revision of a store without any write. Not zero: to clients a `resourceVersion` of 0 means
/// "any", so no list and no object may have it.
pub(crate) const FIRST_REVISION: u64 = 1;
