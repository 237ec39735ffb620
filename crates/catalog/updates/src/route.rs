//! Automatic update paths: where the next update of the next update leads, and the bundles from
//! which updates do not lead to the head.

use crate::chain::ChannelEntry;
use crate::graph::{GraphBundle, GraphChannel, GraphEntry};
use crate::ranges::first_two;
use crate::view::{GraphView, InstalledBundle, Semantics, UpdateStep};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// A path of automatic updates.
#[derive(Clone, Debug)]
pub struct UpdatePath<'g> {
    /// The updates, one after the other. Each bundle once.
    pub steps: Vec<UpdateStep<'g>>,
    /// Why the path ends after them.
    pub end: PathEnd<'g>,
}

/// Why a path of updates ends at a bundle.
#[derive(Clone, Copy, Debug)]
pub enum PathEnd<'g> {
    /// The bundle is the head.
    Head,
    /// No entry of the channels of the view replaces or skips the bundle.
    Uncovered,
    /// Only an entry that OLM never chooses covers the bundle.
    Never(UnchosenEntry<'g>),
    /// The bundle has a successor, but OLM prefers the bundle to it.
    Kept {
        /// The best successor.
        instead_of: UpdateStep<'g>,
        /// Why OLM prefers the bundle.
        why: KeepReason,
    },
    /// The next update leads back to a bundle that the path has visited.
    Circle {
        /// That bundle.
        back_to: &'g GraphBundle,
    },
}

/// An entry that OLM never chooses.
#[derive(Clone, Copy, Debug)]
pub struct UnchosenEntry<'g> {
    /// The channel.
    pub channel: &'g GraphChannel,
    /// The entry.
    pub entry: &'g GraphEntry,
    /// Why OLM does not choose it.
    pub why: UnchosenReason<'g>,
}

/// Why OLM never chooses an entry.
#[derive(Clone, Copy, Debug)]
pub enum UnchosenReason<'g> {
    /// Another entry of the channel skips it. A Subscription may still name it as `startingCSV`.
    Skipped {
        /// The entry that skips it; the first by name if several do.
        by: &'g GraphEntry,
    },
    /// Its bundle has the property `olm.deprecated`.
    Withdrawn,
    /// The chain of `replaces` does not lead to it.
    BesideChain,
}

/// Why OLM prefers a bundle to its successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// Its own `skipRange` holds its version, and it comes before its successors in the channel.
    OwnRange,
    /// Its successors are deprecated and it is not.
    Deprecated,
    /// Its successors are not newer.
    NotNewer,
}

/// A bundle from which updates do not lead to the head.
#[derive(Clone, Debug)]
pub struct Stranded<'g> {
    /// The bundle.
    pub bundle: &'g GraphBundle,
    /// The bundle at which updates from it end; the bundle itself if it has no update. For a cycle,
    /// the last bundle before updates lead back.
    pub at: &'g GraphBundle,
    /// How many updates lead there.
    pub steps: usize,
    /// Why updates end there.
    pub end: PathEnd<'g>,
}

impl<'g> GraphView<'g> {
    /// The path of automatic updates from the installed bundle, to the head or to where it ends.
    pub fn path(&self, installed: &InstalledBundle<'_>) -> UpdatePath<'g> {
        let mut steps: Vec<UpdateStep<'g>> = Vec::new();
        let head = self.head();
        if head.is_some_and(|head| *head.name == *installed.name) {
            return UpdatePath { steps, end: PathEnd::Head };
        }
        let mut visited = vec![false; self.graph.bundles.len()];
        if let Some(place) = self.graph.place_of(installed.name) {
            visited[place] = true;
        }
        let Some(first) = self.next(installed) else {
            return UpdatePath { steps, end: self.end(installed, &self.never_chosen_index()) };
        };
        let mut step = first;
        loop {
            if std::mem::replace(&mut visited[step.entry.place], true) {
                return UpdatePath { steps, end: PathEnd::Circle { back_to: step.bundle } };
            }
            steps.push(step);
            if head.is_some_and(|head| head.name == step.bundle.name) {
                return UpdatePath { steps, end: PathEnd::Head };
            }
            let here = InstalledBundle::from(step.bundle);
            let next = self.next_of(step.entry.place).and_then(|rank| self.step(rank, &here));
            match next {
                Some(next) => step = next,
                None => {
                    return UpdatePath { steps, end: self.end(&here, &self.never_chosen_index()) };
                }
            }
        }
    }

    /// Whether updates lead to the head.
    pub fn reaches_head(&self, installed: &InstalledBundle<'_>) -> bool {
        matches!(self.path(installed).end, PathEnd::Head)
    }

    /// The bundles in the channels of the view from which updates do not lead to the head, oldest
    /// first. Visits each bundle once.
    pub fn stranded(&self) -> Vec<Stranded<'g>> {
        let Some(head) = self.ranks.first().map(|head| head.entry.place) else { return Vec::new() };
        let update_ends = self.update_ends(head);
        let bundles = &self.graph.bundles;
        let never_chosen_index = self.never_chosen_index();
        let mut known: HashMap<usize, PathEnd<'g>> = HashMap::new();
        let mut visited = vec![false; bundles.len()];
        let mut found = Vec::new();
        for entry in self.channels.iter().flat_map(|channel| &channel.entries) {
            if std::mem::replace(&mut visited[entry.place], true) {
                continue;
            }
            let (at, steps) = update_ends[entry.place];
            if at == head {
                continue;
            }
            let last = &*bundles[at];
            let end = *known
                .entry(at)
                .or_insert_with(|| self.end(&InstalledBundle::from(last), &never_chosen_index));
            found.push(Stranded { bundle: &entry.bundle, at: last, steps, end });
        }
        found.sort_by(|a, b| {
            let key = |stranded: &Stranded<'g>| {
                (&stranded.bundle.version, &stranded.bundle.release, &stranded.bundle.name)
            };
            key(a).cmp(&key(b))
        });
        found
    }

    /// The update that OLM chooses from the head: an older entry of the channel whose `skipRange`
    /// holds the version of the head. Updates then form a cycle. None in a normal channel.
    pub fn leaves_head(&self) -> Option<UpdateStep<'g>> {
        self.next(&InstalledBundle::from(self.head()?))
    }

    /// The entries in the channels of the view that OLM never chooses, by channel and name. None
    /// for extensions, which choose from all entries.
    pub fn never_chosen(&self) -> Vec<UnchosenEntry<'g>> {
        if self.semantics == Semantics::Extension {
            return Vec::new();
        }
        let mut found = Vec::new();
        for &channel in &self.channels {
            let skippers = skippers(channel);
            for entry in &channel.entries {
                let ranks = self.ranks_of[entry.place].iter();
                let mut channels = ranks.map(|&rank| &self.ranks[rank as usize].channel.name);
                if channels.any(|name| *name == channel.name) {
                    continue;
                }
                let why = match skippers.get(&*entry.name) {
                    Some(&by) => UnchosenReason::Skipped { by },
                    None if entry.bundle.withdrawn => UnchosenReason::Withdrawn,
                    None => UnchosenReason::BesideChain,
                };
                found.push(UnchosenEntry { channel, entry, why });
            }
        }
        found
    }

    fn never_chosen_index(&self) -> NeverChosenIndex<'g> {
        let list = self.never_chosen();
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, never) in list.iter().enumerate() {
            for name in never.entry.replaces.iter().chain(&never.entry.skips) {
                by_name.entry(name).or_default().push(at);
            }
        }
        let entries = (0u32..).zip(list.iter().map(|never| never.entry));
        let by_range = first_two(&self.graph.bundles, entries);
        NeverChosenIndex { list, by_name, by_range }
    }

    /// For each bundle of the graph, the place of the bundle at which updates end, and how many
    /// updates lead there.
    fn update_ends(&self, head: usize) -> Vec<(usize, usize)> {
        let mut update_ends: Vec<Option<(usize, usize)>> = vec![None; self.graph.bundles.len()];
        let mut positions: Vec<Option<usize>> = vec![None; update_ends.len()];
        for start in 0..update_ends.len() {
            let mut walk = Vec::new();
            let mut here = start;
            let (at, mut steps) = loop {
                if let Some(known) = update_ends[here] {
                    break known;
                }
                if let Some(first) = positions[here] {
                    // A cycle: updates end at the bundle before the one that the walk has visited.
                    let circle: Vec<usize> = walk.split_off(first);
                    for (at, &place) in circle.iter().enumerate() {
                        let before = circle[(at + circle.len() - 1) % circle.len()];
                        update_ends[place] = Some((before, circle.len() - 1));
                    }
                    break update_ends[here].unwrap_or((here, 0));
                }
                positions[here] = Some(walk.len());
                walk.push(here);
                let next = self.next_of(here).filter(|_| here != head);
                let Some(rank) = next else {
                    walk.pop();
                    update_ends[here] = Some((here, 0));
                    break (here, 0);
                };
                here = self.ranks[rank as usize].place();
            };
            for place in walk.into_iter().rev() {
                steps += 1;
                update_ends[place] = Some((at, steps));
            }
        }
        // Each walk sets all places that it visits.
        update_ends.into_iter().enumerate().map(|(place, end)| end.unwrap_or((place, 0))).collect()
    }

    /// Why updates end at a bundle that is not the head.
    fn end(
        &self,
        installed: &InstalledBundle<'_>,
        never_chosen_index: &NeverChosenIndex<'g>,
    ) -> PathEnd<'g> {
        if let Some(step) = self.next(installed) {
            return PathEnd::Circle { back_to: step.bundle };
        }
        if let Some(instead_of) = self.best_other(installed) {
            let here = self.graph.bundle(installed.name);
            let is_deprecated = |bundle: &GraphBundle| bundle.deprecation.is_some();
            let why = if self.semantics == Semantics::Classic {
                KeepReason::OwnRange
            } else if is_deprecated(instead_of.bundle) && !here.is_some_and(is_deprecated) {
                KeepReason::Deprecated
            } else {
                KeepReason::NotNewer
            };
            return PathEnd::Kept { instead_of, why };
        }
        never_chosen_index
            .first_covering(installed, self.position_of(installed))
            .map_or(PathEnd::Uncovered, PathEnd::Never)
    }
}

/// The entries that OLM never chooses, by the bundles that they replace and skip.
struct NeverChosenIndex<'g> {
    list: Vec<UnchosenEntry<'g>>,
    by_name: HashMap<&'g str, Vec<usize>>,
    /// For each bundle of the graph, the first two entries whose ranges hold its version.
    by_range: Vec<[Option<u32>; 2]>,
}

impl<'g> NeverChosenIndex<'g> {
    /// The first entry that covers the installed bundle and is of another bundle. `known` is the
    /// place of the installed bundle in the graph, if it has one.
    fn first_covering(
        &self,
        installed: &InstalledBundle<'_>,
        known: Option<usize>,
    ) -> Option<UnchosenEntry<'g>> {
        let is_other = |at: &usize| *self.list[*at].entry.name != *installed.name;
        let by_name =
            self.by_name.get(installed.name).into_iter().flatten().copied().find(is_other);
        let in_range = if let Some(place) = known {
            let by_range = self.by_range[place].into_iter().flatten().map(|at| at as usize);
            by_range.into_iter().find(is_other)
        } else {
            installed.version.and_then(|version| {
                let holds = |at: &usize| self.list[*at].entry.skips_version(version);
                (0..self.list.len()).find(|at| holds(at) && is_other(at))
            })
        };
        let first = by_name.into_iter().chain(in_range).min()?;
        self.list.get(first).copied()
    }
}

/// For each skipped name of a channel, the first entry by name that skips it.
fn skippers(channel: &GraphChannel) -> BTreeMap<&str, &GraphEntry> {
    let mut found = BTreeMap::new();
    for entry in &channel.entries {
        for name in entry.skips() {
            found.entry(name).or_insert(entry);
        }
    }
    found
}

impl fmt::Display for UnchosenReason<'_> {
    /// The reason as a property of the entry, behind "which is".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped { by } => write!(f, "skipped by {}", by.name),
            Self::Withdrawn => f.write_str("withdrawn (olm.deprecated)"),
            Self::BesideChain => f.write_str("not on the chain of replaces from the head"),
        }
    }
}

impl fmt::Display for PathEnd<'_> {
    /// The reason, where *it* is the bundle at which updates end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("it is the head"),
            Self::Uncovered => f.write_str("nothing replaces or skips it"),
            Self::Never(UnchosenEntry { entry, why, .. }) => {
                write!(f, "only {} replaces or skips it, which is {why}", entry.name)
            }
            Self::Kept { instead_of, why } => {
                let other = &instead_of.bundle.name;
                match why {
                    KeepReason::OwnRange => write!(
                        f,
                        "its own skipRange holds its version, which keeps it from {other}"
                    ),
                    KeepReason::Deprecated => write!(f, "its successor {other} is deprecated"),
                    KeepReason::NotNewer => write!(f, "its successor {other} is not newer"),
                }
            }
            Self::Circle { back_to } => write!(f, "updates lead back to {}", back_to.name),
        }
    }
}
