//! Sets of versions, and the algebra on them.

use crate::Version;
use std::cmp::Ordering;

/// Versions from `from`, included, up to `to`, excluded; without `to` up to the greatest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interval {
    /// The smallest version inside.
    pub from: Version,
    /// The smallest version above; none if there is none.
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
    /// No version.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Every version.
    pub fn all() -> Self {
        Self::at_least(Version::least())
    }

    /// This version alone.
    pub fn exactly(version: Version) -> Self {
        let to = version.successor();
        Self(vec![Interval { from: version.without_build(), to }])
    }

    /// This version and those above.
    pub fn at_least(version: Version) -> Self {
        Self(vec![Interval { from: version.without_build(), to: None }])
    }

    /// Those above this version.
    pub fn above(version: &Version) -> Self {
        version.successor().map_or_else(Self::none, Self::at_least)
    }

    /// Those below this version.
    pub fn below(version: Version) -> Self {
        let from = Version::least();
        if version == from {
            return Self::none();
        }
        Self(vec![Interval { from, to: Some(version.without_build()) }])
    }

    /// This version and those below.
    pub fn at_most(version: &Version) -> Self {
        Self(vec![Interval { from: Version::least(), to: version.successor() }])
    }

    /// Versions from one, included, up to another, excluded; without the other up to the greatest.
    pub fn between(from: Version, to: Option<Version>) -> Self {
        let interval = Interval { from: from.without_build(), to: to.map(Version::without_build) };
        if interval.is_empty() { Self::none() } else { Self(vec![interval]) }
    }

    /// The versions of intervals whose lower ends ascend, and whose upper ends do.
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

    /// Whether no version is inside.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the version is inside.
    pub fn contains(&self, version: &Version) -> bool {
        self.holder(version).is_some()
    }

    /// The interval that holds the version.
    fn holder(&self, version: &Version) -> Option<&Interval> {
        // The last interval that starts at or below the version is the only one that can hold it.
        let after = self.0.partition_point(|interval| interval.from <= *version);
        self.0[..after].last().filter(|interval| interval.contains(version))
    }

    /// The versions that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut out = Vec::new();
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let from = (&a.from).max(&b.from);
            let to = least_end(a.to.as_ref(), b.to.as_ref());
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

    /// The versions that are in one of the sets at least.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::of_any_order(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The versions that are in one of these sets at least. In time `n log n` for all of their
    /// intervals, where one union after another would take `n²`.
    pub fn union_of(sets: impl IntoIterator<Item = Self>) -> Self {
        Self::of_any_order(sets.into_iter().flat_map(Self::into_intervals).collect())
    }

    fn of_any_order(mut intervals: Vec<Interval>) -> Self {
        intervals.sort_by(|a, b| a.from.cmp(&b.from));
        intervals.dedup_by(|next, last| {
            let meets = last.to.as_ref().is_none_or(|to| next.from <= *to);
            if meets && compare_ends(last.to.as_ref(), next.to.as_ref()).is_lt() {
                last.to = next.to.take();
            }
            meets
        });
        Self(intervals)
    }

    /// The versions that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        let mut out = Vec::with_capacity(self.0.len() + 1);
        let mut from = Some(Version::least());
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

    /// The versions that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// Whether every version of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        // Intervals of one set do not touch, so each must lie in a single one of the other.
        self.0.iter().all(|part| {
            other
                .holder(&part.from)
                .is_some_and(|whole| compare_ends(part.to.as_ref(), whole.to.as_ref()).is_le())
        })
    }

    /// Whether a version is in both sets.
    pub fn overlaps(&self, other: &Self) -> bool {
        // Of two intervals that meet, one holds the lower end of the other.
        self.0.iter().any(|interval| other.contains(&interval.from))
            || other.0.iter().any(|interval| self.contains(&interval.from))
    }

    /// The items whose versions are inside, of a list that ascends by version.
    pub fn select<'a, T>(
        &self,
        ascending: &'a [T],
        version: impl Fn(&T) -> &Version,
    ) -> impl Iterator<Item = &'a T> {
        self.slices(ascending, &version).into_iter().flatten()
    }

    /// The stretches of a list, ascending by version, that are inside.
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

/// Compares upper ends, where none is the greatest.
fn compare_ends(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn least_end<'a>(a: Option<&'a Version>, b: Option<&'a Version>) -> Option<&'a Version> {
    if compare_ends(a, b).is_le() { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_strict;

    #[test]
    fn neighbours_leave_no_gap() {
        let v = |text| parse_strict(text).unwrap();
        assert!(
            IntervalSet::above(&v("1.0.0"))
                .intersection(&IntervalSet::below(v("1.0.1-0")))
                .is_empty()
        );
        assert!(
            !IntervalSet::above(&v("1.0.0"))
                .intersection(&IntervalSet::below(v("1.0.1")))
                .is_empty()
        );
        assert_eq!(
            IntervalSet::below(v("1.0.0")).union(&IntervalSet::at_least(v("1.0.0"))),
            IntervalSet::all()
        );
        assert!(IntervalSet::below(Version::least()).is_empty());
    }
}
