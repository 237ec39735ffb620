//! Watches of kinds of objects, each with the permissions of an account.

use crate::account_client::AccountClient;
use futures::future::{Either, select};
use mainstay_client::{Cache, CacheBuilder};
use mainstay_object::{Gvk, Resource};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
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

    /// Watches a kind with the permissions of an account, if that is not done yet. A watch that has failed so far is
    /// tried again soon: the account may have the permission now.
    ///
    /// `look` is called if the first attempt fails, and once the watch shows all objects: what went before that causes
    /// no change of the cache.
    pub(crate) fn watch(
        &self,
        resource: &Resource,
        client: &AccountClient,
        cache: impl FnOnce() -> CacheBuilder<T>,
        look: impl Fn(&Cache<T>) + Send + 'static,
    ) {
        let key = (resource.gvk(), client.account.clone());
        match self.watches.lock().entry(key) {
            Entry::Occupied(watch) => {
                let cache = &watch.get().cache;
                if !cache.is_synced() {
                    cache.retry_now();
                }
            }
            Entry::Vacant(place) => {
                let stop = self.stop.child_token();
                let cache = cache().start(&client.cluster, stop.clone());
                let (watch, ended) = (cache.clone(), stop.clone());
                let report = async move {
                    let failed = pin!(watch.list_failed());
                    let synced = pin!(watch.synced());
                    if let Either::Right((_, synced)) = select(synced, failed).await {
                        look(&watch);
                        synced.await;
                    }
                    look(&watch);
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

    /// Why a kind cannot be watched with the permissions of an account; none if it is watched, or if no attempt has
    /// failed yet.
    pub(crate) fn failure(&self, kind: &Gvk, account: &str) -> Option<Arc<str>> {
        self.get(kind, account).filter(|watch| !watch.is_synced())?.list_failure()
    }

    /// Ends the watches with the permissions of an account, which goes with its extension.
    pub(crate) fn end(&self, account: &str) {
        self.watches.lock().retain(|(_, of), _| of != account);
    }
}
