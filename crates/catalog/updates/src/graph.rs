//! Update graph data: the bundles, channels and channel entries of one package.

use crate::chain::{ChannelEntry, ChannelOrderError};
use mainstay_version::{BundleRelease, IntervalSet, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The update graph of one package: an immutable value.
///
/// Bundles, channels and entries are sorted by name, so that two graphs of the same content are
/// equal in whatever order the catalog lists the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The package's name.
    pub package: Arc<str>,
    /// The channel of a Subscription that names none; empty if the package has no default channel.
    pub default_channel: Arc<str>,
    /// The deprecation message of the package, if the catalog deprecates it.
    pub deprecation: Option<Arc<str>>,
    pub(crate) channels: Vec<GraphChannel>,
    pub(crate) bundles: Vec<Arc<GraphBundle>>,
}

impl Graph {
    /// All channels, by name.
    pub fn channels(&self) -> &[GraphChannel] {
        &self.channels
    }

    /// The channel of that name.
    pub fn channel(&self, name: &str) -> Option<&GraphChannel> {
        let at = self.channels.binary_search_by(|channel| (*channel.name).cmp(name)).ok()?;
        self.channels.get(at)
    }

    /// All bundles, by name.
    pub fn bundles(&self) -> impl ExactSizeIterator<Item = &GraphBundle> {
        self.bundles.iter().map(|bundle| &**bundle)
    }

    /// The bundle of that name.
    pub fn bundle(&self, name: &str) -> Option<&GraphBundle> {
        self.place_of(name).map(|at| &*self.bundles[at])
    }

    pub(crate) fn place_of(&self, name: &str) -> Option<usize> {
        self.bundles.binary_search_by(|bundle| (*bundle.name).cmp(name)).ok()
    }
}

/// One released version of an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphBundle {
    /// The bundle's name, which is also the name of its ClusterServiceVersion.
    pub name: Arc<str>,
    /// Its version, if it can be read.
    pub version: Option<Version>,
    /// Its release: orders bundles of one version for extensions.
    pub release: Option<BundleRelease>,
    /// The deprecation message of the bundle, if the catalog deprecates it.
    pub deprecation: Option<Arc<str>>,
    /// Whether it has the property `olm.deprecated`: OLM classic keeps its place in the chain but
    /// never chooses it. Extensions ignore the property.
    pub withdrawn: bool,
}

/// A channel with its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphChannel {
    /// The channel's name.
    pub name: Arc<str>,
    /// The deprecation message of the channel, if the catalog deprecates it.
    pub deprecation: Option<Arc<str>>,
    pub(crate) entries: Vec<GraphEntry>,
    /// Places of entries from the head downwards.
    pub(crate) chain: Result<Vec<usize>, ChannelOrderError>,
}

impl GraphChannel {
    /// The entries, by name.
    pub fn entries(&self) -> &[GraphEntry] {
        &self.entries
    }

    /// The entry of that name.
    pub fn entry(&self, name: &str) -> Option<&GraphEntry> {
        let at = self.entries.binary_search_by(|entry| (*entry.name).cmp(name)).ok()?;
        self.entries.get(at)
    }

    /// The entries that OLM classic chooses from, in its order: from the head down the chain of
    /// `replaces`, without skipped entries. See [`chain`](crate::chain).
    pub fn chain(&self) -> Result<impl ExactSizeIterator<Item = &GraphEntry>, &ChannelOrderError> {
        let chain = self.chain.as_ref()?;
        Ok(chain.iter().map(|&at| &self.entries[at]))
    }

    /// The head: the one entry that no other entry replaces or skips. None if the channel does not
    /// have exactly one.
    pub fn head(&self) -> Option<&GraphEntry> {
        self.chain().ok()?.next()
    }

    /// The entries that other entries of the channel skip, by name. OLM classic never installs them
    /// anew, except when a Subscription names one as its `startingCSV`.
    pub fn skipped(&self) -> Vec<&GraphEntry> {
        let skipped: BTreeSet<&str> = self.entries.iter().flat_map(ChannelEntry::skips).collect();
        skipped.into_iter().filter_map(|name| self.entry(name)).collect()
    }

    /// Names that entries replace or skip without being entries themselves: versions that the
    /// catalog never shipped or no longer ships. Updates from such a version work as if it were an
    /// entry.
    pub fn virtual_names(&self) -> BTreeSet<&str> {
        let named =
            self.entries.iter().flat_map(|entry| entry.replaces().into_iter().chain(entry.skips()));
        named.filter(|name| self.entry(name).is_none()).collect()
    }

    /// The bundles that an entry of the channel can follow: the one that it replaces, those that it
    /// skips, and the entries whose versions are in its `skipRange`. Each name once.
    pub fn predecessors<'c>(&'c self, entry: &'c GraphEntry) -> Vec<Predecessor<'c>> {
        let mut found: BTreeMap<&str, Edge> = BTreeMap::new();
        let in_range = self.entries.iter().filter(|other| {
            let version = other.bundle.version.as_ref();
            other.name != entry.name && version.is_some_and(|version| entry.skips_version(version))
        });
        found.extend(in_range.map(|other| (&*other.name, Edge::SkipRange)));
        found.extend(entry.skips().map(|name| (name, Edge::Skips)));
        found.extend(entry.replaces().map(|name| (name, Edge::Replaces)));
        let entry = |(name, edge)| Predecessor { name, edge, entry: self.entry(name) };
        found.into_iter().map(entry).collect()
    }
}

/// A bundle that an entry can follow.
#[derive(Clone, Copy, Debug)]
pub struct Predecessor<'g> {
    /// The name of the bundle.
    pub name: &'g str,
    /// The edge from the bundle to the entry.
    pub edge: Edge,
    /// The entry of the bundle in the channel; none if the channel does not ship the bundle.
    pub entry: Option<&'g GraphEntry>,
}

/// One bundle's place in one channel, with the edges that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphEntry {
    /// The name of the bundle.
    pub name: Arc<str>,
    /// The bundle that this one replaces; it need not exist.
    pub replaces: Option<Arc<str>>,
    /// The bundles that this one skips; they need not exist.
    pub skips: Vec<Arc<str>>,
    /// The range of versions that this one skips. A range that cannot be read counts as none.
    pub skip_range: Option<SkipRange>,
    pub(crate) bundle: Arc<GraphBundle>,
    /// Place of the bundle in [`Graph::bundles`].
    pub(crate) place: usize,
}

impl GraphEntry {
    /// The bundle.
    pub fn bundle(&self) -> &GraphBundle {
        &self.bundle
    }

    /// Whether a version is in the `skipRange` of the entry.
    pub fn skips_version(&self, version: &Version) -> bool {
        self.skip_range.as_ref().is_some_and(|range| range.set.contains(version))
    }

    /// The edge from a bundle of that name and version to this entry, if there is one: the
    /// successor test of OLM classic and of extensions alike.
    pub fn covers(&self, name: &str, version: Option<&Version>) -> Option<Edge> {
        if self.replaces.as_deref() == Some(name) {
            Some(Edge::Replaces)
        } else if self.skips.iter().any(|skip| **skip == *name) {
            Some(Edge::Skips)
        } else {
            version.is_some_and(|version| self.skips_version(version)).then_some(Edge::SkipRange)
        }
    }
}

impl ChannelEntry for GraphEntry {
    fn name(&self) -> &str {
        &self.name
    }
    fn replaces(&self) -> Option<&str> {
        self.replaces.as_deref()
    }
    fn skips(&self) -> impl Iterator<Item = &str> {
        self.skips.iter().map(|skip| &**skip)
    }
}

/// The `skipRange` of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipRange {
    /// As written.
    pub text: Arc<str>,
    /// The versions.
    pub set: IntervalSet,
}

/// Why an update from one bundle to another is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edge {
    /// `replaces` names the installed bundle.
    Replaces,
    /// `skips` names it.
    Skips,
    /// `skipRange` holds its version.
    SkipRange,
    /// Version and release are those of the installed bundle; counts for extensions only.
    Same,
}

impl Edge {
    /// The name of the edge in catalogs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replaces => "replaces",
            Self::Skips => "skips",
            Self::SkipRange => "skipRange",
            Self::Same => "same version",
        }
    }
}
