//! One catalog: which bundles fit, which is the best, and why the others fell.

use super::offer::{Offer, OfferedBundle, VersionError};
use super::request::{Installed, Policy, Request};
use mainstay_updates::{Channel, Entry};
use mainstay_version::{
    Constraint, ParseError, Version, VersionRelease, VersionReleaseError, parse_strict,
};
use std::sync::Arc;

/// What is asked, read once for all catalogs.
pub(super) struct ParsedRequest<'a> {
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

/// Why updates have nowhere to start: the version of what is installed cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum StartError {
    /// The version, whose build metadata is the release, is none.
    #[error("failed to get version and release of installed bundle: {0}")]
    SplitRelease(ParseError),
    /// The version or the release that is stated beside it is none.
    #[error("failed to parse installed bundle version and release: {0}")]
    ParseRelease(VersionReleaseError),
    /// The version is none.
    #[error("error parsing installed bundle version: {0}")]
    ParseVersion(ParseError),
}

impl Start {
    /// Reads what is installed.
    pub(super) fn read(installed: &Installed) -> Result<Self, StartError> {
        let exact = match &installed.release {
            None => VersionRelease::legacy(&installed.version).map_err(StartError::SplitRelease),
            Some(release) => VersionRelease::explicit(&installed.version, release)
                .map_err(StartError::ParseRelease),
        }?;
        let version = parse_strict(&installed.version).map_err(StartError::ParseVersion)?;
        Ok(Self { name: installed.name.clone(), version, exact })
    }
}

/// What became of a bundle in one catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The bundle.
    pub bundle: Arc<str>,
    /// Its version and release, or why they are none.
    pub version: Result<VersionRelease, VersionError>,
    /// Whether the catalog says that it should no longer be used.
    pub deprecated: bool,
    /// Why it does not fit.
    pub fell: Fell,
    /// Its place in the offer.
    pub(super) at: u32,
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

/// The verdicts about all bundles of an offer, the preferred ones first.
pub(super) fn evaluate(offer: &Offer, rules: &ParsedRequest<'_>) -> Vec<Verdict> {
    let ParsedRequest { request, range, start } = rules;
    let any_channel = request.channels.is_empty();
    let channels = offer.graph().channels();
    let selected: Vec<bool> =
        channels.iter().map(|channel| selects_channel(request, channel)).collect();
    // Edges count in the channels that are asked for only. They are direct ones: what was itself
    // skipped by something newer is a target like any other (PATH-03, PATH-05).
    let entries = |offered: &'_ OfferedBundle| -> Vec<&Entry> {
        let places = offered.places.iter().filter(|(channel, _)| selected[*channel as usize]);
        places.map(|&(channel, at)| &channels[channel as usize].entries()[at as usize]).collect()
    };
    let verdict = |(at, offered): (u32, &OfferedBundle)| {
        let version = offered.version(request.explicit_releases);
        let in_range = |range: &Constraint| {
            version.as_ref().is_ok_and(|version| range.contains(version.version()))
        };
        let entries = if any_channel && start.is_none() { Vec::new() } else { entries(offered) };
        let follows = |start: &Start| {
            let covers = |entry: &&Entry| entry.covers(&start.name, Some(&start.version)).is_some();
            version.as_ref().is_ok_and(|version| *version == start.exact)
                || entries.iter().any(covers)
        };
        let fell = Fell {
            channel: !any_channel && entries.is_empty(),
            range: !range.as_ref().is_none_or(in_range),
            successor: !start.as_ref().is_none_or(follows),
        };
        let (bundle, version) = (offered.bundle.name.clone(), version.clone());
        Verdict { bundle, version, deprecated: offered.deprecated, fell, at }
    };
    offer.preferred(request.explicit_releases).map(verdict).collect()
}

fn selects_channel(request: &Request, channel: &Channel) -> bool {
    request.channels.is_empty() || request.channels.iter().any(|name| **name == *channel.name)
}

/// The entries of the channels that are asked for.
pub(super) fn entries<'o>(
    offer: &'o Offer,
    request: &'o Request,
) -> impl Iterator<Item = &'o Entry> {
    let channels = offer.graph().channels().iter();
    channels.filter(|channel| selects_channel(request, channel)).flat_map(Channel::entries)
}

/// Whether edges matter.
pub(super) fn follows_edges(request: &Request) -> bool {
    request.policy != Policy::SelfCertified
}

/// How to ask for exactly this version. Ranges know no releases: of several, it gives the highest.
pub(super) fn pin(version: &VersionRelease) -> String {
    version.version().clone().without_build().to_string()
}
