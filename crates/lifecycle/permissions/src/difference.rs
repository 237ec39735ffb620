//! Permission difference: what a new version of a bundle needs more or less than the old one.

use crate::covering::{TooManyPermissions, compact_rules, missing_rules};
use crate::required::RequiredPermissions;
use crate::rule::{RbacRule, ScopedRules};
use crate::text::describe_rules;
use std::collections::BTreeSet;
use std::fmt;

/// The permissions that two versions do not share, by scope. Names of roles that the renderer generates
/// differ whenever the rules of the role differ, so they are part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionDifference {
    /// The permissions that only the new version needs.
    pub added: Vec<ScopedRules>,
    /// The permissions that only the old version needs.
    pub removed: Vec<ScopedRules>,
}

impl PermissionDifference {
    /// Whether both need the same.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

impl fmt::Display for PermissionDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("needs the same permissions\n");
        }
        if !self.added.is_empty() {
            write!(f, "needs in addition:\n{}", describe_rules(&self.added))?;
        }
        if !self.removed.is_empty() {
            write!(f, "no longer needs:\n{}", describe_rules(&self.removed))?;
        }
        Ok(())
    }
}

/// Compares the permissions that two versions of a bundle need.
///
/// # Errors
/// If a version needs too many permissions to compare.
pub fn difference(
    old: &RequiredPermissions,
    new: &RequiredPermissions,
) -> Result<PermissionDifference, TooManyPermissions> {
    Ok(PermissionDifference { added: missing_in(old, new)?, removed: missing_in(new, old)? })
}

/// What one version needs beyond the other.
fn missing_in(
    held: &RequiredPermissions,
    wanted: &RequiredPermissions,
) -> Result<Vec<ScopedRules>, TooManyPermissions> {
    let mut found = Vec::new();
    for ScopedRules { namespace, rules } in wanted.scopes() {
        let missing = missing_rules(&held.in_namespace(&namespace), &rules)?;
        if !missing.is_empty() {
            found.push(ScopedRules { namespace, rules: join_names(compact_rules(missing)) });
        }
    }
    Ok(found)
}

/// Joins rules that differ in their names only, which is shorter to read.
pub(crate) fn join_names(rules: Vec<RbacRule>) -> Vec<RbacRule> {
    let mut joined: Vec<RbacRule> = Vec::new();
    for rule in rules {
        let same = joined.iter_mut().find(|other| {
            !rule.resource_names.is_empty()
                && !other.resource_names.is_empty()
                && other.verbs == rule.verbs
                && other.api_groups == rule.api_groups
                && other.resources == rule.resources
        });
        match same {
            Some(other) => {
                let mut names: BTreeSet<String> = other.resource_names.drain(..).collect();
                names.extend(rule.resource_names);
                other.resource_names = names.into_iter().collect();
            }
            None => joined.push(rule),
        }
    }
    joined
}
