//! Property test strategies: few versions, so that ends of sets meet and cross.

use mainstay_version::{IntervalSet, Version, VersionSet, parse_strict};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Pre-releases. The last of each line is only a witness: sets end at the others, at their direct
/// successors, or at releases.
const PRERELEASES: [&str; 11] = [
    "", //
    "0", "0.0", "0.0.0", //
    "a", "a.0", "a.0.0", //
    "a.b", "a.b.0", //
    "b", "b.0",
];

fn build_version(numbers: (u64, u64, u64), pre: &str) -> Version {
    let (major, minor, patch) = numbers;
    let hyphen = if pre.is_empty() { "" } else { "-" };
    parse_strict(&format!("{major}.{minor}.{patch}{hyphen}{pre}")).unwrap()
}

/// Every end that a generated set can have, in ascending order. Two different sets differ in one of
/// these.
pub(crate) static WITNESSES: LazyLock<Vec<Version>> = LazyLock::new(|| {
    let numbers = (0..4).flat_map(|a| (0..3).flat_map(move |b| (0..4).map(move |c| (a, b, c))));
    let mut all: Vec<_> = numbers
        .flat_map(|numbers| PRERELEASES.iter().map(move |pre| build_version(numbers, pre)))
        .collect();
    all.sort();
    all
});

pub(crate) fn version() -> impl Strategy<Value = Version> {
    let pre = prop::sample::select(vec!["", "", "", "0", "0.0", "a", "a.0", "a.b", "b"]);
    ((0u64..3, 0u64..2, 0u64..3), pre).prop_map(|(numbers, pre)| build_version(numbers, pre))
}

pub(crate) fn interval_sets() -> impl Strategy<Value = IntervalSet> {
    let simple = (version(), version(), 0..7).prop_map(|(v, w, kind)| match kind {
        0 => IntervalSet::single(v),
        1 => IntervalSet::at_least(v),
        2 => IntervalSet::above(&v),
        3 => IntervalSet::below(v),
        4 => IntervalSet::at_most(&v),
        5 => IntervalSet::between(v, Some(w)),
        _ => IntervalSet::single(v).complement(),
    });
    simple.prop_recursive(4, 16, 2, |inner| {
        (inner.clone(), inner, any::<bool>())
            .prop_map(|(a, b, and)| if and { a.intersection(&b) } else { a.union(&b) })
    })
}

pub(crate) fn version_sets() -> impl Strategy<Value = VersionSet> {
    prop_oneof![
        (interval_sets(), interval_sets()).prop_map(|(a, b)| VersionSet::new(a, b)),
        interval_sets().prop_map(VersionSet::from),
        interval_sets().prop_map(|set| VersionSet::new(set, IntervalSet::none())),
    ]
}
