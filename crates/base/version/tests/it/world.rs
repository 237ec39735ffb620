//! A small world of versions, in which ends of sets meet and cross.

use mainstay_version::{IntervalSet, Version, VersionSet, parse_strict};
use proptest::prelude::*;
use std::sync::LazyLock;

/// Behind a hyphen, if not empty. The last of each line is there only as a witness: sets end at the
/// others, at their direct successors, or at releases.
const PRES: [&str; 11] = [
    "", //
    "0", "0.0", "0.0.0", //
    "a", "a.0", "a.0.0", //
    "a.b", "a.b.0", //
    "b", "b.0",
];

fn of(numbers: (u64, u64, u64), pre: &str) -> Version {
    let (major, minor, patch) = numbers;
    let hyphen = if pre.is_empty() { "" } else { "-" };
    parse_strict(&format!("{major}.{minor}.{patch}{hyphen}{pre}")).unwrap()
}

/// Every end that a set of this world can have, in ascending order. Two sets that differ differ in
/// one of these.
pub(crate) static WITNESSES: LazyLock<Vec<Version>> = LazyLock::new(|| {
    let numbers = (0..4).flat_map(|a| (0..3).flat_map(move |b| (0..4).map(move |c| (a, b, c))));
    let mut all: Vec<_> =
        numbers.flat_map(|numbers| PRES.iter().map(move |pre| of(numbers, pre))).collect();
    all.sort();
    all
});

pub(crate) fn version() -> impl Strategy<Value = Version> {
    let pre = prop::sample::select(vec!["", "", "", "0", "0.0", "a", "a.0", "a.b", "b"]);
    ((0u64..3, 0u64..2, 0u64..3), pre).prop_map(|(numbers, pre)| of(numbers, pre))
}

pub(crate) fn intervals() -> impl Strategy<Value = IntervalSet> {
    let simple = (version(), version(), 0..7).prop_map(|(v, w, kind)| match kind {
        0 => IntervalSet::exactly(v),
        1 => IntervalSet::at_least(v),
        2 => IntervalSet::above(&v),
        3 => IntervalSet::below(v),
        4 => IntervalSet::at_most(&v),
        5 => IntervalSet::between(v, Some(w)),
        _ => IntervalSet::exactly(v).complement(),
    });
    simple.prop_recursive(4, 16, 2, |inner| {
        (inner.clone(), inner, any::<bool>())
            .prop_map(|(a, b, and)| if and { a.intersection(&b) } else { a.union(&b) })
    })
}

pub(crate) fn versions() -> impl Strategy<Value = VersionSet> {
    prop_oneof![
        (intervals(), intervals()).prop_map(|(a, b)| VersionSet::new(a, b)),
        intervals().prop_map(VersionSet::from),
        intervals().prop_map(|set| VersionSet::new(set, IntervalSet::none())),
    ]
}
