//! Rails: one line for many updates of one kind.
//!
//! A channel of a hundred bundles, whose releases each skip all earlier ones, has thousands of updates;
//! drawn one by one, they are unreadable. A rail is one line with a mark at each source bundle and an
//! exit at each target bundle. An exit takes every mark below it, so releases share a rail if each
//! skips all that the next older one skips.

use super::lanes::Lane;
use mainstay_updates::{Edge, GraphChannel};
use std::{collections::BTreeMap, ops::Range};

/// The number of latest rails that an exit is compared with. Releases that share a rail are near each
/// other.
const MAX_COMPARED: usize = 64;

/// Updates of one kind, drawn as one line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rail {
    /// `skips` or `skipRange`.
    pub(super) edge: Edge,
    /// The target bundles, newest first.
    pub(super) exits: Vec<Exit>,
    /// The source bundles.
    pub(super) marks: PositionSet,
}

/// A target bundle of updates.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// Its position in the lane.
    pub(super) at: usize,
    /// The source bundles of its updates.
    pub(super) from: PositionSet,
    /// The source bundles, and the bundles that it replaces.
    covers: PositionSet,
}

impl Rail {
    /// The first and the last position of the rail.
    pub(super) fn bounds(&self) -> (usize, usize) {
        let marks = self.marks.bounds();
        let exits = self.exits.iter().map(|exit| exit.at);
        let places = exits.chain(marks.into_iter().flat_map(|(first, last)| [first, last]));
        places.fold((usize::MAX, 0), |(first, last), at| (first.min(at), last.max(at)))
    }

    /// The marks from an exit down to the next one.
    pub(super) fn marks_of(&self, exit: usize) -> impl Iterator<Item = usize> {
        let lowest = self.exits.get(exit + 1).map_or(0, |next| next.at);
        let end = match exit {
            0 => usize::MAX,
            _ => self.exits.get(exit).map_or(0, |exit| exit.at),
        };
        self.marks.iter().filter(move |at| (lowest..end).contains(at))
    }

    /// Whether an exit can join below the others: it must take all that they take below it.
    fn can_join(&self, exit: &Exit) -> bool {
        let is_below = |last: &Exit| exit.at < last.at && last.covers.below(exit.at) == exit.covers;
        let all_older = exit.from.bounds().is_none_or(|(_, last)| last < exit.at);
        all_older && self.exits.last().is_some_and(is_below)
    }
}

/// The rails of a lane, for bundles with updates from several others.
pub(super) fn rails(lane: &Lane<'_>, channel: &GraphChannel) -> Vec<Rail> {
    let names = lane.bundles.iter().enumerate().map(|(at, bundle)| (bundle.name.as_str(), at));
    let places: BTreeMap<&str, usize> = names.collect();
    let versions =
        super::lanes::VersionIndex::of(lane.bundles.iter().map(|bundle| bundle.version.as_ref()));
    let mut found = Vec::new();
    for edge in [Edge::Skips, Edge::SkipRange] {
        let mut exits = Vec::new();
        for entry in channel.entries() {
            let Some(&at) = places.get(&*entry.name) else { continue };
            let replaced = entry.replaces.iter().filter_map(|name| places.get(&**name)).copied();
            let skipped = entry.skips.iter().filter_map(|name| places.get(&**name)).copied();
            let others =
                |from: Vec<usize>| from.into_iter().filter(|position| *position != at).collect();
            let covered: PositionSet = others(replaced.clone().chain(skipped.clone()).collect());
            let (from, covers): (PositionSet, PositionSet) = match (edge, &entry.skip_range) {
                (Edge::Skips, _) => {
                    let replaced: PositionSet = replaced.collect();
                    (others(skipped.filter(|at| !replaced.contains(*at)).collect()), covered)
                }
                (_, Some(range)) => {
                    let in_range: PositionSet = others(versions.positions_in(&range.set).collect());
                    if in_range.iter().all(|at| covered.contains(at)) {
                        continue;
                    }
                    (in_range.clone(), in_range)
                }
                (_, None) => continue,
            };
            exits.push(Exit { at, from, covers });
        }
        exits.sort_by_key(|exit| std::cmp::Reverse(exit.at));
        found.extend(join_exits(edge, exits));
    }
    // A single update is an arc.
    found.retain(|rail| rail.marks.count() > 1);
    found
}

/// Joins exits, newest first, into as few rails as possible.
fn join_exits(edge: Edge, exits: Vec<Exit>) -> Vec<Rail> {
    let mut rails: Vec<Rail> = Vec::new();
    for exit in exits.into_iter().filter(|exit| exit.from.count() > 0) {
        match rails.iter_mut().rev().take(MAX_COMPARED).find(|rail| rail.can_join(&exit)) {
            Some(rail) => {
                rail.marks = rail.marks.union(&exit.from);
                rail.exits.push(exit);
            }
            None => rails.push(Rail { edge, marks: exit.from.clone(), exits: vec![exit] }),
        }
    }
    rails
}

/// A set of positions, stored as ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PositionSet(Vec<Range<usize>>);

impl PositionSet {
    /// All positions, in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.0.iter().flat_map(Clone::clone)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    /// The first and the last position.
    pub(super) fn bounds(&self) -> Option<(usize, usize)> {
        Some((self.0.first()?.start, self.0.last()?.end - 1))
    }

    pub(super) fn contains(&self, at: usize) -> bool {
        let behind = self.0.partition_point(|run| run.end <= at);
        self.0.get(behind).is_some_and(|run| run.start <= at)
    }

    /// The positions below an end.
    fn below(&self, end: usize) -> Self {
        let runs = self.0.iter().take_while(|run| run.start < end);
        Self(runs.map(|run| run.start..run.end.min(end)).collect())
    }

    /// The union of two sets.
    fn union(&self, other: &Self) -> Self {
        let mut runs: Vec<Range<usize>> = self.0.iter().chain(&other.0).cloned().collect();
        runs.sort_by_key(|run| run.start);
        let mut out = Self::default();
        for run in runs {
            out.push(run);
        }
        out
    }

    /// Adds a range that starts no earlier than the last one.
    fn push(&mut self, run: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => self.0.push(run),
        }
    }
}

impl FromIterator<usize> for PositionSet {
    fn from_iter<I: IntoIterator<Item = usize>>(places: I) -> Self {
        let mut places: Vec<usize> = places.into_iter().collect();
        places.sort_unstable();
        let mut out = Self::default();
        for at in places {
            out.push(at..at + 1);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::{Edge, Exit, PositionSet, join_exits};

    fn exit(at: usize, from: &[usize], replaces: Option<usize>) -> Exit {
        let from: PositionSet = from.iter().copied().collect();
        let covers = from.iter().chain(replaces).collect();
        Exit { at, from, covers }
    }

    fn places(list: &[usize]) -> PositionSet {
        list.iter().copied().collect()
    }

    #[test]
    fn position_sets_merge_and_look_up_positions() {
        let some = places(&[7, 1, 2, 3, 3, 9]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [1, 2, 3, 7, 9]);
        assert_eq!((some.count(), some.bounds()), (5, Some((1, 9))));
        assert_eq!(some.below(8), places(&[1, 2, 3, 7]));
        assert_eq!(some.below(2), places(&[1]));
        assert_eq!(some.union(&places(&[0, 4, 8, 12])), places(&[0, 1, 2, 3, 4, 7, 8, 9, 12]));
        assert!(some.contains(3) && !some.contains(4) && !some.contains(0) && !some.contains(10));
    }

    #[test]
    fn releases_that_skip_all_earlier_ones_share_a_rail() {
        // Each release replaces the last one of the previous minor version, and skips all others.
        let exits = vec![
            exit(9, &[0, 1, 2, 3, 4, 5, 7, 8], Some(6)),
            exit(6, &[0, 1, 2, 4, 5], Some(3)),
            exit(3, &[0, 1, 2], None),
        ];
        let rails = join_exits(Edge::Skips, exits);
        assert_eq!(rails.len(), 1);
        assert_eq!(rails[0].exits.iter().map(|exit| exit.at).collect::<Vec<_>>(), [9, 6, 3]);
        assert_eq!(rails[0].marks, places(&[0, 1, 2, 3, 4, 5, 7, 8]));
        let marks: Vec<Vec<usize>> = (0..3).map(|at| rails[0].marks_of(at).collect()).collect();
        assert_eq!(marks, [vec![7, 8], vec![3, 4, 5], vec![0, 1, 2]]);
        assert_eq!(rails[0].bounds(), (0, 9));
    }

    #[test]
    fn releases_that_skip_other_bundles_have_rails_of_their_own() {
        let exits = vec![
            exit(9, &[0, 1, 7, 8], None),
            exit(6, &[0, 1, 2], None),
            // The newer release has a rail of its own.
            exit(5, &[1, 7], None),
        ];
        assert_eq!(join_exits(Edge::Skips, exits).len(), 3);
    }
}
