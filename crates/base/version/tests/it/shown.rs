//! Sets in words: what a person reads is what was meant.

use crate::world::{intervals, versions};
use mainstay_version::{Constraint, IntervalSet, Range, VersionSet};
use proptest::prelude::*;

#[test]
fn ranges_are_shown_as_people_write_them() {
    for (range, shown) in [
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
        assert_eq!(Range::parse(range).unwrap().set().to_string(), shown, "{range}");
    }
}

#[test]
fn constraints_are_shown_as_what_they_hold() {
    for (constraint, shown) in [
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
        assert_eq!(Constraint::parse(constraint).unwrap().set().to_string(), shown, "{constraint}");
    }
}

#[test]
fn ranges_of_any_length_are_read() {
    let count = 20_000;
    let versions: Vec<_> = (0..count).map(|patch| format!("1.0.{patch}")).collect();
    let range = Range::parse(&versions.join(" || ")).unwrap();
    assert_eq!(range.set().to_string(), format!("1.0.0 || {}", versions[1..].join(" || ")));
    let range = Range::parse(&format!("!{}", versions.join(" !"))).unwrap();
    assert_eq!(range.set().intervals().len(), count + 1);
    assert_eq!(range.set().to_string(), format!("!={}", versions.join(" !=")));
    assert!(Range::parse(&"1.x ".repeat(count)).is_ok());
    assert!(Range::parse(&" ".repeat(count)).is_err());
    assert!(Constraint::parse(&"1||".repeat(count)).is_err());
}

proptest! {
    #[test]
    fn the_words_for_a_set_are_a_range_that_holds_it(set in intervals()) {
        let words = set.to_string();
        let range = Range::parse(&words).unwrap();
        prop_assert_eq!(range.set(), &set, "{}", words);
    }

    #[test]
    fn the_words_for_releases_and_pre_releases_hold_them(set in versions()) {
        let words = set.to_string();
        let (releases, prereleases) = match words.split_once(", ") {
            Some((releases, prereleases)) => (releases, prereleases),
            None if words.contains("pre-release") => ("", &*words),
            None => (&*words, ""),
        };
        let any = VersionSet::all();
        let releases = match releases {
            "" | "no version" => IntervalSet::none(),
            "any release" | "any version" => any.releases().clone(),
            // Both languages read it alike.
            words => {
                let constraint = Constraint::parse(words).unwrap();
                prop_assert!(constraint.set().prereleases().is_empty());
                let range = VersionSet::from(Range::parse(words).unwrap().set().clone());
                prop_assert_eq!(constraint.set().releases(), range.releases());
                range.releases().clone()
            }
        };
        let prereleases = match (prereleases, &*words) {
            ("any pre-release", _) | (_, "any version") => IntervalSet::all(),
            ("", _) => IntervalSet::none(),
            (some, _) => {
                Range::parse(some.strip_prefix("pre-releases ").unwrap()).unwrap().set().clone()
            }
        };
        prop_assert_eq!(VersionSet::new(releases, prereleases), set, "{}", words);
    }

    #[test]
    fn a_constraint_means_what_its_parts_mean(
        groups in prop::collection::vec(prop::collection::vec(
            ("(|=|!=|<|>|<=|>=|~|\\^)", 0u64..3, "(\\.[012x](\\.[012x])?)?", "(|||-0|-rc)"),
            1..4,
        ), 1..4)
    ) {
        let words = |(operator, major, rest, pre): &(String, u64, String, String)| {
            format!("{operator}{major}{rest}{pre}")
        };
        let mut expected = VersionSet::none();
        for group in &groups {
            // Each comparison alone, beside one that holds everything and names a pre-release if
            // any of the group does.
            let named = group.iter().any(|part| !part.3.is_empty());
            let beside = if named { ">=0.0.0-0" } else { ">=0.0.0" };
            let mut all = VersionSet::all();
            for part in group {
                let alone = Constraint::parse(&format!("{beside}, {}", words(part))).unwrap();
                all = all.intersection(alone.set());
            }
            expected = expected.union(&all);
        }
        let groups: Vec<_> = groups
            .iter()
            .map(|group| group.iter().map(words).collect::<Vec<_>>().join(", "))
            .collect();
        let whole = Constraint::parse(&groups.join(" || ")).unwrap();
        prop_assert_eq!(whole.set(), &expected, "{}", whole.as_str());
    }

    #[test]
    fn pre_releases_are_left_out_and_nothing_else(
        groups in prop::collection::vec("(|=|!=|<|>|<=|>=|~|\\^)[0-2](\\.[012x](\\.[012x])?)?(|||-0|-rc)", 1..4)
    ) {
        let constraint = Constraint::parse(&groups.join(" || ")).unwrap();
        let wide = constraint.set_with_prereleases();
        prop_assert!(constraint.set().is_subset(&wide));
        if groups.iter().all(|group| group.contains('-')) {
            prop_assert_eq!(constraint.set(), &wide);
        }
        let lacking = wide.difference(constraint.set());
        prop_assert!(lacking.releases().is_empty());
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-0-9xXv.<>=!~^| a,*\\t\u{661}]{0,32}") {
        if let Ok(constraint) = Constraint::parse(&text) {
            prop_assert_eq!(constraint.as_str(), &text);
        }
        if let Ok(range) = Range::parse(&text) {
            prop_assert_eq!(range.as_str(), &text);
        }
    }
}
