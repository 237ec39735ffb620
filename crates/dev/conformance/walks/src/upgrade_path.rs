//! Expected upgrade paths: the versions and channels through which a package should be upgraded.
//!
//! The path comes from the update graph alone; the cluster is not asked.

use mainstay_updates::{
    Graph, GraphBundle, GraphChannel, InstalledBundle, PathEnd, Semantics, UpdatePath,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// The part of an upgrade path that stays in one channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSegment {
    /// The channel's name.
    pub channel: String,
    /// The bundles that are installed in this channel, in order and by name. The bundle that is
    /// already installed when the Subscription changes to the channel is not among them.
    pub updates: Vec<String>,
}

/// An upgrade path from one version to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpgradePath {
    /// The name of the bundle that is installed first.
    pub start: String,
    /// The path from there, channel by channel; never empty.
    pub segments: Vec<ChannelSegment>,
    /// The name of the newest bundle that a Subscription can request.
    pub newest: String,
    /// Names of older bundles than the first from which no path leads to the last bundle of this
    /// one.
    pub dead_ends: Vec<String>,
    /// Names of older bundles than the first that cannot be installed.
    pub uninstallable: Vec<String>,
}

impl UpgradePath {
    /// The name of the last bundle.
    pub fn end(&self) -> &str {
        let last = self.segments.iter().rev().find_map(|segment| segment.updates.last());
        last.unwrap_or(&self.start)
    }

    /// The number of upgrades.
    pub fn update_count(&self) -> usize {
        self.segments.iter().map(|segment| segment.updates.len()).sum()
    }

    /// Finds the path that ends at the newest reachable version, and starts at the oldest
    /// installable version from which it is reachable. None if a Subscription can request no bundle
    /// of the package.
    pub fn of(graph: &Graph, installable: impl Fn(&str) -> bool) -> Option<Self> {
        let mut all: Vec<&GraphBundle> = graph
            .bundles()
            .filter(|bundle| !installable_channels(graph, bundle).is_empty())
            .collect();
        all.sort_by(|a, b| (&a.version, &a.name).cmp(&(&b.version, &b.name)));
        let newest = *all.last()?;
        // If no bundle is installable, try them all: the cluster reports the reason.
        let none_installable = !all.iter().any(|bundle| installable(&bundle.name));
        let installable = |name: &str| none_installable || installable(name);
        let mut candidates: Vec<(usize, Vec<ChannelSegment>)> = Vec::new();
        for (at, start) in all.iter().enumerate().filter(|(_, bundle)| installable(&bundle.name)) {
            candidates.extend(path_to_newest(graph, start).map(|segments| (at, segments)));
        }
        let moves = |segments: &[ChannelSegment]| {
            segments.iter().any(|segment| !segment.updates.is_empty())
        };
        let (at, segments) = if candidates.iter().any(|(_, segments)| moves(segments)) {
            candidates.retain(|(_, segments)| moves(segments));
            let end = |segments: &[ChannelSegment]| {
                let name = segments.iter().rev().find_map(|segment| segment.updates.last())?;
                graph.bundle(name)?.version.clone()
            };
            candidates.into_iter().max_by_key(|(at, segments)| (end(segments), Reverse(*at)))?
        } else {
            // No version has a successor: install the newest one.
            candidates.into_iter().next_back()?
        };
        let older = |uninstallable: bool| {
            let older =
                all[..at].iter().filter(|bundle| installable(&bundle.name) != uninstallable);
            older.map(|bundle| bundle.name.to_string()).collect()
        };
        Some(Self {
            start: all[at].name.to_string(),
            segments,
            newest: newest.name.to_string(),
            dead_ends: older(false),
            uninstallable: older(true),
        })
    }
}

/// The channels in which a Subscription can request a bundle as `startingCSV`, the default channel
/// first.
fn installable_channels(graph: &Graph, bundle: &GraphBundle) -> Vec<String> {
    if bundle.withdrawn {
        return Vec::new();
    }
    let mut names: Vec<(bool, String)> = Vec::new();
    for channel in graph.channels() {
        let Ok(mut chain) = channel.chain() else { continue };
        let offered = chain.any(|entry| entry.name == bundle.name)
            || channel.skipped().iter().any(|entry| entry.name == bundle.name);
        if offered {
            names.push((channel.name != graph.default_channel, channel.name.to_string()));
        }
    }
    names.sort();
    names.into_iter().map(|(_, name)| name).collect()
}

/// The path from a bundle to the newest reachable one, through as few channels as possible.
fn path_to_newest(graph: &Graph, start: &GraphBundle) -> Option<Vec<ChannelSegment>> {
    let mut paths: BTreeMap<&str, Vec<ChannelSegment>> = BTreeMap::new();
    let mut queue: VecDeque<&GraphBundle> = VecDeque::new();
    let segment = |channel: &GraphChannel, route: &UpdatePath<'_>| ChannelSegment {
        channel: channel.name.to_string(),
        updates: route.steps.iter().map(|step| step.bundle.name.to_string()).collect(),
    };
    // The first channel must offer the bundle itself; later channels must have a successor.
    let requested = installable_channels(graph, start);
    for switch in graph.switches(Semantics::Classic, &InstalledBundle::from(start)) {
        let Some(route) = without_cycle(switch.route.ok()) else { continue };
        let end = route.steps.last().map_or(start, |step| step.bundle);
        let channel = switch.channel;
        if requested.iter().any(|name| **name == *channel.name) && !paths.contains_key(&*end.name) {
            paths.insert(&end.name, vec![segment(channel, &route)]);
            queue.push_back(end);
        }
    }
    while let Some(from) = queue.pop_front() {
        let path = paths.get(&*from.name).cloned().unwrap_or_default();
        for switch in graph.switches(Semantics::Classic, &InstalledBundle::from(from)) {
            let Some(route) = without_cycle(switch.route.ok()) else { continue };
            let Some(end) = route.steps.last().map(|step| step.bundle) else { continue };
            if !paths.contains_key(&*end.name) {
                let mut path = path.clone();
                path.push(segment(switch.channel, &route));
                paths.insert(&end.name, path);
                queue.push_back(end);
            }
        }
    }
    let version = |name: &str| graph.bundle(name).and_then(|bundle| bundle.version.clone());
    paths
        .into_iter()
        .max_by_key(|(name, segments)| (version(name), Reverse(segments.len())))
        .map(|(_, segments)| segments)
}

/// Only routes without a cycle.
fn without_cycle(route: Option<UpdatePath<'_>>) -> Option<UpdatePath<'_>> {
    route.filter(|route| !matches!(route.end, PathEnd::Circle { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_updates::EntryEdges;

    fn follows(name: &str) -> EntryEdges<'_> {
        EntryEdges { replaces: Some(name), ..EntryEdges::default() }
    }

    fn segment(channel: &str, updates: &[&str]) -> ChannelSegment {
        ChannelSegment {
            channel: channel.to_owned(),
            updates: updates.iter().map(|update| (*update).to_owned()).collect(),
        }
    }

    #[test]
    fn path_continues_in_the_channel_that_has_a_successor() {
        let graph = Graph::builder("p")
            .default_channel("new")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .bundle("p4", "4.0.0")
            .entry("old", "p1", EntryEdges::default())
            .entry("old", "p2", follows("p1"))
            .entry("new", "p3", follows("p2"))
            .entry("new", "p4", follows("p3"))
            .finish();
        let path = UpgradePath::of(&graph, |_| true).unwrap();
        assert_eq!(path.segments, [segment("old", &["p2"]), segment("new", &["p3", "p4"])]);
        assert_eq!((path.start.as_str(), path.end(), path.dead_ends.len()), ("p1", "p4", 0));
    }

    #[test]
    fn path_leaves_a_first_channel_without_successors() {
        let graph = Graph::builder("p")
            .default_channel("new")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .entry("old", "p1", EntryEdges::default())
            .entry("new", "p2", follows("p1"))
            .finish();
        let path = UpgradePath::of(&graph, |_| true).unwrap();
        assert_eq!(path.segments, [segment("old", &[]), segment("new", &["p2"])]);
    }

    #[test]
    fn version_without_path_to_the_newest_is_a_dead_end() {
        let graph = Graph::builder("p")
            .default_channel("c")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .entry("b", "p1", EntryEdges::default())
            .entry("c", "p2", EntryEdges::default())
            .entry("c", "p3", follows("p2"))
            .finish();
        let path = UpgradePath::of(&graph, |_| true).unwrap();
        assert_eq!(path.segments, [segment("c", &["p3"])]);
        assert_eq!(path.dead_ends, ["p1"]);
        assert_eq!(path.start, "p2");
    }

    #[test]
    fn path_starts_at_an_installable_version() {
        let graph = Graph::builder("p")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .entry("c", "p1", EntryEdges::default())
            .entry("c", "p2", follows("p1"))
            .entry("c", "p3", follows("p2"))
            .finish();
        let path = UpgradePath::of(&graph, |name| name != "p1").unwrap();
        assert_eq!((path.start.as_str(), path.end()), ("p2", "p3"));
        assert_eq!(path.uninstallable, ["p1"]);
    }

    #[test]
    fn skipped_version_may_be_the_start_and_a_single_version_is_a_path() {
        let skips = EntryEdges { skips: &["p1"], ..EntryEdges::default() };
        let graph = Graph::builder("p")
            .default_channel("c")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .entry("c", "p1", EntryEdges::default())
            .entry("c", "p2", skips)
            .finish();
        let path = UpgradePath::of(&graph, |_| true).unwrap();
        assert_eq!((path.start.as_str(), path.end(), path.update_count()), ("p1", "p2", 1));

        let graph =
            Graph::builder("q").bundle("q1", "1.0.0").entry("c", "q1", EntryEdges::default());
        let path = UpgradePath::of(&graph.finish(), |_| true).unwrap();
        assert_eq!((path.start.as_str(), path.end(), path.update_count()), ("q1", "q1", 0));
    }
}
