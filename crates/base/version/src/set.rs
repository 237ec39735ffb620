//! Version sets with separate lists for releases and pre-releases.

use crate::{Interval, IntervalSet, Version};

/// A set of versions: one list of intervals for releases and one for pre-releases.
///
/// Ranges of catalogs treat both alike, constraints of extensions do not: `>=1.0.0` there contains
/// `2.0.0` but not `2.0.0-rc.1`. Such a set is not one list of intervals but a pair of lists. All
/// operations work on each list alone.
///
/// Equal sets are equal values, and only a set without versions is empty: the ends of the first list are
/// releases, those of the second are pre-releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VersionSet {
    releases: IntervalSet,
    prereleases: IntervalSet,
}

impl VersionSet {
    /// The releases of one set and the pre-releases of another.
    pub fn new(releases: IntervalSet, prereleases: IntervalSet) -> Self {
        Self {
            releases: with_release_ends(releases),
            prereleases: with_prerelease_ends(prereleases),
        }
    }

    /// The empty set.
    pub const fn none() -> Self {
        Self { releases: IntervalSet::none(), prereleases: IntervalSet::none() }
    }

    /// The set of all versions.
    pub fn all() -> Self {
        IntervalSet::all().into()
    }

    /// The releases of the set, as intervals between releases. Pre-releases in these intervals do not
    /// count.
    pub const fn releases(&self) -> &IntervalSet {
        &self.releases
    }

    /// The pre-releases of the set, as intervals between pre-releases. Releases in these intervals do
    /// not count.
    pub const fn prereleases(&self) -> &IntervalSet {
        &self.prereleases
    }

    /// The list that decides about a version.
    fn list_for(&self, version: &Version) -> &IntervalSet {
        if version.is_prerelease() { &self.prereleases } else { &self.releases }
    }

    /// Whether the set contains the version.
    pub fn contains(&self, version: &Version) -> bool {
        self.list_for(version).contains(version)
    }

    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.releases.is_empty() && self.prereleases.is_empty()
    }

    /// The versions in at least one of the sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        self.combine(other, IntervalSet::union)
    }

    /// The versions in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        self.combine(other, IntervalSet::intersection)
    }

    /// The versions in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.combine(other, IntervalSet::difference)
    }

    /// The versions that are not in the set.
    #[must_use]
    pub fn complement(&self) -> Self {
        Self::new(self.releases.complement(), self.prereleases.complement())
    }

    /// Whether the other set contains every version of this one.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.releases.is_subset(&other.releases) && self.prereleases.is_subset(&other.prereleases)
    }

    /// Whether at least one version is in both sets.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.releases.overlaps(&other.releases) || self.prereleases.overlaps(&other.prereleases)
    }

    /// The items whose versions are in the set, of a list in ascending order of versions.
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

    fn combine(
        &self,
        other: &Self,
        operation: fn(&IntervalSet, &IntervalSet) -> IntervalSet,
    ) -> Self {
        // The lowest end of a complement may be of the other kind; `new` corrects it.
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

/// The set with the same releases, and with releases as its ends.
fn with_release_ends(set: IntervalSet) -> IntervalSet {
    // The first release at or above a version: for a pre-release, its own release.
    let release =
        |version: Version| if version.is_prerelease() { version.release() } else { version };
    IntervalSet::ascending(
        set.into_intervals()
            .map(|Interval { from, to }| Interval { from: release(from), to: to.map(release) }),
    )
}

/// The set with the same pre-releases, and with pre-releases as its ends.
fn with_prerelease_ends(set: IntervalSet) -> IntervalSet {
    // The first pre-release at or above a version: for a release, its successor, if it has one.
    let prerelease = |version: Version| {
        if version.is_prerelease() { Some(version) } else { version.successor() }
    };
    IntervalSet::ascending(set.into_intervals().filter_map(|Interval { from, to }| {
        Some(Interval { from: prerelease(from)?, to: to.and_then(prerelease) })
    }))
}
