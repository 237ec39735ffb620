//! The range language of catalogs: blanks mean *and*, `||` means *or*.

use crate::{IntervalSet, ParseError, Version, parse_strict, quote};
use std::fmt;
use std::str::FromStr;

/// A set of versions as catalogs write it: `>=1.0.0 <2.0.0 !1.3.1 || 3.x`.
///
/// Comparators are `=`, `==`, `!`, `!=`, `>`, `>=`, `<`, `<=`, or nothing, which means equal.
/// Pre-releases have no special treatment: `<1.0.0` holds `1.0.0-rc.1`. Wildcards `1.x` and `1.2.x`
/// stand for the numbers behind the dots.
///
/// Oddities of the original are part of the language, because a range in a published catalog must
/// be read in one way: single characters between blanks are passed over, `!1.2.x` holds nothing (it
/// reads as *below 1.2.0 and from 1.3.0*), `1.x.x` ends before 1.1.0, and any `x` makes a part a
/// wildcard, also one inside a pre-release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    text: String,
    set: IntervalSet,
}

/// The text is not a range. Displays the original's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// Nothing stands before the first `||`.
    #[error("First element in range is '||'")]
    NothingFirst,
    /// Nothing stands behind the last `||`, or anywhere.
    #[error("Last element in range is '||'")]
    NothingLast,
    /// A part has no digit.
    #[error("Could not get version from string: {}", quote(.0))]
    NoVersion(String),
    /// A part starts with something that is not a comparator.
    #[error(
        "Could not parse Range {}: Could not parse comparator {} in {}",
        quote(.part), quote(.comparator), quote(.part)
    )]
    Comparator {
        /// What stands where a comparator should.
        comparator: String,
        /// The part.
        part: String,
    },
    /// A part has a version that cannot be read.
    #[error(
        "Could not parse Range {}: Could not parse version {} in {}: {source}",
        quote(.part), quote(.version), quote(.part)
    )]
    Version {
        /// What stands where a version should.
        version: String,
        /// The part.
        part: String,
        /// What is wrong with it.
        source: ParseError,
    },
}

impl Range {
    /// Reads a range.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let parts = parts(text);
        let mut groups: Vec<Vec<String>> = Vec::new();
        for (at, group) in parts.split(|part| part == "||").enumerate() {
            if at == 0 && group.is_empty() && !parts.is_empty() {
                return Err(RangeError::NothingFirst);
            }
            groups.push(group.to_vec());
        }
        // A group in the middle may be empty. The original reads that and crashes when it compares;
        // here it holds nothing.
        if groups.last().is_none_or(Vec::is_empty) {
            return Err(RangeError::NothingLast);
        }
        for group in &mut groups {
            *group = expand(group)?;
        }
        let mut set = IntervalSet::none();
        for group in groups.iter().filter(|group| !group.is_empty()) {
            let mut all = IntervalSet::all();
            for part in group {
                all = all.intersection(&comparison(part)?);
            }
            set = set.union(&all);
        }
        Ok(Self { text: text.to_owned(), set })
    }

    /// Whether the version is inside.
    pub fn contains(&self, version: &Version) -> bool {
        self.set.contains(version)
    }

    /// The versions inside.
    pub const fn set(&self) -> &IntervalSet {
        &self.set
    }

    /// The parts of a range that reading it passes over: whoever wrote them meant something else.
    pub fn passed_over(text: &str) -> Vec<String> {
        pieces(text).1
    }

    /// The range as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Range {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        Self::parse(text)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Splits at blanks, except behind `<`, `>` and `=`, and drops parts of fewer than two characters.
fn parts(text: &str) -> Vec<String> {
    pieces(text).0
}

/// The parts of a range, and those that are dropped.
fn pieces(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut kept, mut dropped) = (Vec::new(), Vec::new());
    let mut add = |start: usize, end: usize| {
        let piece = text[start..end].replace(' ', "");
        if start + 1 < end {
            kept.push(piece);
        } else if !piece.is_empty() {
            dropped.push(piece);
        }
    };
    let (mut start, mut last) = (0, 0);
    for (at, byte) in text.bytes().enumerate() {
        if byte != b' ' {
            last = byte;
        } else if !matches!(last, b'<' | b'>' | b'=') {
            add(start, at);
            start = at + 1;
        }
    }
    add(start, text.len());
    (kept, dropped)
}

/// Splits a part into comparator and version.
fn split(part: &str) -> Result<(&str, &str), RangeError> {
    let at = part
        .find(|c: char| c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric()))
        .ok_or_else(|| RangeError::NoVersion(part.to_owned()))?;
    Ok((part[..at].trim(), &part[at..]))
}

/// Replaces wildcards by comparisons.
fn expand(group: &[String]) -> Result<Vec<String>, RangeError> {
    let mut out = Vec::with_capacity(group.len());
    for part in group {
        if !part.contains('x') {
            out.push(part.clone());
            continue;
        }
        let (comparator, version) = split(part)?;
        let start = wildcard_start(version);
        let end = || wildcard_end(version, &start);
        match comparator {
            ">" => out.push(format!(">={}", end())),
            ">=" => out.push(format!(">={start}")),
            "<" => out.push(format!("<{start}")),
            "<=" => out.push(format!("<{}", end())),
            "" | "=" | "==" => {
                out.push(format!(">={start}"));
                out.push(format!("<{}", end()));
            }
            "!" | "!=" => {
                out.push(format!("<{start}"));
                out.push(format!(">={}", end()));
            }
            // An unknown comparator is lost in the original.
            _ => out.push(start),
        }
    }
    Ok(out)
}

/// The first version that a wildcard stands for.
fn wildcard_start(version: &str) -> String {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if flat.split('.').count() == 2 { format!("{flat}.0") } else { flat }
}

/// The first version behind those that a wildcard stands for; empty if there is no number to count
/// up, which fails when it is read.
fn wildcard_end(version: &str, start: &str) -> String {
    let mut pieces = version.split('.');
    let counted = match (pieces.clone().count(), pieces.next_back()) {
        (3, Some("x")) => 1,
        (2, Some("x")) => 0,
        _ => return String::new(),
    };
    let mut numbers: Vec<String> = start.split('.').map(str::to_owned).collect();
    let Some(number) = numbers.get_mut(counted) else { return String::new() };
    match number.parse::<i64>() {
        Ok(value) => *number = value.wrapping_add(1).to_string(),
        Err(_) => return String::new(),
    }
    numbers.join(".")
}

fn comparison(part: &str) -> Result<IntervalSet, RangeError> {
    let (comparator, text) = split(part)?;
    if !matches!(comparator, "" | "=" | "==" | "!" | "!=" | ">" | ">=" | "<" | "<=") {
        return Err(RangeError::Comparator {
            comparator: comparator.to_owned(),
            part: format!("{comparator}{text}"),
        });
    }
    let version = parse_strict(text).map_err(|source| RangeError::Version {
        version: text.to_owned(),
        part: format!("{comparator}{text}"),
        source,
    })?;
    Ok(match comparator {
        ">" => IntervalSet::above(&version),
        ">=" => IntervalSet::at_least(version),
        "<" => IntervalSet::below(version),
        "<=" => IntervalSet::at_most(&version),
        "!" | "!=" => IntervalSet::exactly(version).complement(),
        _ => IntervalSet::exactly(version),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(range: &str, version: &str) -> bool {
        Range::parse(range).unwrap().contains(&parse_strict(version).unwrap())
    }

    #[test]
    fn ranges_hold_what_the_original_says() {
        for (range, inside, outside) in [
            ("1.2.3", "1.2.3 1.2.3+x", "1.2.4 1.2.3-a"),
            ("= 1.2.3", "1.2.3", "1.2.2"),
            ("==1.2.3", "1.2.3", "1.2.2"),
            ("!=1.2.3", "1.2.2", "1.2.3"),
            ("> 1.0.0 !1.2.1", "1.2.0 2.0.0", "1.0.0 1.2.1"),
            (">=1.0.0 <2.0.0", "1.0.0 2.0.0-rc.1", "0.9.9 2.0.0 1.0.0-rc.1"),
            ("<1.0.0 || >=2.0.0 <3.0.0", "0.1.0 2.5.0", "1.0.0 3.0.0"),
            ("1.x", "1.0.0 1.9.9 2.0.0-0", "0.9.0 2.0.0"),
            ("1.2.x", "1.2.0 1.2.9", "1.1.9 1.3.0"),
            ("1.x.x", "1.0.0 1.0.9", "1.1.0 2.0.0"),
            (">1.2.x", "1.3.0", "1.2.9"),
            ("<=1.2.x", "1.2.9 0.1.0", "1.3.0"),
            ("<1.2.x", "1.1.9", "1.2.0"),
            ("!1.2.x", "", "1.1.0 1.2.0 1.3.0"),
            ("!=1.x", "", "0.1.0 1.2.0 2.3.0"),
            ("1.0.0 - 2.0.0", "", "1.0.0 1.5.0 2.0.0"),
            (">=1.0.0 <", "1.5.0", "0.9.0"),
            ("> =1.0.0", "1.0.0", "0.9.0"),
            ("<1.0.0 || || >2.0.0", "0.9.0 2.1.0", "1.5.0"),
            (">=0.0.0-0", "0.0.0-0 9.9.9", ""),
        ] {
            for version in inside.split_whitespace() {
                assert!(holds(range, version), "{version} should be in {range}");
            }
            for version in outside.split_whitespace() {
                assert!(!holds(range, version), "{version} should not be in {range}");
            }
        }
    }

    #[test]
    fn what_is_passed_over_can_be_asked_for() {
        for (range, dropped) in [
            (">=1.0.0 <2.0.0", &[][..]),
            ("> 1.0.0  || 2.x", &[]),
            ("1.0.0 - 2.0.0", &["-"]),
            (">=1.0.0 <", &["<"]),
            ("* x", &["*", "x"]),
            ("é >=1.0.0", &[]),
        ] {
            assert_eq!(Range::passed_over(range), dropped, "{range:?}");
        }
    }

    #[test]
    fn errors_have_the_originals_texts() {
        for (range, error) in [
            ("", "Last element in range is '||'"),
            (" ", "Last element in range is '||'"),
            ("*", "Last element in range is '||'"),
            ("x", "Last element in range is '||'"),
            (">", "Last element in range is '||'"),
            (
                "<1.0.0 || || >2",
                "Could not parse Range \">2\": Could not parse version \"2\" in \">2\": No Major.Minor.Patch elements found",
            ),
            ("<1.0.0 ||", "Last element in range is '||'"),
            ("|| <1.0.0", "First element in range is '||'"),
            ("||", "First element in range is '||'"),
            ("abc", "Could not get version from string: \"abc\""),
            ("><", "Could not get version from string: \"><\""),
            ("1.x.1", "Could not get version from string: \"<\""),
            ("1.0.0-alphax", "Could not get version from string: \"<\""),
            (
                "^1.0.0",
                "Could not parse Range \"^1.0.0\": Could not parse comparator \"^\" in \"^1.0.0\"",
            ),
            (
                "=>1.0.0",
                "Could not parse Range \"=>1.0.0\": Could not parse comparator \"=>\" in \"=>1.0.0\"",
            ),
            (
                ">=1",
                "Could not parse Range \">=1\": Could not parse version \"1\" in \">=1\": \
                 No Major.Minor.Patch elements found",
            ),
            (
                "1.*",
                "Could not parse Range \"1.*\": Could not parse version \"1.*\" in \"1.*\": \
                 No Major.Minor.Patch elements found",
            ),
            (
                ">=１.0.0",
                "Could not parse Range \">=１.0.0\": Could not parse version \"１.0.0\" in \
                 \">=１.0.0\": Invalid character(s) found in major number \"１\"",
            ),
            (
                ">=1.0.0\n",
                "Could not parse Range \">=1.0.0\\n\": Could not parse version \"1.0.0\\n\" in \
                 \">=1.0.0\\n\": Invalid character(s) found in patch number \"0\\n\"",
            ),
            (
                "1.0.0.0",
                "Could not parse Range \"1.0.0.0\": Could not parse version \"1.0.0.0\" in \
                 \"1.0.0.0\": Invalid character(s) found in patch number \"0.0\"",
            ),
        ] {
            assert_eq!(Range::parse(range).unwrap_err().to_string(), error, "{range:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-0-9x.<>=!| a^,\\t\u{661}]{0,24}") {
            if let Ok(range) = Range::parse(&text) {
                prop_assert_eq!(range.as_str(), text);
            }
        }

        #[test]
        fn blanks_are_intersection_and_bars_are_union(
            a in 0u64..4, b in 0u64..4, c in 0u64..4, v in 0u64..4
        ) {
            let version = Version::new(v, 0, 0);
            let range = Range::parse(&format!(">={a}.0.0 <{b}.0.0 || {c}.0.0")).unwrap();
            prop_assert_eq!(range.contains(&version), (v >= a && v < b) || v == c);
        }
    }
}
