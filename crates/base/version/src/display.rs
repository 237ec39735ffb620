//! `Display` of version sets: short ranges.

use crate::{Interval, IntervalSet, Version, VersionSet};
use std::fmt;

/// The versions that a list of intervals describes. It decides how ends are written: among releases,
/// `1.2.4` follows `1.2.3`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VersionKind {
    Versions,
    Releases,
    Prereleases,
}

impl VersionKind {
    /// The set as a range. Empty text for all versions; the set must not be empty.
    fn format(self, set: &IntervalSet) -> String {
        let mut out: Vec<String> = Vec::new();
        let mut rest = set.intervals().iter().peekable();
        while let Some(Interval { from, to }) = rest.next() {
            // Two intervals with a single missing version between them are written as one.
            let mut to = to.as_ref();
            let mut missing = Vec::new();
            while let Some(end) = to
                && let Some(next) =
                    rest.next_if(|next| self.after(end).as_ref() == Some(&next.from))
            {
                missing.push(format!("!={end}"));
                to = next.to.as_ref();
            }
            let mut comparisons = Vec::new();
            if missing.is_empty() && self.after(from).as_ref() == to {
                comparisons.push(from.to_string());
            } else {
                comparisons.extend(self.lower_bound(from));
                comparisons.extend(to.map(|to| self.upper_bound(to)));
            }
            comparisons.append(&mut missing);
            out.push(comparisons.join(" "));
        }
        out.join(" || ")
    }

    /// The next version of this kind.
    fn after(self, version: &Version) -> Option<Version> {
        let next = version.successor()?;
        Some(if self == Self::Releases { next.release() } else { next })
    }

    /// The comparison for a lower end; none at the smallest version.
    fn lower_bound(self, version: &Version) -> Option<String> {
        let first = *version == Version::minimum()
            || (self == Self::Releases && *version == Version::new(0, 0, 0));
        let comparison = || match version.predecessor() {
            Some(before) => format!(">{before}"),
            None => format!(">={version}"),
        };
        (!first).then(comparison)
    }

    /// The comparison for an upper end.
    fn upper_bound(self, version: &Version) -> String {
        match version.predecessor() {
            // This list does not describe releases.
            Some(before) if self == Self::Prereleases && !before.is_prerelease() => {
                format!("<{before}")
            }
            Some(before) => format!("<={before}"),
            None => format!("<{version}"),
        }
    }
}

impl fmt::Display for IntervalSet {
    /// A short range with these versions: `>=1.0.0 <2.0.0 !=1.3.1 || 3.1.0`.
    ///
    /// [`Range::parse`](crate::Range::parse) reads it as the same set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("<0.0.0-0");
        }
        match &*VersionKind::Versions.format(self) {
            "" => f.write_str(">=0.0.0-0"),
            range => f.write_str(range),
        }
    }
}

impl fmt::Display for VersionSet {
    /// The releases of the set, then its pre-releases: `>=1.2.0 <2.0.0`,
    /// `>=1.2.0 <2.0.0, pre-releases >=1.2.0-rc.1 <2.0.0`, `any version`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let format =
            |kind: VersionKind, set: &IntervalSet| (!set.is_empty()).then(|| kind.format(set));
        let releases = format(VersionKind::Releases, self.releases());
        let prereleases = format(VersionKind::Prereleases, self.prereleases());
        match (releases.as_deref(), prereleases.as_deref()) {
            (None, None) => return f.write_str("no version"),
            (Some(""), Some("")) => return f.write_str("any version"),
            (Some(""), _) => f.write_str("any release")?,
            (Some(range), _) => f.write_str(range)?,
            (None, Some(_)) => {}
        }
        let comma = if releases.is_some() { ", " } else { "" };
        match prereleases.as_deref() {
            None => Ok(()),
            Some("") => write!(f, "{comma}any pre-release"),
            Some(range) => write!(f, "{comma}pre-releases {range}"),
        }
    }
}
