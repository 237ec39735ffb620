//! What a controller does when resolution fails.

use super::pick::Failure;
use super::request::{Catalog, Installed, Request};
use super::verdict::Start;
use mainstay_version::Constraint;

/// What follows from a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// Try again. The text, upstream's, is for conditions that have none yet; the message of the
    /// failure is the one of `Progressing`.
    Retry(String),
    /// All catalogs that the selector selects are gone, and what is installed is what is asked for:
    /// keep it as it is.
    Keep,
}

/// What follows from a failure: an extension that has what it asks for survives the end of its
/// catalogs, everything else is tried again.
///
/// Upstream compares `version` with the installed version as texts, so that an extension with a
/// range is not even repaired once its catalogs are gone. Here it is enough that the installed
/// version is in the range.
pub fn consequence(
    request: &Request,
    installed: Option<&Installed>,
    catalogs: &[Catalog<'_>],
    failure: &Failure,
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

fn has_what_it_asks_for(request: &Request, installed: &Installed) -> bool {
    if request.version == installed.version {
        return true;
    }
    let range = Constraint::parse(&request.version);
    let start = Start::read(installed);
    range.is_ok_and(|range| start.is_ok_and(|start| range.contains(start.exact.version())))
}
