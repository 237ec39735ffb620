//! The catalog index: a valid catalog with lookup tables for both APIs.

use crate::ServedDocuments;
use mainstay_catalog::{BlobError, Bundle, BundleApi, Catalog, CatalogEntry, Channel, Package};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, OnceLock},
    time::SystemTime,
};

/// The index of a served catalog. Immutable; shared by all readers.
pub struct RegistryIndex {
    catalog: Arc<Catalog>,
    modified: SystemTime,
    tables: OnceLock<Tables>,
    /// Built on first use, because many owners of an index serve no HTTP.
    documents: OnceLock<Arc<ServedDocuments>>,
}

/// Built on first use, because some owners of an index never query it.
struct Tables {
    /// Every entry of every channel, by package, channel and name.
    positions: Box<[EntryPosition]>,
    /// Positions in `positions`, by channel, package and name.
    listing: Box<[u32]>,
    /// Positions of the entries whose bundle provides an API.
    providers: BTreeMap<BundleApi, Box<[u32]>>,
    /// Positions of the entries that replace or skip a name.
    successors: BTreeMap<Arc<str>, Box<[u32]>>,
}

struct EntryPosition {
    package: Arc<str>,
    channel: Arc<str>,
    entry: u32,
}

/// A bundle with its entry in a channel.
#[derive(Clone, Copy, Debug)]
pub struct ChannelMember<'i> {
    /// The package.
    pub package: &'i Package,
    /// The channel.
    pub channel: &'i Channel,
    /// Its entry in the channel.
    pub entry: &'i CatalogEntry,
    /// The bundle itself.
    pub bundle: &'i Arc<Bundle>,
}

impl ChannelMember<'_> {
    /// Whether it is the head of its channel.
    pub fn is_head(&self) -> bool {
        self.channel.head().name == self.entry.name
    }
}

impl RegistryIndex {
    /// The index of a catalog whose content dates from `modified`.
    pub fn new(catalog: Arc<Catalog>, modified: SystemTime) -> Self {
        Self { catalog, modified, tables: OnceLock::new(), documents: OnceLock::new() }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// When the content changed last.
    pub fn modified(&self) -> SystemTime {
        self.modified
    }

    /// The documents of the catalog, as HTTP serves them: in memory, sharing the catalog's blobs.
    ///
    /// # Errors
    /// The content of the catalog is damaged, or was not kept.
    pub fn documents(&self) -> Result<Arc<ServedDocuments>, BlobError> {
        if let Some(documents) = self.documents.get() {
            return Ok(Arc::clone(documents));
        }
        let documents = ServedDocuments::in_memory(self.catalog.blobs(), self.modified)?;
        Ok(Arc::clone(self.documents.get_or_init(|| Arc::new(documents))))
    }

    /// Builds the tables, so that the first query does not wait for them.
    pub fn warm(&self) {
        self.tables();
    }

    /// The entry at a position of the list by channel, package and name.
    pub fn member_at(&self, position: usize) -> Option<ChannelMember<'_>> {
        let position = *self.tables().listing.get(position)?;
        self.standing_at(position)
    }

    /// The entries whose bundle provides an API, by package, channel and name.
    pub fn providers(&self, api: &BundleApi) -> impl Iterator<Item = ChannelMember<'_>> {
        self.standings_at(self.tables().providers.get(api).map(AsRef::as_ref))
    }

    /// The entries that replace or skip a bundle, by package, channel and name.
    pub fn successors(&self, name: &str) -> impl Iterator<Item = ChannelMember<'_>> {
        self.standings_at(self.tables().successors.get(name).map(AsRef::as_ref))
    }

    fn standings_at<'i>(
        &'i self,
        found: Option<&'i [u32]>,
    ) -> impl Iterator<Item = ChannelMember<'i>> {
        found.into_iter().flatten().filter_map(|&position| self.standing_at(position))
    }

    fn standing_at(&self, position: u32) -> Option<ChannelMember<'_>> {
        let EntryPosition { package, channel, entry } =
            self.tables().positions.get(position as usize)?;
        let package = self.catalog.package(package)?;
        let channel = package.channel(channel)?;
        let entry = channel.entries().get(*entry as usize)?;
        Some(ChannelMember { package, channel, entry, bundle: package.bundle(&entry.name)? })
    }

    fn tables(&self) -> &Tables {
        self.tables.get_or_init(|| Tables::of(&self.catalog))
    }
}

impl fmt::Debug for RegistryIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} from {:?})", self.catalog.digest(), self.modified)
    }
}

impl Tables {
    fn of(catalog: &Catalog) -> Self {
        let mut positions = Vec::new();
        let mut providers: BTreeMap<BundleApi, Vec<u32>> = BTreeMap::new();
        let mut successors: BTreeMap<Arc<str>, Vec<u32>> = BTreeMap::new();
        for package in catalog.packages() {
            let apis: BTreeMap<&str, Vec<BundleApi>> = package
                .bundles()
                .map(|bundle| (&*bundle.name, bundle.provided_apis().collect()))
                .collect();
            for channel in package.channels() {
                let mut entries: Vec<u32> = (0..).take(channel.entries().len()).collect();
                let name = |&at: &u32| &channel.entries()[at as usize].name;
                entries.sort_by(|a, b| name(a).cmp(name(b)));
                for at in entries {
                    let entry = &channel.entries()[at as usize];
                    // More than four billion entries do not fit into memory.
                    let Ok(position) = u32::try_from(positions.len()) else { continue };
                    positions.push(EntryPosition {
                        package: package.name.clone(),
                        channel: channel.name.clone(),
                        entry: at,
                    });
                    for api in apis.get(&*entry.name).into_iter().flatten() {
                        add(&mut providers, api, position);
                    }
                    // An entry without `replaces` counts as replacing the empty name.
                    match &entry.replaces {
                        Some(name) => add(&mut successors, name, position),
                        None => add(&mut successors, &Arc::from(""), position),
                    }
                    for name in &entry.skips {
                        add(&mut successors, name, position);
                    }
                }
            }
        }
        let mut listing: Vec<u32> = (0..).take(positions.len()).collect();
        // The sort is stable: within a channel the entries are sorted by name already.
        listing.sort_by(|&a, &b| {
            let key = |at: u32| (&positions[at as usize].channel, &positions[at as usize].package);
            key(a).cmp(&key(b))
        });
        Self {
            positions: positions.into(),
            listing: listing.into(),
            providers: providers.into_iter().map(|(api, all)| (api, all.into())).collect(),
            successors: successors.into_iter().map(|(name, all)| (name, all.into())).collect(),
        }
    }
}

/// Adds a position that is at least as large as those before, unless it is present.
fn add<K: Ord + Clone>(table: &mut BTreeMap<K, Vec<u32>>, key: &K, position: u32) {
    match table.get_mut(key) {
        Some(positions) if positions.last() == Some(&position) => {}
        Some(positions) => positions.push(position),
        None => {
            table.insert(key.clone(), vec![position]);
        }
    }
}
