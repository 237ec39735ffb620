//! Catalog evaluation: which bundles of one catalog fit the request, and why the others do not.

use super::package_content::{IndexedBundle, PackageContent, VersionError};
use super::request::{ExtensionRequest, InstalledExtensionBundle, UpgradePolicy};
use mainstay_updates::{GraphChannel, GraphEntry};
use mainstay_version::{
    ParseVersionError, Version, VersionConstraint, VersionRelease, VersionReleaseError,
    parse_strict,
};
use std::sync::Arc;

/// The decoded request, for all catalogs.
pub(super) struct ParsedRequest<'a> {
    pub request: &'a ExtensionRequest,
    pub range: Option<VersionConstraint>,
    pub installed_version: Option<InstalledVersion>,
}

/// The installed bundle, from which updates start.
pub(super) struct InstalledVersion {
    pub name: String,
    /// Its version with the build metadata, for `skipRange`.
    pub version: Version,
    /// Its version and release, to recognize the installed bundle itself.
    pub exact: VersionRelease,
}

/// Why the version of the installed bundle cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum InstalledVersionError {
    /// The version, whose build metadata is the release, is invalid.
    #[error("failed to get version and release of installed bundle: {0}")]
    SplitRelease(ParseVersionError),
    /// The version, or the explicit release beside it, is invalid.
    #[error("failed to parse installed bundle version and release: {0}")]
    ParseRelease(VersionReleaseError),
    /// The version is invalid.
    #[error("error parsing installed bundle version: {0}")]
    ParseVersion(ParseVersionError),
}

impl InstalledVersion {
    /// Decodes the installed bundle.
    pub(super) fn parse(
        installed: &InstalledExtensionBundle,
    ) -> Result<Self, InstalledVersionError> {
        let exact = match &installed.release {
            None => VersionRelease::parse_legacy(&installed.version)
                .map_err(InstalledVersionError::SplitRelease),
            Some(release) => VersionRelease::parse(&installed.version, release)
                .map_err(InstalledVersionError::ParseRelease),
        }?;
        let version =
            parse_strict(&installed.version).map_err(InstalledVersionError::ParseVersion)?;
        Ok(Self { name: installed.name.clone(), version, exact })
    }
}

/// The evaluation of a bundle of a catalog: whether it matches the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleMatch {
    /// The bundle.
    pub bundle: Arc<str>,
    /// Its version and release, or why they cannot be read.
    pub version: Result<VersionRelease, VersionError>,
    /// Whether the catalog deprecates it.
    pub deprecated: bool,
    /// Why it does not fit.
    pub unmet: UnmetCriteria,
    /// Its index in the package content.
    pub(super) at: u32,
}

/// Why a bundle does not fit. All false if it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmetCriteria {
    /// It is in none of the requested channels.
    pub channel: bool,
    /// Its version is outside the requested range.
    pub range: bool,
    /// It is neither the installed bundle nor a successor of it in the requested channels.
    pub successor: bool,
}

impl UnmetCriteria {
    /// Whether the bundle meets all criteria.
    pub const fn is_empty(self) -> bool {
        !self.channel && !self.range && !self.successor
    }

    /// How many reasons there are against the bundle.
    pub const fn count(self) -> u8 {
        self.channel as u8 + self.range as u8 + self.successor as u8
    }
}

/// Evaluates all bundles of a package content, in order of preference.
pub(super) fn evaluate(content: &PackageContent, rules: &ParsedRequest<'_>) -> Vec<BundleMatch> {
    let ParsedRequest { request, range, installed_version } = rules;
    let any_channel = request.channels.is_empty();
    let channels = content.graph().channels();
    let selected: Vec<bool> =
        channels.iter().map(|channel| selects_channel(request, channel)).collect();
    // Only edges of the requested channels count, and only direct ones: an entry that a newer one
    // skips can be a target like any other (PATH-03, PATH-05).
    let entries = |indexed: &'_ IndexedBundle| -> Vec<&GraphEntry> {
        let places = indexed.places.iter().filter(|(channel, _)| selected[*channel as usize]);
        places.map(|&(channel, at)| &channels[channel as usize].entries()[at as usize]).collect()
    };
    let evaluate_bundle = |(at, indexed): (u32, &IndexedBundle)| {
        let version = indexed.version(request.explicit_releases);
        let in_range = |range: &VersionConstraint| {
            version.as_ref().is_ok_and(|version| range.contains(version.version()))
        };
        let entries =
            if any_channel && installed_version.is_none() { Vec::new() } else { entries(indexed) };
        let follows = |installed_version: &InstalledVersion| {
            let covers = |entry: &&GraphEntry| {
                entry.covers(&installed_version.name, Some(&installed_version.version)).is_some()
            };
            version.as_ref().is_ok_and(|version| *version == installed_version.exact)
                || entries.iter().any(covers)
        };
        let unmet = UnmetCriteria {
            channel: !any_channel && entries.is_empty(),
            range: !range.as_ref().is_none_or(in_range),
            successor: !installed_version.as_ref().is_none_or(follows),
        };
        let (bundle, version) = (indexed.bundle.name.clone(), version.clone());
        BundleMatch { bundle, version, deprecated: indexed.deprecated, unmet, at }
    };
    content.preferred(request.explicit_releases).map(evaluate_bundle).collect()
}

fn selects_channel(request: &ExtensionRequest, channel: &GraphChannel) -> bool {
    request.channels.is_empty() || request.channels.iter().any(|name| **name == *channel.name)
}

/// The entries of the requested channels.
pub(super) fn entries<'o>(
    content: &'o PackageContent,
    request: &'o ExtensionRequest,
) -> impl Iterator<Item = &'o GraphEntry> {
    let channels = content.graph().channels().iter();
    channels.filter(|channel| selects_channel(request, channel)).flat_map(GraphChannel::entries)
}

/// Whether updates must follow edges.
pub(super) fn follows_edges(request: &ExtensionRequest) -> bool {
    request.policy != UpgradePolicy::SelfCertified
}

/// The range for exactly this version. Ranges ignore releases: of several releases of the version
/// it selects the highest.
pub(super) fn pin(version: &VersionRelease) -> String {
    version.version().clone().without_build().to_string()
}
