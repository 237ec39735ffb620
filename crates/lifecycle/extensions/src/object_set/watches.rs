//! Watches of the objects of ClusterObjectSets: a change enqueues each ClusterObjectSet among the owners.
//!
//! One watch for each kind serves all sets of an account. A reconciliation notes the resource version of
//! each object that it saw last, so that its own writes enqueue nothing. What one set wrote is still new
//! to another set of the same object. An object that was as desired is not requested again until the watch
//! shows another resource version.

use crate::account_client::AccountClient;
use crate::account_watches::AccountWatches;
use crate::context::Context;
use mainstay_api::names::olm_v1::{MANAGED_BY_LABEL, MANAGED_BY_VALUE};
use mainstay_api::{ApiKind, ClusterObjectSet};
use mainstay_client::{Cache, CacheProgress, Changed, Selection};
use mainstay_controller::Enqueuer;
use mainstay_object::{Gvk, NamespacedName, Object, Resource};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An object as a watch keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedObject {
    /// Names and uids of the ClusterObjectSets among its owners.
    owners: Vec<(Arc<str>, Arc<str>)>,
    resource_version: String,
}

impl OwnedObject {
    fn is_owned_by(&self, set: &str) -> bool {
        self.owners.iter().any(|(name, _)| **name == *set)
    }
}

/// Kind and name of an object.
type ObjectId = (Gvk, NamespacedName);

/// An object as a set saw it last.
struct SeenObject {
    resource_version: String,
    /// The rollout that saw it: the object as desired was accepted.
    rollout: Arc<str>,
    /// Whether it was as desired and passed its probes.
    is_complete: bool,
}

/// What a rollout knows about an object before it requests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// It must be checked whether the API accepts it.
    Nothing,
    /// The API accepted it.
    Accepted,
    /// It is as desired and passes its probes.
    Complete,
}

/// What a set saw last.
#[derive(Default)]
struct SeenBySet {
    /// The account with whose permissions it reads and writes.
    account: String,
    objects: HashMap<ObjectId, SeenObject>,
}

/// What sets saw last, by the name of the set.
type SeenObjects = HashMap<Arc<str>, SeenBySet>;

/// The watches, and what sets saw.
pub(crate) struct ObjectWatches {
    watches: AccountWatches<OwnedObject>,
    seen: Arc<Mutex<SeenObjects>>,
    enqueuer: Mutex<Option<Enqueuer<Context>>>,
}

impl ObjectWatches {
    /// No watches yet.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        let watches = AccountWatches::new(stop);
        Self { watches, seen: Arc::default(), enqueuer: Mutex::new(None) }
    }

    /// Sets the queue for sets whose objects change.
    pub(super) fn notify(&self, enqueuer: Enqueuer<Context>) {
        *self.enqueuer.lock() = Some(enqueuer);
    }

    /// Notes an object as a rollout of a set saw it last. If it went meanwhile, and its watch has shown that before this
    /// note, the set is enqueued.
    pub(super) fn note(
        &self,
        (set, account): (&str, &str),
        rollout: &Arc<str>,
        object: &Object,
        is_complete: bool,
    ) {
        let kind = object.gvk();
        let resource_version = object.resource_version().to_owned();
        let seen_object =
            SeenObject { resource_version, rollout: Arc::clone(rollout), is_complete };
        {
            let mut seen = self.seen.lock();
            let of_set = seen.entry(set.into()).or_default();
            account.clone_into(&mut of_set.account);
            of_set.objects.insert((kind.clone(), object.key()), seen_object);
        }
        let is_shown = object.label(MANAGED_BY_LABEL) == Some(MANAGED_BY_VALUE)
            && project(object).is_some_and(|object| object.is_owned_by(set));
        if is_shown
            && self.watches.misses(&kind, account, object)
            && let Some(enqueuer) = &*self.enqueuer.lock()
        {
            enqueuer.with(|_, queue| queue.add(NamespacedName::cluster(set)));
        }
    }

    /// What is known about an object from the last time when a rollout of a set saw it.
    pub(super) fn knowledge(
        &self,
        set: &str,
        rollout: &str,
        desired: &Object,
        account: &str,
    ) -> Knowledge {
        let id = (desired.gvk(), desired.key());
        let current = self.watches.get(&id.0, account).and_then(|watch| watch.get(&id.1));
        let seen = self.seen.lock();
        let last = seen.get(set).and_then(|of_set| of_set.objects.get(&id));
        let Some(last) = last.filter(|last| *last.rollout == *rollout) else {
            return Knowledge::Nothing;
        };
        let is_current =
            current.is_some_and(|current| current.resource_version == last.resource_version);
        if is_current && last.is_complete { Knowledge::Complete } else { Knowledge::Accepted }
    }

    /// Forgets what a set saw, once it is gone.
    pub(super) fn forget(&self, set: &str) {
        self.seen.lock().remove(set);
    }

    /// Watches a kind with the permissions of an account, if that is not done yet.
    pub(super) fn watch(&self, resource: &Resource, client: &AccountClient) {
        let Some(enqueuer) = self.enqueuer.lock().clone() else { return };
        let (kind, account) = (resource.gvk(), client.account.clone());
        let (seen, enqueuer_of_progress) = (Arc::clone(&self.seen), enqueuer.clone());
        let on_progress = move |watch: &Cache<_>, progress: &CacheProgress| {
            let sets = if progress.refusal.is_some() {
                // From now on no event tells of changes.
                sets_of_account(&kind, &account, &seen.lock())
            } else {
                sets_with_missing_objects(&kind, watch, &seen.lock())
            };
            enqueuer_of_progress.with(|_, queue| {
                for set in sets {
                    queue.add(NamespacedName::cluster(&*set));
                }
            });
        };
        let cache = || {
            let selection = Selection::all(resource.clone())
                .labels(format!("{MANAGED_BY_LABEL}={MANAGED_BY_VALUE}"))
                .metadata_only();
            let (kind, seen) = (resource.gvk(), Arc::clone(&self.seen));
            Cache::builder(selection, project)
                .subscribe(move |change| enqueue(&enqueuer, &kind, change, &seen))
        };
        self.watches.watch(resource, client, cache, on_progress);
    }

    /// Why one of these kinds may not be watched with the permissions of an account.
    pub(super) fn refusal(&self, kinds: &[Gvk], account: &str) -> Option<Arc<str>> {
        kinds.iter().find_map(|kind| self.watches.refusal(kind, account))
    }

    /// Ends the watches with the permissions of an account, which goes with its extension.
    pub(crate) fn end_watches(&self, account: &str) {
        self.watches.end(account);
    }
}

fn project(object: &Object) -> Option<OwnedObject> {
    let resource = ClusterObjectSet::RESOURCE;
    let owners: Vec<_> = object
        .owner_references()
        .iter()
        .filter(|owner| {
            owner.kind == *resource.kind
                && Gvk::from_api_version(&owner.api_version, "").group == *resource.group
        })
        .map(|owner| (Arc::from(&*owner.name), Arc::from(&*owner.uid)))
        .collect();
    let resource_version = object.resource_version().to_owned();
    (!owners.is_empty()).then_some(OwnedObject { owners, resource_version })
}

/// Enqueues the sets that have not seen an object as it is now.
fn enqueue(
    enqueuer: &Enqueuer<Context>,
    kind: &Gvk,
    change: &Changed<'_, OwnedObject>,
    seen: &Mutex<SeenObjects>,
) {
    let owners: BTreeSet<&(Arc<str>, Arc<str>)> =
        change.before.into_iter().chain(change.after).flat_map(|object| &object.owners).collect();
    let id = (kind.clone(), change.key.clone());
    for (owner, uid) in owners {
        let has_seen = change.after.is_some_and(|after| {
            let seen = seen.lock();
            let last = seen.get(owner).and_then(|of_set| of_set.objects.get(&id));
            last.is_some_and(|last| last.resource_version == after.resource_version)
        });
        if !has_seen {
            let key = NamespacedName::cluster(&**owner);
            enqueuer.with(|context, queue| {
                let set = context.object_sets.as_ref().and_then(|sets| sets.get(&key));
                // An owner reference that somebody wrote may have any name.
                if set.is_some_and(|set| *set.metadata.uid == **uid) {
                    queue.add(key);
                }
            });
        }
    }
}

/// The sets that saw objects of a kind with the permissions of an account.
fn sets_of_account(kind: &Gvk, account: &str, seen: &SeenObjects) -> Vec<Arc<str>> {
    let saw_kind = |of_set: &SeenBySet| of_set.objects.keys().any(|(of, _)| of == kind);
    let sets = seen.iter().filter(|(_, of_set)| of_set.account == account && saw_kind(of_set));
    sets.map(|(set, _)| Arc::clone(set)).collect()
}

/// The sets that saw objects which a watch does not show as theirs after a list: they were deleted, or lost their label
/// or their owner, when the watch had not begun or was interrupted. Before the first list there are none.
fn sets_with_missing_objects(
    kind: &Gvk,
    watch: &Cache<OwnedObject>,
    seen: &SeenObjects,
) -> Vec<Arc<str>> {
    if !watch.is_synced() {
        return Vec::new();
    }
    let is_missing = |set: &str, (of, name): &ObjectId| {
        of == kind && !watch.get(name).is_some_and(|object| object.is_owned_by(set))
    };
    let sets = seen
        .iter()
        .filter(|(set, of_set)| of_set.objects.keys().any(|object| is_missing(set, object)));
    sets.map(|(set, _)| Arc::clone(set)).collect()
}
