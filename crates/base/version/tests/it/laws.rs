//! Laws of the set operations, for interval sets and for version sets.

use crate::strategies::{WITNESSES, interval_sets, version, version_sets};
use mainstay_version::{IntervalSet, VersionSet};
use proptest::prelude::*;

/// Requires two expressions to be equal. A failure names both and the sets.
macro_rules! law {
    ($($set:ident),+: $one:expr, $other:expr $(,)?) => {
        prop_assert_eq!(
            $one, $other, "{} is {} for {}", stringify!($one), stringify!($other),
            [$(format!("{} = {}", stringify!($set), $set)),+].join(", ")
        )
    };
}

/// The laws for one type of sets.
macro_rules! laws {
    ($name:ident, $set:ty, $strategy:expr) => {
        mod $name {
            use super::*;

            proptest! {
                #[test]
                fn membership_commutes_with_every_operation(a in $strategy, b in $strategy) {
                    let union = a.union(&b);
                    let intersection = a.intersection(&b);
                    let difference = a.difference(&b);
                    let complement = a.complement();
                    for v in WITNESSES.iter() {
                        let (in_a, in_b) = (a.contains(v), b.contains(v));
                        prop_assert_eq!(union.contains(v), in_a || in_b, "{}", v);
                        prop_assert_eq!(intersection.contains(v), in_a && in_b, "{}", v);
                        prop_assert_eq!(difference.contains(v), in_a && !in_b, "{}", v);
                        prop_assert_eq!(complement.contains(v), !in_a, "{}", v);
                    }
                }

                #[test]
                fn predicates_agree_with_membership(a in $strategy, b in $strategy) {
                    let inside = |set: &$set| {
                        WITNESSES.iter().filter(|v| set.contains(v)).collect::<Vec<_>>()
                    };
                    let (in_a, in_b) = (inside(&a), inside(&b));
                    law!(a, b: a.is_empty(), in_a.is_empty());
                    law!(a, b: a == b, in_a == in_b);
                    law!(a, b: a.is_subset(&b), in_a.iter().all(|v| b.contains(v)));
                    law!(a, b: a.overlaps(&b), in_a.iter().any(|v| b.contains(v)));
                    let selected: Vec<_> = a.select(&WITNESSES, |version| version).collect();
                    law!(a, b: selected, in_a);
                }

                #[test]
                fn sets_are_a_boolean_algebra(a in $strategy, b in $strategy, c in $strategy) {
                    let (all, none) = (<$set>::all(), <$set>::none());
                    law!(a, b, c: a.union(&b), b.union(&a));
                    law!(a, b, c: a.intersection(&b), b.intersection(&a));
                    law!(a, b, c: a.union(&b).union(&c), a.union(&b.union(&c)));
                    law!(
                        a, b, c:
                        a.intersection(&b).intersection(&c),
                        a.intersection(&b.intersection(&c))
                    );
                    law!(
                        a, b, c:
                        a.intersection(&b.union(&c)),
                        a.intersection(&b).union(&a.intersection(&c))
                    );
                    law!(
                        a, b, c:
                        a.union(&b.intersection(&c)),
                        a.union(&b).intersection(&a.union(&c))
                    );
                    law!(
                        a, b, c:
                        a.union(&b).complement(),
                        a.complement().intersection(&b.complement())
                    );
                    law!(a, b, c: a.complement().complement(), a.clone());
                    law!(a, b, c: a.union(&a.intersection(&b)), a.clone());
                    law!(a, b, c: a.difference(&b), a.intersection(&b.complement()));
                    law!(a, b, c: a.union(&a.complement()), all.clone());
                    law!(a, b, c: a.intersection(&a.complement()), none.clone());
                    law!(a, b, c: (a.union(&none), a.intersection(&all)), (a.clone(), a.clone()));
                    law!(a, b, c: (a.union(&all), a.intersection(&none)), (all, none));
                }

                #[test]
                fn inclusion_is_a_partial_order(a in $strategy, b in $strategy) {
                    law!(a, b: a.is_subset(&a), true);
                    law!(a, b: a.intersection(&b).is_subset(&a), true);
                    law!(a, b: a.is_subset(&a.union(&b)), true);
                    law!(a, b: a.is_subset(&b) && b.is_subset(&a), a == b);
                    law!(a, b: a.is_subset(&b), a.difference(&b).is_empty());
                    law!(a, b: a.overlaps(&b), !a.intersection(&b).is_empty());
                }
            }
        }
    };
}

laws!(of_intervals, IntervalSet, interval_sets());
laws!(of_versions, VersionSet, version_sets());

proptest! {
    #[test]
    fn intervals_are_sorted_disjoint_and_do_not_touch(a in version_sets(), b in interval_sets()) {
        for set in [a.releases(), a.prereleases(), &b, &b.complement()] {
            for interval in set.intervals() {
                prop_assert!(interval.to.as_ref().is_none_or(|to| interval.from < *to));
            }
            for pair in set.intervals().windows(2) {
                prop_assert!(pair[0].to.as_ref().is_some_and(|to| *to < pair[1].from));
            }
        }
    }

    #[test]
    fn a_version_set_from_intervals_has_the_same_versions(a in interval_sets(), b in interval_sets()) {
        let pair = VersionSet::from(a.clone());
        for v in WITNESSES.iter() {
            prop_assert_eq!(pair.contains(v), a.contains(v));
        }
        prop_assert_eq!(VersionSet::from(a.union(&b)), pair.union(&b.clone().into()));
        prop_assert_eq!(VersionSet::from(a.intersection(&b)), pair.intersection(&b.into()));
        prop_assert_eq!(VersionSet::from(a.complement()), pair.complement());
    }

    #[test]
    fn union_all_equals_repeated_unions(sets in prop::collection::vec(interval_sets(), 0..6)) {
        let one_by_one = sets.iter().fold(IntervalSet::none(), |all, set| all.union(set));
        prop_assert_eq!(IntervalSet::union_all(sets), one_by_one);
    }

    #[test]
    fn nothing_lies_between_a_version_and_its_successor(a in version(), b in version()) {
        let next = a.successor().unwrap();
        prop_assert!(a < next);
        prop_assert!(b <= a || b >= next);
        prop_assert_eq!(
            IntervalSet::above(&a).intersection(&IntervalSet::below(next)),
            IntervalSet::none()
        );
    }

    #[test]
    fn releases_and_pre_releases_do_not_overlap(a in version_sets()) {
        let releases = VersionSet::new(a.releases().clone(), IntervalSet::none());
        let prereleases = VersionSet::new(IntervalSet::none(), a.prereleases().clone());
        prop_assert!(!releases.overlaps(&prereleases));
        prop_assert_eq!(releases.union(&prereleases), a);
    }
}
