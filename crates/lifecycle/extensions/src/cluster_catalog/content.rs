//! Contents: which stored content each catalog serves, in a folder with a subfolder for each digest.
//!
//! ```text
//! FOLDER/SHA256-OF-THE-IMAGE/{documents.jsonl, index.json, …}
//! ```
//!
//! Catalogs with the same image share a subfolder. A subfolder is removed once no catalog uses it;
//! downloads that have it open continue.

use mainstay_image::digest::Digest;
use mainstay_registry::{RegistryIndex, ServedCatalog, ServedCatalogs, ServedDocuments, stored};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The content of all catalogs.
pub(crate) struct Contents {
    folder: PathBuf,
    served: Arc<ServedCatalogs>,
    used: Mutex<BTreeMap<String, CatalogContent>>,
    /// Held while content is created: parsing uses all cores and much memory.
    pub(super) creating: tokio::sync::Semaphore,
}

/// The content of one catalog.
#[derive(Clone, Debug)]
pub(super) struct CatalogContent {
    /// The digest of its image.
    pub(super) digest: Digest,
    /// The content.
    pub(super) documents: Documents,
}

/// Where the documents of a catalog are.
#[derive(Clone, Debug)]
pub(super) enum Documents {
    /// In the content folder, from an image.
    Stored(Arc<ServedDocuments>),
    /// In the index of a catalog folder, which the classic catalog serves as well.
    Folder(Arc<RegistryIndex>),
}

impl CatalogContent {
    /// When the content was stored, or the folder changed.
    pub(super) fn modified(&self) -> SystemTime {
        match &self.documents {
            Documents::Stored(stored) => stored.modified(),
            Documents::Folder(index) => index.modified(),
        }
    }
}

impl Contents {
    /// No content yet. `served` gets what the HTTP API serves.
    pub(crate) fn new(folder: PathBuf, served: Arc<ServedCatalogs>) -> Self {
        Self { folder, served, used: Mutex::default(), creating: tokio::sync::Semaphore::new(1) }
    }

    /// The subfolder for the content of an image.
    pub(super) fn subfolder(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.to_string().replace(':', "-"))
    }

    /// What a catalog serves.
    pub(super) fn current(&self, name: &str) -> Option<CatalogContent> {
        self.used.lock().get(name).cloned()
    }

    /// Opens the content of an image, if it is stored. Blocks on a file.
    pub(super) fn open(&self, digest: &Digest) -> Option<Arc<ServedDocuments>> {
        let in_memory = {
            let used = self.used.lock();
            used.values().filter(|content| content.digest == *digest).find_map(|content| {
                match &content.documents {
                    Documents::Stored(stored) => Some(Arc::clone(stored)),
                    Documents::Folder(_) => None,
                }
            })
        };
        in_memory.or_else(|| {
            let folder = self.subfolder(digest);
            if !folder.exists() {
                return None;
            }
            match stored::open(&folder) {
                Ok(stored) => Some(Arc::new(stored)),
                Err(error) => {
                    tracing::warn!(%error, "the content is stored again");
                    None
                }
            }
        })
    }

    /// Serves content for a catalog in place of what it served before.
    pub(super) fn serve(&self, name: &str, content: CatalogContent) {
        let before = {
            let mut used = self.used.lock();
            match &content.documents {
                Documents::Stored(stored) => self.served.put_documents(name, Arc::clone(stored)),
                Documents::Folder(index) => self.served.put(name, Arc::clone(index)),
            };
            used.insert(name.to_owned(), content)
        };
        if let Some(before) = before {
            self.remove_unless_used(&before.digest);
        }
    }

    /// A catalog that clients see, with its documents if they are loaded.
    pub(crate) fn served(&self, name: &str) -> Option<Arc<ServedCatalog>> {
        self.served.get(name)
    }

    /// Announces a catalog whose content is being loaded: HTTP answers 503 until it is there.
    pub(super) fn announce(&self, name: &str) {
        self.served.add(name);
    }

    /// Whether clients see a catalog, with or without content.
    pub(super) fn is_announced(&self, name: &str) -> bool {
        self.served.get(name).is_some()
    }

    /// The names of the catalogs that clients see.
    pub(super) fn announced(&self) -> Vec<Arc<str>> {
        self.served.all().iter().map(|catalog| Arc::clone(catalog.name())).collect()
    }

    /// Stops serving a catalog.
    pub(super) fn withdraw(&self, name: &str) {
        let before = {
            let mut used = self.used.lock();
            self.served.remove(name);
            used.remove(name)
        };
        if let Some(before) = before {
            self.remove_unless_used(&before.digest);
        }
    }

    /// Removes the subfolders that are not of one of these digests: those of catalogs that were
    /// deleted while no process ran. Blocks on files.
    pub(super) fn remove_except(&self, digests: &BTreeSet<Digest>) {
        let kept: BTreeSet<PathBuf> = digests.iter().map(|digest| self.subfolder(digest)).collect();
        // Without the folder there is nothing to remove.
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let used = self.used.lock();
            let in_use = used.values().any(|content| self.subfolder(&content.digest) == path);
            if !in_use && !kept.contains(&path) {
                remove(&path);
            }
        }
    }

    fn remove_unless_used(&self, digest: &Digest) {
        let used = self.used.lock();
        if used.values().all(|content| content.digest != *digest) {
            // Under the lock, so that no catalog begins to use it meanwhile.
            remove(&self.subfolder(digest));
        }
    }
}

fn remove(folder: &Path) {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(folder = %folder.display(), %error, "old content is not removed");
        }
        _ => {}
    }
}
