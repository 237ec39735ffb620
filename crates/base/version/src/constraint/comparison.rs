//! One comparison, and the versions that satisfy it.

use super::text::{Comparator, Written};
use crate::{IntervalSet, Version};
use semver::Prerelease;

/// The longest version inside a constraint that is read, in bytes.
const LONGEST_VERSION: usize = 256;

/// Which numbers of a version are missing or wild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wild {
    Nothing,
    Patch,
    Minor,
    Everything,
}

/// A comparator and what it compares with.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    comparator: Comparator,
    wild: Wild,
    /// With zeros for wild numbers.
    version: Version,
    /// Whether a version can be equal to `version`; if not, it is a place between versions.
    exists: bool,
}

impl Comparison {
    /// None if the version cannot be read.
    pub(super) fn read(comparator: Comparator, written: &Written<'_>) -> Option<Self> {
        let is_wild = |text| matches!(text, "" | "x" | "X" | "*");
        let [major, minor, patch] = written.numbers;
        let wild = match () {
            () if is_wild(major) => Wild::Everything,
            () if is_wild(minor) => Wild::Minor,
            () if is_wild(patch) => Wild::Patch,
            () => Wild::Nothing,
        };
        // What stands behind a wild number is not looked at.
        let (read, length) = match wild {
            Wild::Everything => ([0, 0, 0], "0.0.0".len()),
            Wild::Minor => ([number(major)?, 0, 0], major.len() + ".0.0".len()),
            Wild::Patch => {
                ([number(major)?, number(minor)?, 0], major.len() + 1 + minor.len() + ".0".len())
            }
            Wild::Nothing => ([number(major)?, number(minor)?, number(patch)?], 0),
        };
        let length = match (wild, written.pre.len()) {
            (Wild::Nothing, _) => written.whole.len(),
            (_, 0) => length,
            (_, pre) => length + 1 + pre,
        };
        if length > LONGEST_VERSION {
            return None;
        }
        let (pre, exists) = prerelease(written.pre)?;
        let [major, minor, patch] = read;
        let version = semver::Version { pre, ..semver::Version::new(major, minor, patch) }.into();
        Some(Self { comparator, wild, version, exists })
    }

    pub(super) fn names_prerelease(&self) -> bool {
        self.version.is_prerelease()
    }

    /// The versions that satisfy the comparison. Only the releases among them count, or only the
    /// pre-releases, as asked for.
    pub(super) fn set(&self, prereleases: bool) -> IntervalSet {
        let version = &self.version;
        let semver::Version { major, minor, patch, .. } = *version.as_semver();
        let at_least = |end| IntervalSet::between(version.clone(), end);
        match (self.comparator, self.wild) {
            (Comparator::AtLeast, _) => IntervalSet::at_least(version.clone()),
            (Comparator::Below, _) => IntervalSet::below(version.clone()),
            (Comparator::Above, Wild::Nothing | Wild::Everything) => self.exactly_or(
                || IntervalSet::above(version),
                || IntervalSet::at_least(version.clone()),
            ),
            (Comparator::Above, Wild::Minor) => from(after_major(major)),
            (Comparator::Above, Wild::Patch) => from(after_minor(major, minor)),
            (Comparator::AtMost, Wild::Nothing) => self.exactly_or(
                || IntervalSet::at_most(version),
                || IntervalSet::below(version.clone()),
            ),
            (Comparator::AtMost, Wild::Minor) => until(after_major(major)),
            // Everything wild reads as 0.0 here.
            (Comparator::AtMost, Wild::Patch | Wild::Everything) => {
                until(after_minor(major, minor))
            }
            (Comparator::Equal, Wild::Nothing) => {
                self.exactly_or(|| IntervalSet::exactly(version.clone()), IntervalSet::none)
            }
            (Comparator::NotEqual, Wild::Minor) => {
                IntervalSet::between(first(major, 0), after_major(major)).complement()
            }
            (Comparator::NotEqual, Wild::Patch) if !self.names_prerelease() => {
                if prereleases {
                    IntervalSet::all()
                } else {
                    IntervalSet::between(first(major, minor), after_minor(major, minor))
                        .complement()
                }
            }
            (Comparator::NotEqual, _) => self.exactly_or(
                || IntervalSet::exactly(version.clone()).complement(),
                IntervalSet::all,
            ),
            (Comparator::Tilde | Comparator::Equal, Wild::Everything) => at_least(None),
            (Comparator::Tilde, Wild::Nothing) if (major, minor, patch) == (0, 0, 0) => {
                at_least(None)
            }
            (Comparator::Tilde | Comparator::Equal, Wild::Minor) => at_least(after_major(major)),
            (Comparator::Tilde | Comparator::Equal, Wild::Nothing | Wild::Patch) => {
                at_least(after_minor(major, minor))
            }
            (Comparator::Caret, wild) => {
                if major > 0 || wild == Wild::Minor {
                    at_least(after_major(major))
                } else if minor > 0 || wild == Wild::Patch {
                    at_least(after_minor(major, minor))
                } else {
                    at_least(version.release().successor())
                }
            }
        }
    }

    fn exactly_or(
        &self,
        exists: impl FnOnce() -> IntervalSet,
        between: impl FnOnce() -> IntervalSet,
    ) -> IntervalSet {
        if self.exists { exists() } else { between() }
    }
}

/// From the end of something on; nothing is behind an end that is none.
fn from(end: Option<Version>) -> IntervalSet {
    end.map_or_else(IntervalSet::none, IntervalSet::at_least)
}

/// Up to the end of something; everything is before an end that is none.
fn until(end: Option<Version>) -> IntervalSet {
    IntervalSet::between(Version::least(), end)
}

/// The first version of a minor version.
fn first(major: u64, minor: u64) -> Version {
    Version::new(major, minor, 0).first()
}

/// The first version behind a minor version; none if there is none.
fn after_minor(major: u64, minor: u64) -> Option<Version> {
    Version::new(major, minor, u64::MAX).successor()
}

/// The first version behind a major version; none if there is none.
fn after_major(major: u64) -> Option<Version> {
    after_minor(major, u64::MAX)
}

/// A number; leading zeros do not matter.
fn number(text: &str) -> Option<u64> {
    // Bars and wildcards among the digits are refused here, signs do not get here.
    text.parse().ok()
}

/// Reads a pre-release, and tells whether any version can have it.
///
/// A number that does not fit into 64 bits compares as a word in the original. No version has such
/// a number, so what matters is its place among words: the word with a hyphen behind it is the first
/// one from there on.
fn prerelease(text: &str) -> Option<(Prerelease, bool)> {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    // The parts hold letters, digits and hyphens: this finds numbers that start with a zero.
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
