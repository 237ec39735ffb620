//! Rails: many updates of one kind that are drawn as one line.
//!
//! A channel of a hundred bundles whose releases each skip all that came before has thousands of
//! updates, and one by one they are a blot. A rail says the same with a line: it has a mark at each
//! bundle that is updated and an exit at each bundle that is updated to. An exit takes every mark
//! below it, so releases of which one skips all that the next one does share a rail.

use super::lanes::Lane;
use mainstay_updates::{Channel, Edge};
use std::{collections::BTreeMap, ops::Range};

/// How many rails of a kind a further exit is held against. Releases that share one stand near each
/// other.
const COMPARED: usize = 64;

/// Updates of one kind that are drawn as one line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rail {
    /// `skips` or `skipRange`.
    pub(super) edge: Edge,
    /// The bundles that are updated to, newest first.
    pub(super) exits: Vec<Exit>,
    /// The bundles that are updated.
    pub(super) marks: Places,
}

/// A bundle that others are updated to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// Its place in the lane.
    pub(super) at: usize,
    /// The bundles that are updated to it.
    pub(super) from: Places,
    /// The same, and what it replaces.
    covers: Places,
}

impl Rail {
    /// The first and the last place that it touches.
    pub(super) fn ends(&self) -> (usize, usize) {
        let marks = self.marks.ends();
        let exits = self.exits.iter().map(|exit| exit.at);
        let places = exits.chain(marks.into_iter().flat_map(|(first, last)| [first, last]));
        places.fold((usize::MAX, 0), |(first, last), at| (first.min(at), last.max(at)))
    }

    /// The marks between an exit and the next one below it.
    pub(super) fn marks_of(&self, exit: usize) -> impl Iterator<Item = usize> {
        let lowest = self.exits.get(exit + 1).map_or(0, |next| next.at);
        let end = match exit {
            0 => usize::MAX,
            _ => self.exits.get(exit).map_or(0, |exit| exit.at),
        };
        self.marks.iter().filter(move |at| (lowest..end).contains(at))
    }

    /// Whether an exit may join below the others: they take nothing below it that it does not take.
    fn takes(&self, exit: &Exit) -> bool {
        let is_below = |last: &Exit| exit.at < last.at && last.covers.below(exit.at) == exit.covers;
        let all_older = exit.from.ends().is_none_or(|(_, last)| last < exit.at);
        all_older && self.exits.last().is_some_and(is_below)
    }
}

/// The rails of a lane: of bundles that are updated to from several others.
pub(super) fn rails(lane: &Lane<'_>, channel: &Channel) -> Vec<Rail> {
    let names = lane.bundles.iter().enumerate().map(|(at, bundle)| (bundle.name.as_str(), at));
    let places: BTreeMap<&str, usize> = names.collect();
    let versions =
        super::lanes::Versions::of(lane.bundles.iter().map(|bundle| bundle.version.as_ref()));
    let mut found = Vec::new();
    for edge in [Edge::Skips, Edge::SkipRange] {
        let mut exits = Vec::new();
        for entry in channel.entries() {
            let Some(&at) = places.get(&*entry.name) else { continue };
            let replaced = entry.replaces.iter().filter_map(|name| places.get(&**name)).copied();
            let skipped = entry.skips.iter().filter_map(|name| places.get(&**name)).copied();
            let others = |from: Vec<usize>| from.into_iter().filter(|from| *from != at).collect();
            let covered: Places = others(replaced.clone().chain(skipped.clone()).collect());
            let (from, covers): (Places, Places) = match (edge, &entry.skip_range) {
                (Edge::Skips, _) => {
                    let replaced: Places = replaced.collect();
                    (others(skipped.filter(|at| !replaced.has(*at)).collect()), covered)
                }
                (_, Some(range)) => {
                    let held: Places = others(versions.held(&range.set).collect());
                    if held.iter().all(|at| covered.has(at)) {
                        continue;
                    }
                    (held.clone(), held)
                }
                (_, None) => continue,
            };
            exits.push(Exit { at, from, covers });
        }
        exits.sort_by_key(|exit| std::cmp::Reverse(exit.at));
        found.extend(joined(edge, exits));
    }
    // One update alone is an arc.
    found.retain(|rail| rail.marks.count() > 1);
    found
}

/// Exits, newest first, on as few rails as take them.
fn joined(edge: Edge, exits: Vec<Exit>) -> Vec<Rail> {
    let mut rails: Vec<Rail> = Vec::new();
    for exit in exits.into_iter().filter(|exit| exit.from.count() > 0) {
        match rails.iter_mut().rev().take(COMPARED).find(|rail| rail.takes(&exit)) {
            Some(rail) => {
                rail.marks = rail.marks.with(&exit.from);
                rail.exits.push(exit);
            }
            None => rails.push(Rail { edge, marks: exit.from.clone(), exits: vec![exit] }),
        }
    }
    rails
}

/// A set of places, as the runs that it is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places(Vec<Range<usize>>);

impl Places {
    /// All of them, in their order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.0.iter().flat_map(Clone::clone)
    }

    pub(super) fn count(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    /// The first and the last one.
    pub(super) fn ends(&self) -> Option<(usize, usize)> {
        Some((self.0.first()?.start, self.0.last()?.end - 1))
    }

    pub(super) fn has(&self, at: usize) -> bool {
        let behind = self.0.partition_point(|run| run.end <= at);
        self.0.get(behind).is_some_and(|run| run.start <= at)
    }

    /// Those before a place.
    fn below(&self, end: usize) -> Self {
        let runs = self.0.iter().take_while(|run| run.start < end);
        Self(runs.map(|run| run.start..run.end.min(end)).collect())
    }

    /// Those of both.
    fn with(&self, other: &Self) -> Self {
        let mut runs: Vec<Range<usize>> = self.0.iter().chain(&other.0).cloned().collect();
        runs.sort_by_key(|run| run.start);
        let mut out = Self::default();
        for run in runs {
            out.push(run);
        }
        out
    }

    /// Adds a run that begins no earlier than those that are there.
    fn push(&mut self, run: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if run.start <= last.end => last.end = last.end.max(run.end),
            _ => self.0.push(run),
        }
    }
}

impl FromIterator<usize> for Places {
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
    use super::{Edge, Exit, Places, joined};

    fn exit(at: usize, from: &[usize], replaces: Option<usize>) -> Exit {
        let from: Places = from.iter().copied().collect();
        let covers = from.iter().chain(replaces).collect();
        Exit { at, from, covers }
    }

    fn places(list: &[usize]) -> Places {
        list.iter().copied().collect()
    }

    #[test]
    fn places_are_sets() {
        let some = places(&[7, 1, 2, 3, 3, 9]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [1, 2, 3, 7, 9]);
        assert_eq!((some.count(), some.ends()), (5, Some((1, 9))));
        assert_eq!(some.below(8), places(&[1, 2, 3, 7]));
        assert_eq!(some.below(2), places(&[1]));
        assert_eq!(some.with(&places(&[0, 4, 8, 12])), places(&[0, 1, 2, 3, 4, 7, 8, 9, 12]));
        assert!(some.has(3) && !some.has(4) && !some.has(0) && !some.has(10));
    }

    #[test]
    fn releases_that_skip_all_before_them_share_a_rail() {
        // Each replaces the last of the minor version before it, and skips everything else.
        let exits = vec![
            exit(9, &[0, 1, 2, 3, 4, 5, 7, 8], Some(6)),
            exit(6, &[0, 1, 2, 4, 5], Some(3)),
            exit(3, &[0, 1, 2], None),
        ];
        let rails = joined(Edge::Skips, exits);
        assert_eq!(rails.len(), 1);
        assert_eq!(rails[0].exits.iter().map(|exit| exit.at).collect::<Vec<_>>(), [9, 6, 3]);
        assert_eq!(rails[0].marks, places(&[0, 1, 2, 3, 4, 5, 7, 8]));
        let marks: Vec<Vec<usize>> = (0..3).map(|at| rails[0].marks_of(at).collect()).collect();
        assert_eq!(marks, [vec![7, 8], vec![3, 4, 5], vec![0, 1, 2]]);
        assert_eq!(rails[0].ends(), (0, 9));
    }

    #[test]
    fn releases_that_skip_something_else_do_not() {
        let exits = vec![
            exit(9, &[0, 1, 7, 8], None),
            exit(6, &[0, 1, 2], None),
            // What is newer has a line of its own.
            exit(5, &[1, 7], None),
        ];
        assert_eq!(joined(Edge::Skips, exits).len(), 3);
    }
}
