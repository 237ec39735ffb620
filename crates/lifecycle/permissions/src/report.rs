//! The report about missing permissions, in the words of operator-controller.
//!
//! ```text
//! pre-authorization failed: service account requires the following permissions to manage cluster extension:
//!   Namespace:"" APIGroups:[apps] Resources:[deployments] Verbs:[list,watch]
//! ```
//!
//! The lines are sorted as texts, so that the same rules give the same message.

use crate::rbac_object::{GROUP, ReferencedRole};
use crate::rule::{RbacRule, ScopedRules};
use mainstay_gocompat::quote;
use std::fmt::Write as _;

/// The message about missing rules and an error of their evaluation; none if there is neither.
pub(crate) fn condition_message(rules: &[ScopedRules], error: Option<&str>) -> Option<String> {
    let mut lines: Vec<String> = rules
        .iter()
        .flat_map(|scope| scope.rules.iter().map(|rule| report_line(&scope.namespace, rule)))
        .collect();
    lines.sort();
    lines.dedup();
    let mut parts = Vec::new();
    if !lines.is_empty() {
        parts.push(format!(
            "service account requires the following permissions to manage cluster extension:\n  {}",
            lines.join("\n  ")
        ));
    }
    parts.extend(error.map(|error| format!("authorization evaluation error: {error}")));
    (!parts.is_empty()).then(|| format!("pre-authorization failed: {}", parts.join("\n")))
}

/// One line of the report: `Namespace:"" APIGroups:[apps] Resources:[deployments] Verbs:[create]`.
pub fn report_line(namespace: &str, rule: &RbacRule) -> String {
    let mut line = format!("Namespace:{}", quote(namespace));
    for (name, list) in [
        ("APIGroups", &rule.api_groups),
        ("Resources", &rule.resources),
        ("ResourceNames", &rule.resource_names),
        ("Verbs", &rule.verbs),
        ("NonResourceURLs", &rule.non_resource_urls),
    ] {
        if !list.is_empty() {
            let mut list: Vec<&str> = list.iter().map(String::as_str).collect();
            list.sort_unstable();
            // Writing to a String does not fail.
            let _ = write!(line, " {name}:[{}]", list.join(","));
        }
    }
    line
}

/// The error about a role that does not exist, as upstream's cache of objects returns it.
pub(crate) fn missing_role(role: &ReferencedRole) -> String {
    match role {
        ReferencedRole::Role { name, .. } => format!("Role.{GROUP} {} not found", quote(name)),
        ReferencedRole::ClusterRole(name) => {
            format!("ClusterRole.{GROUP} {} not found", quote(name))
        }
        ReferencedRole::Unsupported(kind) => {
            format!("unsupported role reference kind: {}", quote(kind))
        }
    }
}
