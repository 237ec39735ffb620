//! Semantic versions, compared by precedence.

use mainstay_gocompat::quote;
use semver::{BuildMetadata, Prerelease};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A semantic version.
///
/// Equality, order and hash follow precedence: `1.0.0+a` equals `1.0.0+b`. The text keeps the build
/// metadata.
#[derive(Clone, Debug)]
pub struct Version(semver::Version);

impl Version {
    /// A release version without build metadata.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self(semver::Version::new(major, minor, patch))
    }

    /// The same version as a `semver::Version`, whose `Ord` also compares build metadata.
    pub const fn as_semver(&self) -> &semver::Version {
        &self.0
    }

    /// Whether this is a pre-release.
    pub fn is_prerelease(&self) -> bool {
        !self.0.pre.is_empty()
    }

    /// The release with the same three numbers, without build metadata.
    #[must_use]
    pub const fn release(&self) -> Self {
        Self::new(self.0.major, self.0.minor, self.0.patch)
    }

    /// The same version without build metadata.
    #[must_use]
    pub fn without_build(self) -> Self {
        Self(semver::Version { build: BuildMetadata::EMPTY, ..self.0 })
    }

    /// The smallest version with the same three numbers, the pre-release `-0`.
    pub(crate) fn first_prerelease(&self) -> Self {
        Self(semver::Version { pre: zero(), ..self.release().0 })
    }

    /// The smallest version of all, `0.0.0-0`.
    pub fn minimum() -> Self {
        Self::new(0, 0, 0).first_prerelease()
    }

    /// The smallest version above this one; none for the greatest version.
    ///
    /// The successor of a pre-release has `.0` appended. That of a release is the pre-release `-0` of the
    /// next patch.
    pub fn successor(&self) -> Option<Self> {
        let semver::Version { major, minor, patch, ref pre, .. } = self.0;
        if !pre.is_empty() {
            // A pre-release stays valid with `.0` appended.
            let pre = Prerelease::new(&format!("{pre}.0")).ok()?;
            return Some(Self(semver::Version {
                pre,
                ..semver::Version::new(major, minor, patch)
            }));
        }
        let next = if let Some(patch) = patch.checked_add(1) {
            Self::new(major, minor, patch)
        } else if let Some(minor) = minor.checked_add(1) {
            Self::new(major, minor, 0)
        } else {
            Self::new(major.checked_add(1)?, 0, 0)
        };
        Some(next.first_prerelease())
    }

    /// The greatest version below this one: the release before `1.2.4-0` and the pre-release before
    /// `1.2.4-rc.0`. Most versions have none.
    pub(crate) fn predecessor(&self) -> Option<Self> {
        let semver::Version { major, minor, patch, ref pre, .. } = self.0;
        if *pre == zero() {
            return Some(Self::new(major, minor, patch.checked_sub(1)?));
        }
        let pre = Prerelease::new(pre.strip_suffix(".0")?).ok()?;
        Some(Self(semver::Version { pre, ..self.release().0 }))
    }
}

/// The pre-release `0`, the smallest one.
fn zero() -> Prerelease {
    Prerelease::new("0").unwrap_or(Prerelease::EMPTY)
}

impl From<semver::Version> for Version {
    fn from(version: semver::Version) -> Self {
        Self(version)
    }
}

impl From<Version> for semver::Version {
    fn from(version: Version) -> Self {
        version.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp_precedence(&other.0)
    }
}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.major, self.0.minor, self.0.patch, &self.0.pre).hash(state);
    }
}

/// The text is not a semantic version. Displays upstream's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseVersionError {
    /// The text is empty.
    #[error("Version string empty")]
    Empty,
    /// There are fewer than three parts.
    #[error("No Major.Minor.Patch elements found")]
    Parts,
    /// A version with fewer than three numbers has a pre-release or build metadata.
    #[error("Short version cannot contain PreRelease/Build meta data")]
    Short,
    /// One of the three numbers has other characters than digits.
    #[error("Invalid character(s) found in {part} number {}", quote(.text))]
    NotANumber {
        /// `major`, `minor` or `patch`.
        part: &'static str,
        /// The number as written.
        text: String,
    },
    /// One of the three numbers starts with a zero.
    #[error("{part} number must not contain leading zeroes {}", quote(.text))]
    LeadingZero {
        /// `Major`, `Minor` or `Patch`.
        part: &'static str,
        /// The number as written.
        text: String,
    },
    /// A number is missing.
    #[error("strconv.ParseUint: parsing {}: invalid syntax", quote(.0))]
    NoDigits(String),
    /// A number does not fit into 64 bits.
    #[error("strconv.ParseUint: parsing {}: value out of range", quote(.0))]
    TooLarge(String),
    /// A part of the pre-release is empty.
    #[error("Prerelease is empty")]
    PrereleaseEmpty,
    /// A part of the pre-release is a number that starts with a zero.
    #[error("Numeric PreRelease version must not contain leading zeroes {}", quote(.0))]
    PrereleaseLeadingZero(String),
    /// A part of the pre-release has other characters than letters, digits and hyphens.
    #[error("Invalid character(s) found in prerelease {}", quote(.0))]
    PrereleaseCharacters(String),
    /// A part of the build metadata is empty.
    #[error("Build meta data is empty")]
    BuildEmpty,
    /// A part of the build metadata has other characters than letters, digits and hyphens.
    #[error("Invalid character(s) found in build meta data {}", quote(.0))]
    BuildCharacters(String),
}

/// Parses exactly `major.minor.patch[-pre][+build]`.
pub fn parse_strict(text: &str) -> Result<Version, ParseVersionError> {
    if text.is_empty() {
        return Err(ParseVersionError::Empty);
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(ParseVersionError::Parts);
    };
    let major = number(major, "major", "Major")?;
    let minor = number(minor, "minor", "Minor")?;
    let (rest, build) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, pre) = match rest.split_once('-') {
        Some((patch, pre)) => (patch, Some(pre)),
        None => (rest, None),
    };
    let patch = number(patch, "patch", "Patch")?;
    for part in pre.into_iter().flat_map(|pre| pre.split('.')) {
        check_prerelease(part)?;
    }
    for part in build.into_iter().flat_map(|build| build.split('.')) {
        if part.is_empty() {
            return Err(ParseVersionError::BuildEmpty);
        }
        if !is_alphanumeric(part) {
            return Err(ParseVersionError::BuildCharacters(part.to_owned()));
        }
    }
    // The loops above checked both by the same rules.
    let pre = pre.unwrap_or_default();
    let build = build.unwrap_or_default();
    Ok(Version(semver::Version {
        major,
        minor,
        patch,
        pre: Prerelease::new(pre)
            .map_err(|_| ParseVersionError::PrereleaseCharacters(pre.to_owned()))?,
        build: BuildMetadata::new(build)
            .map_err(|_| ParseVersionError::BuildCharacters(build.to_owned()))?,
    }))
}

/// Parses a version and tolerates blanks around it, a leading `v`, missing numbers and leading zeros.
pub fn parse_tolerant(text: &str) -> Result<Version, ParseVersionError> {
    let text = text.trim();
    let text = text.strip_prefix('v').unwrap_or(text);
    let parts = || text.splitn(3, '.');
    let is_plain = |part: &str| part.len() < 2 || matches!(part.as_bytes()[0], b'1'..=b'9');
    if parts().count() == 3 {
        if parts().all(is_plain) {
            return parse_strict(text);
        }
    } else if parts().last().is_some_and(|last| last.contains(['+', '-'])) {
        return Err(ParseVersionError::Short);
    }
    let full: Vec<_> = parts().map(without_zeros).chain(["0".into(), "0".into()]).take(3).collect();
    parse_strict(&full.join("."))
}

/// A part of a version without superfluous leading zeros; it begins with a digit.
fn without_zeros(part: &str) -> Cow<'_, str> {
    if part.len() < 2 {
        return part.into();
    }
    let rest = part.trim_start_matches('0');
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest.into()
    } else {
        format!("0{rest}").into()
    }
}

fn number(text: &str, part: &'static str, title: &'static str) -> Result<u64, ParseVersionError> {
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ParseVersionError::NotANumber { part, text: text.to_owned() });
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(ParseVersionError::LeadingZero { part: title, text: text.to_owned() });
    }
    if text.is_empty() {
        return Err(ParseVersionError::NoDigits(text.to_owned()));
    }
    text.parse().map_err(|_| ParseVersionError::TooLarge(text.to_owned()))
}

pub(crate) fn check_prerelease(part: &str) -> Result<(), ParseVersionError> {
    if part.is_empty() {
        return Err(ParseVersionError::PrereleaseEmpty);
    }
    if part.bytes().all(|b| b.is_ascii_digit()) {
        if part.len() > 1 && part.starts_with('0') {
            return Err(ParseVersionError::PrereleaseLeadingZero(part.to_owned()));
        }
        return match part.parse::<u64>() {
            Ok(_) => Ok(()),
            Err(_) => Err(ParseVersionError::TooLarge(part.to_owned())),
        };
    }
    if is_alphanumeric(part) {
        Ok(())
    } else {
        Err(ParseVersionError::PrereleaseCharacters(part.to_owned()))
    }
}

fn is_alphanumeric(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_strict_fails_with_the_texts_of_upstream() {
        for (text, error) in [
            ("", "Version string empty"),
            ("1.0", "No Major.Minor.Patch elements found"),
            ("v1.0.0", "Invalid character(s) found in major number \"v1\""),
            ("01.0.0", "Major number must not contain leading zeroes \"01\""),
            ("1.00.0", "Minor number must not contain leading zeroes \"00\""),
            ("1.0.0.0", "Invalid character(s) found in patch number \"0.0\""),
            ("1.0.01", "Patch number must not contain leading zeroes \"01\""),
            (".0.0", "strconv.ParseUint: parsing \"\": invalid syntax"),
            (
                "1.0.99999999999999999999",
                "strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
            (
                "1.0.0-18446744073709551616",
                "strconv.ParseUint: parsing \"18446744073709551616\": value out of range",
            ),
            ("1.0.0-", "Prerelease is empty"),
            ("1.0.0-a..b", "Prerelease is empty"),
            ("1.0.0-01", "Numeric PreRelease version must not contain leading zeroes \"01\""),
            ("1.0.0-a_b", "Invalid character(s) found in prerelease \"a_b\""),
            ("1.0.0+", "Build meta data is empty"),
            ("1.0.0+a+b", "Invalid character(s) found in build meta data \"a+b\""),
        ] {
            assert_eq!(parse_strict(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn a_strictly_parsed_version_displays_its_text() {
        for text in ["1.2.3", "0.0.0-0", "1.0.0-rc.1+b.01", "1.0.0+a-b", "1.2.3--x"] {
            assert_eq!(parse_strict(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn parse_tolerant_completes_and_trims() {
        for (text, version) in [
            (" v1.4 ", "1.4.0"),
            ("1", "1.0.0"),
            ("1.04.2", "1.4.2"),
            ("00.0.0", "0.0.0"),
            ("1.2.003-rc1", "1.2.3-rc1"),
            ("1.2.0-rc1", "1.2.0-rc1"),
            ("v4.14.0+x", "4.14.0+x"),
        ] {
            assert_eq!(parse_tolerant(text).unwrap().to_string(), version, "{text}");
        }
        assert_eq!(parse_tolerant("1.2-a"), Err(ParseVersionError::Short));
        assert!(matches!(parse_tolerant("vv1.0.0"), Err(ParseVersionError::NotANumber { .. })));
        assert_eq!(parse_tolerant(""), Err(ParseVersionError::NoDigits(String::new())));
    }

    #[test]
    fn precedence_ignores_build_metadata() {
        let ordered = [
            "0.0.0-0",
            "0.9.0",
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-10.0",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1",
        ];
        let parsed: Vec<_> = ordered.iter().map(|text| parse_strict(text).unwrap()).collect();
        assert!(parsed.is_sorted_by(|a, b| a < b));
        assert_eq!(parse_strict("1.0.0+a").unwrap(), parse_strict("1.0.0+b").unwrap());
    }

    #[test]
    fn a_successor_is_the_next_version() {
        for (version, next) in [
            ("1.2.3", "1.2.4-0"),
            ("1.2.3-rc", "1.2.3-rc.0"),
            ("1.2.18446744073709551615", "1.3.0-0"),
            ("1.18446744073709551615.18446744073709551615", "2.0.0-0"),
        ] {
            let successor = parse_strict(version).unwrap().successor().unwrap();
            assert_eq!(successor.to_string(), next);
        }
        let last = Version::new(u64::MAX, u64::MAX, u64::MAX);
        assert_eq!(last.successor(), None);
    }
}
