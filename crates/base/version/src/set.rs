//! Sets of versions that tell releases and pre-releases apart.

use crate::{Interval, IntervalSet, Version};

/// A set of versions, given by what it says about releases and what it says about pre-releases.
///
/// Ranges of catalogs treat both alike, constraints of extensions do not: `>=1.0.0` there holds
/// `2.0.0` but not `2.0.0-rc.1`. Such a set is no list of intervals; a pair of lists it is, and all
/// algebra works on each of the two alone.
///
/// Equal sets are equal values, and the set is empty only if there is no version in it at all: the
/// ends of the first list are releases, those of the second are pre-releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VersionSet {
    releases: IntervalSet,
    prereleases: IntervalSet,
}

impl VersionSet {
    /// The releases of one set and the pre-releases of another.
    pub fn new(releases: IntervalSet, prereleases: IntervalSet) -> Self {
        Self { releases: between_releases(releases), prereleases: between_prereleases(prereleases) }
    }

    /// No version.
    pub const fn none() -> Self {
        Self { releases: IntervalSet::none(), prereleases: IntervalSet::none() }
    }

    /// Every version.
    pub fn all() -> Self {
        IntervalSet::all().into()
    }

    /// What the set says about releases: intervals from a release up to a release. What lies
    /// between them and is no release does not count.
    pub const fn releases(&self) -> &IntervalSet {
        &self.releases
    }

    /// What the set says about pre-releases: intervals from a pre-release up to a pre-release. What
    /// lies between them and is a release does not count.
    pub const fn prereleases(&self) -> &IntervalSet {
        &self.prereleases
    }

    /// The list that decides about a version.
    fn about(&self, version: &Version) -> &IntervalSet {
        if version.is_prerelease() { &self.prereleases } else { &self.releases }
    }

    /// Whether the version is inside.
    pub fn contains(&self, version: &Version) -> bool {
        self.about(version).contains(version)
    }

    /// Whether no version is inside.
    pub const fn is_empty(&self) -> bool {
        self.releases.is_empty() && self.prereleases.is_empty()
    }

    /// The versions that are in one of the sets at least.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.each(other, IntervalSet::union)
    }

    /// The versions that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.each(other, IntervalSet::intersection)
    }

    /// The versions that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.each(other, IntervalSet::difference)
    }

    /// The versions that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        Self::new(self.releases.complement(), self.prereleases.complement())
    }

    /// Whether every version of this set is in the other.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.releases.is_subset(&other.releases) && self.prereleases.is_subset(&other.prereleases)
    }

    /// Whether a version is in both sets.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.releases.overlaps(&other.releases) || self.prereleases.overlaps(&other.prereleases)
    }

    /// The items whose versions are inside, of a list that ascends by version.
    pub fn select<'a, T>(
        &self,
        ascending: &'a [T],
        version: impl Fn(&T) -> &Version,
    ) -> impl Iterator<Item = &'a T> {
        self.releases
            .union(&self.prereleases)
            .slices(ascending, &version)
            .into_iter()
            .flatten()
            .filter(move |item| self.contains(version(item)))
    }

    fn each(&self, other: &Self, operation: fn(&IntervalSet, &IntervalSet) -> IntervalSet) -> Self {
        // Complements have ends of their own kind at the bottom only.
        Self::new(
            operation(&self.releases, &other.releases),
            operation(&self.prereleases, &other.prereleases),
        )
    }
}

impl From<IntervalSet> for VersionSet {
    fn from(set: IntervalSet) -> Self {
        Self::new(set.clone(), set)
    }
}

/// The set that holds the same releases and has releases as its ends.
fn between_releases(set: IntervalSet) -> IntervalSet {
    // The first release from here on: behind a pre-release its own release.
    let release =
        |version: Version| if version.is_prerelease() { version.release() } else { version };
    IntervalSet::ascending(
        set.into_intervals()
            .map(|Interval { from, to }| Interval { from: release(from), to: to.map(release) }),
    )
}

/// The set that holds the same pre-releases and has pre-releases as its ends.
fn between_prereleases(set: IntervalSet) -> IntervalSet {
    // The first pre-release from here on: behind a release its successor, if it has one.
    let prerelease = |version: Version| {
        if version.is_prerelease() { Some(version) } else { version.successor() }
    };
    IntervalSet::ascending(set.into_intervals().filter_map(|Interval { from, to }| {
        Some(Interval { from: prerelease(from)?, to: to.and_then(prerelease) })
    }))
}
