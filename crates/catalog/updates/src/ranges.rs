//! Range index: which bundles have versions in which `skipRange`s, in n log n steps instead of one
//! test for each pair of a bundle and a range.

use crate::graph::{GraphBundle, GraphEntry};
use mainstay_version::Version;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Bundles by version; [`Self::take`] removes the bundles that it visits.
pub(crate) struct Versions<'g>(BTreeMap<&'g Version, Vec<usize>>);

impl<'g> Versions<'g> {
    pub(crate) fn of(bundles: &'g [Arc<GraphBundle>]) -> Self {
        let mut by_version: BTreeMap<&Version, Vec<usize>> = BTreeMap::new();
        for (place, bundle) in bundles.iter().enumerate() {
            if let Some(version) = &bundle.version {
                by_version.entry(version).or_default().push(place);
            }
        }
        Self(by_version)
    }

    /// Removes the bundles in the range of an entry and calls `each` with their places.
    pub(crate) fn take(&mut self, entry: &GraphEntry, mut each: impl FnMut(usize)) {
        for bounds in bounds(entry) {
            while let Some((&version, _)) = self.0.range::<Version, _>(bounds).next() {
                self.0.remove(version).into_iter().flatten().for_each(&mut each);
            }
        }
    }
}

/// For each bundle, the numbers of the first two entries whose ranges hold its version. The two
/// entries are of different bundles, so that at least one of them is of another bundle.
pub(crate) fn first_two<'g>(
    bundles: &[Arc<GraphBundle>],
    entries: impl Iterator<Item = (u32, &'g GraphEntry)>,
) -> Vec<[Option<u32>; 2]> {
    /// The bundles of one version, as long as fewer than two entries hold it.
    #[derive(Default)]
    struct PendingVersion {
        places: Vec<usize>,
        /// Number and bundle of the first entry.
        first: Option<(u32, usize)>,
    }
    let mut pending: BTreeMap<&Version, PendingVersion> = BTreeMap::new();
    for (place, bundle) in bundles.iter().enumerate() {
        if let Some(version) = &bundle.version {
            pending.entry(version).or_default().places.push(place);
        }
    }
    let mut found = vec![[None; 2]; bundles.len()];
    let mut complete: Vec<&Version> = Vec::new();
    for (number, entry) in entries {
        for bounds in bounds(entry) {
            for (&version, pending) in pending.range_mut::<Version, _>(bounds) {
                match pending.first {
                    None => pending.first = Some((number, entry.place)),
                    Some((_, place)) if place == entry.place => {}
                    Some((first, _)) => {
                        pending.places.iter().for_each(|&place| {
                            found[place] = [Some(first), Some(number)];
                        });
                        complete.push(version);
                    }
                }
            }
        }
        for version in complete.drain(..) {
            pending.remove(version);
        }
    }
    for PendingVersion { places, first } in pending.into_values() {
        for place in places {
            found[place][0] = first.map(|(number, _)| number);
        }
    }
    found
}

/// The intervals of an entry's range.
fn bounds(entry: &GraphEntry) -> impl Iterator<Item = (Bound<&Version>, Bound<&Version>)> {
    let intervals = entry.skip_range.iter().flat_map(|range| range.set.intervals());
    // An interval ends above where it begins.
    intervals.map(|interval| {
        let end = interval.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&interval.from), end)
    })
}
