//! The exact installer: roles that grant what a manifest needs, and nothing else.
//!
//! Rules name the objects, also those with generated names. Namespaced objects are in a Role of their
//! namespace. A rule that other rules cover is left out, so that each remaining rule is needed.
//!
//! The rules that the bundle grants stay even where the bundle grants `escalate` or `bind`, with which the
//! account could do without them: the roles show all that the account can do.

use super::{InstallerNames, InstallerObjects};
use crate::covering::covers_all;
use crate::manifest::InstallManifest;
use crate::rbac_object::RbacRole;
use crate::required::{ExtensionApplier, RequiredPermissions};
use crate::rule::RbacRule;

/// The ServiceAccount of an extension, with the roles that it needs for a manifest.
pub fn exact_installer(
    manifest: &InstallManifest,
    names: &InstallerNames,
    applier: &ExtensionApplier,
) -> InstallerObjects {
    let required = RequiredPermissions::new(manifest, &names.extension, applier);
    let cluster = without_covered_rules(required.cluster, &[]);
    let namespaces: Vec<RbacRole> = required
        .namespaces
        .into_iter()
        .map(|(namespace, rules)| RbacRole {
            rules: without_covered_rules(rules, &cluster),
            name: names.role(),
            namespace,
            ..RbacRole::default()
        })
        .filter(|role| !role.rules.is_empty())
        .collect();
    let mut roles =
        vec![RbacRole { name: names.cluster_role(), rules: cluster, ..RbacRole::default() }];
    roles.extend(namespaces);
    InstallerObjects::new(names, roles)
}

/// The rules without those that the others, or the rules of the whole cluster, cover. Of equal rules the
/// first one stays.
fn without_covered_rules(rules: Vec<RbacRule>, cluster: &[RbacRule]) -> Vec<RbacRule> {
    let mut needed = rules;
    for at in (0..needed.len()).rev() {
        let others = needed.iter().enumerate().filter(|(other, _)| *other != at);
        let held: Vec<&RbacRule> = others.map(|(_, rule)| rule).chain(cluster).collect();
        if covers_all(&held, &needed[at]) {
            needed.remove(at);
        }
    }
    needed
}
