//! Expected upgrade paths of ClusterExtensions: from the oldest installable version to the newest
//! one, through as many versions as possible.

use mainstay_updates::{Graph, GraphBundle, InstalledBundle, Semantics};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// An upgrade path of a ClusterExtension, in all channels. Each update is one that OLM v1 allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionUpgradePath {
    /// The name of the bundle that is installed first.
    pub start: String,
    /// The names of the bundles that follow, in order.
    pub updates: Vec<String>,
    /// The name of the newest bundle that can be installed.
    pub newest: String,
    /// The name of the bundle to which the last one is updated when no version is requested; none
    /// if it stays.
    pub next: Option<String>,
    /// The names of older installable bundles than the first, from which no update leads to the last
    /// one.
    pub dead_ends: Vec<String>,
}

impl ExtensionUpgradePath {
    /// The name of the last bundle.
    pub fn end(&self) -> &str {
        self.updates.last().unwrap_or(&self.start)
    }

    /// The names of all bundles, in order.
    pub fn bundles(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.start).chain(&self.updates)
    }

    /// Finds the path that ends at the newest reachable version, begins at the oldest version from
    /// which that is reachable, and has the most updates. None if no bundle of a channel can be
    /// installed.
    pub(super) fn of(graph: &Graph, installable: impl Fn(&str) -> bool) -> Option<Self> {
        // Channels of extensions need no order.
        let view = graph.view(Semantics::Extension, &[]).ok()?;
        let in_channel = |name: &str| graph.channels().iter().any(|one| one.entry(name).is_some());
        let mut all: Vec<&GraphBundle> = graph
            .bundles()
            .filter(|bundle| in_channel(&bundle.name) && installable(&bundle.name))
            .collect();
        all.sort_by_key(|bundle| (&bundle.version, Reverse(&bundle.name)));
        // A version can be requested only once.
        all.dedup_by(|later, earlier| later.version == earlier.version);
        let rank: BTreeMap<&str, usize> =
            all.iter().enumerate().map(|(at, bundle)| (&*bundle.name, at)).collect();
        // For each bundle the last bundle of its path, the number of updates, and the next bundle.
        let mut paths: Vec<(usize, usize, Option<usize>)> = vec![(0, 0, None); all.len()];
        for at in (0..all.len()).rev() {
            let successors = view.successors(&InstalledBundle::from(all[at]));
            let later = successors
                .iter()
                .filter_map(|step| rank.get(&*step.bundle.name).copied())
                .filter(|next| *next > at)
                .map(|next| (paths[next].0, paths[next].1 + 1, Some(next)));
            // Of several the nearest one.
            let best = later.max_by_key(|(end, updates, next)| (*end, *updates, Reverse(*next)));
            paths[at] = best.unwrap_or((at, 0, None));
        }
        let newest = all.len().checked_sub(1)?;
        let moving = (0..all.len()).filter(|at| paths[*at].1 > 0);
        let start = moving.max_by_key(|at| (paths[*at].0, Reverse(*at))).unwrap_or(newest);
        let updates = std::iter::successors(paths[start].2, |at| paths[*at].2);
        let name = |at: usize| all[at].name.to_string();
        let end = InstalledBundle::from(all[paths[start].0]);
        Some(Self {
            start: name(start),
            updates: updates.map(name).collect(),
            newest: name(newest),
            next: view.next(&end).map(|step| step.bundle.name.to_string()),
            dead_ends: (0..start).map(name).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_updates::EntryEdges;

    fn replaces(name: &str) -> EntryEdges<'_> {
        EntryEdges { replaces: Some(name), ..EntryEdges::default() }
    }

    fn graph() -> Graph {
        let range = EntryEdges { skip_range: Some("<4.0.0"), ..replaces("p3") };
        Graph::builder("p")
            .default_channel("new")
            .bundle("p1", "1.0.0")
            .bundle("p2", "2.0.0")
            .bundle("p3", "3.0.0")
            .bundle("p4", "4.0.0")
            .bundle("p5", "5.0.0")
            .entry("old", "p1", EntryEdges::default())
            .entry("old", "p2", replaces("p1"))
            .entry("new", "p3", replaces("p2"))
            .entry("new", "p4", range)
            .entry("other", "p5", EntryEdges::default())
            .finish()
    }

    #[test]
    fn path_has_the_most_updates_in_all_channels() {
        let path = ExtensionUpgradePath::of(&graph(), |_| true).unwrap();
        assert_eq!((&*path.start, path.end(), &*path.newest), ("p1", "p4", "p5"));
        assert_eq!(path.updates, ["p2", "p3", "p4"]);
        assert_eq!((path.next, path.dead_ends.len()), (None, 0));
    }

    #[test]
    fn path_avoids_bundles_that_cannot_be_installed() {
        let path =
            ExtensionUpgradePath::of(&graph(), |name| !["p1", "p3"].contains(&name)).unwrap();
        assert_eq!((&*path.start, path.updates.as_slice()), ("p2", &["p4".to_owned()][..]));
    }

    #[test]
    fn refused_successor_is_what_follows_the_last_bundle() {
        let path = ExtensionUpgradePath::of(&graph(), |name| name < "p4").unwrap();
        assert_eq!((path.end(), path.next.as_deref()), ("p3", Some("p4")));
    }

    #[test]
    fn bundle_without_update_is_a_dead_end_and_a_single_one_is_a_path() {
        let path =
            ExtensionUpgradePath::of(&graph(), |name| ["p1", "p3", "p4"].contains(&name)).unwrap();
        assert_eq!((&*path.start, path.dead_ends.len()), ("p1", 0));
        let path = ExtensionUpgradePath::of(&graph(), |name| ["p1", "p5"].contains(&name)).unwrap();
        assert_eq!((&*path.start, path.updates.len()), ("p5", 0));
        assert_eq!(path.dead_ends, ["p1"]);
        assert_eq!(ExtensionUpgradePath::of(&graph(), |_| false), None);
    }
}
