//! Which namespaces an operator may watch.

use super::Content;
use std::collections::BTreeSet;

pub(super) const ALL: &str = "AllNamespaces";
pub(super) const MULTI: &str = "MultiNamespace";
pub(super) const OWN: &str = "OwnNamespace";
pub(super) const SINGLE: &str = "SingleNamespace";

/// Whether the install modes of a bundle allow these namespaces.
///
/// # Errors
/// In upstream's words, why not.
pub(super) fn check(content: &Content, own: &str, targets: &[String]) -> Result<(), String> {
    let list = |texts: &mut dyn Iterator<Item = &str>| -> String {
        let texts: Vec<&str> = texts.collect();
        format!("[{}]", texts.join(" "))
    };
    let shown = list(&mut targets.iter().map(String::as_str));
    let modes = list(&mut content.modes.iter().map(String::as_str));
    let refuse = |what: &str| Err(format!("supported install modes {modes} do not support {what}"));
    let different: BTreeSet<&str> = targets.iter().map(String::as_str).collect();
    let verdict = match (different.len(), different.first()) {
        (0, _) if content.supports(MULTI) => {
            Err("at least one target namespace must be specified".to_owned())
        }
        (0, _) => Err("exactly one target namespace must be specified".to_owned()),
        (1, Some(&"")) if content.supports(ALL) => Ok(()),
        (1, Some(&"")) => refuse("targeting all namespaces"),
        (1, Some(&only)) if only == own && content.supports(OWN) => Ok(()),
        (1, Some(&only)) if only == own => refuse("targeting own namespace"),
        (1, _) if content.supports(SINGLE) => Ok(()),
        (1, _) => refuse(&format!("target namespaces {shown}")),
        _ if different.contains(own) && !content.supports(OWN) => refuse("targeting own namespace"),
        _ if content.supports(MULTI) && !different.contains("") => Ok(()),
        _ => refuse(&format!("target namespaces {shown}")),
    };
    verdict.map_err(|why| format!("invalid option(s): invalid target namespaces {shown}: {why}"))
}
