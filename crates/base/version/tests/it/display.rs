//! `Display` of version sets: the text has the same meaning as the set.

use crate::strategies::{interval_sets, version_sets};
use mainstay_version::{IntervalSet, Range, VersionConstraint, VersionSet};
use proptest::prelude::*;

#[test]
fn ranges_display_in_their_shortest_form() {
    for (range, text) in [
        (">=1.0.0 <2.0.0 || 3.1.0", ">=1.0.0 <2.0.0 || 3.1.0"),
        ("<3.0.0   >= 1.0.0 >=0.9.0", ">=1.0.0 <3.0.0"),
        (">1.0.0 <=2.0.0", ">1.0.0 <=2.0.0"),
        (">1.0.0-rc.1 <=2.0.0-rc.1", ">1.0.0-rc.1 <=2.0.0-rc.1"),
        ("4.1.x", ">=4.1.0 <4.2.0"),
        ("!1.3.1", "!=1.3.1"),
        (">=1.0.0 <2.0.0 !1.3.1 !1.4.0", ">=1.0.0 <2.0.0 !=1.3.1 !=1.4.0"),
        ("<1.0.0 || >1.0.0", "!=1.0.0"),
        ("<1.0.0 || >=1.0.0", ">=0.0.0-0"),
        ("<1.0.0 || 1.0.0", "<=1.0.0"),
        ("!1.2.x", "<0.0.0-0"),
        (">1.0.0 <1.0.1-0", "<0.0.0-0"),
        ("1.0.0+build || >3.0.0+y", "1.0.0 || >3.0.0"),
    ] {
        assert_eq!(Range::parse(range).unwrap().set().to_string(), text, "{range}");
    }
}

#[test]
fn constraints_display_the_versions_that_they_allow() {
    for (constraint, text) in [
        ("^1.2", ">=1.2.0 <2.0.0"),
        ("~1.2.3 || 2.0.0", ">=1.2.3 <1.3.0 || 2.0.0"),
        ("!=1.3.1 >1", ">=2.0.0"),
        ("!=1.3.1", "!=1.3.1"),
        (">1.2.3", ">=1.2.4"),
        ("<=1.2.3", "<1.2.4"),
        ("1.0 - 2.0", ">=1.0.0 <2.1.0"),
        ("*", "any release"),
        (">=0-0", "any version"),
        (">=1.2.0-rc.1 <2", ">=1.2.0 <2.0.0, pre-releases >=1.2.0-rc.1 <2.0.0"),
        (">=1.2.0-rc.1 <1.2.0", "pre-releases >=1.2.0-rc.1 <1.2.0"),
        ("1.2.0-rc.1", "pre-releases 1.2.0-rc.1"),
        ("!=1.2.x !=1.0.0-rc", "<1.2.0 || >=1.3.0, pre-releases !=1.0.0-rc"),
        ("<1 >2", "no version"),
    ] {
        assert_eq!(
            VersionConstraint::parse(constraint).unwrap().set().to_string(),
            text,
            "{constraint}"
        );
    }
}

#[test]
fn ranges_have_no_maximum_length() {
    let count = 20_000;
    let versions: Vec<_> = (0..count).map(|patch| format!("1.0.{patch}")).collect();
    let range = Range::parse(&versions.join(" || ")).unwrap();
    assert_eq!(range.set().to_string(), format!("1.0.0 || {}", versions[1..].join(" || ")));
    let range = Range::parse(&format!("!{}", versions.join(" !"))).unwrap();
    assert_eq!(range.set().intervals().len(), count + 1);
    assert_eq!(range.set().to_string(), format!("!={}", versions.join(" !=")));
    assert!(Range::parse(&"1.x ".repeat(count)).is_ok());
    assert!(Range::parse(&" ".repeat(count)).is_err());
    assert!(VersionConstraint::parse(&"1||".repeat(count)).is_err());
}

proptest! {
    #[test]
    fn the_text_of_an_interval_set_parses_as_the_same_set(set in interval_sets()) {
        let text = set.to_string();
        let range = Range::parse(&text).unwrap();
        prop_assert_eq!(range.set(), &set, "{}", text);
    }

    #[test]
    fn the_text_of_a_version_set_parses_as_the_same_set(set in version_sets()) {
        let text = set.to_string();
        let (releases, prereleases) = match text.split_once(", ") {
            Some((releases, prereleases)) => (releases, prereleases),
            None if text.contains("pre-release") => ("", &*text),
            None => (&*text, ""),
        };
        let any = VersionSet::all();
        let releases = match releases {
            "" | "no version" => IntervalSet::none(),
            "any release" | "any version" => any.releases().clone(),
            // Both languages give it the same meaning.
            text => {
                let constraint = VersionConstraint::parse(text).unwrap();
                prop_assert!(constraint.set().prereleases().is_empty());
                let range = VersionSet::from(Range::parse(text).unwrap().set().clone());
                prop_assert_eq!(constraint.set().releases(), range.releases());
                range.releases().clone()
            }
        };
        let prereleases = match (prereleases, &*text) {
            ("any pre-release", _) | (_, "any version") => IntervalSet::all(),
            ("", _) => IntervalSet::none(),
            (some, _) => {
                Range::parse(some.strip_prefix("pre-releases ").unwrap()).unwrap().set().clone()
            }
        };
        prop_assert_eq!(VersionSet::new(releases, prereleases), set, "{}", text);
    }

    #[test]
    fn a_constraint_is_the_combination_of_its_comparisons(
        groups in prop::collection::vec(prop::collection::vec(
            ("(|=|!=|<|>|<=|>=|~|\\^)", 0u64..3, "(\\.[012x](\\.[012x])?)?", "(|||-0|-rc)"),
            1..4,
        ), 1..4)
    ) {
        let format = |(operator, major, rest, pre): &(String, u64, String, String)| {
            format!("{operator}{major}{rest}{pre}")
        };
        let mut expected = VersionSet::none();
        for group in &groups {
            // Each comparison alone, beside one that allows everything and names a pre-release if any
            // comparison of the group does.
            let names_prerelease = group.iter().any(|part| !part.3.is_empty());
            let beside = if names_prerelease { ">=0.0.0-0" } else { ">=0.0.0" };
            let mut all = VersionSet::all();
            for part in group {
                let alone = VersionConstraint::parse(&format!("{beside}, {}", format(part))).unwrap();
                all = all.intersection(alone.set());
            }
            expected = expected.union(&all);
        }
        let groups: Vec<_> = groups
            .iter()
            .map(|group| group.iter().map(format).collect::<Vec<_>>().join(", "))
            .collect();
        let whole = VersionConstraint::parse(&groups.join(" || ")).unwrap();
        prop_assert_eq!(whole.set(), &expected, "{}", whole.as_str());
    }

    #[test]
    fn set_with_prereleases_adds_only_pre_releases(
        groups in prop::collection::vec("(|=|!=|<|>|<=|>=|~|\\^)[0-2](\\.[012x](\\.[012x])?)?(|||-0|-rc)", 1..4)
    ) {
        let constraint = VersionConstraint::parse(&groups.join(" || ")).unwrap();
        let with_prereleases = constraint.set_with_prereleases();
        prop_assert!(
            constraint.set().is_subset(&with_prereleases),
            "{} is no part of {with_prereleases}",
            constraint.set()
        );
        if groups.iter().all(|group| group.contains('-')) {
            prop_assert_eq!(constraint.set(), &with_prereleases);
        }
        let lacking = with_prereleases.difference(constraint.set());
        prop_assert!(lacking.releases().is_empty(), "{with_prereleases} also has {lacking}");
    }

    #[test]
    fn any_text_parses_or_fails_without_panic(text in "[-0-9xXv.<>=!~^| a,*\\t\u{661}]{0,32}") {
        if let Ok(constraint) = VersionConstraint::parse(&text) {
            prop_assert_eq!(constraint.as_str(), &text);
        }
        if let Ok(range) = Range::parse(&text) {
            prop_assert_eq!(range.as_str(), &text);
        }
    }
}
