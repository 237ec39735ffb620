//! Failure consequences: what a controller does when the resolution of an extension fails.

use super::bundle_match::InstalledVersion;
use super::pick::ExtensionFailure;
use super::request::{ExtensionRequest, InputCatalog, InstalledExtensionBundle};
use mainstay_version::VersionConstraint;

/// The consequence of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Retry. The text (upstream's) goes into the conditions that are not set yet; `Progressing`
    /// gets the message of the failure.
    Retry(String),
    /// Keep the installed bundle: it meets the request, and no selected catalog exists any more.
    Keep,
}

/// The consequence of a failure: an extension whose installed bundle meets the request survives the
/// removal of its catalogs; all other failures lead to a retry.
///
/// Upstream compares `version` with the installed version as strings, so that it does not even
/// repair an extension with a range after its catalogs were deleted. Mainstay accepts an installed
/// version that is in the range.
pub fn consequence(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    catalogs: &[InputCatalog<'_>],
    failure: &ExtensionFailure,
) -> Consequence {
    let why = &failure.message;
    let Some(installed) = installed else {
        return Consequence::Retry(format!("failed to resolve bundle: {why}"));
    };
    if !request.version.is_empty() && !installed_version_meets_request(request, installed) {
        return Consequence::Retry(format!(
            "unable to upgrade to version {}: {why} (currently installed: {})",
            request.version, installed.version
        ));
    }
    match request.selector() {
        Err(_) => Consequence::Retry(format!("failed to resolve bundle: {why}")),
        Ok(selector) if catalogs.iter().any(|catalog| catalog.matches(&selector)) => {
            Consequence::Retry(format!("failed to resolve bundle, retrying: {why}"))
        }
        Ok(_) => Consequence::Keep,
    }
}

fn installed_version_meets_request(
    request: &ExtensionRequest,
    installed: &InstalledExtensionBundle,
) -> bool {
    if request.version == installed.version {
        return true;
    }
    let range = VersionConstraint::parse(&request.version);
    let installed_version = InstalledVersion::parse(installed);
    let (Ok(range), Ok(installed_version)) = (range, installed_version) else { return false };
    range.contains(installed_version.exact.version())
}
