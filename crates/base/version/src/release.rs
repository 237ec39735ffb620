//! Bundle releases: they distinguish bundles of one version.

use crate::version::check_prerelease;
use crate::{ParseVersionError, Version};
use mainstay_gocompat::quote;
use semver::Prerelease;
use std::fmt;

/// The maximum length of a release in bytes.
const MAX_BYTES: usize = 20;

/// The release of a bundle: its version, packaged again. It has identifiers with dots between them,
/// which compare as those of pre-releases do: numbers by value, and below words.
///
/// As an `Option`, the order is that of catalogs: no release sorts before any release.
///
/// ```
/// use mainstay_version::{BundleRelease, parse_strict};
///
/// let release = |text| BundleRelease::of(&parse_strict(text).unwrap());
/// assert!(release("1.0.0+10") > release("1.0.0+9"));
/// assert!(release("1.0.0+1") > release("1.0.0"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BundleRelease(Prerelease);

impl BundleRelease {
    /// Reads a release: at most 20 bytes, identifiers of letters, digits and hyphens, numbers
    /// without leading zeros.
    pub fn parse(text: &str) -> Result<Self, ParseReleaseError> {
        if text.len() > MAX_BYTES {
            return Err(ParseReleaseError::TooLong(text.to_owned()));
        }
        let errors: Vec<(usize, ParseVersionError)> = text
            .split('.')
            .enumerate()
            .filter_map(|(segment, part)| Some((segment, check_prerelease(part).err()?)))
            .collect();
        match Prerelease::new(text) {
            Ok(release) if errors.is_empty() => Ok(Self(release)),
            _ => Err(ParseReleaseError::Segments { text: text.to_owned(), errors }),
        }
    }

    /// The release in the build metadata of a version, where bundles without a release field have it.
    /// None without metadata, or if it is not a valid release.
    pub fn of(version: &Version) -> Option<Self> {
        let build = version.as_semver().build.as_str();
        if build.is_empty() { None } else { Self::parse(build).ok() }
    }

    /// The release as written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for BundleRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a release.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseReleaseError {
    /// The text is longer than 20 bytes.
    #[error("invalid release {}: exceeds maximum length of {MAX_BYTES} characters", quote(.0))]
    TooLong(String),
    /// Some identifiers are invalid.
    #[error("invalid release {}: {}", quote(.text), segment_lines(.errors))]
    Segments {
        /// The release as written.
        text: String,
        /// The invalid identifiers, by position from 0, with the error of each.
        errors: Vec<(usize, ParseVersionError)>,
    },
}

fn segment_lines(errors: &[(usize, ParseVersionError)]) -> String {
    let lines: Vec<_> = errors.iter().map(|(at, why)| format!("segment {at}: {why}")).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_strict;

    #[test]
    fn releases_compare_as_pre_releases_and_none_is_the_smallest() {
        let ascending = ["", "0", "1", "2", "10", "10.0", "10.a", "a", "a.1", "b"];
        let releases: Vec<_> =
            ascending.iter().map(|text| BundleRelease::parse(text).ok()).collect();
        assert_eq!(releases[0], None);
        for pair in releases.windows(2) {
            assert!(pair[0] < pair[1], "{pair:?}");
        }
    }

    #[test]
    fn build_metadata_counts_if_it_is_a_valid_release() {
        for (version, release) in [
            ("1.0.0", None),
            ("1.0.0+1", Some("1")),
            ("1.0.0-rc.1+0.1700000000.p", Some("0.1700000000.p")),
            ("1.0.0+01", None),
            ("1.0.0+123456789.123456789", Some("123456789.123456789")),
            ("1.0.0+123456789.123456789.1", None),
        ] {
            let found = BundleRelease::of(&parse_strict(version).unwrap());
            assert_eq!(found.as_ref().map(BundleRelease::as_str), release, "{version}");
        }
    }

    #[test]
    fn invalid_releases_fail_with_the_texts_of_upstream() {
        for (text, why) in [
            ("", r#"invalid release "": segment 0: Prerelease is empty"#),
            (
                "..2",
                "invalid release \"..2\": segment 0: Prerelease is empty\nsegment 1: Prerelease is empty",
            ),
            (
                "a.01",
                r#"invalid release "a.01": segment 1: Numeric PreRelease version must not contain leading zeroes "01""#,
            ),
            (
                "a_b",
                r#"invalid release "a_b": segment 0: Invalid character(s) found in prerelease "a_b""#,
            ),
            (
                "123456789012345678901",
                r#"invalid release "123456789012345678901": exceeds maximum length of 20 characters"#,
            ),
        ] {
            assert_eq!(BundleRelease::parse(text).unwrap_err().to_string(), why);
        }
    }
}
