//! The constraint language of extensions: blanks and commas mean *and*, `||` means *or*.

mod comparison;
mod text;

use crate::{IntervalSet, Version, VersionSet};
use comparison::Comparison;
use mainstay_gocompat::quote;
use std::fmt;
use std::str::FromStr;

/// The maximum length of a constraint in bytes.
const MAX_BYTES: usize = 512;

/// The maximum number of alternatives.
const MAX_GROUPS: usize = 32;

/// A set of versions as `spec.source.catalog.version` of a `ClusterExtension` writes it:
/// `^1.2, !=1.3.1 || ~2.0.1`.
///
/// | Comparator | Meaning |
/// |---|---|
/// | none, `=` | this version; with missing numbers or wildcards like `~` |
/// | `!=`, `>`, `<`, `>=`, `=>`, `<=`, `=<` | as usual; `>1.2` begins at 1.3.0, `<=1.2` ends before it |
/// | `~`, `~>` | at least this version of the same minor version; `~1` the same major version |
/// | `^` | up to the next major version; below 1.0.0 the first number other than zero counts as major |
/// | `1.2 - 2.0` | `>=1.2 <=2.0` |
///
/// A number may be missing, or be `x`, `X` or `*`; a version may begin with `v`; build metadata does not
/// count. An alternative contains pre-releases only if it names one: `>=1.0.0` contains none,
/// `>=1.0.0-0` does.
///
/// The language is that of Masterminds/semver 3.5, which OLM 1 uses, with its quirks: `<=*` ends before
/// 0.1.0, `^*` is 0.0.0 alone, `!=*` is all but 0.0.0, `~0.0.0` has no upper end. There is one
/// difference: a pre-release after a wildcard patch, `!=1.2.x-rc`, excludes only `1.2.0-rc`, not the
/// `rc` of each patch.
///
/// ```
/// use mainstay_version::{VersionConstraint, parse_strict};
///
/// let constraint = VersionConstraint::parse(">=1.11, <1.13")?;
/// assert!(constraint.contains(&parse_strict("1.12.9").unwrap()));
/// assert!(!constraint.contains(&parse_strict("1.13.0").unwrap()));
/// assert!(!constraint.contains(&parse_strict("1.12.0-rc.1").unwrap()));
/// # Ok::<(), mainstay_version::VersionConstraintError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VersionConstraint {
    text: String,
    set: VersionSet,
}

/// The text is not a constraint. Displays upstream's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionConstraintError {
    /// The text is longer than 512 bytes.
    #[error("constraint string is too long (max {MAX_BYTES} bytes)")]
    TooLong,
    /// The constraint has more than 32 alternatives.
    #[error("too many constraint groups (max {MAX_GROUPS})")]
    TooManyGroups,
    /// This alternative is not a list of comparisons.
    #[error("improper constraint: {}", quote(.0))]
    Improper(String),
    /// A comparison has the right shape but an invalid version: a number is too large or mixed with
    /// wildcards, a numeric part of a pre-release starts with a zero, or the version is longer than 256
    /// bytes.
    #[error("constraint parser error")]
    Version,
}

impl VersionConstraint {
    /// Parses a constraint.
    pub fn parse(text: &str) -> Result<Self, VersionConstraintError> {
        if text.len() > MAX_BYTES {
            return Err(VersionConstraintError::TooLong);
        }
        let set = parse_set(text, false)?;
        Ok(Self { text: text.to_owned(), set })
    }

    /// Whether the constraint allows the version.
    pub fn contains(&self, version: &Version) -> bool {
        self.set.contains(version)
    }

    /// The allowed versions.
    pub const fn set(&self) -> &VersionSet {
        &self.set
    }

    /// The versions that would be allowed if every alternative named a pre-release. Versions that only
    /// this set contains, and not [`VersionConstraint::set`], are excluded only as pre-releases.
    ///
    /// ```
    /// # use mainstay_version::{VersionConstraint, parse_strict};
    /// let constraint = VersionConstraint::parse("^1.2").unwrap();
    /// let version = parse_strict("1.3.0-rc.1").unwrap();
    /// assert!(!constraint.contains(&version));
    /// assert!(constraint.set_with_prereleases().contains(&version));
    /// ```
    pub fn set_with_prereleases(&self) -> VersionSet {
        // `parse` parsed the same text before.
        parse_set(&self.text, true).unwrap_or_default()
    }

    /// The constraint as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for VersionConstraint {
    type Err = VersionConstraintError;

    fn from_str(text: &str) -> Result<Self, VersionConstraintError> {
        Self::parse(text)
    }
}

impl fmt::Display for VersionConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The allowed versions; pre-releases in all alternatives, or only in those that name one.
fn parse_set(text: &str, prereleases: bool) -> Result<VersionSet, VersionConstraintError> {
    let plain = text::without_hyphens(text);
    if plain.split("||").count() > MAX_GROUPS {
        return Err(VersionConstraintError::TooManyGroups);
    }
    plain.split("||").try_fold(VersionSet::none(), |set, group| {
        Ok(set.union(&parse_alternative(group, prereleases)?))
    })
}

/// The versions that satisfy every comparison of an alternative.
fn parse_alternative(group: &str, prereleases: bool) -> Result<VersionSet, VersionConstraintError> {
    let comparisons = text::comparisons(group)
        .ok_or_else(|| VersionConstraintError::Improper(group.to_owned()))?
        .into_iter()
        .map(|(comparator, pattern)| Comparison::read(comparator, &pattern))
        .collect::<Option<Vec<_>>>()
        .ok_or(VersionConstraintError::Version)?;
    let all = |prereleases| {
        comparisons
            .iter()
            .map(|comparison| comparison.set(prereleases))
            .reduce(|one, other| one.intersection(&other))
            .unwrap_or_default()
    };
    let prereleases = if prereleases || comparisons.iter().any(Comparison::names_prerelease) {
        all(true)
    } else {
        IntervalSet::none()
    };
    Ok(VersionSet::new(all(false), prereleases))
}

#[cfg(test)]
mod tests;
