//! Watches of the objects of extensions: a change by somebody else enqueues the extension.
//!
//! One watch for each kind serves all extensions of an account. It selects objects by the label of their owner's kind,
//! and keeps only a digest of each. A controller notes the digest of each object that it writes, so that
//! its own writes enqueue nothing.

use super::apply::ObjectKey;
use crate::account_client::AccountClient;
use crate::account_watches::AccountWatches;
use crate::context::Context;
use mainstay_api::names::olm_v1::{OBJECT_FIELD_MANAGER, OWNER_KIND_LABEL, OWNER_NAME_LABEL};
use mainstay_client::{Cache, CacheProgress, Changed, Selection};
use mainstay_controller::Enqueuer;
use mainstay_object::{Gvk, NamespacedName, Object, Resource};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// An object of an extension as a watch keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ManagedObject {
    /// The name of the extension.
    owner: Arc<str>,
    digest: u64,
}

/// Objects as the controller left them; none without a label with the owner.
type LeftObjects = HashMap<ObjectKey, Option<ManagedObject>>;

/// The watches, and the objects as the controller left them.
pub(crate) struct ManagedObjects {
    watches: AccountWatches<ManagedObject>,
    left: Arc<Mutex<LeftObjects>>,
    enqueuer: Mutex<Option<Enqueuer<Context>>>,
}

impl ManagedObjects {
    /// No watches yet.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        let watches = AccountWatches::new(stop);
        Self { watches, left: Arc::default(), enqueuer: Mutex::new(None) }
    }

    /// Sets the queue for extensions whose objects change.
    pub(super) fn notify(&self, enqueuer: Enqueuer<Context>) {
        *self.enqueuer.lock() = Some(enqueuer);
    }

    /// Notes an object as the controller left it. If it went meanwhile, and its watch has shown that before this note,
    /// its extension is enqueued.
    pub(super) fn note(&self, object: &Object, account: &str) {
        let key = ObjectKey::of(object);
        let left = project(object);
        self.left.lock().insert(key.clone(), left.clone());
        if object.label(OWNER_KIND_LABEL) == Some(super::OWNER_KIND)
            && let Some(left) = left
            && self.watches.misses(&key.gvk, account, object)
            && let Some(enqueuer) = &*self.enqueuer.lock()
        {
            enqueuer.with(|_, queue| queue.add(NamespacedName::cluster(&*left.owner)));
        }
    }

    /// Forgets an object that the extension does not have any more.
    pub(super) fn forget(&self, object: &ObjectKey) {
        self.left.lock().remove(object);
    }

    /// Watches a kind with the permissions of an account, if that is not done yet.
    pub(super) fn watch(&self, resource: &Resource, client: &AccountClient) {
        let Some(enqueuer) = self.enqueuer.lock().clone() else { return };
        let (kind, left) = (resource.gvk(), Arc::clone(&self.left));
        let enqueuer_of_progress = enqueuer.clone();
        let on_progress = move |watch: &Cache<_>, _: &CacheProgress| {
            let owners = owners_of_missing_objects(&kind, watch, &left.lock());
            enqueuer_of_progress.with(|_, queue| {
                for owner in owners {
                    queue.add(NamespacedName::cluster(&*owner));
                }
            });
        };
        let cache = || {
            let selection = Selection::all(resource.clone())
                .labels(format!("{OWNER_KIND_LABEL}={}", super::OWNER_KIND))
                .metadata_only();
            let (gvk, left) = (resource.gvk(), Arc::clone(&self.left));
            Cache::builder(selection, project).subscribe(move |change| {
                let key = ObjectKey { gvk: gvk.clone(), name: change.key.clone() };
                let left = left.lock().get(&key).cloned().flatten();
                enqueue(&enqueuer, change, left.as_ref());
            })
        };
        self.watches.watch(resource, client, cache, on_progress);
    }

    /// Ends the watches with the permissions of an account, which goes with its extension.
    pub(crate) fn end_watches(&self, account: &str) {
        self.watches.end(account);
    }

    /// Whether each of these objects is as the controller left it, as far as the watches know.
    pub(super) fn are_untouched(&self, account: &str, objects: &BTreeSet<ObjectKey>) -> bool {
        objects.iter().all(|key| {
            let Some(watch) = self.watches.get(&key.gvk, account) else { return false };
            let current = watch.get(&key.name);
            let left = self.left.lock();
            let Some(left) = left.get(key) else { return false };
            // A watch that has not begun knows nothing.
            current.as_deref() == left.as_ref() || !watch.is_synced()
        })
    }
}

/// Enqueues the owner of an object that is not as the controller left it.
fn enqueue(
    enqueuer: &Enqueuer<Context>,
    change: &Changed<'_, ManagedObject>,
    left: Option<&ManagedObject>,
) {
    let now = change.after.map(|object| object.digest);
    if now.is_some() && now == left.map(|object| object.digest) {
        return;
    }
    let owners: BTreeSet<&Arc<str>> =
        change.before.into_iter().chain(change.after).map(|object| &object.owner).collect();
    for owner in owners {
        let key = NamespacedName::cluster(&**owner);
        enqueuer.with(|_, queue| queue.add(key));
    }
}

/// The owners of objects which a watch does not show as they were left after a list: they were deleted, or lost their
/// label, when the watch had not begun or was interrupted. Before the first list there are none.
fn owners_of_missing_objects(
    kind: &Gvk,
    watch: &Cache<ManagedObject>,
    left: &LeftObjects,
) -> BTreeSet<Arc<str>> {
    if !watch.is_synced() {
        return BTreeSet::new();
    }
    let of_kind = left.iter().filter(|(key, _)| key.gvk == *kind);
    let missing = of_kind.filter(|(key, left)| watch.get(&key.name).as_deref() != left.as_ref());
    missing.filter_map(|(_, left)| Some(Arc::clone(&left.as_ref()?.owner))).collect()
}

fn project(object: &Object) -> Option<ManagedObject> {
    let owner = object.label(OWNER_NAME_LABEL)?.into();
    Some(ManagedObject { owner, digest: digest(object) })
}

/// A digest of the fields of an object that we own: it changes if somebody else writes one of them, because
/// then it is theirs. Fields of others do not count. An object without any such field, which somebody
/// replaced, has a digest of its own.
fn digest(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.uid().hash(&mut hasher);
    for entry in object.array(&["metadata", "managedFields"]) {
        if entry["manager"] == OBJECT_FIELD_MANAGER && entry.get("subresource").is_none() {
            entry["fieldsV1"].to_string().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn digest_changes_with_the_fields_that_we_own_only() {
        let base = json!({
            "apiVersion": "v1", "kind": "A",
            "metadata": {"name": "a", "uid": "u", "labels": {"x": "1"}, "managedFields": [
                {"manager": OBJECT_FIELD_MANAGER, "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                {"manager": "other", "fieldsV1": {"f:metadata": {}}},
            ]},
        });
        let digest_of = |value: Value| digest(&Object::from_value(value).unwrap());
        let before = digest_of(base.clone());
        for (pointer, value, same) in [
            ("/metadata/labels/x", json!("2"), true),
            ("/metadata/managedFields/1/fieldsV1", json!({}), true),
            ("/metadata/managedFields/0/fieldsV1", json!({}), false),
            ("/metadata/uid", json!("v"), false),
        ] {
            let mut changed = base.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_eq!(digest_of(changed) == before, same, "{pointer}");
        }
    }
}
