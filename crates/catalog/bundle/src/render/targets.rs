//! Target namespaces: the check of watched namespaces against a bundle's install modes.

use super::{RegistryV1Bundle, TargetNamespaceError, TargetNamespaceReason};
use std::collections::BTreeSet;

pub(super) const ALL: &str = "AllNamespaces";
pub(super) const MULTI: &str = "MultiNamespace";
pub(super) const OWN: &str = "OwnNamespace";
pub(super) const SINGLE: &str = "SingleNamespace";

/// Checks that the install modes of a bundle allow the target namespaces.
///
/// # Errors
/// If they do not, or if there are no targets.
pub(super) fn check(
    bundle: &RegistryV1Bundle,
    own: &str,
    targets: &[String],
) -> Result<(), TargetNamespaceError> {
    let modes = || bundle.modes.iter().cloned().collect();
    let other = || TargetNamespaceReason::Namespaces { modes: modes(), targets: targets.to_vec() };
    let different: BTreeSet<&str> = targets.iter().map(String::as_str).collect();
    let reason = match (different.len(), different.first()) {
        (0, _) if bundle.supports(MULTI) => TargetNamespaceReason::NoTarget,
        (0, _) => TargetNamespaceReason::NotOneTarget,
        (1, Some(&"")) if bundle.supports(ALL) => return Ok(()),
        (1, Some(&"")) => TargetNamespaceReason::AllNamespaces { modes: modes() },
        (1, Some(&only)) if only == own && bundle.supports(OWN) => return Ok(()),
        (1, Some(&only)) if only == own => TargetNamespaceReason::OwnNamespace { modes: modes() },
        (1, _) if bundle.supports(SINGLE) => return Ok(()),
        (1, _) => other(),
        _ if different.contains(own) && !bundle.supports(OWN) => {
            TargetNamespaceReason::OwnNamespace { modes: modes() }
        }
        _ if bundle.supports(MULTI) && !different.contains("") => return Ok(()),
        _ => other(),
    };
    Err(TargetNamespaceError { targets: targets.to_vec(), reason })
}
