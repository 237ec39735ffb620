//! The served catalogs, by name.

use crate::index::RegistryIndex;
use crate::stored::StoredCatalog;
use arc_swap::ArcSwap;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::watch;

/// The state of a served catalog.
#[derive(Clone, Debug, Default)]
pub struct ServedState {
    /// The served content: the last valid one. `None` until something is loaded.
    pub index: Option<Arc<RegistryIndex>>,
    /// The served documents of a ClusterCatalog. The HTTP API prefers them; the registry API does
    /// not have them.
    pub documents: Option<Arc<StoredCatalog>>,
    /// Why newer content is not served, in one line.
    pub problem: Option<Arc<str>>,
}

/// A named catalog that is being served. Reading it never waits, not even for a reload.
#[derive(Debug)]
pub struct ServedCatalog {
    name: Arc<str>,
    state: ArcSwap<ServedState>,
    changes: watch::Sender<u64>,
}

impl ServedCatalog {
    /// A catalog without content.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), state: ArcSwap::default(), changes: watch::Sender::new(0) }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its current state.
    pub fn state(&self) -> Arc<ServedState> {
        self.state.load_full()
    }

    /// Its content; `None` until something is loaded.
    pub fn index(&self) -> Option<Arc<RegistryIndex>> {
        self.state.load().index.clone()
    }

    /// The documents of a ClusterCatalog; `None` for other catalogs and until something is stored.
    pub fn documents(&self) -> Option<Arc<StoredCatalog>> {
        self.state.load().documents.clone()
    }

    /// Replaces the content.
    pub fn put(&self, index: Arc<RegistryIndex>) {
        self.swap(ServedState { index: Some(index), ..ServedState::default() });
    }

    /// Replaces the content by the documents of a ClusterCatalog.
    pub fn put_documents(&self, documents: Arc<StoredCatalog>) {
        self.swap(ServedState { documents: Some(documents), ..ServedState::default() });
    }

    /// Keeps the current content and records why newer content is not served.
    pub fn fail(&self, problem: impl Into<Arc<str>>) {
        let state = self.state();
        self.swap(ServedState { problem: Some(problem.into()), ..ServedState::clone(&state) });
    }

    /// Receives every change from now on: the number grows with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn swap(&self, state: ServedState) {
        self.state.store(Arc::new(state));
        self.changes.send_modify(|number| *number += 1);
    }
}

/// The set of all catalogs that a server serves.
#[derive(Debug, Default)]
pub struct ServedCatalogs {
    served: ArcSwap<BTreeMap<Arc<str>, Arc<ServedCatalog>>>,
}

impl ServedCatalogs {
    /// The catalog of that name.
    pub fn get(&self, name: &str) -> Option<Arc<ServedCatalog>> {
        self.served.load().get(name).cloned()
    }

    /// All catalogs, by name.
    pub fn all(&self) -> Vec<Arc<ServedCatalog>> {
        self.served.load().values().cloned().collect()
    }

    /// The catalog of that name; added without content if it was absent.
    pub fn add(&self, name: &str) -> Arc<ServedCatalog> {
        let fresh = Arc::new(ServedCatalog::new(name));
        self.served.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            all.entry(Arc::clone(fresh.name())).or_insert_with(|| Arc::clone(&fresh));
            all
        });
        self.get(name).unwrap_or(fresh)
    }

    /// Removes a catalog. Readers that hold it may continue.
    pub fn remove(&self, name: &str) -> Option<Arc<ServedCatalog>> {
        let mut removed = None;
        self.served.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            removed = all.remove(name);
            all
        });
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_served_catalog_keeps_its_identity() {
        let shelf = ServedCatalogs::default();
        let first = shelf.add("a");
        assert!(Arc::ptr_eq(&first, &shelf.add("a")), "the second add finds the first");
        assert!(shelf.get("b").is_none());
        assert!(shelf.remove("a").is_some_and(|removed| Arc::ptr_eq(&removed, &first)));
        assert!(shelf.all().is_empty());
    }

    #[test]
    fn a_failure_is_recorded_and_notifies_watchers() {
        let served = ServedCatalog::new("a");
        let mut changes = served.changes();
        served.fail("no folder");
        assert!(changes.has_changed().is_ok_and(|changed| changed));
        changes.mark_unchanged();
        let state = served.state();
        assert!(state.index.is_none());
        assert_eq!(state.problem.as_deref(), Some("no folder"));
    }
}
