//! The served catalogs, by name.

use crate::{ServedDocuments, index::RegistryIndex};
use arc_swap::ArcSwap;
use mainstay_catalog::BlobError;
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::watch;

/// The state of a served catalog.
#[derive(Clone, Debug, Default)]
pub struct ServedState {
    /// The served content: the last valid one. `None` until something is loaded, and for documents
    /// that are served without an index.
    pub index: Option<Arc<RegistryIndex>>,
    /// Documents that are served without an index.
    pub documents: Option<Arc<ServedDocuments>>,
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

    /// Its documents for HTTP; `None` until something is loaded.
    ///
    /// # Errors
    /// The content of the index is damaged, or was not kept.
    pub fn documents(&self) -> Result<Option<Arc<ServedDocuments>>, BlobError> {
        let state = self.state.load();
        match (&state.documents, &state.index) {
            (Some(documents), _) => Ok(Some(Arc::clone(documents))),
            (None, Some(index)) => index.documents().map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Replaces the content. Readers of the earlier content keep it until they are done.
    pub fn put(&self, index: Arc<RegistryIndex>) {
        self.replace(ServedState { index: Some(index), ..ServedState::default() });
    }

    /// Replaces the content by documents without an index: HTTP serves them, gRPC serves nothing.
    pub fn put_documents(&self, documents: Arc<ServedDocuments>) {
        self.replace(ServedState { documents: Some(documents), ..ServedState::default() });
    }

    /// Keeps the current content and records why newer content is not served.
    pub fn fail(&self, problem: impl Into<Arc<str>>) {
        let problem = problem.into();
        self.update(|state| ServedState { problem: Some(Arc::clone(&problem)), ..state.clone() });
    }

    /// Receives every change from now on: the number grows with each.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn replace(&self, content: ServedState) {
        self.state.store(Arc::new(content));
        self.changes.send_modify(|number| *number += 1);
    }

    fn update(&self, update: impl Fn(&ServedState) -> ServedState) {
        self.state.rcu(|state| update(state));
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

    /// Replaces the content of the catalog of that name by an index, or adds the catalog. No reader sees
    /// the catalog without content.
    pub fn put(&self, name: &str, index: Arc<RegistryIndex>) -> Arc<ServedCatalog> {
        self.put_content(name, ServedState { index: Some(index), ..ServedState::default() })
    }

    /// Replaces the content of the catalog of that name by documents, or adds the catalog. No reader sees
    /// the catalog without content.
    pub fn put_documents(&self, name: &str, documents: Arc<ServedDocuments>) -> Arc<ServedCatalog> {
        self.put_content(name, ServedState { documents: Some(documents), ..ServedState::default() })
    }

    fn put_content(&self, name: &str, content: ServedState) -> Arc<ServedCatalog> {
        let fresh = Arc::new(ServedCatalog::new(name));
        fresh.replace(content.clone());
        let mut present = None;
        self.served.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            present = all.get(name).cloned();
            all.entry(Arc::clone(fresh.name())).or_insert_with(|| Arc::clone(&fresh));
            all
        });
        match present {
            Some(present) => {
                present.replace(content);
                present
            }
            None => fresh,
        }
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
