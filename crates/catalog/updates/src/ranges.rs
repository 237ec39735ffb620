//! Which bundles are in which ranges, without asking each about each.

use crate::graph::{Bundle, Entry};
use mainstay_version::Version;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Bundles by version, to be taken once.
pub(crate) struct Versions<'g>(BTreeMap<&'g Version, Vec<usize>>);

impl<'g> Versions<'g> {
    pub(crate) fn of(bundles: &'g [Arc<Bundle>]) -> Self {
        let mut by_version: BTreeMap<&Version, Vec<usize>> = BTreeMap::new();
        for (place, bundle) in bundles.iter().enumerate() {
            if let Some(version) = &bundle.version {
                by_version.entry(version).or_default().push(place);
            }
        }
        Self(by_version)
    }

    /// Takes what is in the range of an entry.
    pub(crate) fn take(&mut self, entry: &Entry, mut each: impl FnMut(usize)) {
        for bounds in bounds(entry) {
            while let Some((&version, _)) = self.0.range::<Version, _>(bounds).next() {
                self.0.remove(version).into_iter().flatten().for_each(&mut each);
            }
        }
    }
}

/// For each bundle the first two of a list of numbered entries whose ranges hold its version; the two
/// are of different bundles, so that one of them is another bundle than the one in question.
pub(crate) fn first_two<'g>(
    bundles: &[Arc<Bundle>],
    entries: impl Iterator<Item = (u32, &'g Entry)>,
) -> Vec<[Option<u32>; 2]> {
    /// The bundles of one version, until two entries hold it.
    #[derive(Default)]
    struct Waiting {
        places: Vec<usize>,
        /// Number and bundle of the first entry.
        first: Option<(u32, usize)>,
    }
    let mut waiting: BTreeMap<&Version, Waiting> = BTreeMap::new();
    for (place, bundle) in bundles.iter().enumerate() {
        if let Some(version) = &bundle.version {
            waiting.entry(version).or_default().places.push(place);
        }
    }
    let mut found = vec![[None; 2]; bundles.len()];
    let mut done: Vec<&Version> = Vec::new();
    for (number, entry) in entries {
        for bounds in bounds(entry) {
            for (&version, waiting) in waiting.range_mut::<Version, _>(bounds) {
                match waiting.first {
                    None => waiting.first = Some((number, entry.place)),
                    Some((_, place)) if place == entry.place => {}
                    Some((first, _)) => {
                        waiting.places.iter().for_each(|&place| {
                            found[place] = [Some(first), Some(number)];
                        });
                        done.push(version);
                    }
                }
            }
        }
        for version in done.drain(..) {
            waiting.remove(version);
        }
    }
    for Waiting { places, first } in waiting.into_values() {
        for place in places {
            found[place][0] = first.map(|(number, _)| number);
        }
    }
    found
}

/// The intervals of an entry's range.
fn bounds(entry: &Entry) -> impl Iterator<Item = (Bound<&Version>, Bound<&Version>)> {
    let intervals = entry.skip_range.iter().flat_map(|range| range.set.intervals());
    // An interval ends above where it begins.
    intervals.map(|interval| {
        let end = interval.to.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        (Bound::Included(&interval.from), end)
    })
}
