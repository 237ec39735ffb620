//! Graph builder: makes a [`Graph`] from the package of a catalog or from plain data.

use crate::chain::chain;
use crate::graph::{Graph, GraphBundle, GraphChannel, GraphEntry, SkipRange};
use mainstay_catalog::Package;
use mainstay_version::{BundleRelease, IntervalSet, Range, Version, parse_tolerant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The edges that lead to an entry, in plain data.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryEdges<'a> {
    /// The bundle it replaces.
    pub replaces: Option<&'a str>,
    /// Bundles it skips.
    pub skips: &'a [&'a str],
    /// Range of versions it skips; one that cannot be read counts as none.
    pub skip_range: Option<&'a str>,
}

/// Makes a [`Graph`] from plain data. The order of calls does not matter, except that the last of
/// several calls about one thing counts.
#[derive(Debug)]
pub struct GraphBuilder {
    package: Arc<str>,
    default_channel: Arc<str>,
    deprecation: Option<Arc<str>>,
    bundles: BTreeMap<Arc<str>, GraphBundle>,
    channels: BTreeMap<Arc<str>, ChannelDraft>,
}

/// A channel of a graph that is not finished.
#[derive(Debug, Default)]
struct ChannelDraft {
    deprecation: Option<Arc<str>>,
    entries: BTreeMap<Arc<str>, DraftEdges>,
}

/// The edges that lead to an entry of an unfinished channel.
#[derive(Debug, Default)]
struct DraftEdges {
    replaces: Option<Arc<str>>,
    skips: Vec<Arc<str>>,
    skip_range: Option<SkipRange>,
}

impl Graph {
    /// The graph of a package of a file-based catalog. The release of a bundle is the one that it
    /// states, otherwise the one in the build metadata of its version.
    pub fn of(package: &Package) -> Self {
        let mut builder = GraphBuilder::new(package.name.clone());
        builder.default_channel = package.default_channel.clone();
        builder.deprecation.clone_from(&package.deprecation);
        for bundle in package.bundles() {
            let own_release =
                bundle.release.as_deref().and_then(|text| BundleRelease::parse(text).ok());
            let node = GraphBundle {
                name: bundle.name.clone(),
                version: Some(bundle.version.clone()),
                release: own_release.or_else(|| BundleRelease::of(&bundle.version)),
                deprecation: bundle.deprecation.clone(),
                withdrawn: bundle.properties_of("olm.deprecated").next().is_some(),
            };
            builder.bundles.insert(bundle.name.clone(), node);
        }
        for channel in package.channels() {
            let entries = channel.entries().iter().map(|entry| {
                let edges = DraftEdges {
                    replaces: entry.replaces.clone(),
                    skips: entry.skips.clone(),
                    skip_range: entry.skip_range.as_ref().and_then(range),
                };
                (entry.name.clone(), edges)
            });
            let draft = ChannelDraft {
                deprecation: channel.deprecation.clone(),
                entries: entries.collect(),
            };
            builder.channels.insert(channel.name.clone(), draft);
        }
        builder.finish()
    }

    /// Begins the graph of a package.
    pub fn builder(package: &str) -> GraphBuilder {
        GraphBuilder::new(package.into())
    }
}

impl GraphBuilder {
    fn new(package: Arc<str>) -> Self {
        Self {
            package,
            default_channel: "".into(),
            deprecation: None,
            bundles: BTreeMap::new(),
            channels: BTreeMap::new(),
        }
    }

    /// Sets the default channel.
    #[must_use]
    pub fn default_channel(mut self, name: &str) -> Self {
        self.default_channel = name.into();
        self
    }

    /// Sets the version of a bundle. A version that cannot be read even tolerantly counts as none.
    /// The build metadata of the version gives the release.
    #[must_use]
    pub fn bundle(mut self, name: &str, version: &str) -> Self {
        let version: Option<Version> = parse_tolerant(version).ok();
        let bundle = self.bundle_mut(name);
        bundle.release = version.as_ref().and_then(BundleRelease::of);
        bundle.version = version;
        self
    }

    /// Sets the release of a bundle; call it after [`Self::bundle`]. A release that cannot be read
    /// counts as none.
    #[must_use]
    pub fn release(mut self, name: &str, release: &str) -> Self {
        self.bundle_mut(name).release = BundleRelease::parse(release).ok();
        self
    }

    /// Adds a bundle to a channel. Without a call of [`Self::bundle`] the bundle has no version.
    #[must_use]
    pub fn entry(mut self, channel: &str, name: &str, edges: EntryEdges<'_>) -> Self {
        self.bundle_mut(name);
        let edges = DraftEdges {
            replaces: edges.replaces.filter(|name| !name.is_empty()).map(Into::into),
            skips: edges.skips.iter().map(|&skip| skip.into()).collect(),
            skip_range: edges.skip_range.map(Into::into).as_ref().and_then(range),
        };
        self.channels.entry(channel.into()).or_default().entries.insert(name.into(), edges);
        self
    }

    /// Sets the `skipRange` of an entry from a set of versions; call it after [`Self::entry`].
    #[must_use]
    pub fn skip_range(mut self, channel: &str, name: &str, set: &IntervalSet) -> Self {
        let draft = self.channels.get_mut(channel);
        if let Some(edges) = draft.and_then(|draft| draft.entries.get_mut(name)) {
            edges.skip_range = Some(SkipRange { text: set.to_string().into(), set: set.clone() });
        }
        self
    }

    /// Deprecates the package.
    #[must_use]
    pub fn deprecate_package(mut self, message: &str) -> Self {
        self.deprecation = Some(message.into());
        self
    }

    /// Deprecates a channel.
    #[must_use]
    pub fn deprecate_channel(mut self, name: &str, message: &str) -> Self {
        self.channels.entry(name.into()).or_default().deprecation = Some(message.into());
        self
    }

    /// Deprecates a bundle.
    #[must_use]
    pub fn deprecate_bundle(mut self, name: &str, message: &str) -> Self {
        self.bundle_mut(name).deprecation = Some(message.into());
        self
    }

    /// Gives a bundle the property `olm.deprecated`.
    #[must_use]
    pub fn withdraw(mut self, name: &str) -> Self {
        self.bundle_mut(name).withdrawn = true;
        self
    }

    fn bundle_mut(&mut self, name: &str) -> &mut GraphBundle {
        self.bundles.entry(name.into()).or_insert_with_key(|name| GraphBundle {
            name: name.clone(),
            version: None,
            release: None,
            deprecation: None,
            withdrawn: false,
        })
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        let bundles: Vec<Arc<GraphBundle>> = self.bundles.into_values().map(Arc::new).collect();
        let mut graph = Graph {
            package: self.package,
            default_channel: self.default_channel,
            deprecation: self.deprecation,
            channels: Vec::with_capacity(self.channels.len()),
            bundles,
        };
        for (name, draft) in self.channels {
            let entries = draft.entries.into_iter().filter_map(|(name, edges)| {
                // `entry` adds the bundle too, and a valid catalog has the bundle of each entry.
                let place = graph.place_of(&name)?;
                let DraftEdges { replaces, skips, skip_range } = edges;
                let bundle = graph.bundles[place].clone();
                Some(GraphEntry { name, replaces, skips, skip_range, bundle, place })
            });
            let entries: Vec<GraphEntry> = entries.collect();
            let chain = chain(&entries);
            graph.channels.push(GraphChannel {
                name,
                deprecation: draft.deprecation,
                entries,
                chain,
            });
        }
        graph
    }
}

fn range(text: &Arc<str>) -> Option<SkipRange> {
    let set = Range::parse(text).ok()?.set().clone();
    Some(SkipRange { text: text.clone(), set })
}
