//! The range language of catalogs: blanks mean *and*, `||` means *or*.

use crate::{IntervalSet, ParseVersionError, Version, parse_strict};
use mainstay_gocompat::quote;
use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::str::FromStr;

/// A set of versions as catalogs write it: `>=1.0.0 <2.0.0 !1.3.1 || 3.x`.
///
/// Comparators are `=`, `==`, `!`, `!=`, `>`, `>=`, `<`, `<=`, or nothing, which means equal.
/// Pre-releases are not special: `<1.0.0` contains `1.0.0-rc.1`. Wildcards `1.x` and `1.2.x` stand for
/// the numbers after the dots.
///
/// Quirks of upstream are part of the language, because all tools must read a published range alike:
/// single characters between blanks are ignored, `!1.2.x` contains nothing (it means *below 1.2.0 and
/// from 1.3.0*), `1.x.x` ends before 1.1.0, and any `x` makes a part a wildcard, also one inside a
/// pre-release.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    text: String,
    set: IntervalSet,
}

/// The text is not a range. Displays upstream's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The first alternative is empty.
    #[error("First element in range is '||'")]
    NothingFirst,
    /// The last alternative or the whole range is empty.
    #[error("Last element in range is '||'")]
    NothingLast,
    /// A part has no digit.
    #[error("Could not get version from string: {}", quote(.0))]
    NoVersion(String),
    /// A part starts with an unknown comparator.
    #[error(
        "Could not parse Range {}: Could not parse comparator {} in {}",
        quote(.part), quote(.comparator), quote(&[&**.comparator, .version].concat())
    )]
    Comparator {
        /// The part.
        part: String,
        /// The text in place of the comparator, without the blanks around it.
        comparator: String,
        /// The rest.
        version: String,
    },
    /// A part has an invalid version.
    #[error(
        "Could not parse Range {}: Could not parse version {} in {}: {source}",
        quote(.part), quote(.version), quote(&[&**.comparator, .version].concat())
    )]
    Version {
        /// The part.
        part: String,
        /// The comparator, without the blanks around it.
        comparator: String,
        /// The text in place of the version.
        version: String,
        /// The error.
        source: ParseVersionError,
    },
}

impl Range {
    /// Parses a range.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let parts = pieces(text).0;
        if parts.first().is_some_and(|part| part == OR) {
            return Err(RangeError::NothingFirst);
        }
        if parts.last().is_none_or(|part| part == OR) {
            return Err(RangeError::NothingLast);
        }
        // A group in the middle may be empty. Upstream accepts it and crashes on a comparison. In
        // Mainstay it contains nothing.
        let mut groups = Vec::new();
        let mut group = Group::default();
        for part in expand(parts)? {
            if part == OR {
                groups.push(mem::take(&mut group).set());
            } else {
                group.add(&part)?;
            }
        }
        let last = group.set();
        let set = if groups.is_empty() {
            last
        } else {
            groups.push(last);
            IntervalSet::union_all(groups)
        };
        Ok(Self { text: text.to_owned(), set })
    }

    /// Whether the range contains the version.
    pub fn contains(&self, version: &Version) -> bool {
        self.set.contains(version)
    }

    /// The versions of the range.
    pub const fn set(&self) -> &IntervalSet {
        &self.set
    }

    /// The parts of a range that the parser ignores. They are most likely mistakes.
    pub fn ignored_parts(text: &str) -> Vec<String> {
        pieces(text).1.into_iter().map(Cow::into_owned).collect()
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

/// The separator of alternatives.
const OR: &str = "||";

/// The parts of a range, and the ignored ones, which have fewer than two characters. Parts end at
/// blanks, except after `<`, `>` and `=`; blanks inside do not count.
fn pieces(text: &str) -> (Vec<Cow<'_, str>>, Vec<Cow<'_, str>>) {
    let (mut parts, mut ignored) = (Vec::new(), Vec::new());
    let mut add = |start: usize, end: usize| {
        let piece = &text[start..end];
        let piece = if piece.contains(' ') {
            Cow::Owned(piece.replace(' ', ""))
        } else {
            Cow::Borrowed(piece)
        };
        if start + 1 < end {
            parts.push(piece);
        } else if !piece.is_empty() {
            ignored.push(piece);
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
    (parts, ignored)
}

/// Splits a part into comparator and version.
fn split(part: &str) -> Result<(&str, &str), RangeError> {
    let at = part.find(is_digit).ok_or_else(|| RangeError::NoVersion(part.to_owned()))?;
    Ok((part[..at].trim(), &part[at..]))
}

/// Whether a character is a decimal digit of any script. A version begins at the first one, although
/// only ASCII digits are valid.
fn is_digit(c: char) -> bool {
    // The zero digits of all scripts, as of Unicode 15; nine digits follow each.
    const ZEROS: [u16; 37] = [
        0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
        0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
        0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
        0xff10,
    ];
    const ZEROS_ABOVE: [u32; 26] = [
        0x1_04a0, 0x1_0d30, 0x1_1066, 0x1_10f0, 0x1_1136, 0x1_11d0, 0x1_12f0, 0x1_1450, 0x1_14d0,
        0x1_1650, 0x1_16c0, 0x1_1730, 0x1_18e0, 0x1_1950, 0x1_1c50, 0x1_1d50, 0x1_1da0, 0x1_1f50,
        0x1_6a60, 0x1_6ac0, 0x1_6b50, 0x1_e140, 0x1_e2f0, 0x1_e4f0, 0x1_e950, 0x1_fbf0,
    ];
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    let code = u32::from(c);
    let tens = |zero: u32| (zero..zero + 10).contains(&code);
    c.is_numeric()
        && match code {
            0x1_d7ce..=0x1_d7ff => true,
            0x1_0000.. => ZEROS_ABOVE.iter().any(|&zero| tens(zero)),
            _ => ZEROS.iter().any(|&zero| tens(zero.into())),
        }
}

/// Replaces wildcards by comparisons.
fn expand(parts: Vec<Cow<'_, str>>) -> Result<Vec<Cow<'_, str>>, RangeError> {
    if !parts.iter().any(|part| part.contains('x')) {
        return Ok(parts);
    }
    let mut out: Vec<Cow<'_, str>> = Vec::with_capacity(parts.len() + 1);
    for part in parts {
        if !part.contains('x') {
            out.push(part);
            continue;
        }
        let (comparator, version) = split(&part)?;
        let start = wildcard_start(version);
        let end = || wildcard_end(version, &start);
        let (first, second) = match comparator {
            ">" => (format!(">={}", end()), None),
            ">=" => (format!(">={start}"), None),
            "<" => (format!("<{start}"), None),
            "<=" => (format!("<{}", end()), None),
            "" | "=" | "==" => (format!(">={start}"), Some(format!("<{}", end()))),
            "!" | "!=" => (format!("<{start}"), Some(format!(">={}", end()))),
            // Upstream drops an unknown comparator.
            _ => (start, None),
        };
        out.push(first.into());
        out.extend(second.map(Cow::Owned));
    }
    Ok(out)
}

/// The smallest version of a wildcard.
fn wildcard_start(version: &str) -> String {
    let flat = version.replacen(".x.x", ".x", 1).replacen(".x", ".0", 1);
    if flat.split('.').count() == 2 { format!("{flat}.0") } else { flat }
}

/// The smallest version above a wildcard; empty if there is no number to increment, which fails to parse
/// later.
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

/// The versions that satisfy all comparisons of a list.
struct Group {
    /// Whether there is no comparison yet; then no version satisfies the group.
    empty: bool,
    /// The lower end; none if every version is too small.
    from: Option<Version>,
    to: Option<Version>,
    missing: Vec<Version>,
}

impl Default for Group {
    fn default() -> Self {
        Self { empty: true, from: Some(Version::minimum()), to: None, missing: Vec::new() }
    }
}

impl Group {
    fn add(&mut self, part: &str) -> Result<(), RangeError> {
        let (comparator, version) = parse_comparison(part)?;
        self.empty = false;
        match comparator {
            ">" => self.at_least(version.successor()),
            ">=" => self.at_least(Some(version)),
            "<" => self.before(Some(version)),
            "<=" => self.before(version.successor()),
            "!" | "!=" => self.missing.push(version),
            _ => {
                self.before(version.successor());
                self.at_least(Some(version));
            }
        }
        Ok(())
    }

    fn at_least(&mut self, from: Option<Version>) {
        // None is above all versions here.
        self.from = self.from.take().and_then(|old| Some(old.max(from?)));
    }

    fn before(&mut self, to: Option<Version>) {
        self.to = match (self.to.take(), to) {
            (Some(old), Some(new)) => Some(old.min(new)),
            (old, new) => old.or(new),
        };
    }

    fn set(self) -> IntervalSet {
        let Some(from) = self.from.filter(|_| !self.empty) else { return IntervalSet::none() };
        let set = IntervalSet::between(from, self.to);
        if self.missing.is_empty() {
            return set;
        }
        set.difference(&IntervalSet::union_all(self.missing.into_iter().map(IntervalSet::single)))
    }
}

/// Parses a comparison.
fn parse_comparison(part: &str) -> Result<(&str, Version), RangeError> {
    let (comparator, text) = split(part)?;
    if !matches!(comparator, "" | "=" | "==" | "!" | "!=" | ">" | ">=" | "<" | "<=") {
        return Err(RangeError::Comparator {
            part: part.to_owned(),
            comparator: comparator.to_owned(),
            version: text.to_owned(),
        });
    }
    let version = parse_strict(text).map_err(|source| RangeError::Version {
        part: part.to_owned(),
        comparator: comparator.to_owned(),
        version: text.to_owned(),
        source,
    })?;
    Ok((comparator, version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contains(range: &str, version: &str) -> bool {
        Range::parse(range).unwrap().contains(&parse_strict(version).unwrap())
    }

    #[test]
    fn ranges_contain_the_same_versions_as_upstream() {
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
                assert!(contains(range, version), "{version} should be in {range}");
            }
            for version in outside.split_whitespace() {
                assert!(!contains(range, version), "{version} should not be in {range}");
            }
        }
    }

    #[test]
    fn ignored_parts_lists_what_the_parser_ignores() {
        for (range, dropped) in [
            (">=1.0.0 <2.0.0", &[][..]),
            ("> 1.0.0  || 2.x", &[]),
            ("1.0.0 - 2.0.0", &["-"]),
            (">=1.0.0 <", &["<"]),
            ("* x", &["*", "x"]),
            ("é >=1.0.0", &[]),
        ] {
            assert_eq!(Range::ignored_parts(range), dropped, "{range:?}");
        }
    }

    #[test]
    fn errors_have_the_texts_of_upstream() {
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
                ">\t1.0",
                "Could not parse Range \">\\t1.0\": Could not parse version \"1.0\" in \">1.0\": \
                 No Major.Minor.Patch elements found",
            ),
            (
                ">=²1.0.0",
                "Could not parse Range \">=²1.0.0\": Could not parse comparator \">=²\" in \
                 \">=²1.0.0\"",
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
        fn blanks_are_intersection_and_bars_are_union(
            a in 0u64..4, b in 0u64..4, c in 0u64..4, v in 0u64..4
        ) {
            let version = Version::new(v, 0, 0);
            let range = Range::parse(&format!(">={a}.0.0 <{b}.0.0 || {c}.0.0")).unwrap();
            prop_assert_eq!(range.contains(&version), (v >= a && v < b) || v == c);
        }
    }
}
