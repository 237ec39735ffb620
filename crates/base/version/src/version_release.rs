//! Bundle versions with releases, in the order of OLM 1.

use crate::{BundleRelease, ParseReleaseError, ParseVersionError, Version, parse_strict};
use mainstay_gocompat::quote;
use std::fmt;

/// The version and the release of a bundle. They order by version, then by release; no release sorts
/// below any release.
///
/// A constraint applies to the version alone.
///
/// ```
/// use mainstay_version::VersionRelease;
///
/// let parse = |text| VersionRelease::parse_legacy(text).unwrap();
/// assert!(parse("1.0.0+2") > parse("1.0.0+1"));
/// assert!(parse("1.0.0+10") > parse("1.0.0+2"));
/// assert_eq!(parse("1.0.0+01"), parse("1.0.0+02"), "no releases, so they do not count");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionRelease {
    version: Version,
    release: Option<BundleRelease>,
}

/// The version or the release of a bundle with both fields is invalid. Displays upstream's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionReleaseError {
    /// The version is invalid.
    #[error("error parsing version {}: {source}", quote(.version))]
    Version {
        /// The version as written.
        version: String,
        /// The error.
        source: ParseVersionError,
    },
    /// The release is invalid.
    #[error("error parsing release {}: {source}", quote(.release))]
    Release {
        /// The release as written.
        release: String,
        /// The error.
        source: ParseReleaseError,
    },
}

impl VersionRelease {
    /// Parses the version of a bundle without a release field. Its build metadata is the release if it
    /// is a valid one; otherwise it stays build metadata, which has no meaning.
    pub fn parse_legacy(version: &str) -> Result<Self, ParseVersionError> {
        let version = parse_strict(version)?;
        Ok(match BundleRelease::of(&version) {
            None => Self { version, release: None },
            release => Self { version: version.without_build(), release },
        })
    }

    /// Parses the version and the release of a bundle with both fields. An empty release is none; build
    /// metadata of the version has no meaning.
    pub fn parse(version: &str, release: &str) -> Result<Self, VersionReleaseError> {
        let parsed = parse_strict(version).map_err(|source| VersionReleaseError::Version {
            version: version.to_owned(),
            source,
        })?;
        let release = match release {
            "" => None,
            _ => Some(BundleRelease::parse(release).map_err(|source| {
                VersionReleaseError::Release { release: release.to_owned(), source }
            })?),
        };
        Ok(Self { version: parsed, release })
    }

    /// The version, without build metadata that is a release.
    pub const fn version(&self) -> &Version {
        &self.version
    }

    /// The release, if there is one.
    pub const fn release(&self) -> Option<&BundleRelease> {
        self.release.as_ref()
    }
}

impl fmt::Display for VersionRelease {
    /// One text for both, as [`VersionRelease::parse_legacy`] reads it: the release, if there is one,
    /// replaces the build metadata.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.release {
            None => self.version.fmt(f),
            Some(release) => write!(f, "{}+{release}", self.version.clone().without_build()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_decide_between_equal_versions() {
        let ascending = [
            "0.9.0+9",
            "1.0.0-rc+1",
            "1.0.0",
            "1.0.0+1",
            "1.0.0+1.1",
            "1.0.0+2",
            "1.0.0+10",
            "1.0.0+a",
            "1.0.1",
        ];
        let read: Vec<_> =
            ascending.iter().map(|text| VersionRelease::parse_legacy(text).unwrap()).collect();
        assert!(read.is_sorted_by(|a, b| a < b));
        for (text, read) in ascending.iter().zip(&read) {
            assert_eq!(read.to_string(), *text);
        }
    }

    #[test]
    fn build_metadata_that_is_no_valid_release_stays() {
        for (text, version, release) in [
            ("1.0.0+1", "1.0.0", Some("1")),
            ("1.0.0-rc.1+0.1700000000.p", "1.0.0-rc.1", Some("0.1700000000.p")),
            ("1.0.0+01", "1.0.0+01", None),
            ("1.0.0+123456789012345678901", "1.0.0+123456789012345678901", None),
            ("1.0.0", "1.0.0", None),
        ] {
            let read = VersionRelease::parse_legacy(text).unwrap();
            assert_eq!(read.version().to_string(), version);
            assert_eq!(read.release().map(BundleRelease::as_str), release);
            assert_eq!(read.to_string(), text);
        }
    }

    #[test]
    fn a_release_field_leaves_build_metadata_as_it_is() {
        let both = VersionRelease::parse("1.0.0+git.abc", "2").unwrap();
        assert_eq!(both.version().to_string(), "1.0.0+git.abc");
        assert_eq!(both.to_string(), "1.0.0+2");
        assert_eq!(both, VersionRelease::parse_legacy("1.0.0+2").unwrap());
        let none = VersionRelease::parse("1.0.0+1", "").unwrap();
        assert_eq!(none.release(), None);
        assert!(none < VersionRelease::parse_legacy("1.0.0+1").unwrap());
        for (version, release, why) in [
            ("1.0", "1", r#"error parsing version "1.0": No Major.Minor.Patch elements found"#),
            (
                "1.0.0",
                "01",
                "error parsing release \"01\": invalid release \"01\": segment 0: \
                 Numeric PreRelease version must not contain leading zeroes \"01\"",
            ),
        ] {
            assert_eq!(VersionRelease::parse(version, release).unwrap_err().to_string(), why);
        }
    }
}
