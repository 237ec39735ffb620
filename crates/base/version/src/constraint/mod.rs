//! The constraint language of extensions: blanks and commas mean *and*, `||` means *or*.

mod comparison;
mod text;

use crate::{IntervalSet, Version, VersionSet};
use comparison::Comparison;
use mainstay_gocompat::quote;
use std::fmt;
use std::str::FromStr;

/// The longest constraint that is read, in bytes.
const LONGEST: usize = 512;

/// The most alternatives a constraint may have.
const MOST_GROUPS: usize = 32;

/// A set of versions as `spec.source.catalog.version` of a `ClusterExtension` writes it:
/// `^1.2, !=1.3.1 || ~2.0.1`.
///
/// | Comparator | Meaning |
/// |---|---|
/// | none, `=` | this version; with missing or wild numbers as `~` |
/// | `!=`, `>`, `<`, `>=`, `=>`, `<=`, `=<` | as everywhere; `>1.2` begins at 1.3.0, `<=1.2` ends before it |
/// | `~`, `~>` | the same minor version from here on; `~1` the same major version |
/// | `^` | up to the next major version; below 1.0.0 the first number that is not zero counts so |
/// | `1.2 - 2.0` | `>=1.2 <=2.0` |
///
/// A number may be missing, or be `x`, `X` or `*`; a `v` may stand before a version; build metadata
/// does not count. A pre-release is inside only where its alternative names a pre-release somewhere:
/// `>=1.0.0` holds no pre-release, `>=1.0.0-0` does.
///
/// The language is that of Masterminds/semver 3.5, which OLM 1 uses, with its oddities: `<=*` ends
/// before 0.1.0, `^*` is 0.0.0 alone, `!=*` is all but 0.0.0, `~0.0.0` has no upper end. One place
/// differs: a pre-release behind a wild patch number, `!=1.2.x-rc`, takes only `1.2.0-rc` out, not
/// the `rc` of each patch.
///
/// ```
/// use mainstay_version::{Constraint, parse_strict};
///
/// let constraint = Constraint::parse(">=1.11, <1.13")?;
/// assert!(constraint.contains(&parse_strict("1.12.9").unwrap()));
/// assert!(!constraint.contains(&parse_strict("1.13.0").unwrap()));
/// assert!(!constraint.contains(&parse_strict("1.12.0-rc.1").unwrap()));
/// # Ok::<(), mainstay_version::ConstraintError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Constraint {
    text: String,
    set: VersionSet,
}

/// The text is not a constraint. Displays the original's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// It is longer than 512 bytes.
    #[error("constraint string is too long (max {LONGEST} bytes)")]
    TooLong,
    /// It has more than 32 alternatives.
    #[error("too many constraint groups (max {MOST_GROUPS})")]
    TooManyGroups,
    /// An alternative, given here, is not a list of comparisons.
    #[error("improper constraint: {}", quote(.0))]
    Improper(String),
    /// A comparison has the right shape, but its version cannot be read: a number is too large or
    /// mixed with wildcards, a numeric part of a pre-release starts with a zero, or it is longer
    /// than 256 bytes.
    #[error("constraint parser error")]
    Version,
}

impl Constraint {
    /// Reads a constraint.
    pub fn parse(text: &str) -> Result<Self, ConstraintError> {
        if text.len() > LONGEST {
            return Err(ConstraintError::TooLong);
        }
        let set = lower(text, false)?;
        Ok(Self { text: text.to_owned(), set })
    }

    /// Whether the version is inside.
    pub fn contains(&self, version: &Version) -> bool {
        self.set.contains(version)
    }

    /// The versions inside.
    pub const fn set(&self) -> &VersionSet {
        &self.set
    }

    /// The versions that would be inside if every alternative named a pre-release. What is only
    /// here and not in [`Constraint::set`] is out for being a pre-release and for nothing else.
    ///
    /// ```
    /// # use mainstay_version::{Constraint, parse_strict};
    /// let constraint = Constraint::parse("^1.2").unwrap();
    /// let version = parse_strict("1.3.0-rc.1").unwrap();
    /// assert!(!constraint.contains(&version));
    /// assert!(constraint.set_with_prereleases().contains(&version));
    /// ```
    pub fn set_with_prereleases(&self) -> VersionSet {
        // It was read before, so it can be read again.
        lower(&self.text, true).unwrap_or_default()
    }

    /// The constraint as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Constraint {
    type Err = ConstraintError;

    fn from_str(text: &str) -> Result<Self, ConstraintError> {
        Self::parse(text)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The versions inside; with pre-releases everywhere, or only where one is named.
fn lower(text: &str, prereleases: bool) -> Result<VersionSet, ConstraintError> {
    let plain = text::without_hyphens(text);
    if plain.split("||").count() > MOST_GROUPS {
        return Err(ConstraintError::TooManyGroups);
    }
    plain
        .split("||")
        .try_fold(VersionSet::none(), |set, group| Ok(set.union(&alternative(group, prereleases)?)))
}

/// The versions that satisfy every comparison of a list.
fn alternative(group: &str, prereleases: bool) -> Result<VersionSet, ConstraintError> {
    let comparisons = text::comparisons(group)
        .ok_or_else(|| ConstraintError::Improper(group.to_owned()))?
        .into_iter()
        .map(|(comparator, written)| Comparison::read(comparator, &written))
        .collect::<Option<Vec<_>>>()
        .ok_or(ConstraintError::Version)?;
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
