//! Watches of kinds of objects, each with the permissions of an account.

use crate::account_client::AccountClient;
use mainstay_client::{Cache, CacheBuilder, CacheProgress};
use mainstay_object::{Gvk, Object, Resource};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// One watch for each kind and account. All end with the process; those of an account can be ended before.
pub(crate) struct AccountWatches<T> {
    stop: CancellationToken,
    /// By kind and account.
    watches: Mutex<HashMap<(Gvk, String), AccountWatch<T>>>,
}

/// A watch of one kind. It ends when this is dropped.
struct AccountWatch<T> {
    cache: Cache<T>,
    _stop: DropGuard,
}

impl<T: PartialEq + Send + Sync + 'static> AccountWatches<T> {
    /// No watches yet. They end with `stop`.
    pub(crate) fn new(stop: CancellationToken) -> Self {
        Self { stop, watches: Mutex::default() }
    }

    /// Watches a kind with the permissions of an account, if that is not done yet. A watch that was refused is tried
    /// again soon: the account may have the permission now.
    ///
    /// `on_progress` is called after each list, for what went before the list causes no change of the cache; and when the
    /// watch is refused, or not refused any more.
    pub(crate) fn watch(
        &self,
        resource: &Resource,
        client: &AccountClient,
        cache: impl FnOnce() -> CacheBuilder<T>,
        on_progress: impl Fn(&Cache<T>, &CacheProgress) + Send + 'static,
    ) {
        let key = (resource.gvk(), client.account.clone());
        match self.watches.lock().entry(key) {
            Entry::Occupied(watch) => {
                let cache = &watch.get().cache;
                if !cache.is_synced() || cache.progress().borrow().refusal.is_some() {
                    cache.retry_now();
                }
            }
            Entry::Vacant(place) => {
                let stop = self.stop.child_token();
                let cache = cache().start(&client.cluster, stop.clone());
                let (watch, ended) = (cache.clone(), stop.clone());
                let mut progress = cache.progress();
                progress.mark_changed();
                let report = async move {
                    // The sender lives in the watch.
                    while progress.changed().await.is_ok() {
                        let now = progress.borrow_and_update().clone();
                        on_progress(&watch, &now);
                    }
                };
                tokio::spawn(async move { ended.run_until_cancelled(report).await });
                place.insert(AccountWatch { cache, _stop: stop.drop_guard() });
            }
        }
    }

    /// The objects of a kind that an account sees; none if they are not watched.
    pub(crate) fn get(&self, kind: &Gvk, account: &str) -> Option<Cache<T>> {
        let watches = self.watches.lock();
        let watch = watches.get(&(kind.clone(), account.to_owned()))?;
        Some(watch.cache.clone())
    }

    /// Why a kind may not be watched with the permissions of an account.
    pub(crate) fn refusal(&self, kind: &Gvk, account: &str) -> Option<Arc<str>> {
        self.get(kind, account)?.progress().borrow().refusal.clone()
    }

    /// Whether a watch would show an object of this resource version, if it were still there as it was, but does not.
    pub(crate) fn misses(&self, kind: &Gvk, account: &str, object: &Object) -> bool {
        self.get(kind, account).is_some_and(|watch| {
            watch.has_revision(object.resource_version()) && watch.get(&object.key()).is_none()
        })
    }

    /// Ends the watches with the permissions of an account, which goes with its extension.
    pub(crate) fn end(&self, account: &str) {
        self.watches.lock().retain(|(_, of), _| of != account);
    }
}
