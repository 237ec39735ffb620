//! ClusterExtensions: the bundle that each resolves to, and its upgrade path from there.

use crate::catalogs::{
    CatalogOverrides, FolderCache, FolderError, NOT_AT_HAND, SnapshotContent, SnapshotSource,
    UnusableFolder,
};
use crate::comparison::{WalkComparison, WalkDifference};
use crate::request::{CatalogName, FolderOverride, PriorityOverride, WhatIfChange};
use crate::state::ClusterState;
use mainstay_object::{Gvk, Object};
use mainstay_resolver::extension::{
    self, Dependency, ExtensionChoice, ExtensionFailureKind, ExtensionRequest, InputCatalog,
    InputCatalogContent, InstalledExtensionBundle, PackageContent, ProviderSource, UpgradePolicy,
    cluster_providers, resolve,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Most updates of a path: more than any package has versions.
const MAX_HOPS: usize = 1000;

/// Why ClusterExtensions cannot be resolved.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    /// A folder cannot be read.
    #[error(transparent)]
    ReadFolder(#[from] FolderError),
    /// A priority names a ClusterCatalog that does not exist.
    #[error("there is no catalog `{}`", .0.name)]
    SetPriority(PriorityOverride),
    /// A priority has more bits than that of a ClusterCatalog.
    #[error("the priority of a ClusterCatalog has 32 bits")]
    ConvertPriority(PriorityOverride),
    /// An outage names a ClusterCatalog that does not exist.
    #[error("there is no catalog `{name}`, only {}", .known.join(", "))]
    FindOutage {
        /// The index of the change.
        change: usize,
        /// The name.
        name: CatalogName,
        /// The ClusterCatalogs that exist.
        known: Vec<String>,
    },
}

/// A ClusterCatalog with its overrides.
struct ClusterCatalog {
    object: Object,
    priority: Option<i32>,
    content: Option<Arc<SnapshotContent>>,
    /// The folder of the content.
    folder: String,
    /// Whether an outage is supposed.
    is_out: bool,
}

/// The answer about all ClusterExtensions of a state.
#[derive(Default)]
pub struct ExtensionsWhatIf {
    /// The paths as the catalogs are.
    pub before: Vec<ExtensionPath>,
    /// The paths as the catalogs are supposed to be, if changes of catalogs are supposed.
    pub after: Option<Vec<ExtensionPath>>,
    /// The folders that cannot be used, by ClusterCatalog: its name, the folder and the reason.
    pub unusable: Vec<(String, String, UnusableFolder)>,
    /// The indexes of the changes that are about ClusterCatalogs.
    pub changes: Vec<usize>,
}

/// The upgrade path of a ClusterExtension.
pub struct ExtensionPath {
    /// The name of the ClusterExtension.
    pub name: String,
    /// Its package.
    pub package: String,
    /// Its request.
    pub request: ExtensionRequest,
    /// Its installed bundle.
    pub installed: Option<InstalledExtensionBundle>,
    /// The bundles on the path, in order.
    pub hops: Vec<ExtensionChoice>,
    /// The end of the path.
    pub end: ExtensionEnd,
    /// What the next bundle requires beside itself, each with what satisfies it among the
    /// ClusterExtensions of the state.
    pub required: Vec<(Dependency, Option<ProviderSource>)>,
}

/// The end of the upgrade path of a ClusterExtension.
pub enum ExtensionEnd {
    /// The best bundle that the spec allows.
    Best,
    /// A bundle without an update to the best one, which is named.
    Stranded(String),
    /// A bundle, or none, from which resolution fails.
    Failed(Box<FailedExtension>),
}

/// A failed resolution.
pub struct FailedExtension {
    /// The failure.
    pub failure: extension::ExtensionFailure,
    /// If catalogs could not be read: the repair of each.
    pub repairs: Vec<ContentRepair>,
    /// If catalogs could not be read: whether the outage of one is supposed.
    pub has_outage: bool,
}

/// How a catalog without content can get some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentRepair {
    /// To correct the folder.
    CorrectFolder(String),
    /// To name a folder for the ClusterCatalog.
    NameFolder(String),
}

impl ExtensionsWhatIf {
    /// Resolves the ClusterExtensions of a state, as its catalogs are and with supposed changes.
    ///
    /// # Errors
    /// If a folder does not exist, or a priority or change names a catalog that does not exist.
    pub fn of(
        folders: &FolderCache,
        state: &ClusterState,
        overrides: &CatalogOverrides<'_>,
        changes: &[WhatIfChange],
    ) -> Result<Self, ExtensionError> {
        if state.extensions.is_empty() {
            return Ok(Self::default());
        }
        let mut catalogs = cluster_catalogs(folders, state, overrides)?;
        let before = paths(state, &catalogs);
        let mut catalog_changes = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            match change {
                WhatIfChange::ReplaceContent(folder) if state.is_for_extensions(&folder.name) => {
                    put(folders, &mut catalogs, folder)?;
                }
                WhatIfChange::Outage(CatalogName { namespace: None, name })
                    if catalogs.contains_key(name) =>
                {
                    if let Some(catalog) = catalogs.get_mut(name) {
                        catalog.is_out = true;
                    }
                }
                WhatIfChange::Outage(name)
                    if state.is_for_extensions_only(name, overrides.requests_packages) =>
                {
                    let (name, known) = (name.clone(), catalogs.keys().cloned().collect());
                    return Err(ExtensionError::FindOutage { change: at, name, known });
                }
                _ => continue,
            }
            catalog_changes.push(at);
        }
        let after = (!catalog_changes.is_empty()).then(|| paths(state, &catalogs));
        let unusable =
            catalogs.into_values().filter_map(|catalog| match catalog.content.as_deref() {
                Some(SnapshotContent::Unusable { folder, reason }) => {
                    Some((catalog.object.name().to_owned(), folder.clone(), reason.clone()))
                }
                _ => None,
            });
        Ok(Self { before, after, unusable: unusable.collect(), changes: catalog_changes })
    }

    /// Whether the state has no ClusterExtensions.
    pub const fn is_empty(&self) -> bool {
        self.before.is_empty()
    }

    /// The paths that count: as the catalogs are supposed to be, if changes are supposed.
    pub fn final_paths(&self) -> &[ExtensionPath] {
        self.after.as_ref().unwrap_or(&self.before)
    }

    /// Compares the paths with those of the supposed catalogs, if changes are supposed.
    pub fn comparison(&self) -> Option<WalkComparison> {
        let after = self.after.as_ref()?;
        let mut comparison = WalkComparison::default();
        for (before, after) in self.before.iter().zip(after) {
            let (was, is) = (before.to_string(), after.to_string());
            if was == is {
                comparison.same += 1;
            } else {
                comparison.differences.push(WalkDifference {
                    subject: after.name.clone(),
                    before: Some(was),
                    after: Some(is),
                });
            }
        }
        Some(comparison)
    }
}

/// The path of each ClusterExtension, by name.
fn paths(state: &ClusterState, catalogs: &BTreeMap<String, ClusterCatalog>) -> Vec<ExtensionPath> {
    let paths = state
        .extensions
        .iter()
        .map(|object| ExtensionPath::of(object, catalogs).with_required(state));
    let mut paths: Vec<ExtensionPath> = paths.collect();
    paths.sort_by(|a, b| a.name.cmp(&b.name));
    paths
}

/// Gives a catalog the content of a folder, whether the catalog exists or is new.
fn put(
    folders: &FolderCache,
    catalogs: &mut BTreeMap<String, ClusterCatalog>,
    folder: &FolderOverride,
) -> Result<(), FolderError> {
    let name = &folder.name.name;
    let catalog = catalogs.entry(name.clone()).or_insert_with(|| {
        let gvk = Gvk::new("olm.operatorframework.io", "v1", "ClusterCatalog");
        ClusterCatalog::of(Object::new(&gvk, name))
    });
    catalog.content = Some(folders.load(&folder.folder)?);
    catalog.folder.clone_from(&folder.folder);
    Ok(())
}

/// The ClusterCatalogs of a state and those that the user names, with their content.
fn cluster_catalogs(
    folders: &FolderCache,
    state: &ClusterState,
    overrides: &CatalogOverrides<'_>,
) -> Result<BTreeMap<String, ClusterCatalog>, ExtensionError> {
    let mut catalogs: BTreeMap<String, ClusterCatalog> = BTreeMap::new();
    for object in &state.cluster_catalogs {
        catalogs.insert(object.name().to_owned(), ClusterCatalog::of(object.clone()));
    }
    let is_ours = |name: &CatalogName| state.is_for_extensions(name);
    for folder in overrides.folders.iter().filter(|folder| is_ours(&folder.name)) {
        put(folders, &mut catalogs, folder)?;
    }
    for given in overrides.priorities.iter().filter(|given| is_ours(&given.name)) {
        let Some(catalog) = catalogs.get_mut(&given.name.name) else {
            return Err(ExtensionError::SetPriority(given.clone()));
        };
        let priority = i32::try_from(given.priority)
            .map_err(|_| ExtensionError::ConvertPriority(given.clone()))?;
        catalog.priority = Some(priority);
    }
    Ok(catalogs)
}

impl ClusterCatalog {
    const fn of(object: Object) -> Self {
        Self { object, priority: None, content: None, folder: String::new(), is_out: false }
    }

    /// The repair of the catalog, if it has no content.
    fn repair(&self) -> Option<ContentRepair> {
        match self.content.as_deref() {
            _ if self.is_out => None,
            Some(SnapshotContent::Ready(..)) => None,
            Some(SnapshotContent::Unusable { .. }) => {
                Some(ContentRepair::CorrectFolder(self.folder.clone()))
            }
            Some(SnapshotContent::Missing(_)) | None => {
                Some(ContentRepair::NameFolder(self.object.name().to_owned()))
            }
        }
    }

    fn package_content(&self, package: &str) -> Option<PackageContent> {
        match self.content.as_deref() {
            Some(SnapshotContent::Ready(_, SnapshotSource::Catalog(catalog))) => {
                catalog.package(package).map(PackageContent::of)
            }
            _ => None,
        }
    }

    /// The catalog as resolution sees it.
    fn view<'a>(&self, package_content: Option<&'a PackageContent>) -> InputCatalog<'a> {
        let content = match self.content.as_deref() {
            _ if self.is_out => InputCatalogContent::Failed(
                "a supposed change makes the catalog unavailable".to_owned(),
            ),
            Some(SnapshotContent::Ready(..)) => InputCatalogContent::Package(package_content),
            Some(SnapshotContent::Unusable { folder, reason }) => {
                InputCatalogContent::Failed(SnapshotContent::failure(folder, reason))
            }
            Some(SnapshotContent::Missing(_)) | None => {
                let serves = self.object.condition("Serving") == Some("True");
                let is_unknown = self.object.get(&["status", "conditions"]).is_none();
                if serves || is_unknown {
                    InputCatalogContent::Failed(NOT_AT_HAND.to_owned())
                } else {
                    InputCatalogContent::NotServed
                }
            }
        };
        let catalog = InputCatalog::of(&self.object, content);
        InputCatalog { priority: self.priority.unwrap_or(catalog.priority), ..catalog }
    }
}

impl ExtensionPath {
    /// Follows a ClusterExtension to the end of its path.
    fn of(object: &Object, known: &BTreeMap<String, ClusterCatalog>) -> Self {
        let request = ExtensionRequest::of(object);
        let contents: Vec<_> =
            known.values().map(|catalog| catalog.package_content(&request.package)).collect();
        let views = known.values().zip(&contents);
        let catalogs: Vec<InputCatalog<'_>> = views
            .map(|(catalog, package_content)| catalog.view(package_content.as_ref()))
            .collect();
        let installed = InstalledExtensionBundle::of(object);
        let mut current = installed.clone();
        let mut hops: Vec<ExtensionChoice> = Vec::new();
        let mut seen: BTreeSet<String> = BTreeSet::new();
        let end = loop {
            match resolve(&request, current.as_ref(), &catalogs) {
                Err(failure) => {
                    break ExtensionEnd::Failed(Box::new(FailedExtension::of(*failure, known)));
                }
                Ok(choice) => {
                    let is_there =
                        current.as_ref().is_some_and(|bundle| bundle.name == *choice.bundle);
                    let is_again = !seen.insert(choice.bundle.to_string());
                    if is_there || is_again || hops.len() == MAX_HOPS {
                        break best_or_stranded(&request, &choice, &catalogs);
                    }
                    current = Some(InstalledExtensionBundle {
                        name: choice.bundle.to_string(),
                        version: choice.version.to_string(),
                        release: None,
                    });
                    hops.push(choice);
                }
            }
        };
        let (name, package) = (object.name().to_owned(), request.package.clone());
        Self { name, package, request, installed, hops, end, required: Vec::new() }
    }

    /// Says what the next bundle requires, and which extensions provide it.
    fn with_required(mut self, state: &ClusterState) -> Self {
        let all = state.extensions.iter().chain(&state.other_extensions);
        let others = all.filter(|other| other.name() != self.name);
        let providers = cluster_providers(others, []);
        let next = self.hops.first().into_iter().flat_map(|next| &next.dependencies);
        let required = next.map(|dependency| {
            let provider = dependency.provider(&providers);
            (dependency.clone(), provider.map(|provider| provider.source.clone()))
        });
        self.required = required.collect();
        self
    }

    /// Whether the first resolution fails.
    pub const fn fails(&self) -> bool {
        self.hops.is_empty() && matches!(self.end, ExtensionEnd::Failed(_))
    }
}

/// The path in a few words: the first and the last bundle, and the end.
impl fmt::Display for ExtensionPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .installed
            .iter()
            .map(|bundle| &*bundle.name)
            .chain(self.hops.iter().map(|hop| &*hop.bundle))
            .collect();
        match names.as_slice() {
            [] => f.write_str("nothing")?,
            [one] if self.hops.is_empty() => write!(f, "{one} stays")?,
            [one] => f.write_str(one)?,
            [first, second] => write!(f, "{first} → {second}")?,
            [first, .., last] => write!(f, "{first} → … → {last} ({} hops)", self.hops.len())?,
        }
        f.write_str(match &self.end {
            ExtensionEnd::Best => "",
            ExtensionEnd::Stranded(_) => ", stranded there",
            ExtensionEnd::Failed(_) if self.hops.is_empty() => ", fails",
            ExtensionEnd::Failed(_) => ", held there",
        })
    }
}

impl FailedExtension {
    fn of(failure: extension::ExtensionFailure, known: &BTreeMap<String, ClusterCatalog>) -> Self {
        if failure.kind != ExtensionFailureKind::Unreadable {
            return Self { failure, repairs: Vec::new(), has_outage: false };
        }
        let repairs = known.values().filter_map(ClusterCatalog::repair).collect();
        let has_outage = known.values().any(|catalog| catalog.is_out);
        Self { failure, repairs, has_outage }
    }
}

/// The end of a path at a bundle without an update: the best bundle, or one that has no update to it.
fn best_or_stranded(
    request: &ExtensionRequest,
    last: &ExtensionChoice,
    catalogs: &[InputCatalog<'_>],
) -> ExtensionEnd {
    let free = ExtensionRequest { policy: UpgradePolicy::SelfCertified, ..request.clone() };
    match resolve(&free, None, catalogs) {
        Ok(best) if best.bundle != last.bundle => ExtensionEnd::Stranded(best.bundle.to_string()),
        _ => ExtensionEnd::Best,
    }
}
