//! Which packages there are now, since which revision each is what it is, and what was before.

use crate::manifest::{self, Brief};
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

/// So many changes are remembered for who comes back to a watch.
const REMEMBERED: usize = 16 * 1024;
/// Bytes of compressed descriptions that are kept, at most.
const KEPT: usize = 32 * 1024 * 1024;

/// The catalogs of a cluster.
pub trait Catalogs: Send + Sync + 'static {
    /// Every `CatalogSource` there is now.
    fn now(&self) -> Vec<Source>;

    /// Calls `hear` whenever what [`Catalogs::now`] gives may have changed. It returns at once.
    fn subscribe(&self, hear: Box<dyn Fn() + Send + Sync>);
}

/// A `CatalogSource` and what it offers.
#[derive(Clone, Debug)]
pub struct Source {
    /// Namespace and name.
    pub key: NamespacedName,
    /// Its name for people.
    pub display_name: String,
    /// Who publishes it.
    pub publisher: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// When it was made, as objects write it.
    pub created: Option<String>,
    /// Its weight among catalogs that have the same package.
    pub priority: i64,
    /// The last good content; none if there was none yet.
    pub content: Option<Arc<Catalog>>,
}

/// What packages say of their catalog.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) key: NamespacedName,
    pub(crate) display_name: String,
    pub(crate) publisher: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) created: Option<String>,
}

/// The packages of all catalogs, as an API serves them. Cheap to clone; clones are the same.
#[derive(Clone)]
pub struct Packages {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Packages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packages").finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    catalogs: OnceLock<Box<dyn Catalogs>>,
    /// The namespace whose catalogs every namespace sees.
    pub(crate) global: Arc<str>,
    pub(crate) clock: Clock,
    /// Whether the state may be behind.
    behind: AtomicBool,
    state: Mutex<Option<Arc<State>>>,
    /// The revision of the state, for who watches.
    pub(crate) revision: watch::Sender<u64>,
    bell: Notify,
    kept: Arc<AtomicUsize>,
    pub(crate) stop: CancellationToken,
}

impl Packages {
    /// No packages yet: until [`Packages::attach`] lists are refused, as something to be tried again.
    /// Catalogs in the namespace `global` will be seen everywhere. Watches end when `stop` is cancelled.
    pub fn new(global: impl Into<Arc<str>>, clock: Clock, stop: CancellationToken) -> Self {
        let inner = Inner {
            catalogs: OnceLock::new(),
            global: global.into(),
            clock,
            behind: AtomicBool::new(true),
            state: Mutex::default(),
            revision: watch::Sender::new(0),
            bell: Notify::new(),
            kept: Arc::default(),
            stop,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Shows the packages of these catalogs from now on. Only the first ones count. Must be called
    /// inside a tokio runtime.
    pub fn attach(&self, catalogs: impl Catalogs) {
        let Ok(()) = self.inner.catalogs.set(Box::new(catalogs)) else { return };
        let heard = Arc::downgrade(&self.inner);
        let hear = move || {
            if let Some(inner) = heard.upgrade() {
                inner.behind.store(true, Ordering::Release);
                inner.bell.notify_one();
            }
        };
        if let Some(catalogs) = self.inner.catalogs.get() {
            catalogs.subscribe(Box::new(hear));
        }
        tokio::spawn(self.clone().follow());
    }

    /// Whether there are catalogs to show.
    pub(crate) fn is_attached(&self) -> bool {
        self.inner.catalogs.get().is_some()
    }

    /// Takes changes up when they happen, if anybody has asked yet: watches are told, and content that
    /// is replaced is not held.
    async fn follow(self) {
        loop {
            tokio::select! {
                () = self.inner.bell.notified() => {}
                () = self.inner.stop.cancelled() => return,
            }
            let asked = self.inner.state.lock().is_some();
            if asked {
                self.off(Self::state).await;
            }
        }
    }

    /// Does what takes a while beside the async threads; none if it panicked.
    pub(crate) async fn off<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let packages = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&packages)).await;
        done.inspect_err(|error| tracing::error!(%error, "packages could not be shown")).ok()
    }

    /// What there is now. May take milliseconds after a change.
    pub(crate) fn state(&self) -> Arc<State> {
        let inner = &self.inner;
        let mut state = inner.state.lock();
        if inner.behind.swap(false, Ordering::AcqRel) || state.is_none() {
            let now = inner.catalogs.get().map(|catalogs| catalogs.now()).unwrap_or_default();
            let begin = || u64::try_from(inner.clock.now().as_microsecond()).unwrap_or(1);
            let before = state.take().unwrap_or_else(|| Arc::new(State::empty(begin())));
            let next = Arc::new(before.next(now));
            inner.revision.send_replace(next.revision);
            *state = Some(next);
        }
        // It was just put there, if it was not there before.
        state.clone().unwrap_or_else(|| Arc::new(State::empty(1)))
    }

    /// The status of a package as JSON, from what is kept or made now.
    pub(crate) fn status(&self, shelf: &Shelf, shown: &Shown) -> Option<Vec<u8>> {
        if let Some(kept) = shown.kept.get() {
            return kept.unpacked();
        }
        let brief = shown.brief(shelf)?;
        let package = shelf.content.package(&brief.name)?;
        let status = manifest::status(&brief, package).to_string().into_bytes();
        if let Some(kept) = Kept::of(&status, &self.inner.kept) {
            // Who was quicker has kept the same.
            let _ = shown.kept.set(kept);
        }
        Some(status)
    }
}

/// All packages at one revision. Immutable.
pub(crate) struct State {
    pub(crate) revision: u64,
    pub(crate) shelves: BTreeMap<NamespacedName, Arc<Shelf>>,
    /// What changed, the latest last.
    past: VecDeque<Past>,
    /// Since when all changes are in `past`.
    pub(crate) complete_since: u64,
}

/// The packages of one catalog.
pub(crate) struct Shelf {
    pub(crate) facts: Arc<Facts>,
    pub(crate) priority: i64,
    pub(crate) content: Arc<Catalog>,
    pub(crate) packages: BTreeMap<Arc<str>, Arc<Shown>>,
}

/// A package, and what is known of it since it became what it is.
pub(crate) struct Shown {
    name: Arc<str>,
    pub(crate) revision: u64,
    brief: OnceLock<Option<Arc<Brief>>>,
    kept: OnceLock<Kept>,
}

/// That a package changed, appeared or went.
#[derive(Clone)]
pub(crate) struct Past {
    pub(crate) revision: u64,
    /// The catalog.
    pub(crate) catalog: NamespacedName,
    /// The package.
    pub(crate) package: Arc<str>,
    /// What it was before, as far as anybody had asked.
    pub(crate) before: Option<Arc<Brief>>,
}

impl State {
    fn empty(revision: u64) -> Self {
        let (shelves, past) = (BTreeMap::new(), VecDeque::new());
        Self { revision, shelves, past, complete_since: revision }
    }

    /// What changed after a revision, the latest first.
    pub(crate) fn since(&self, revision: u64) -> impl Iterator<Item = &Past> {
        self.past.iter().rev().take_while(move |past| past.revision > revision)
    }

    /// What there is when the catalogs are these. Packages that are the same stay what they are.
    fn next(&self, sources: Vec<Source>) -> Self {
        let mut changes = Changes { revision: self.revision, past: self.past.clone() };
        let mut shelves = BTreeMap::new();
        for source in sources {
            let Some(content) = source.content else { continue };
            let facts = Facts {
                key: source.key,
                display_name: source.display_name,
                publisher: source.publisher,
                labels: source.labels,
                created: source.created,
            };
            let before = self.shelves.get(&facts.key);
            let same_facts = before.filter(|shelf| *shelf.facts == facts);
            if let Some(before) = same_facts
                && Arc::ptr_eq(&before.content, &content)
                && before.priority == source.priority
            {
                shelves.insert(facts.key, Arc::clone(before));
                continue;
            }
            let key = facts.key.clone();
            let facts =
                same_facts.map_or_else(|| Arc::new(facts), |shelf| Arc::clone(&shelf.facts));
            let mut packages = BTreeMap::new();
            for package in content.packages() {
                let known = before.and_then(|shelf| shelf.packages.get(&package.name));
                let is_same = || {
                    let was = same_facts.and_then(|shelf| shelf.content.package(&package.name));
                    was.is_some_and(|was| same(was, package))
                };
                let shown = match known {
                    Some(known) if is_same() => Arc::clone(known),
                    known => {
                        let before = known.and_then(|shown| shown.known_brief());
                        let revision = changes.note(&key, &package.name, before);
                        Arc::new(Shown::new(&package.name, revision))
                    }
                };
                packages.insert(Arc::clone(&package.name), shown);
            }
            for (name, gone) in before.iter().flat_map(|shelf| &shelf.packages) {
                if !packages.contains_key(name) {
                    changes.note(&key, name, gone.known_brief());
                }
            }
            let priority = source.priority;
            shelves.insert(key, Arc::new(Shelf { facts, priority, content, packages }));
        }
        for (key, gone) in &self.shelves {
            if !shelves.contains_key(key) {
                for (name, shown) in &gone.packages {
                    changes.note(key, name, shown.known_brief());
                }
            }
        }
        let Changes { revision, mut past } = changes;
        let mut complete_since = self.complete_since;
        while past.len() > REMEMBERED {
            complete_since = past.pop_front().map_or(complete_since, |change| change.revision);
        }
        Self { revision, shelves, past, complete_since }
    }
}

struct Changes {
    revision: u64,
    past: VecDeque<Past>,
}

impl Changes {
    /// Notes a change; its revision comes back.
    fn note(
        &mut self,
        catalog: &NamespacedName,
        package: &Arc<str>,
        before: Option<Arc<Brief>>,
    ) -> u64 {
        self.revision += 1;
        let (catalog, package) = (catalog.clone(), Arc::clone(package));
        self.past.push_back(Past { revision: self.revision, catalog, package, before });
        self.revision
    }
}

/// Whether two packages are shown alike, without unpacking either.
fn same(a: &Package, b: &Package) -> bool {
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
            && head(a).zip(head(b)).is_some_and(|(x, y)| x.holds_the_same(&y))
    };
    a.default_channel == b.default_channel
        && a.deprecation == b.deprecation
        && a.blob().holds_the_same(b.blob())
        && a.channels().len() == b.channels().len()
        && a.channels().zip(b.channels()).all(channels)
}

impl Shown {
    fn new(name: &Arc<str>, revision: u64) -> Self {
        let name = Arc::clone(name);
        Self { name, revision, brief: OnceLock::new(), kept: OnceLock::new() }
    }

    /// What selection and lists need; none if the catalog describes no head of a channel.
    pub(crate) fn brief(&self, shelf: &Shelf) -> Option<Arc<Brief>> {
        let make = || {
            let package = shelf.content.package(&self.name)?;
            manifest::brief(&shelf.facts, package).map(Arc::new)
        };
        self.brief.get_or_init(make).clone()
    }

    fn known_brief(&self) -> Option<Arc<Brief>> {
        self.brief.get().cloned().flatten()
    }
}

/// A description, compressed. What all of them weigh is counted.
struct Kept {
    packed: Box<[u8]>,
    plain: usize,
    all: Arc<AtomicUsize>,
}

impl Kept {
    /// None if too much is kept already.
    fn of(plain: &[u8], all: &Arc<AtomicUsize>) -> Option<Self> {
        let packed = lz4_flex::block::compress(plain).into_boxed_slice();
        if all.fetch_add(packed.len(), Ordering::Relaxed) + packed.len() > KEPT {
            all.fetch_sub(packed.len(), Ordering::Relaxed);
            return None;
        }
        Some(Self { packed, plain: plain.len(), all: Arc::clone(all) })
    }

    fn unpacked(&self) -> Option<Vec<u8>> {
        lz4_flex::block::decompress(&self.packed, self.plain).ok()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.all.fetch_sub(self.packed.len(), Ordering::Relaxed);
    }
}
