//! Which namespaces an operator may watch.

use super::{Content, TargetError, TargetReason};
use std::collections::BTreeSet;

pub(super) const ALL: &str = "AllNamespaces";
pub(super) const MULTI: &str = "MultiNamespace";
pub(super) const OWN: &str = "OwnNamespace";
pub(super) const SINGLE: &str = "SingleNamespace";

/// Whether the install modes of a bundle allow these namespaces.
///
/// # Errors
/// If they do not, or if there are no namespaces.
pub(super) fn check(content: &Content, own: &str, targets: &[String]) -> Result<(), TargetError> {
    let modes = || content.modes.iter().cloned().collect();
    let other = || TargetReason::Namespaces { modes: modes(), targets: targets.to_vec() };
    let different: BTreeSet<&str> = targets.iter().map(String::as_str).collect();
    let reason = match (different.len(), different.first()) {
        (0, _) if content.supports(MULTI) => TargetReason::NoTarget,
        (0, _) => TargetReason::NotOneTarget,
        (1, Some(&"")) if content.supports(ALL) => return Ok(()),
        (1, Some(&"")) => TargetReason::AllNamespaces { modes: modes() },
        (1, Some(&only)) if only == own && content.supports(OWN) => return Ok(()),
        (1, Some(&only)) if only == own => TargetReason::OwnNamespace { modes: modes() },
        (1, _) if content.supports(SINGLE) => return Ok(()),
        (1, _) => other(),
        _ if different.contains(own) && !content.supports(OWN) => {
            TargetReason::OwnNamespace { modes: modes() }
        }
        _ if content.supports(MULTI) && !different.contains("") => return Ok(()),
        _ => other(),
    };
    Err(TargetError { targets: targets.to_vec(), reason })
}
