//! Message texts of upstream's extension resolver.

use super::bundle_match::InstalledVersionError;
use super::package_content::VersionError;
use super::request::{ExtensionRequest, InstalledExtensionBundle};
use mainstay_gocompat::quote;
use std::fmt::Write as _;

/// No catalog has a bundle that fits, or several have (`catalogs`, by name).
pub(super) fn undecided(
    request: &ExtensionRequest,
    installed: Option<&InstalledExtensionBundle>,
    catalogs: &[&str],
) -> String {
    let mut text = String::new();
    if let Some(installed) = installed {
        text = format!(
            "error upgrading from currently installed version {}: ",
            quote(&installed.version)
        );
    }
    let found = if catalogs.len() > 1 { "found bundles" } else { "no bundles found" };
    // Writing to a string cannot fail.
    let _ = write!(text, "{found} for package {} ", quote(&request.package));
    if !request.version.is_empty() {
        let _ = write!(text, "matching version {} ", quote(&request.version));
    }
    if !request.channels.is_empty() {
        let _ = write!(text, "in channels [{}] ", request.channels.join(" "));
    }
    if catalogs.len() > 1 {
        let _ =
            write!(text, "in multiple catalogs with the same priority [{}] ", catalogs.join(" "));
    }
    text.trim().to_owned()
}

/// The selector cannot be read.
pub(super) fn selector(why: &impl std::fmt::Display) -> String {
    format!("desired catalog selector is invalid: {why}")
}

/// The version range cannot be read.
pub(super) fn range(version: &str, why: &impl std::fmt::Display) -> String {
    format!("desired version range {} is invalid: {why}", quote(version))
}

/// A catalog cannot be read.
pub(super) fn unreadable(package: &str, catalog: &str, why: &str) -> String {
    format!(
        "error walking catalogs: error getting package {} from catalog {}: {why}",
        quote(package),
        quote(catalog)
    )
}

/// The version of the installed bundle cannot be read.
pub(super) fn installed_version(why: &InstalledVersionError) -> String {
    format!("error walking catalogs: error finding upgrade edges: {why}")
}

/// The version of the best bundle cannot be read.
pub(super) fn no_version(bundle: &str, why: &VersionError) -> String {
    format!("error getting resolved bundle version for bundle {}: {why}", quote(bundle))
}

/// The best bundle requires other operators.
pub(super) fn dependency(bundle: &str, property: &str) -> String {
    let bundle = quote(bundle);
    format!(
        "validating bundle {bundle}: bundle {bundle} has a dependency declared via property {} \
         which is currently not supported",
        quote(property)
    )
}
