//! Catalog snapshots: the catalogs of a cluster with the content that resolution sees.
//!
//! Content comes from a folder that the user names, or from the registry of a CatalogSource. A
//! catalog without content stays in the resolution input, as one that fails: leaving it out would
//! change the result.

use crate::request::{CatalogName, FolderOverride, PriorityOverride};
use crate::state::{CatalogSourceState, ClusterState};
use mainstay_catalog::{Catalog, FolderSource, KeptContent, LoadOptions};
use mainstay_cause::Cause;
use mainstay_resolver::fixture::CatalogData;
use mainstay_resolver::{CatalogContent, CatalogKey, CatalogView, Snapshot};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The message of the resolver about a catalog without content.
pub(crate) const NOT_AT_HAND: &str = "its content is not available here";

/// Whether a catalog has no content here.
pub(crate) fn is_not_at_hand(content: &CatalogContent<'_>) -> bool {
    matches!(content, CatalogContent::Failed(message) if message == NOT_AT_HAND)
}

/// A name that does not mean exactly one catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindCatalogError {
    /// No catalog has the name.
    #[error("{}", unknown(.name, .known))]
    Unknown {
        /// The name.
        name: CatalogName,
        /// The catalogs that exist.
        known: Vec<CatalogKey>,
    },
    /// Catalogs of several namespaces have the name.
    #[error("several namespaces have a catalog `{0}`: write it as NAMESPACE/NAME")]
    Ambiguous(CatalogName),
}

impl FindCatalogError {
    pub(crate) fn unknown<'k>(
        name: &CatalogName,
        known: impl Iterator<Item = &'k CatalogKey>,
    ) -> Self {
        Self::Unknown { name: name.clone(), known: known.cloned().collect() }
    }
}

fn unknown(name: &CatalogName, known: &[CatalogKey]) -> String {
    let known: Vec<String> = known.iter().map(key_text).collect();
    if known.is_empty() {
        return format!("there is no catalog `{name}`, nor any other");
    }
    format!("there is no catalog `{name}`, only {}", known.join(", "))
}

/// A catalog as messages name it.
pub(crate) fn key_text(key: &CatalogKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

/// Why the catalogs of a resolution input cannot be assembled.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// A folder cannot be read.
    #[error(transparent)]
    ReadFolder(#[from] FolderError),
    /// The name of a catalog with a folder is the name of several.
    #[error("several namespaces have a catalog `{}`", .0.name)]
    PlaceFolder(FolderOverride),
    /// Two folders are named for one catalog.
    #[error("the catalog already has the folder {other}")]
    ChooseFolder {
        /// The second folder.
        folder: FolderOverride,
        /// The first folder.
        other: String,
    },
    /// A priority does not name one catalog.
    #[error("{reason}")]
    SetPriority {
        /// The priority.
        priority: PriorityOverride,
        /// Why its name does not mean one catalog.
        reason: Box<FindCatalogError>,
    },
}

/// Why the folder of a catalog cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The file system refuses.
    #[error("{source}")]
    Inspect {
        /// The folder.
        folder: String,
        /// The error of the file system.
        source: io::Error,
    },
    /// The path is the path of a file.
    #[error("this is a file, not a folder")]
    Open {
        /// The path.
        folder: String,
    },
}

impl FolderError {
    /// The folder as the user names it.
    pub fn folder(&self) -> &str {
        let (Self::Inspect { folder, .. } | Self::Open { folder }) = self;
        folder
    }
}

/// Why a catalog has no content here.
#[derive(Clone, Debug)]
pub enum MissingContent {
    /// No folder is named, and no registry was read.
    NotGiven {
        /// The address of its registry; empty if it has none.
        address: String,
        /// The state of the connection to the registry, unless it is ready or unknown.
        connection: String,
        /// Whether the account may not see the CatalogSource.
        is_hidden: bool,
    },
    /// The registry does not answer.
    Registry {
        /// Its address.
        address: String,
        /// The reason.
        cause: Cause,
    },
}

/// Why a folder is not a sound catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnusableFolder {
    /// It holds no package.
    Empty,
    /// It holds a catalog with errors; the first of them.
    Invalid(String),
}

/// The content of a catalog.
pub enum SnapshotContent {
    /// All of it, and the data it was made of.
    Ready(Snapshot, SnapshotSource),
    /// None.
    Missing(MissingContent),
    /// The folder cannot be used.
    Unusable {
        /// The folder as the user names it.
        folder: String,
        /// The reason.
        reason: UnusableFolder,
    },
}

/// The data that a snapshot was made of.
pub enum SnapshotSource {
    /// A file-based catalog.
    Catalog(Arc<Catalog>),
    /// The content of a registry.
    Registry(Box<CatalogData>),
}

impl SnapshotContent {
    /// The address of the registry that has the content, if it was not read yet.
    fn registry_to_read(&self) -> Option<&str> {
        match self {
            Self::Missing(MissingContent::NotGiven { address, .. }) => {
                Some(&**address).filter(|address| !address.is_empty())
            }
            _ => None,
        }
    }

    /// Whether there is none because the account may not see the CatalogSource.
    pub fn is_hidden(&self) -> bool {
        matches!(self, Self::Missing(MissingContent::NotGiven { is_hidden: true, .. }))
    }

    /// The message of the resolver about an unusable folder.
    pub(crate) fn failure(folder: &str, reason: &UnusableFolder) -> String {
        match reason {
            UnusableFolder::Empty => format!("the folder {folder} holds no package"),
            UnusableFolder::Invalid(_) => format!("the folder {folder} cannot be used"),
        }
    }
}

/// The origin of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotOrigin {
    /// A folder, as the user names it.
    Folder(String),
    /// The registry at an address.
    Registry(String),
}

impl fmt::Display for SnapshotOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => f.write_str(folder),
            Self::Registry(address) => write!(f, "grpc {address}"),
        }
    }
}

/// A catalog with its content.
#[derive(Clone)]
pub struct CatalogSnapshot {
    /// Its priority.
    pub priority: i64,
    /// The origin of its content, if it has one.
    pub origin: Option<SnapshotOrigin>,
    /// Its content.
    pub content: Arc<SnapshotContent>,
}

impl CatalogSnapshot {
    /// The catalog as resolution sees it.
    fn view(&self, key: &CatalogKey) -> CatalogView<'_> {
        let content = match &*self.content {
            SnapshotContent::Ready(snapshot, _) => CatalogContent::Ready(snapshot),
            SnapshotContent::Missing(_) => CatalogContent::Failed(NOT_AT_HAND.to_owned()),
            SnapshotContent::Unusable { folder, reason } => {
                CatalogContent::Failed(SnapshotContent::failure(folder, reason))
            }
        };
        CatalogView { key: key.clone(), priority: self.priority, content }
    }

    /// The content in plain data; none if there is none.
    pub fn data(&self) -> Option<CatalogData> {
        match &*self.content {
            SnapshotContent::Ready(_, SnapshotSource::Catalog(catalog)) => {
                Some(CatalogData::of(catalog))
            }
            SnapshotContent::Ready(_, SnapshotSource::Registry(data)) => Some((**data).clone()),
            SnapshotContent::Missing(_) | SnapshotContent::Unusable { .. } => None,
        }
    }
}

/// Folders and priorities that the user names for catalogs.
#[derive(Clone, Copy, Default)]
pub struct CatalogOverrides<'a> {
    /// Content that counts instead of that of the registry.
    pub folders: &'a [FolderOverride],
    /// Priorities that count instead of those of the CatalogSources.
    pub priorities: &'a [PriorityOverride],
    /// Whether packages are requested beside the Subscriptions of the state.
    pub requests_packages: bool,
}

/// Folders, each loaded once.
pub struct FolderCache {
    base: PathBuf,
    loaded: RefCell<HashMap<String, Arc<SnapshotContent>>>,
}

impl FolderCache {
    /// A cache of folders whose relative paths start from `base`.
    pub fn new(base: impl Into<PathBuf>) -> Self {
        Self { base: base.into(), loaded: RefCell::default() }
    }

    /// The content of a folder. A folder without a sound catalog is a catalog that fails.
    ///
    /// # Errors
    /// If the folder does not exist, or is not a folder.
    pub fn load(&self, folder: &str) -> Result<Arc<SnapshotContent>, FolderError> {
        if let Some(known) = self.loaded.borrow().get(folder) {
            return Ok(known.clone());
        }
        let path = self.base.join(folder);
        let folder = folder.to_owned();
        match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(FolderError::Open { folder }),
            Err(source) => return Err(FolderError::Inspect { folder, source }),
        }
        let content = Arc::new(content_of(&path, &folder));
        self.loaded.borrow_mut().insert(folder, content.clone());
        Ok(content)
    }
}

fn content_of(path: &Path, folder: &str) -> SnapshotContent {
    // The manifests of bundles are read where a hop replaces one.
    let options = LoadOptions { keep: KeptContent::Light, ..LoadOptions::default() };
    let unusable = |reason| SnapshotContent::Unusable { folder: folder.to_owned(), reason };
    match Catalog::load_from(&FolderSource::new(path), &options) {
        Ok(catalog) if catalog.packages().next().is_none() => unusable(UnusableFolder::Empty),
        Ok(catalog) => {
            SnapshotContent::Ready(Snapshot::of(&catalog), SnapshotSource::Catalog(catalog))
        }
        Err(error) => unusable(UnusableFolder::Invalid(error.headline())),
    }
}

/// The catalogs of a resolution input. Cheap to clone.
#[derive(Clone, Default)]
pub struct CatalogSnapshots {
    /// The catalogs by name.
    pub catalogs: BTreeMap<CatalogKey, CatalogSnapshot>,
}

impl CatalogSnapshots {
    /// Assembles the catalogs of a state that `namespaces` see, and those that the user names, with
    /// the content of folders. The content of registries is read by the caller
    /// ([`CatalogSnapshots::registries_to_read`]), because that waits for a network.
    ///
    /// # Errors
    /// If a folder does not exist, or a name does not mean exactly one catalog.
    pub fn assemble(
        folders: &FolderCache,
        state: &ClusterState,
        global_namespace: &str,
        namespaces: &[String],
        overrides: &CatalogOverrides<'_>,
    ) -> Result<Self, AssembleError> {
        let mut snapshots = Self::default();
        for (key, source) in &state.sources {
            if key.namespace != global_namespace && !namespaces.contains(&key.namespace) {
                continue;
            }
            let folder = overrides.folders.iter().find(|folder| folder.name.matches(key));
            let (origin, content) = match folder {
                Some(folder) => (
                    Some(SnapshotOrigin::Folder(folder.folder.clone())),
                    folders.load(&folder.folder)?,
                ),
                None => (None, Arc::new(SnapshotContent::Missing(not_given(source)))),
            };
            let snapshot = CatalogSnapshot { priority: source.priority, origin, content };
            snapshots.catalogs.insert(key.clone(), snapshot);
        }
        let is_ours =
            |name: &CatalogName| state.is_for_subscriptions(name, overrides.requests_packages);
        let mut folder_of: BTreeMap<CatalogKey, &str> = BTreeMap::new();
        for folder in overrides.folders.iter().filter(|folder| is_ours(&folder.name)) {
            let key = snapshots.put(folders, folder, global_namespace)?;
            let other = folder_of.insert(key, &folder.folder);
            if let Some(other) = other.filter(|other| *other != folder.folder) {
                let (folder, other) = (folder.clone(), other.to_owned());
                return Err(AssembleError::ChooseFolder { folder, other });
            }
        }
        for priority in overrides.priorities.iter().filter(|priority| is_ours(&priority.name)) {
            let key = snapshots.find(&priority.name).map_err(|reason| {
                AssembleError::SetPriority { priority: priority.clone(), reason: Box::new(reason) }
            })?;
            if let Some(snapshot) = snapshots.catalogs.get_mut(&key) {
                snapshot.priority = priority.priority;
            }
        }
        Ok(snapshots)
    }

    /// The addresses of the registries of CatalogSources that have no content yet.
    pub fn registries_to_read(&self) -> BTreeSet<String> {
        let contents = self.catalogs.values().map(|snapshot| &*snapshot.content);
        let addresses = contents.filter_map(SnapshotContent::registry_to_read);
        addresses.map(str::to_owned).collect()
    }

    /// Sets the content of the CatalogSources without content whose registry is at `address`, or the
    /// reason why the registry cannot be read.
    pub fn set_registry_content(&mut self, address: &str, read: Result<CatalogData, Cause>) {
        let (origin, content) = registry_content(address.to_owned(), read);
        let content = Arc::new(content);
        for snapshot in self.catalogs.values_mut() {
            if snapshot.content.registry_to_read() == Some(address) {
                snapshot.origin.clone_from(&origin);
                snapshot.content = Arc::clone(&content);
            }
        }
    }

    /// Gives a catalog the content of a folder, whether the catalog exists or is new. A new catalog
    /// without a namespace is in the global one.
    ///
    /// # Errors
    /// If the folder does not exist, or several catalogs have the name.
    pub fn put(
        &mut self,
        folders: &FolderCache,
        folder: &FolderOverride,
        global_namespace: &str,
    ) -> Result<CatalogKey, AssembleError> {
        let mut same = self.catalogs.keys().filter(|key| folder.name.matches(key));
        let key = match (same.next(), same.next()) {
            (Some(_), Some(_)) => return Err(AssembleError::PlaceFolder(folder.clone())),
            (Some(key), None) => key.clone(),
            (None, _) => CatalogKey::new(
                &*folder.name.name,
                folder.name.namespace.as_deref().unwrap_or(global_namespace),
            ),
        };
        let origin = Some(SnapshotOrigin::Folder(folder.folder.clone()));
        let known = self.catalogs.get(&key);
        if known.is_some_and(|snapshot| snapshot.origin == origin) {
            return Ok(key);
        }
        let priority = known.map_or(0, |snapshot| snapshot.priority);
        let content = folders.load(&folder.folder)?;
        self.catalogs.insert(key.clone(), CatalogSnapshot { priority, origin, content });
        Ok(key)
    }

    /// Finds the one catalog of a name.
    ///
    /// # Errors
    /// If none or several have the name.
    pub fn find(&self, name: &CatalogName) -> Result<CatalogKey, FindCatalogError> {
        let mut same = self.catalogs.keys().filter(|key| name.matches(key));
        match (same.next(), same.next()) {
            (Some(key), None) => Ok(key.clone()),
            (None, _) => Err(FindCatalogError::unknown(name, self.catalogs.keys())),
            (Some(_), Some(_)) => Err(FindCatalogError::Ambiguous(name.clone())),
        }
    }

    /// The catalogs as resolution sees them.
    pub fn views(&self) -> Vec<CatalogView<'_>> {
        self.catalogs.iter().map(|(key, snapshot)| snapshot.view(key)).collect()
    }

    /// The catalogs without content that the account may not see.
    pub fn hidden(&self) -> BTreeSet<CatalogKey> {
        let hidden = self.catalogs.iter().filter(|(_, snapshot)| snapshot.content.is_hidden());
        hidden.map(|(key, _)| key.clone()).collect()
    }

    /// Whether a folder that the user names holds no sound catalog.
    pub fn has_unusable_folder(&self) -> bool {
        let mut contents = self.catalogs.values().map(|snapshot| &*snapshot.content);
        contents.any(|content| matches!(content, SnapshotContent::Unusable { .. }))
    }
}

/// Why a CatalogSource without a folder has no content.
fn not_given(source: &CatalogSourceState) -> MissingContent {
    let connection = match &*source.connection {
        "READY" => String::new(),
        connection => connection.to_owned(),
    };
    let address = source.address.clone();
    MissingContent::NotGiven { address, connection, is_hidden: source.is_hidden }
}

fn registry_content(
    address: String,
    read: Result<CatalogData, Cause>,
) -> (Option<SnapshotOrigin>, SnapshotContent) {
    match read {
        Ok(data) => {
            let snapshot = data.snapshot();
            let source = SnapshotSource::Registry(Box::new(data));
            (Some(SnapshotOrigin::Registry(address)), SnapshotContent::Ready(snapshot, source))
        }
        Err(cause) => (None, SnapshotContent::Missing(MissingContent::Registry { address, cause })),
    }
}
