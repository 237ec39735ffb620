//! The meaning of the constraint language.

use super::*;
use crate::parse_strict;

fn allows(constraint: &str, version: &str) -> bool {
    VersionConstraint::parse(constraint).unwrap().contains(&parse_strict(version).unwrap())
}

/// Checks rows of equivalent constraints, allowed versions, and versions that are not allowed.
fn check(rows: &[(&str, &str, &str)]) {
    for (constraints, inside, outside) in rows {
        for constraint in constraints.split(" / ") {
            for version in inside.split_whitespace() {
                assert!(allows(constraint, version), "{version} should be in {constraint}");
            }
            for version in outside.split_whitespace() {
                assert!(!allows(constraint, version), "{version} should not be in {constraint}");
            }
        }
    }
}

/// VER-01…12 and AT-57 of the specification.
#[test]
fn constraints_allow_the_versions_that_the_documentation_says() {
    check(&[
        ("1.2.3 / =1.2.3 / = 1.2.3 / v1.2.3 / =v1.2.3+x", "1.2.3 1.2.3+2", "1.2.4 1.2.3-a"),
        ("!=1.2.3", "1.2.2 1.2.4", "1.2.3 1.2.3+2"),
        (">1.11.1", "1.11.2 2.0.0", "1.11.1"),
        ("1.11.x / 1.11 / 1.11.X / 1.11.* / =1.11", "1.11.0 1.11.9", "1.10.9 1.12.0"),
        ("9.x / 9 / 9.*.*", "9.0.0 9.9.9", "8.9.9 10.0.0"),
        (">=1.12.X / >=1.12 / => 1.12", "1.12.0 2.0.0", "1.11.9"),
        ("<=2.x / <=2 / =<2 / <3", "2.99.99 0.0.1", "3.0.0"),
        ("* / x / X / >=0.0.0 / >=*", "0.0.0 99.0.0", "1.0.0-a"),
        ("~1.11.0 / ~>1.11.0 / ~ 1.11.0", "1.11.0 1.11.9", "1.10.0 1.12.0"),
        ("~1 / ~1.x / ~>1.x.x", "1.0.0 1.99.0", "0.9.0 2.0.0"),
        ("~1.12 / ~1.12.x", "1.12.0 1.12.9", "1.11.9 1.13.0"),
        ("^0 / ^0.x", "0.0.0 0.99.0", "1.0.0"),
        ("^0.0 / ^0.0.x", "0.0.0 0.0.9", "0.1.0"),
        ("^0.0.3", "0.0.3", "0.0.2 0.0.4"),
        ("^0.2", "0.2.0 0.2.3 0.2.9", "0.1.9 0.3.0"),
        ("^0.2.3", "0.2.3 0.2.9", "0.2.2 0.3.0"),
        ("^1.2.x / ^1.2", "1.2.0 1.2.3 1.99.0", "1.1.9 2.0.0"),
        ("^1.2.3", "1.2.3 1.99.0", "1.2.2 2.0.0"),
        ("^2.x / ^2", "2.0.0 2.3.0 2.99.0", "1.9.9 3.0.0"),
        ("^2.3", "2.3.0 2.99.0", "2.2.9 3.0.0"),
        (">=1.11, <1.13 / >=1.11 <1.13 / >=1.11,<1.13", "1.11.0 1.12.9", "1.10.9 1.13.0"),
        (">1.15, <1.17", "1.16.0 1.16.2", "1.15.0 1.15.2 1.17.0"),
        ("<1.16", "1.15.9", "1.16.0"),
        ("1.2 - 2.0 / 1.2.0  -  2.0", "1.2.0 2.0.0 2.0.9", "1.1.9 2.1.0"),
        (">=1.2.3, <2.0.0 || >3.0.0", "1.5.0 3.0.1", "2.0.0 3.0.0 1.2.2"),
        ("1.0.0 - 1.1.0 || 3.0 - 4.0", "1.1.0 4.0.3", "1.1.1 2.0.0 4.1.0"),
    ]);
}

#[test]
fn an_alternative_allows_pre_releases_if_it_names_one() {
    check(&[
        (">=1.0.0", "1.0.0 1.0.1", "1.0.0-rc 1.0.1-rc"),
        (">=1.0.0-0", "1.0.0-0 1.0.0-rc 1.0.0 1.5.0-rc", "0.9.0"),
        ("~1.2.0-0 / ^1.2.x-0 <1.3.0-0", "1.2.0-0 1.2.0 1.2.9-x 1.2.9", "1.3.0-0 1.3.0 1.1.9"),
        (">1.0.0, <2.0.0-rc", "1.1.0-a 2.0.0-b", "1.0.0 1.0.0-a 2.0.0-rc 2.0.0"),
        ("!=1.2.x >0.0.0-0", "1.2.0-a 1.3.0 1.1.0", "1.2.0 1.2.9"),
        ("!=1.x >0.0.0-0", "0.9.0 2.0.0-a", "1.2.0-a 1.2.0"),
        ("<1.0.0 || >2.0.0-a", "0.9.0 2.0.0-b", "0.9.0-a 2.0.0-a"),
        ("=1.2.3-rc", "1.2.3-rc 1.2.3-rc+x", "1.2.3 1.2.3-rc.1"),
        ("=1.2-rc", "1.2.0-rc 1.2.0 1.2.5-a", "1.2.0-a 1.3.0-a"),
    ]);
}

#[test]
fn quirks_of_upstream_are_part_of_the_language() {
    check(&[
        ("<=*", "0.0.0 0.0.9", "0.1.0 1.0.0"),
        ("^*", "0.0.0", "0.0.1 0.1.0 1.0.0"),
        (">* / !=*", "0.0.1 1.0.0", "0.0.0"),
        ("<*", "", "0.0.0 1.0.0"),
        ("~0.0.0 / ~>0.0.0", "0.0.0 0.1.0 9.0.0", ""),
        ("~0.0.1", "0.0.1 0.0.9", "0.0.0 0.1.0"),
        ("x.9.1x / 1.x.1x || x", "1.0.0 9.0.0", ""),
        ("01.02.003", "1.2.3", "1.2.4"),
        ("1.0.0+01.x", "1.0.0", "1.0.1"),
        ("!=1.2.x-rc", "1.2.0 1.2.0-a 1.2.1-rc", "1.2.0-rc"),
        (
            "<1.0.0-a.18446744073709551616.z",
            "1.0.0-a.18446744073709551615 1.0.0-a.1 1.0.0-a.-z 0.9.0",
            "1.0.0-a.2a 1.0.0-a.18446744073709551616- 1.0.0-a.a 1.0.0",
        ),
        ("18446744073709551615", "18446744073709551615.0.0", "1.0.0"),
        (">18446744073709551615", "", "18446744073709551615.0.0"),
        ("!=18446744073709551615.18446744073709551615.x", "1.0.0", ""),
    ]);
    for empty in ["=1.0.0-18446744073709551616", ">18446744073709551615.18446744073709551615"] {
        assert!(VersionConstraint::parse(empty).unwrap().set().is_empty(), "{empty}");
    }
}

#[test]
fn errors_have_the_texts_of_upstream() {
    let long = format!(">=1.0.0{}", " ".repeat(506));
    let longest = format!(">=1.0.0{}", " ".repeat(505));
    assert!(VersionConstraint::parse(&longest).is_ok());
    let groups = |count: usize| vec!["1"; count].join("||");
    assert!(VersionConstraint::parse(&groups(32)).is_ok());
    let version = |length: usize| format!(">=1.0.0-{}", "a".repeat(length - "1.0.0-".len()));
    assert!(VersionConstraint::parse(&version(256)).is_ok());
    let improper = |text: &str| format!("improper constraint: {text}");
    for (constraint, error) in [
        ("", improper("\"\"")),
        (" ", improper("\" \"")),
        ("abc", improper("\"abc\"")),
        ("latest\n\"é\u{7}", improper("\"latest\\n\\\"é\\a\"")),
        ("==1.0.0", improper("\"==1.0.0\"")),
        ("> =1.0.0", improper("\"> =1.0.0\"")),
        ("1.2.3.4", improper("\"1.2.3.4\"")),
        ("1..2", improper("\"1..2\"")),
        ("1.2.3-", improper("\"1.2.3-\"")),
        ("1.2.3 -2", improper("\"1.2.3 -2\"")),
        (">=1<2", improper("\">=1<2\"")),
        ("1,", improper("\"1,\"")),
        ("1,,2", improper("\"1,,2\"")),
        (",1", improper("\",1\"")),
        ("1 || ", improper("\" \"")),
        ("|| 1", improper("\"\"")),
        ("1.0 - 2.0||3.0 - 4.0", improper("\"3.0 - 4.0\"")),
        ("1.0 || - 2.0", improper("\"1.0>= \"")),
        ("1 - 2 - 3 2 - 3", improper("\">= 1, <=>= 2, <= 3  2 - 3\"")),
        ("vx.1 || V1", improper("\" V1\"")),
        ("1|2", "constraint parser error".to_owned()),
        ("1x", "constraint parser error".to_owned()),
        ("1.2.xx", "constraint parser error".to_owned()),
        ("1.0.0-01", "constraint parser error".to_owned()),
        ("1.0.0-18446744073709551616.01", "constraint parser error".to_owned()),
        ("18446744073709551616", "constraint parser error".to_owned()),
        (&version(257), "constraint parser error".to_owned()),
        (&long, "constraint string is too long (max 512 bytes)".to_owned()),
        (&groups(33), "too many constraint groups (max 32)".to_owned()),
    ] {
        assert_eq!(
            VersionConstraint::parse(constraint).unwrap_err().to_string(),
            error,
            "{constraint:?}"
        );
    }
}
