//! Approvals: the most that an extension may get, stated by people in roles that nobody need be bound to.
//!
//! A ClusterRole with two labels, the name and the namespace of a ClusterExtension, approves its rules for this
//! extension. A Role with the same labels approves its rules in its namespace. Kubernetes lets nobody write a
//! role, or label one, without holding its permissions (or the verb `escalate`). So nobody approves more than
//! they may do themselves. The namespace is part of the approval because everyone who starts Pods there can use
//! the account of the extension.

use crate::covering::{TooManyPermissions, compact_rules, covered_rules, missing_rules};
use crate::difference::join_names;
use crate::granted::GrantedRules;
use crate::installer::{InstallerNames, exact_installer};
use crate::manifest::InstallManifest;
use crate::rbac_object::RbacRole;
use crate::report::report_line;
use crate::required::{ExtensionApplier, OLM_GROUP};
use crate::rule::{RbacRule, ScopedRules};
use serde_json::{Value, json};

/// Label on a ClusterRole or Role: name of the ClusterExtension that it approves permissions for.
pub const APPROVES_EXTENSION_LABEL: &str = "mainstay.dev/approves-extension";
/// Label on a ClusterRole or Role that approves permissions: `spec.namespace` of the ClusterExtension.
pub const APPROVES_NAMESPACE_LABEL: &str = "mainstay.dev/approves-namespace";

/// The roles with which a person approves what an extension needs for a manifest: a ClusterRole, and a Role in
/// each namespace with further rules. They suffice for both appliers.
pub fn approval_roles(manifest: &InstallManifest, names: &InstallerNames) -> Vec<RbacRole> {
    let mut roles = exact_installer(manifest, names, &ExtensionApplier::Helm).roles;
    let finalizers = RbacRule::of_resource(OLM_GROUP, "clusterobjectsets/finalizers", &["update"]);
    for role in &mut roles {
        role.name = names.approval();
        if role.namespace.is_empty() {
            role.rules.push(finalizers.clone());
        }
    }
    roles
}

/// A role with the labels of an approval, as an object.
pub fn approval_object(role: &RbacRole, names: &InstallerNames) -> Value {
    let mut object = role.to_value();
    object["metadata"]["labels"] = json!({
        APPROVES_EXTENSION_LABEL: names.extension,
        APPROVES_NAMESPACE_LABEL: names.namespace,
    });
    object
}

/// What roles grant beyond what is approved, by scope; empty if all is approved.
///
/// # Errors
/// If the roles have too many permissions to compare.
pub fn unapproved_rules(
    approved: &GrantedRules,
    roles: &[RbacRole],
) -> Result<Vec<ScopedRules>, TooManyPermissions> {
    let missing = roles.iter().map(|role| {
        let missing = missing_rules(&approved.in_namespace(&role.namespace), &role.rules)?;
        Ok(scoped(&role.namespace, missing))
    });
    let missing: Result<Vec<_>, _> = missing.collect();
    Ok(missing?.into_iter().flatten().collect())
}

/// The rules of a scope, if there are any.
fn scoped(namespace: &str, rules: Vec<RbacRule>) -> Option<ScopedRules> {
    let has_rules = !rules.is_empty();
    has_rules.then(|| {
        let rules = join_names(compact_rules(rules));
        ScopedRules { namespace: namespace.to_owned(), rules }
    })
}

/// The roles with the rules that are approved, and no others; and what [`unapproved_rules`] returns. A role
/// without an approved rule is left out.
///
/// # Errors
/// If the roles have too many permissions to compare.
pub fn split_by_approval(
    approved: &GrantedRules,
    roles: Vec<RbacRole>,
) -> Result<(Vec<RbacRole>, Vec<ScopedRules>), TooManyPermissions> {
    let unapproved = unapproved_rules(approved, &roles)?;
    if unapproved.is_empty() {
        return Ok((roles, unapproved));
    }
    let mut kept = Vec::with_capacity(roles.len());
    for mut role in roles {
        role.rules = covered_rules(&approved.in_namespace(&role.namespace), &role.rules)?;
        if !role.rules.is_empty() {
            kept.push(role);
        }
    }
    Ok((kept, unapproved))
}

/// The message of the condition `Progressing` about permissions that nobody has approved. Its lines are those
/// of the report about an account that lacks permissions.
pub fn unapproved_message(extension: &str, rules: &[ScopedRules]) -> String {
    let mut lines: Vec<String> = rules
        .iter()
        .flat_map(|scope| scope.rules.iter().map(|rule| report_line(&scope.namespace, rule)))
        .collect();
    lines.sort();
    format!(
        "pre-authorization failed: the bundle needs permissions that are not approved (to approve them: mainstay extension approve {extension}):\n  {}",
        lines.join("\n  ")
    )
}
