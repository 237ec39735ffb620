//! What is drawn: for each channel its bundles, the updates between them, and the way.

use super::rails::{self, Rail};
use mainstay_catalog::ChannelOrder;
use mainstay_updates::{Channel, Edge, End, Entry, Graph, Semantics, View};
use mainstay_version::{IntervalSet, Version};
use std::collections::{BTreeMap, BTreeSet};

/// What is installed.
#[derive(Clone, Debug)]
pub(super) struct Installed {
    /// Its name; empty if only the version is known.
    pub(super) name: String,
    pub(super) version: Option<Version>,
}

impl Installed {
    /// Whether the package has it, or an update from it.
    pub(super) fn is_known(&self, graph: &Graph) -> bool {
        let covered = |entry: &Entry| entry.covers(&self.name, self.version.as_ref()).is_some();
        graph.bundle(&self.name).is_some()
            || graph.channels().iter().any(|channel| channel.entries().iter().any(covered))
    }

    /// What it is called.
    fn called(&self) -> String {
        match &self.version {
            Some(version) if self.name.is_empty() => version.to_string(),
            _ => self.name.clone(),
        }
    }
}

/// A package, as it is drawn.
#[derive(Debug)]
pub(super) struct Lanes<'g> {
    pub(super) package: &'g str,
    pub(super) deprecation: Option<&'g str>,
    /// What is installed, as it is called.
    pub(super) from: Option<String>,
    /// In the order of [`ChannelOrder`].
    pub(super) channels: Vec<Lane<'g>>,
}

/// A channel, as it is drawn.
#[derive(Debug)]
pub(super) struct Lane<'g> {
    pub(super) name: &'g str,
    pub(super) is_default: bool,
    pub(super) deprecation: Option<&'g str>,
    /// Oldest first.
    pub(super) bundles: Vec<Bundle>,
    pub(super) updates: Vec<Update>,
    /// Updates of which many are drawn as one.
    pub(super) rails: Vec<Rail>,
    /// Why the channel has no order.
    pub(super) fault: Option<String>,
    /// The way from what is installed, if somebody asks.
    pub(super) way: Option<Way>,
}

/// The way of updates.
#[derive(Debug)]
pub(super) struct Way {
    /// Places of bundles, the installed one first; empty if it has no place here.
    pub(super) steps: Vec<usize>,
    /// What says so for each step.
    pub(super) edges: Vec<Edge>,
    /// Why it ends where it does, if that is not the head.
    pub(super) end: Option<String>,
}

/// A bundle, as it is drawn.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) name: String,
    /// The version if no other bundle of the channel has it, else the name.
    pub(super) label: String,
    pub(super) version: Option<Version>,
    pub(super) deprecation: Option<String>,
    pub(super) role: Role,
    pub(super) is_installed: bool,
    /// It is on the way.
    pub(super) on_way: bool,
    /// Its range, and how many other bundles of the channel are in it.
    pub(super) range: Option<(String, usize)>,
    /// Names that it skips and that are no entries of the channel.
    pub(super) skips_gone: Vec<String>,
}

/// What a bundle is in its channel.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// What others lead to.
    Head,
    /// Installed anew or by an update.
    Member,
    /// Never installed anew, because another bundle skips it.
    Skipped {
        /// That bundle.
        by: String,
    },
    /// No entry of the channel.
    Gone,
}

/// An update, as it is drawn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) edge: Edge,
    /// How many updates this one stands for: a range is drawn once, from the oldest bundle in it.
    pub(super) count: usize,
    pub(super) on_way: bool,
}

impl<'g> Lanes<'g> {
    /// A package with some of its channels, or with all where none is named.
    pub(super) fn of(graph: &'g Graph, only: &[String], from: Option<&Installed>) -> Self {
        let wanted =
            |channel: &&Channel| only.is_empty() || only.iter().any(|name| **name == *channel.name);
        let mut channels: Vec<&Channel> = graph.channels().iter().filter(wanted).collect();
        let order = |channel: &&Channel| ChannelOrder::of(&channel.name, &graph.default_channel);
        channels.sort_by_cached_key(order);
        Self {
            package: &graph.package,
            deprecation: graph.deprecation.as_deref(),
            from: from.map(Installed::called),
            channels: channels.into_iter().map(|channel| Lane::of(graph, channel, from)).collect(),
        }
    }
}

impl Lane<'_> {
    /// The updates that are drawn one by one: those that are on no rail, and the way.
    pub(super) fn single_updates(&self) -> impl Iterator<Item = &Update> {
        let exits = |rail: &Rail| {
            let edge = rail.edge;
            rail.exits.iter().map(move |exit| (edge, exit.at)).collect::<Vec<_>>()
        };
        let on_rails: BTreeSet<(Edge, usize)> = self.rails.iter().flat_map(exits).collect();
        let is_single = move |update: &&Update| !on_rails.contains(&(update.edge, update.to));
        self.updates.iter().filter(move |update| update.on_way || is_single(update))
    }
}

impl<'g> Lane<'g> {
    fn of(graph: &'g Graph, channel: &'g Channel, from: Option<&Installed>) -> Self {
        let view = graph.view(Semantics::Classic, &[&channel.name]);
        let mut lane = Self {
            name: &channel.name,
            is_default: channel.name == graph.default_channel,
            deprecation: channel.deprecation.as_deref(),
            bundles: bundles(channel),
            updates: Vec::new(),
            rails: Vec::new(),
            fault: view.as_ref().err().map(ToString::to_string),
            way: None,
        };
        lane.place_gone(graph, channel, from);
        lane.label();
        lane.updates(channel);
        lane.rails = rails::rails(&lane, channel);
        if let Some(from) = from {
            lane.way = Some(lane.walk(view.as_ref().ok(), from));
        }
        lane
    }

    /// The place of a bundle.
    fn place(&self, name: &str) -> Option<usize> {
        self.bundles.iter().position(|bundle| bundle.name == name)
    }

    /// Puts in what is replaced, or installed, and is no entry: below the first that covers it.
    fn place_gone(&mut self, graph: &Graph, channel: &Channel, from: Option<&Installed>) {
        let replaced = channel.entries().iter().filter_map(|entry| entry.replaces.as_deref());
        let mut gone: BTreeMap<String, Option<Version>> = BTreeMap::new();
        for name in replaced.filter(|name| channel.entry(name).is_none()) {
            let version = graph.bundle(name).and_then(|bundle| bundle.version.clone());
            gone.insert(name.to_owned(), version);
        }
        let covers = |name: &str, version: Option<&Version>| {
            let covered = |bundle: &Bundle| {
                let entry = channel.entry(&bundle.name);
                entry.is_some_and(|entry| entry.covers(name, version).is_some())
            };
            self.bundles.iter().position(covered)
        };
        if let Some(from) = from
            && channel.entry(&from.name).is_none()
            && covers(&from.name, from.version.as_ref()).is_some()
        {
            gone.insert(from.called(), from.version.clone());
        }
        let mut placed: Vec<(usize, Bundle)> = Vec::new();
        for (name, version) in gone {
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
            let known = graph.bundle(&name);
            placed.push((
                at,
                Bundle {
                    label: String::new(),
                    deprecation: known
                        .and_then(|bundle| bundle.deprecation.as_deref())
                        .map(str::to_owned),
                    name,
                    version,
                    role: Role::Gone,
                    is_installed: false,
                    on_way: false,
                    range: None,
                    skips_gone: Vec::new(),
                },
            ));
        }
        placed.sort_by(|a, b| (a.0, &a.1.version, &a.1.name).cmp(&(b.0, &b.1.version, &b.1.name)));
        for (at, bundle) in placed.into_iter().rev() {
            self.bundles.insert(at, bundle);
        }
    }

    /// Versions are shorter than names, where they say the same.
    fn label(&mut self) {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for bundle in &self.bundles {
            *seen.entry(version_of(bundle)).or_default() += 1;
        }
        for bundle in &mut self.bundles {
            let version = version_of(bundle);
            let is_plain = !version.is_empty() && seen.get(&version) == Some(&1);
            bundle.label = if is_plain { version } else { bundle.name.clone() };
        }
    }

    fn updates(&mut self, channel: &Channel) {
        let places = self.bundles.iter().enumerate().map(|(at, bundle)| (bundle.name.as_str(), at));
        let places: BTreeMap<&str, usize> = places.collect();
        let versions = Versions::of(self.bundles.iter().map(|bundle| bundle.version.as_ref()));
        let mut updates = Vec::new();
        for entry in channel.entries() {
            let Some(&to) = places.get(&*entry.name) else { continue };
            let mut covered = BTreeSet::from([to]);
            let mut add = |name: &str, edge| {
                if let Some(&from) = places.get(name)
                    && covered.insert(from)
                {
                    updates.push(Update { from, to, edge, count: 1, on_way: false });
                }
            };
            entry.replaces.iter().for_each(|name| add(name, Edge::Replaces));
            entry.skips.iter().for_each(|name| add(name, Edge::Skips));
            let Some(range) = &entry.skip_range else { continue };
            let (mut first, mut count) = (None, 0);
            for at in versions.held(&range.set).filter(|at| !covered.contains(at)) {
                first = Some(first.map_or(at, |first: usize| first.min(at)));
                count += 1;
            }
            if let Some(from) = first {
                updates.push(Update { from, to, edge: Edge::SkipRange, count, on_way: false });
            }
        }
        updates.sort_by_key(|update| (update.to, update.from, update.edge));
        self.updates = updates;
    }

    /// The way from what is installed.
    fn walk(&mut self, view: Option<&View<'_>>, from: &Installed) -> Way {
        let mut way = Way { steps: Vec::new(), edges: Vec::new(), end: None };
        let Some(view) = view else {
            way.end = Some("the channel has no order".to_owned());
            return way;
        };
        let installed = mainstay_updates::Installed::new(&from.name, from.version.as_ref());
        let route = view.path(&installed);
        way.end = (!matches!(route.end, End::Head)).then(|| route.end.to_string());
        let Some(start) = self.place(&from.called()) else { return way };
        self.bundles[start].is_installed = true;
        self.bundles[start].on_way = true;
        way.steps.push(start);
        let mut last = start;
        for step in &route.steps {
            let Some(to) = self.place(&step.bundle.name) else { break };
            let is_it = |update: &&mut Update| {
                (update.from, update.to) == (last, to)
                    && update.count == 1
                    && update.edge == step.edge
            };
            if let Some(update) = self.updates.iter_mut().find(is_it) {
                update.on_way = true;
            } else {
                let (from, edge) = (last, step.edge);
                self.updates.push(Update { from, to, edge, count: 1, on_way: true });
            }
            self.bundles[to].on_way = true;
            way.steps.push(to);
            way.edges.push(step.edge);
            last = to;
        }
        way
    }
}

fn version_of(bundle: &Bundle) -> String {
    bundle.version.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Versions in their order: a range is held against its ends, not against each of them.
pub(super) struct Versions<'v>(Vec<(&'v Version, usize)>);

impl<'v> Versions<'v> {
    /// Versions, known by their places from now on.
    pub(super) fn of(all: impl Iterator<Item = Option<&'v Version>>) -> Self {
        let known = all.enumerate().filter_map(|(at, version)| Some((version?, at)));
        let mut versions: Vec<_> = known.collect();
        versions.sort_unstable();
        Self(versions)
    }

    /// The places of those in a set, in the order of versions.
    pub(super) fn held(&self, set: &IntervalSet) -> impl Iterator<Item = usize> {
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
fn bundles(channel: &Channel) -> Vec<Bundle> {
    let head = channel.head().map(|entry| &*entry.name);
    let mut skippers: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in channel.entries() {
        for skip in &entry.skips {
            skippers.entry(skip).or_insert(&entry.name);
        }
    }
    let entries = channel.entries();
    let versions = Versions::of(entries.iter().map(|entry| entry.bundle().version.as_ref()));
    let bundle = |entry: &Entry| {
        let bundle = entry.bundle();
        let range = entry.skip_range.as_ref().map(|range| {
            let others = versions.held(&range.set).filter(|at| entries[*at].name != entry.name);
            (range.text.to_string(), others.count())
        });
        let gone = entry.skips.iter().filter(|skip| channel.entry(skip).is_none());
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
            on_way: false,
            range,
            skips_gone: gone.map(ToString::to_string).collect(),
        }
    };
    let mut all: Vec<Bundle> = channel.entries().iter().map(bundle).collect();
    all.sort_by(|a, b| (&a.version, &a.name).cmp(&(&b.version, &b.name)));
    all
}
