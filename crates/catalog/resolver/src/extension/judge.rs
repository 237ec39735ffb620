//! One catalog: which bundles fit, which is the best, and why the others fell.

use super::offer::Offer;
use super::request::{Installed, Policy, Request};
use mainstay_updates::{Channel, Entry};
use mainstay_version::VersionRelease;
use mainstay_version::{Constraint, Version, parse_strict};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

/// What is asked, read once for all catalogs.
pub(super) struct Rules<'a> {
    pub request: &'a Request,
    pub range: Option<Constraint>,
    pub start: Option<Start>,
}

/// Where updates start.
pub(super) struct Start {
    pub name: String,
    /// With its build metadata, for `skipRange`.
    pub version: Version,
    /// For "stay where you are".
    pub exact: VersionRelease,
}

impl Start {
    /// Reads what is installed, or says in upstream's words why that cannot be read.
    pub(super) fn read(installed: &Installed) -> Result<Self, String> {
        let exact = match &installed.release {
            None => VersionRelease::legacy(&installed.version).map_err(|why| {
                format!("failed to get version and release of installed bundle: {why}")
            }),
            Some(release) => VersionRelease::explicit(&installed.version, release).map_err(|why| {
                format!("failed to parse installed bundle version and release: {why}")
            }),
        }?;
        let version = parse_strict(&installed.version)
            .map_err(|why| format!("error parsing installed bundle version: {why}"))?;
        Ok(Self { name: installed.name.clone(), version, exact })
    }
}

/// What became of a bundle in one catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The bundle.
    pub bundle: Arc<str>,
    /// Its version and release; the error is upstream's text.
    pub version: Result<VersionRelease, String>,
    /// Whether the catalog says that it should no longer be used.
    pub deprecated: bool,
    /// Why it does not fit.
    pub fell: Fell,
    /// Its place in the offer.
    pub(super) at: usize,
}

/// Why a bundle does not fit. All false if it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fell {
    /// It is in none of the channels that are asked for.
    pub channel: bool,
    /// Its version is outside the range that is asked for.
    pub range: bool,
    /// It is neither what is installed nor a successor of that in the channels that count.
    pub successor: bool,
}

impl Fell {
    /// Whether nothing speaks against the bundle.
    pub const fn fits(self) -> bool {
        !self.channel && !self.range && !self.successor
    }

    /// How many reasons there are.
    pub const fn count(self) -> u8 {
        self.channel as u8 + self.range as u8 + self.successor as u8
    }
}

impl Verdict {
    /// The order of preference in one catalog: not deprecated, then version and release from the
    /// highest down; what has no version comes last. Where upstream's order is that of the file,
    /// this one is by name from the last up.
    fn order(&self, other: &Self) -> Ordering {
        let by_version = match (&self.version, &other.version) {
            (Ok(this), Ok(that)) => that.cmp(this),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => Ordering::Equal,
        };
        self.deprecated
            .cmp(&other.deprecated)
            .then(by_version)
            .then_with(|| other.bundle.cmp(&self.bundle))
            .then(other.at.cmp(&self.at))
    }

    /// Whether it comes before another in the order of preference.
    pub(super) fn before(&self, other: &Self) -> bool {
        self.order(other).is_lt()
    }
}

/// The verdicts about all bundles of an offer, the preferred ones first.
pub(super) fn judge(offer: &Offer, rules: &Rules<'_>) -> Vec<Verdict> {
    let request = rules.request;
    let any = request.channels.is_empty();
    let mut offered = HashSet::new();
    let mut follow = HashSet::new();
    // Edges count in the channels that are asked for only. They are direct ones: what was itself
    // skipped by something newer is a target like any other (PATH-03, PATH-05).
    for entry in entries(offer, request) {
        offered.insert(&*entry.name);
        let covers = |start: &Start| entry.covers(&start.name, Some(&start.version)).is_some();
        if rules.start.as_ref().is_some_and(covers) {
            follow.insert(&*entry.name);
        }
    }
    let mut verdicts: Vec<Verdict> = offer
        .bundles()
        .iter()
        .enumerate()
        .map(|(at, bundle)| {
            let version = match &bundle.release {
                Some(release) if request.explicit_releases => {
                    VersionRelease::explicit(&bundle.version, release).map_err(|it| it.to_string())
                }
                _ => VersionRelease::legacy(&bundle.version).map_err(|it| it.to_string()),
            };
            let within = |range: &Constraint| {
                version.as_ref().is_ok_and(|version| range.contains(version.version()))
            };
            let follows = |start: &Start| {
                follow.contains(&*bundle.name)
                    || version.as_ref().is_ok_and(|it| *it == start.exact)
            };
            let fell = Fell {
                channel: !any && !offered.contains(&*bundle.name),
                range: !rules.range.as_ref().is_none_or(within),
                successor: !rules.start.as_ref().is_none_or(follows),
            };
            let known = offer.graph().bundle(&bundle.name);
            let deprecated = known.is_some_and(|it| it.deprecation.is_some());
            Verdict { bundle: bundle.name.clone(), version, deprecated, fell, at }
        })
        .collect();
    verdicts.sort_by(Verdict::order);
    verdicts
}

/// The entries of the channels that are asked for.
pub(super) fn entries<'o>(
    offer: &'o Offer,
    request: &'o Request,
) -> impl Iterator<Item = &'o Entry> {
    let asked = |channel: &&Channel| {
        request.channels.is_empty() || request.channels.iter().any(|it| **it == *channel.name)
    };
    offer.graph().channels().iter().filter(asked).flat_map(Channel::entries)
}

/// Whether edges matter.
pub(super) fn follows_edges(request: &Request) -> bool {
    request.policy != Policy::SelfCertified
}

/// How to ask for exactly this version. Ranges know no releases: of several, it gives the highest.
pub(super) fn pin(version: &VersionRelease) -> String {
    version.version().clone().without_build().to_string()
}
