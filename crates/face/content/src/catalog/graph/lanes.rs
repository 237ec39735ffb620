//! Lanes of the update graph: for each channel its bundles, the updates between them, and the update
//! path.

use super::rails::{self, Rail};
use mainstay_catalog::ChannelOrder;
use mainstay_updates::{Edge, Graph, GraphChannel, GraphEntry, GraphView, PathEnd, Semantics};
use mainstay_version::{IntervalSet, Version};
use std::collections::{BTreeMap, BTreeSet};

/// An installed bundle.
#[derive(Clone, Debug)]
pub(super) struct Installed {
    /// Its name; empty if only the version is given.
    pub(super) name: String,
    pub(super) version: Option<Version>,
}

impl Installed {
    /// Whether the package has the bundle, or an update from it.
    pub(super) fn is_known(&self, graph: &Graph) -> bool {
        let is_covered =
            |entry: &GraphEntry| entry.covers(&self.name, self.version.as_ref()).is_some();
        graph.bundle(&self.name).is_some()
            || graph.channels().iter().any(|channel| channel.entries().iter().any(is_covered))
    }

    /// The name, or else the version.
    fn display_name(&self) -> String {
        match &self.version {
            Some(version) if self.name.is_empty() => version.to_string(),
            _ => self.name.clone(),
        }
    }
}

/// A package with its lanes.
#[derive(Debug)]
pub(super) struct Lanes<'g> {
    pub(super) package: &'g str,
    pub(super) deprecation: Option<&'g str>,
    /// The name or version of the installed bundle.
    pub(super) from: Option<String>,
    /// In the order of [`ChannelOrder`].
    pub(super) channels: Vec<Lane<'g>>,
}

/// A channel.
#[derive(Debug)]
pub(super) struct Lane<'g> {
    pub(super) name: &'g str,
    pub(super) is_default: bool,
    pub(super) deprecation: Option<&'g str>,
    /// Oldest first.
    pub(super) bundles: Vec<Bundle>,
    pub(super) updates: Vec<Update>,
    /// Rails, each of which draws many updates as one line.
    pub(super) rails: Vec<Rail>,
    /// Why the channel has no order.
    pub(super) fault: Option<String>,
    /// The update path from the installed bundle, if one is given.
    pub(super) path: Option<UpdatePath>,
}

/// An update path.
#[derive(Debug)]
pub(super) struct UpdatePath {
    /// Positions of bundles in the lane, the installed one first; empty if the lane does not have it.
    pub(super) steps: Vec<usize>,
    /// The edge of each step.
    pub(super) edges: Vec<Edge>,
    /// Why the path ends before the head.
    pub(super) end: Option<String>,
}

/// A bundle.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) name: String,
    /// The version if no other bundle of the channel has it, else the name.
    pub(super) label: String,
    pub(super) version: Option<Version>,
    pub(super) deprecation: Option<String>,
    pub(super) role: Role,
    pub(super) is_installed: bool,
    /// Whether the bundle is on the update path.
    pub(super) on_path: bool,
    /// Its `skipRange`, and the number of other bundles of the channel in it.
    pub(super) range: Option<(String, usize)>,
    /// Skipped names that are no entries of the channel.
    pub(super) skips_not_in_channel: Vec<String>,
}

/// The role of a bundle in its channel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The channel's head.
    Head,
    /// Can be installed, directly or by an update.
    Member,
    /// Is never chosen for a new installation, because another bundle skips it.
    Skipped {
        /// That bundle.
        by: String,
    },
    /// No entry of the channel.
    NotInChannel,
}

/// An update.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) edge: Edge,
    /// The number of updates that the line stands for: a range is drawn once, from the oldest bundle in
    /// it.
    pub(super) count: usize,
    pub(super) on_path: bool,
}

impl<'g> Lanes<'g> {
    /// A package with the named channels, or with all channels if none is named.
    pub(super) fn of(graph: &'g Graph, only: &[String], from: Option<&Installed>) -> Self {
        let wanted = |channel: &&GraphChannel| {
            only.is_empty() || only.iter().any(|name| **name == *channel.name)
        };
        let mut channels: Vec<&GraphChannel> = graph.channels().iter().filter(wanted).collect();
        let order =
            |channel: &&GraphChannel| ChannelOrder::of(&channel.name, &graph.default_channel);
        channels.sort_by_cached_key(order);
        Self {
            package: &graph.package,
            deprecation: graph.deprecation.as_deref(),
            from: from.map(Installed::display_name),
            channels: channels.into_iter().map(|channel| Lane::of(graph, channel, from)).collect(),
        }
    }
}

impl Lane<'_> {
    /// The updates with a line of their own: those on no rail, and those of the update path.
    pub(super) fn single_updates(&self) -> impl Iterator<Item = &Update> {
        let exits = |rail: &Rail| {
            let edge = rail.edge;
            rail.exits.iter().map(move |exit| (edge, exit.at)).collect::<Vec<_>>()
        };
        let on_rails: BTreeSet<(Edge, usize)> = self.rails.iter().flat_map(exits).collect();
        let is_single = move |update: &&Update| !on_rails.contains(&(update.edge, update.to));
        self.updates.iter().filter(move |update| update.on_path || is_single(update))
    }
}

impl<'g> Lane<'g> {
    fn of(graph: &'g Graph, channel: &'g GraphChannel, from: Option<&Installed>) -> Self {
        let view = graph.view(Semantics::Classic, &[&channel.name]);
        let mut lane = Self {
            name: &channel.name,
            is_default: channel.name == graph.default_channel,
            deprecation: channel.deprecation.as_deref(),
            bundles: bundles(channel),
            updates: Vec::new(),
            rails: Vec::new(),
            fault: view.as_ref().err().map(ToString::to_string),
            path: None,
        };
        lane.insert_replaced(graph, channel, from);
        lane.label();
        lane.updates(channel);
        lane.rails = rails::rails(&lane, channel);
        if let Some(from) = from {
            lane.path = Some(lane.mark_path(view.as_ref().ok(), from));
        }
        lane
    }

    /// The position of a bundle in the lane.
    fn position(&self, name: &str) -> Option<usize> {
        self.bundles.iter().position(|bundle| bundle.name == name)
    }

    /// Inserts replaced bundles, and the installed one, that are no entries: below the first entry that
    /// covers them.
    fn insert_replaced(&mut self, graph: &Graph, channel: &GraphChannel, from: Option<&Installed>) {
        let replaced = channel.entries().iter().filter_map(|entry| entry.replaces.as_deref());
        let mut not_in_channel: BTreeMap<String, Option<Version>> = BTreeMap::new();
        for name in replaced.filter(|name| channel.entry(name).is_none()) {
            let version = graph.bundle(name).and_then(|bundle| bundle.version.clone());
            not_in_channel.insert(name.to_owned(), version);
        }
        let covers = |name: &str, version: Option<&Version>| {
            let is_covered = |bundle: &Bundle| {
                let entry = channel.entry(&bundle.name);
                entry.is_some_and(|entry| entry.covers(name, version).is_some())
            };
            self.bundles.iter().position(is_covered)
        };
        if let Some(from) = from
            && channel.entry(&from.name).is_none()
            && covers(&from.name, from.version.as_ref()).is_some()
        {
            not_in_channel.insert(from.display_name(), from.version.clone());
        }
        let mut insertions: Vec<(usize, Bundle)> = Vec::new();
        for (name, version) in not_in_channel {
            let first = covers(&name, version.as_ref()).unwrap_or(0);
            let at = match &version {
                Some(version) => {
                    let older = |bundle: &Bundle| bundle.version.as_ref() < Some(version);
                    self.bundles
                        .iter()
                        .position(|bundle| !older(bundle))
                        .unwrap_or(self.bundles.len())
                }
                None => first,
            };
            let bundle = graph.bundle(&name);
            insertions.push((
                at,
                Bundle {
                    label: String::new(),
                    deprecation: bundle
                        .and_then(|bundle| bundle.deprecation.as_deref())
                        .map(str::to_owned),
                    name,
                    version,
                    role: Role::NotInChannel,
                    is_installed: false,
                    on_path: false,
                    range: None,
                    skips_not_in_channel: Vec::new(),
                },
            ));
        }
        insertions
            .sort_by(|a, b| (a.0, &a.1.version, &a.1.name).cmp(&(b.0, &b.1.version, &b.1.name)));
        for (at, bundle) in insertions.into_iter().rev() {
            self.bundles.insert(at, bundle);
        }
    }

    /// Labels bundles by version where it is unique, as versions are shorter than names.
    fn label(&mut self) {
        let mut version_counts: BTreeMap<String, usize> = BTreeMap::new();
        for bundle in &self.bundles {
            *version_counts.entry(version_of(bundle)).or_default() += 1;
        }
        for bundle in &mut self.bundles {
            let version = version_of(bundle);
            let is_plain = !version.is_empty() && version_counts.get(&version) == Some(&1);
            bundle.label = if is_plain { version } else { bundle.name.clone() };
        }
    }

    fn updates(&mut self, channel: &GraphChannel) {
        let places = self.bundles.iter().enumerate().map(|(at, bundle)| (bundle.name.as_str(), at));
        let places: BTreeMap<&str, usize> = places.collect();
        let versions = VersionIndex::of(self.bundles.iter().map(|bundle| bundle.version.as_ref()));
        let mut updates = Vec::new();
        for entry in channel.entries() {
            let Some(&to) = places.get(&*entry.name) else { continue };
            let mut covered_positions = BTreeSet::from([to]);
            let mut add = |name: &str, edge| {
                if let Some(&from) = places.get(name)
                    && covered_positions.insert(from)
                {
                    updates.push(Update { from, to, edge, count: 1, on_path: false });
                }
            };
            entry.replaces.iter().for_each(|name| add(name, Edge::Replaces));
            entry.skips.iter().for_each(|name| add(name, Edge::Skips));
            let Some(range) = &entry.skip_range else { continue };
            let (mut first, mut count) = (None, 0);
            for at in versions.positions_in(&range.set).filter(|at| !covered_positions.contains(at))
            {
                first = Some(first.map_or(at, |first: usize| first.min(at)));
                count += 1;
            }
            if let Some(from) = first {
                updates.push(Update { from, to, edge: Edge::SkipRange, count, on_path: false });
            }
        }
        updates.sort_by_key(|update| (update.to, update.from, update.edge));
        self.updates = updates;
    }

    /// Marks the update path from an installed bundle.
    fn mark_path(&mut self, view: Option<&GraphView<'_>>, from: &Installed) -> UpdatePath {
        let mut path = UpdatePath { steps: Vec::new(), edges: Vec::new(), end: None };
        let Some(view) = view else {
            path.end = Some("the channel has no order".to_owned());
            return path;
        };
        let installed = mainstay_updates::InstalledBundle::new(&from.name, from.version.as_ref());
        let route = view.path(&installed);
        path.end = (!matches!(route.end, PathEnd::Head)).then(|| route.end.to_string());
        let Some(start) = self.position(&from.display_name()) else { return path };
        self.bundles[start].is_installed = true;
        self.bundles[start].on_path = true;
        path.steps.push(start);
        let mut last = start;
        for step in &route.steps {
            let Some(to) = self.position(&step.bundle.name) else { break };
            let is_step = |update: &&mut Update| {
                (update.from, update.to) == (last, to)
                    && update.count == 1
                    && update.edge == step.edge
            };
            if let Some(update) = self.updates.iter_mut().find(is_step) {
                update.on_path = true;
            } else {
                let (from, edge) = (last, step.edge);
                self.updates.push(Update { from, to, edge, count: 1, on_path: true });
            }
            self.bundles[to].on_path = true;
            path.steps.push(to);
            path.edges.push(step.edge);
            last = to;
        }
        path
    }
}

fn version_of(bundle: &Bundle) -> String {
    bundle.version.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Sorted versions: a range lookup compares only its bounds, not each version.
pub(super) struct VersionIndex<'v>(Vec<(&'v Version, usize)>);

impl<'v> VersionIndex<'v> {
    /// An index of versions by their positions.
    pub(super) fn of(all: impl Iterator<Item = Option<&'v Version>>) -> Self {
        let pairs = all.enumerate().filter_map(|(at, version)| Some((version?, at)));
        let mut versions: Vec<_> = pairs.collect();
        versions.sort_unstable();
        Self(versions)
    }

    /// The positions of the versions in a set, in the order of versions.
    pub(super) fn positions_in(&self, set: &IntervalSet) -> impl Iterator<Item = usize> {
        set.intervals().iter().flat_map(|interval| {
            let start = self.0.partition_point(|(version, _)| **version < interval.from);
            let rest = &self.0[start..];
            let end = interval
                .to
                .as_ref()
                .map_or(rest.len(), |to| rest.partition_point(|(version, _)| *version < to));
            rest[..end].iter().map(|(_, at)| *at)
        })
    }
}

/// The entries of a channel, oldest first.
fn bundles(channel: &GraphChannel) -> Vec<Bundle> {
    let head = channel.head().map(|entry| &*entry.name);
    let mut skippers: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in channel.entries() {
        for skip in &entry.skips {
            skippers.entry(skip).or_insert(&entry.name);
        }
    }
    let entries = channel.entries();
    let versions = VersionIndex::of(entries.iter().map(|entry| entry.bundle().version.as_ref()));
    let bundle = |entry: &GraphEntry| {
        let bundle = entry.bundle();
        let range = entry.skip_range.as_ref().map(|range| {
            let others =
                versions.positions_in(&range.set).filter(|at| entries[*at].name != entry.name);
            (range.text.to_string(), others.count())
        });
        let not_in_channel = entry.skips.iter().filter(|skip| channel.entry(skip).is_none());
        let role = match skippers.get(&*entry.name) {
            Some(by) => Role::Skipped { by: (*by).to_owned() },
            None if head == Some(&*entry.name) => Role::Head,
            None => Role::Member,
        };
        Bundle {
            name: entry.name.to_string(),
            label: String::new(),
            version: bundle.version.clone(),
            deprecation: bundle.deprecation.as_deref().map(str::to_owned),
            role,
            is_installed: false,
            on_path: false,
            range,
            skips_not_in_channel: not_in_channel.map(ToString::to_string).collect(),
        }
    };
    let mut all: Vec<Bundle> = channel.entries().iter().map(bundle).collect();
    all.sort_by(|a, b| (&a.version, &a.name).cmp(&(&b.version, &b.name)));
    all
}
