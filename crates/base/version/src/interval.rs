//! Interval sets of versions, and the set operations.

use crate::Version;
use std::cmp::Ordering;

/// The versions from `from`, inclusive, up to `to`, exclusive; without `to` up to the greatest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The smallest version of the interval.
    pub from: Version,
    /// The smallest version above the interval, if there is one.
    pub to: Option<Version>,
}

impl Interval {
    fn is_empty(&self) -> bool {
        self.to.as_ref().is_some_and(|to| *to <= self.from)
    }

    fn contains(&self, version: &Version) -> bool {
        *version >= self.from && self.to.as_ref().is_none_or(|to| version < to)
    }
}

/// A set of versions: disjoint intervals that do not touch, in ascending order. Their ends have no
/// build metadata.
///
/// Each set has exactly one such list, so equal sets are equal values and have the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct IntervalSet(Vec<Interval>);

impl IntervalSet {
    /// The empty set.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The set of all versions.
    pub fn all() -> Self {
        Self::at_least(Version::minimum())
    }

    /// The set of one version.
    pub fn single(version: Version) -> Self {
        let to = version.successor();
        Self(vec![Interval { from: version.without_build(), to }])
    }

    /// A version and those above it.
    pub fn at_least(version: Version) -> Self {
        Self(vec![Interval { from: version.without_build(), to: None }])
    }

    /// The versions above a version.
    pub fn above(version: &Version) -> Self {
        version.successor().map_or_else(Self::none, Self::at_least)
    }

    /// The versions below a version.
    pub fn below(version: Version) -> Self {
        let from = Version::minimum();
        if version == from {
            return Self::none();
        }
        Self(vec![Interval { from, to: Some(version.without_build()) }])
    }

    /// A version and those below it.
    pub fn at_most(version: &Version) -> Self {
        Self(vec![Interval { from: Version::minimum(), to: version.successor() }])
    }

    /// The versions from `from`, inclusive, up to `to`, exclusive; without `to` up to the greatest.
    pub fn between(from: Version, to: Option<Version>) -> Self {
        let interval = Interval { from: from.without_build(), to: to.map(Version::without_build) };
        if interval.is_empty() { Self::none() } else { Self(vec![interval]) }
    }

    /// The union of intervals whose lower ends and upper ends ascend.
    pub(crate) fn ascending(intervals: impl Iterator<Item = Interval>) -> Self {
        let mut out: Vec<Interval> = Vec::with_capacity(intervals.size_hint().1.unwrap_or(0));
        for next in intervals.filter(|interval| !interval.is_empty()) {
            match out.last_mut() {
                Some(last) if last.to.as_ref().is_none_or(|to| next.from <= *to) => {
                    last.to = next.to;
                }
                _ => out.push(next),
            }
        }
        Self(out)
    }

    /// The intervals, in ascending order.
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    pub(crate) fn into_intervals(self) -> impl Iterator<Item = Interval> {
        self.0.into_iter()
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the set contains the version.
    pub fn contains(&self, version: &Version) -> bool {
        self.containing_interval(version).is_some()
    }

    /// The interval that contains the version.
    fn containing_interval(&self, version: &Version) -> Option<&Interval> {
        // Only the last interval that starts at or below the version can contain it.
        let after = self.0.partition_point(|interval| interval.from <= *version);
        self.0[..after].last().filter(|interval| interval.contains(version))
    }

    /// The versions in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut out = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let from = (&a.from).max(&b.from);
            let to = lower_end(a.to.as_ref(), b.to.as_ref());
            if to.is_none_or(|to| from < to) {
                out.push(Interval { from: from.clone(), to: to.cloned() });
            }
            match compare_ends(a.to.as_ref(), b.to.as_ref()) {
                Ordering::Less => drop(left.next()),
                Ordering::Greater => drop(right.next()),
                Ordering::Equal => {
                    left.next();
                    right.next();
                }
            }
        }
        Self(out)
    }

    /// The versions in at least one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from_unsorted(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The versions in at least one of these sets. Takes time `n log n` for `n` intervals in total; one
    /// union after another would take `n²`.
    pub fn union_all(sets: impl IntoIterator<Item = Self>) -> Self {
        Self::from_unsorted(sets.into_iter().flat_map(Self::into_intervals).collect())
    }

    fn from_unsorted(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_by(|a, b| a.from.cmp(&b.from));
        intervals.dedup_by(|next, last| {
            let overlaps = last.to.as_ref().is_none_or(|to| next.from <= *to);
            if overlaps && compare_ends(last.to.as_ref(), next.to.as_ref()).is_lt() {
                last.to = next.to.take();
            }
            overlaps
        });
        Self(intervals)
    }

    /// The versions that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut out = Vec::with_capacity(self.0.len() + 1);
        let mut from = Some(Version::minimum());
        for interval in &self.0 {
            if let Some(from) = from.take()
                && from < interval.from
            {
                out.push(Interval { from, to: Some(interval.from.clone()) });
            }
            from.clone_from(&interval.to);
        }
        out.extend(from.map(|from| Interval { from, to: None }));
        Self(out)
    }

    /// The versions in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// Whether the other set contains every version of this one.
    pub fn is_subset(&self, other: &Self) -> bool {
        // The intervals of a set do not touch, so each must lie in one interval of the other set.
        self.0.iter().all(|part| {
            other
                .containing_interval(&part.from)
                .is_some_and(|whole| compare_ends(part.to.as_ref(), whole.to.as_ref()).is_le())
        })
    }

    /// Whether at least one version is in both sets.
    pub fn overlaps(&self, other: &Self) -> bool {
        // Of two overlapping intervals, one contains the lower end of the other.
        self.0.iter().any(|interval| other.contains(&interval.from))
            || other.0.iter().any(|interval| self.contains(&interval.from))
    }

    /// The items whose versions are in the set, of a list in ascending order of versions.
    pub fn select<'a, T>(
        &self,
        ascending: &'a [T],
        version: impl Fn(&T) -> &Version,
    ) -> impl Iterator<Item = &'a T> {
        self.slices(ascending, &version).into_iter().flatten()
    }

    /// The slices of a list, in ascending order of versions, that are in the set.
    pub(crate) fn slices<'a, T>(
        &self,
        ascending: &'a [T],
        version: &impl Fn(&T) -> &Version,
    ) -> Vec<&'a [T]> {
        let mut rest = ascending;
        let mut out = Vec::with_capacity(self.0.len());
        for Interval { from, to } in &self.0 {
            let start = rest.partition_point(|item| version(item) < from);
            rest = &rest[start..];
            let end = match to {
                Some(to) => rest.partition_point(|item| version(item) < to),
                None => rest.len(),
            };
            let (inside, behind) = rest.split_at(end);
            out.push(inside);
            rest = behind;
        }
        out
    }
}

/// Compares upper ends; none is the greatest.
fn compare_ends(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn lower_end<'a>(a: Option<&'a Version>, b: Option<&'a Version>) -> Option<&'a Version> {
    if compare_ends(a, b).is_le() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_strict;

    #[test]
    fn adjacent_sets_have_no_gap() {
        let version = |text| parse_strict(text).unwrap();
        assert!(
            IntervalSet::above(&version("1.0.0"))
                .intersection(&IntervalSet::below(version("1.0.1-0")))
                .is_empty()
        );
        assert!(
            !IntervalSet::above(&version("1.0.0"))
                .intersection(&IntervalSet::below(version("1.0.1")))
                .is_empty()
        );
        assert_eq!(
            IntervalSet::below(version("1.0.0")).union(&IntervalSet::at_least(version("1.0.0"))),
            IntervalSet::all()
        );
        assert!(IntervalSet::below(Version::minimum()).is_empty());
    }
}
