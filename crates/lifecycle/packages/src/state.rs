//! The state of the API: the packages of all catalogs, the revision of each, and the last changes.

use crate::manifest::{self, PackageSummary};
use mainstay_catalog::{Catalog, Package};
use mainstay_clock::Clock;
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Most changes that are kept for clients that resume a watch.
const MAX_CHANGES: usize = 16 * 1024;
/// Most bytes of all compressed statuses.
const MAX_COMPRESSED_BYTES: usize = 32 * 1024 * 1024;

/// The catalogs of a cluster.
pub trait PackageSources: Send + Sync + 'static {
    /// All current CatalogSources.
    fn now(&self) -> Vec<PackageSource>;

    /// Calls `on_change` whenever the result of [`PackageSources::now`] may have changed. `on_change` does not
    /// block.
    fn subscribe(&self, on_change: Box<dyn Fn() + Send + Sync>);
}

/// A CatalogSource with its content.
#[derive(Clone, Debug)]
pub struct PackageSource {
    /// Namespace and name.
    pub key: NamespacedName,
    /// Its display name.
    pub display_name: String,
    /// Its publisher.
    pub publisher: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its `creationTimestamp`, in RFC 3339.
    pub created: Option<String>,
    /// Its priority among catalogs that have the same package.
    pub priority: i64,
    /// The last valid content; none if there was none yet.
    pub content: Option<Arc<Catalog>>,
}

/// The fields of a CatalogSource that its PackageManifests repeat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CatalogInfo {
    pub(crate) key: NamespacedName,
    pub(crate) display_name: String,
    pub(crate) publisher: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) created: Option<String>,
}

/// The API of PackageManifests over all catalogs. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct PackageApi {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for PackageApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packages").finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    catalogs: OnceLock<Box<dyn PackageSources>>,
    /// The namespace whose catalogs every namespace sees.
    pub(crate) global_namespace: Arc<str>,
    pub(crate) clock: Clock,
    /// Whether the catalogs may have changed since `state` was computed.
    is_stale: AtomicBool,
    state: Mutex<Option<Arc<State>>>,
    /// The revision of the state, for watches.
    pub(crate) revision: watch::Sender<u64>,
    changed: Notify,
    compressed_bytes: Arc<AtomicUsize>,
    pub(crate) stop: CancellationToken,
}

impl PackageApi {
    /// An API without catalogs: until [`PackageApi::attach`], lists fail with 503 and `Retry-After`.
    /// Every namespace sees the catalogs in `global_namespace`. Watches end when `stop` is cancelled.
    pub fn new(
        global_namespace: impl Into<Arc<str>>,
        clock: Clock,
        stop: CancellationToken,
    ) -> Self {
        let inner = Inner {
            catalogs: OnceLock::new(),
            global_namespace: global_namespace.into(),
            clock,
            is_stale: AtomicBool::new(true),
            state: Mutex::default(),
            revision: watch::Sender::new(0),
            changed: Notify::new(),
            compressed_bytes: Arc::default(),
            stop,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Serves the packages of these catalogs from now on. A second call has no effect. Must be called
    /// inside a tokio runtime.
    pub fn attach(&self, catalogs: impl PackageSources) {
        let Ok(()) = self.inner.catalogs.set(Box::new(catalogs)) else { return };
        let weak = Arc::downgrade(&self.inner);
        let on_change = move || {
            if let Some(inner) = weak.upgrade() {
                inner.is_stale.store(true, Ordering::Release);
                inner.changed.notify_one();
            }
        };
        if let Some(catalogs) = self.inner.catalogs.get() {
            catalogs.subscribe(Box::new(on_change));
        }
        tokio::spawn(self.clone().refresh_on_changes());
    }

    /// Whether [`PackageApi::attach`] was called.
    pub(crate) fn is_attached(&self) -> bool {
        self.inner.catalogs.get().is_some()
    }

    /// Computes the state after each change once a client has requested it: watches get their events,
    /// and replaced content is released.
    async fn refresh_on_changes(self) {
        loop {
            tokio::select! {
                () = self.inner.changed.notified() => {}
                () = self.inner.stop.cancelled() => return,
            }
            let was_requested = self.inner.state.lock().is_some();
            if was_requested {
                self.run_blocking(Self::state).await;
            }
        }
    }

    /// Runs work that blocks on a thread for blocking work; none if the work panicked.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let packages = self.clone();
        let result = tokio::task::spawn_blocking(move || work(&packages)).await;
        result.inspect_err(|error| tracing::error!(%error, "packages could not be shown")).ok()
    }

    /// The current state. Takes milliseconds after a change, and blocks.
    pub(crate) fn state(&self) -> Arc<State> {
        let inner = &self.inner;
        let mut state = inner.state.lock();
        if inner.is_stale.swap(false, Ordering::AcqRel) || state.is_none() {
            let sources = inner.catalogs.get().map(|catalogs| catalogs.now()).unwrap_or_default();
            let first_revision = || u64::try_from(inner.clock.now().as_microsecond()).unwrap_or(1);
            let before = state.take().unwrap_or_else(|| Arc::new(State::empty(first_revision())));
            let next = Arc::new(before.next(sources));
            inner.revision.send_replace(next.revision);
            *state = Some(next);
        }
        // Never empty here: the branch above has set it.
        state.clone().unwrap_or_else(|| Arc::new(State::empty(1)))
    }

    /// The status of a package as JSON: kept from an earlier request, or rendered now.
    pub(crate) fn status(
        &self,
        catalog: &CatalogPackages,
        entry: &PackageEntry,
    ) -> Option<Vec<u8>> {
        if let Some(compressed) = entry.status.get() {
            return compressed.decompress();
        }
        let summary = entry.summary(catalog)?;
        let package = catalog.content.package(&summary.name)?;
        let status = manifest::status(&summary, package).to_string().into_bytes();
        if let Some(compressed) = CompressedStatus::of(&status, &self.inner.compressed_bytes) {
            // A concurrent request may have set the same status.
            let _ = entry.status.set(compressed);
        }
        Some(status)
    }
}

/// All packages at one revision. Immutable.
pub(crate) struct State {
    pub(crate) revision: u64,
    pub(crate) catalogs: BTreeMap<NamespacedName, Arc<CatalogPackages>>,
    /// The last changes, latest last.
    changes: VecDeque<PackageChange>,
    /// The revision after which `changes` has every change.
    pub(crate) changes_complete_since: u64,
}

/// The packages of one catalog.
pub(crate) struct CatalogPackages {
    pub(crate) catalog_info: Arc<CatalogInfo>,
    pub(crate) priority: i64,
    pub(crate) content: Arc<Catalog>,
    pub(crate) packages: BTreeMap<Arc<str>, Arc<PackageEntry>>,
}

/// A package, with its summary and status since the revision at which it last changed.
pub(crate) struct PackageEntry {
    name: Arc<str>,
    pub(crate) revision: u64,
    summary: OnceLock<Option<Arc<PackageSummary>>>,
    status: OnceLock<CompressedStatus>,
}

/// The addition, change or removal of a package.
#[derive(Clone)]
pub(crate) struct PackageChange {
    pub(crate) revision: u64,
    /// The catalog.
    pub(crate) catalog: NamespacedName,
    /// The package.
    pub(crate) package: Arc<str>,
    /// Its summary before the change, if any request had computed one.
    pub(crate) before: Option<Arc<PackageSummary>>,
}

impl State {
    fn empty(revision: u64) -> Self {
        let (catalogs, changes) = (BTreeMap::new(), VecDeque::new());
        Self { revision, catalogs, changes, changes_complete_since: revision }
    }

    /// The changes after a revision, latest first.
    pub(crate) fn changes_since(&self, revision: u64) -> impl Iterator<Item = &PackageChange> {
        self.changes.iter().rev().take_while(move |change| change.revision > revision)
    }

    /// The next state, for these catalogs. Unchanged packages keep their entry and revision.
    fn next(&self, sources: Vec<PackageSource>) -> Self {
        let mut changes = ChangeLog { revision: self.revision, changes: self.changes.clone() };
        let mut catalogs = BTreeMap::new();
        for source in sources {
            let Some(content) = source.content else { continue };
            let catalog_info = CatalogInfo {
                key: source.key,
                display_name: source.display_name,
                publisher: source.publisher,
                labels: source.labels,
                created: source.created,
            };
            let before = self.catalogs.get(&catalog_info.key);
            let unchanged = before.filter(|catalog| *catalog.catalog_info == catalog_info);
            if let Some(before) = unchanged
                && Arc::ptr_eq(&before.content, &content)
                && before.priority == source.priority
            {
                catalogs.insert(catalog_info.key, Arc::clone(before));
                continue;
            }
            let key = catalog_info.key.clone();
            let catalog_info = unchanged.map_or_else(
                || Arc::new(catalog_info),
                |catalog| Arc::clone(&catalog.catalog_info),
            );
            let mut packages = BTreeMap::new();
            for package in content.packages() {
                let old_entry = before.and_then(|catalog| catalog.packages.get(&package.name));
                let is_same = || {
                    let old = unchanged.and_then(|catalog| catalog.content.package(&package.name));
                    old.is_some_and(|old| are_equal(old, package))
                };
                let entry = match old_entry {
                    Some(old_entry) if is_same() => Arc::clone(old_entry),
                    old_entry => {
                        let before = old_entry.and_then(|entry| entry.computed_summary());
                        let revision = changes.record(&key, &package.name, before);
                        Arc::new(PackageEntry::new(&package.name, revision))
                    }
                };
                packages.insert(Arc::clone(&package.name), entry);
            }
            for (name, gone) in before.iter().flat_map(|catalog| &catalog.packages) {
                if !packages.contains_key(name) {
                    changes.record(&key, name, gone.computed_summary());
                }
            }
            let priority = source.priority;
            catalogs.insert(
                key,
                Arc::new(CatalogPackages { catalog_info, priority, content, packages }),
            );
        }
        for (key, gone) in &self.catalogs {
            if !catalogs.contains_key(key) {
                for (name, entry) in &gone.packages {
                    changes.record(key, name, entry.computed_summary());
                }
            }
        }
        let ChangeLog { revision, mut changes } = changes;
        let mut changes_complete_since = self.changes_complete_since;
        while changes.len() > MAX_CHANGES {
            changes_complete_since =
                changes.pop_front().map_or(changes_complete_since, |change| change.revision);
        }
        Self { revision, catalogs, changes, changes_complete_since }
    }
}

/// The changes of a state that is being computed.
struct ChangeLog {
    revision: u64,
    changes: VecDeque<PackageChange>,
}

impl ChangeLog {
    /// Records a change and returns its revision.
    fn record(
        &mut self,
        catalog: &NamespacedName,
        package: &Arc<str>,
        before: Option<Arc<PackageSummary>>,
    ) -> u64 {
        self.revision += 1;
        let (catalog, package) = (catalog.clone(), Arc::clone(package));
        self.changes.push_back(PackageChange { revision: self.revision, catalog, package, before });
        self.revision
    }
}

/// Whether two packages have the same PackageManifest, compared without decompressing their bundles.
fn are_equal(a: &Package, b: &Package) -> bool {
    let bundles = |package: &Package, other: &Package, name: &str| {
        let (Some(a), Some(b)) = (package.bundle(name), other.bundle(name)) else { return false };
        a.version.to_string() == b.version.to_string() && a.deprecation == b.deprecation
    };
    let channels = |(x, y): (&mainstay_catalog::Channel, &mainstay_catalog::Channel)| {
        let head =
            |package: &Package| package.bundle(&x.head().name).map(|bundle| bundle.blob().clone());
        x.name == y.name
            && x.deprecation == y.deprecation
            && x.head().name == y.head().name
            && x.entries().len() == y.entries().len()
            && x.entries().iter().zip(y.entries()).all(|(x, y)| x.name == y.name)
            && x.entries().iter().all(|entry| bundles(a, b, &entry.name))
            && head(a).zip(head(b)).is_some_and(|(x, y)| x.has_equal_content(&y))
    };
    a.default_channel == b.default_channel
        && a.deprecation == b.deprecation
        && a.blob().has_equal_content(b.blob())
        && a.channels().len() == b.channels().len()
        && a.channels().zip(b.channels()).all(channels)
}

impl PackageEntry {
    fn new(name: &Arc<str>, revision: u64) -> Self {
        let name = Arc::clone(name);
        Self { name, revision, summary: OnceLock::new(), status: OnceLock::new() }
    }

    /// The fields that selectors and lists need; none if the catalog describes no channel head.
    pub(crate) fn summary(&self, catalog: &CatalogPackages) -> Option<Arc<PackageSummary>> {
        let make = || {
            let package = catalog.content.package(&self.name)?;
            manifest::summary(&catalog.catalog_info, package).map(Arc::new)
        };
        self.summary.get_or_init(make).clone()
    }

    fn computed_summary(&self) -> Option<Arc<PackageSummary>> {
        self.summary.get().cloned().flatten()
    }
}

/// A compressed status. All of them share a count of their bytes.
struct CompressedStatus {
    compressed: Box<[u8]>,
    length: usize,
    total_bytes: Arc<AtomicUsize>,
}

impl CompressedStatus {
    /// Compresses a status; none if that would exceed [`MAX_COMPRESSED_BYTES`].
    fn of(uncompressed: &[u8], total_bytes: &Arc<AtomicUsize>) -> Option<Self> {
        let compressed = lz4_flex::block::compress(uncompressed).into_boxed_slice();
        if total_bytes.fetch_add(compressed.len(), Ordering::Relaxed) + compressed.len()
            > MAX_COMPRESSED_BYTES
        {
            total_bytes.fetch_sub(compressed.len(), Ordering::Relaxed);
            return None;
        }
        Some(Self { compressed, length: uncompressed.len(), total_bytes: Arc::clone(total_bytes) })
    }

    fn decompress(&self) -> Option<Vec<u8>> {
        lz4_flex::block::decompress(&self.compressed, self.length).ok()
    }
}

impl Drop for CompressedStatus {
    fn drop(&mut self) {
        self.total_bytes.fetch_sub(self.compressed.len(), Ordering::Relaxed);
    }
}
