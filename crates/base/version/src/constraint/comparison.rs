//! Comparisons of a constraint, and the versions that satisfy them.

use super::text::{Comparator, VersionPattern};
use crate::{IntervalSet, Version};
use semver::Prerelease;

/// The maximum length of a version in a constraint, in bytes.
const MAX_VERSION_BYTES: usize = 256;

/// The numbers of a version that are missing or wildcards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wildcard {
    None,
    Patch,
    Minor,
    All,
}

/// A comparator and its version.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    comparator: Comparator,
    wildcard: Wildcard,
    /// The version, with zeros for wildcards.
    version: Version,
    /// Whether a version can be equal to `version`; if not, it is a position between versions.
    exists: bool,
}

impl Comparison {
    /// Parses the version of a comparison; none if it is invalid.
    pub(super) fn read(comparator: Comparator, pattern: &VersionPattern<'_>) -> Option<Self> {
        let is_wildcard = |text| matches!(text, "" | "x" | "X" | "*");
        let [major, minor, patch] = pattern.numbers;
        let wildcard = match () {
            () if is_wildcard(major) => Wildcard::All,
            () if is_wildcard(minor) => Wildcard::Minor,
            () if is_wildcard(patch) => Wildcard::Patch,
            () => Wildcard::None,
        };
        // Numbers after a wildcard are ignored.
        let (numbers, length) = match wildcard {
            Wildcard::All => ([0, 0, 0], "0.0.0".len()),
            Wildcard::Minor => ([number(major)?, 0, 0], major.len() + ".0.0".len()),
            Wildcard::Patch => {
                ([number(major)?, number(minor)?, 0], major.len() + 1 + minor.len() + ".0".len())
            }
            Wildcard::None => ([number(major)?, number(minor)?, number(patch)?], 0),
        };
        let length = match (wildcard, pattern.pre.len()) {
            (Wildcard::None, _) => pattern.whole.len(),
            (_, 0) => length,
            (_, pre) => length + 1 + pre,
        };
        if length > MAX_VERSION_BYTES {
            return None;
        }
        let (pre, exists) = prerelease(pattern.pre)?;
        let [major, minor, patch] = numbers;
        let version = semver::Version { pre, ..semver::Version::new(major, minor, patch) }.into();
        Some(Self { comparator, wildcard, version, exists })
    }

    pub(super) fn names_prerelease(&self) -> bool {
        self.version.is_prerelease()
    }

    /// The versions that satisfy the comparison. Only the pre-releases among them are valid, or, without
    /// `prereleases`, only the releases.
    pub(super) fn set(&self, prereleases: bool) -> IntervalSet {
        let version = &self.version;
        let semver::Version { major, minor, patch, .. } = *version.as_semver();
        let at_least = |end| IntervalSet::between(version.clone(), end);
        match (self.comparator, self.wildcard) {
            (Comparator::AtLeast, _) => IntervalSet::at_least(version.clone()),
            (Comparator::Below, _) => IntervalSet::below(version.clone()),
            (Comparator::Above, Wildcard::None | Wildcard::All) => self.if_exists_or(
                || IntervalSet::above(version),
                || IntervalSet::at_least(version.clone()),
            ),
            (Comparator::Above, Wildcard::Minor) => from(after_major(major)),
            (Comparator::Above, Wildcard::Patch) => from(after_minor(major, minor)),
            (Comparator::AtMost, Wildcard::None) => self.if_exists_or(
                || IntervalSet::at_most(version),
                || IntervalSet::below(version.clone()),
            ),
            (Comparator::AtMost, Wildcard::Minor) => until(after_major(major)),
            // A wildcard for all numbers means 0.0 here.
            (Comparator::AtMost, Wildcard::Patch | Wildcard::All) => {
                until(after_minor(major, minor))
            }
            (Comparator::Equal, Wildcard::None) => {
                self.if_exists_or(|| IntervalSet::single(version.clone()), IntervalSet::none)
            }
            (Comparator::NotEqual, Wildcard::Minor) => {
                IntervalSet::between(first(major, 0), after_major(major)).complement()
            }
            (Comparator::NotEqual, Wildcard::Patch) if !self.names_prerelease() => {
                if prereleases {
                    IntervalSet::all()
                } else {
                    IntervalSet::between(first(major, minor), after_minor(major, minor))
                        .complement()
                }
            }
            (Comparator::NotEqual, _) => self.if_exists_or(
                || IntervalSet::single(version.clone()).complement(),
                IntervalSet::all,
            ),
            (Comparator::Tilde | Comparator::Equal, Wildcard::All) => at_least(None),
            (Comparator::Tilde, Wildcard::None) if (major, minor, patch) == (0, 0, 0) => {
                at_least(None)
            }
            (Comparator::Tilde | Comparator::Equal, Wildcard::Minor) => {
                at_least(after_major(major))
            }
            (Comparator::Tilde | Comparator::Equal, Wildcard::None | Wildcard::Patch) => {
                at_least(after_minor(major, minor))
            }
            (Comparator::Caret, wildcard) => {
                if major > 0 || wildcard == Wildcard::Minor {
                    at_least(after_major(major))
                } else if minor > 0 || wildcard == Wildcard::Patch {
                    at_least(after_minor(major, minor))
                } else {
                    at_least(version.release().successor())
                }
            }
        }
    }

    fn if_exists_or(
        &self,
        exists: impl FnOnce() -> IntervalSet,
        between: impl FnOnce() -> IntervalSet,
    ) -> IntervalSet {
        if self.exists { exists() } else { between() }
    }
}

/// The versions from an end on; none if there is no end.
fn from(end: Option<Version>) -> IntervalSet {
    end.map_or_else(IntervalSet::none, IntervalSet::at_least)
}

/// The versions before an end; all if there is no end.
fn until(end: Option<Version>) -> IntervalSet {
    IntervalSet::between(Version::minimum(), end)
}

/// The smallest version of a minor version.
fn first(major: u64, minor: u64) -> Version {
    Version::new(major, minor, 0).first_prerelease()
}

/// The smallest version above a minor version, if there is one.
fn after_minor(major: u64, minor: u64) -> Option<Version> {
    Version::new(major, minor, u64::MAX).successor()
}

/// The smallest version above a major version, if there is one.
fn after_major(major: u64) -> Option<Version> {
    after_minor(major, u64::MAX)
}

/// Parses a number; leading zeros do not matter.
fn number(text: &str) -> Option<u64> {
    // Bars and wildcards between digits fail here; the scanner allows no signs.
    text.parse().ok()
}

/// Parses a pre-release, and says whether any version can have it.
///
/// A number that does not fit into 64 bits compares as a word in upstream. No version has such a number,
/// so only its position among words matters: the same word with a hyphen appended is the first one at or
/// above it.
fn prerelease(text: &str) -> Option<(Prerelease, bool)> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    // The parts have only letters, digits and hyphens: this fails for numbers with a leading zero.
    let pre = Prerelease::new(text).ok()?;
    let mut end = 0;
    for part in text.split('.').filter(|part| !part.is_empty()) {
        end += part.len();
        if is_number(part) && part.parse::<u64>().is_err() {
            return Some((Prerelease::new(&format!("{}-", &text[..end])).ok()?, false));
        }
        end += ".".len();
    }
    Some((pre, true))
}
