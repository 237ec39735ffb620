//! Sets of versions as people write them.

use crate::{Interval, IntervalSet, Version, VersionSet};
use std::fmt;

/// What a list of intervals speaks about. It decides about the words for their ends: of releases,
/// the one behind `1.2.3` is `1.2.4`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Versions,
    Releases,
    Prereleases,
}

impl About {
    /// Alternatives of comparisons. Empty if every version is inside; no version must not be.
    fn words(self, set: &IntervalSet) -> String {
        let mut out: Vec<String> = Vec::new();
        let mut rest = set.intervals().iter().peekable();
        while let Some(Interval { from, to }) = rest.next() {
            // A single version that is missing divides intervals only in the list.
            let mut to = to.as_ref();
            let mut missing = Vec::new();
            while let Some(end) = to
                && let Some(next) =
                    rest.next_if(|next| self.after(end).as_ref() == Some(&next.from))
            {
                missing.push(format!("!={end}"));
                to = next.to.as_ref();
            }
            let mut words = Vec::new();
            if missing.is_empty() && self.after(from).as_ref() == to {
                words.push(from.to_string());
            } else {
                words.extend(self.from(from));
                words.extend(to.map(|to| self.to(to)));
            }
            words.append(&mut missing);
            out.push(words.join(" "));
        }
        out.join(" || ")
    }

    /// The smallest of its versions above this one of them.
    fn after(self, version: &Version) -> Option<Version> {
        let next = version.successor()?;
        Some(if self == Self::Releases { next.release() } else { next })
    }

    /// From here on; nothing if that is from the beginning.
    fn from(self, version: &Version) -> Option<String> {
        let first = *version == Version::least()
            || (self == Self::Releases && *version == Version::new(0, 0, 0));
        let words = || match version.predecessor() {
            Some(before) => format!(">{before}"),
            None => format!(">={version}"),
        };
        (!first).then(words)
    }

    /// Before here.
    fn to(self, version: &Version) -> String {
        match version.predecessor() {
            // A release that is not spoken about.
            Some(before) if self == Self::Prereleases && !before.is_prerelease() => {
                format!("<{before}")
            }
            Some(before) => format!("<={before}"),
            None => format!("<{version}"),
        }
    }
}

impl fmt::Display for IntervalSet {
    /// A short range that holds the set: `>=1.0.0 <2.0.0 !=1.3.1 || 3.1.0`.
    ///
    /// [`Range::parse`](crate::Range::parse) reads it as the same set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("<0.0.0-0");
        }
        match &*About::Versions.words(self) {
            "" => f.write_str(">=0.0.0-0"),
            words => f.write_str(words),
        }
    }
}

impl fmt::Display for VersionSet {
    /// What the set says about releases, then what it says about pre-releases: `>=1.2.0 <2.0.0`,
    /// `>=1.2.0 <2.0.0, pre-releases >=1.2.0-rc.1 <2.0.0`, `any version`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |about: About, set: &IntervalSet| (!set.is_empty()).then(|| about.words(set));
        let releases = words(About::Releases, self.releases());
        let prereleases = words(About::Prereleases, self.prereleases());
        match (releases.as_deref(), prereleases.as_deref()) {
            (None, None) => return f.write_str("no version"),
            (Some(""), Some("")) => return f.write_str("any version"),
            (Some(""), _) => f.write_str("any release")?,
            (Some(words), _) => f.write_str(words)?,
            (None, Some(_)) => {}
        }
        let comma = if releases.is_some() { ", " } else { "" };
        match prereleases.as_deref() {
            None => Ok(()),
            Some("") => write!(f, "{comma}any pre-release"),
            Some(words) => write!(f, "{comma}pre-releases {words}"),
        }
    }
}
