//! Failure consequences: what a controller does when the resolution of an extension fails.

use super::bundle_match::Start;
use super::pick::ExtensionFailure;
use super::request::{ExtensionRequest, InputCatalog, InstalledExtension};
use mainstay_version::VersionConstraint;

/// The consequence of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Retry. Upstream's text is for conditions that have none yet; the message of the failure is
    /// for `Progressing`.
    Retry(String),
    /// Keep the installed bundle: it meets the request, and no selected catalog exists any more.
    Keep,
}

/// The consequence of a failure: an extension whose installed bundle meets the request survives the
/// removal of its catalogs; all other failures lead to a retry.
///
/// Upstream compares `version` with the installed version as strings, so that it does not even
/// repair an extension with a range once its catalogs are gone. Here it is enough that the
/// installed version is in the range.
pub fn consequence(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtension>,
    catalogs: &[InputCatalog<'_>],
    failure: &ExtensionFailure,
) -> Consequence {
    let why = &failure.message;
    let Some(installed) = installed else {
        return Consequence::Retry(format!("failed to resolve bundle: {why}"));
    };
    if !request.version.is_empty() && !has_what_it_asks_for(request, installed) {
        return Consequence::Retry(format!(
            "unable to upgrade to version {}: {why} (currently installed: {})",
            request.version, installed.version
        ));
    }
    match request.selector() {
        Err(_) => Consequence::Retry(format!("failed to resolve bundle: {why}")),
        Ok(selector) if catalogs.iter().any(|catalog| catalog.fits(&selector)) => {
            Consequence::Retry(format!("failed to resolve bundle, retrying: {why}"))
        }
        Ok(_) => Consequence::Keep,
    }
}

fn has_what_it_asks_for(request: &ExtensionRequest, installed: &InstalledExtension) -> bool {
    if request.version == installed.version {
        return true;
    }
    let range = VersionConstraint::parse(&request.version);
    let start = Start::read(installed);
    range.is_ok_and(|range| start.is_ok_and(|start| range.contains(start.exact.version())))
}
