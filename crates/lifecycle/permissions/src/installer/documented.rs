//! The documented installer role: the ClusterRole that the documentation of OLM v1 derives step by step.
//!
//! ```text
//! finalizers ─ clusterroles ─ clusterrolebindings ─ CRDs ─ rules of the CSV ─ deployments ─ serviceaccounts
//!   ─ services ─ configmaps ─ reader roles
//! ```
//!
//! The role has the faults of the documentation. Its `*` in `resourceNames` is no wildcard in Kubernetes,
//! `list` and `watch` of Services and ConfigMaps are limited to names, and the last rule has names of
//! ClusterRoles as resources. The role suffices only if the rules of the CSV make up for that.
//! [`super::exact_installer`] has none of these faults.

use super::InstallerNames;
use crate::rbac_object::{GROUP, RbacRole};
use crate::required::{OBJECT_VERBS, OLM_GROUP};
use crate::rule::{RbacRule, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// The parts of a bundle that the documentation reads.
#[derive(Clone, Copy, Debug)]
pub struct DocumentedBundle<'a> {
    /// The ClusterServiceVersion.
    pub csv: &'a Value,
    /// The other manifests.
    pub manifests: &'a [Value],
}

impl<'a> DocumentedBundle<'a> {
    /// The entries of a list of the CSV's install strategy.
    fn strategy(self, list: &str) -> impl Iterator<Item = &'a Value> {
        let spec = self.csv.pointer("/spec/install/spec");
        spec.and_then(|spec| spec[list].as_array()).into_iter().flatten()
    }

    /// The names of the manifests of a kind, sorted.
    fn names_of(self, kind: &str) -> Vec<&'a str> {
        let manifests = self.manifests.iter().filter(|manifest| text(manifest, "/kind") == kind);
        let names: BTreeSet<&str> =
            manifests.map(|manifest| text(manifest, "/metadata/name")).collect();
        names.into_iter().collect()
    }

    /// The API groups of the CRDs, sorted.
    fn api_groups(self) -> Vec<String> {
        let crds =
            self.manifests.iter().filter(|crd| text(crd, "/kind") == "CustomResourceDefinition");
        let groups: BTreeSet<&str> = crds.map(|crd| text(crd, "/spec/group")).collect();
        groups.into_iter().map(str::to_owned).collect()
    }

    /// The ServiceAccounts of Deployments and permissions, in order.
    fn service_accounts(self) -> Vec<&'a str> {
        let of_deployments = self
            .strategy("deployments")
            .map(|entry| text(entry, "/spec/template/spec/serviceAccountName"));
        let permissions = self.strategy("permissions").chain(self.strategy("clusterPermissions"));
        let of_permissions = permissions.map(|entry| text(entry, "/serviceAccountName"));
        let mut names = Vec::new();
        for name in of_deployments.chain(of_permissions) {
            if !name.is_empty() && name != "default" && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

const CREATE_AND_WATCH: [&str; 3] = ["create", "list", "watch"];

/// The ClusterRole that the documentation derives for a bundle.
pub fn documented_installer_role(bundle: DocumentedBundle<'_>, names: &InstallerNames) -> RbacRole {
    let finalizers = RbacRule::of_resource(OLM_GROUP, "clusterextensions/finalizers", &["update"]);
    let mut rules = vec![finalizers.with_names([&names.extension])];
    // The names of roles are generated; the documentation has them replaced after the installation.
    push_pair(&mut rules, GROUP, "clusterroles", &["*"]);
    push_pair(&mut rules, GROUP, "clusterrolebindings", &["*"]);
    let crds = bundle.names_of("CustomResourceDefinition");
    push_pair(&mut rules, "apiextensions.k8s.io", "customresourcedefinitions", &crds);
    for permission in bundle.strategy("permissions").chain(bundle.strategy("clusterPermissions")) {
        rules.extend(RbacRule::list_from(&permission["rules"]));
    }
    let deployments: Vec<&str> =
        bundle.strategy("deployments").map(|entry| text(entry, "/name")).collect();
    push_pair(&mut rules, "apps", "deployments", &deployments);
    push_pair(&mut rules, "", "serviceaccounts", &bundle.service_accounts());
    push_named(&mut rules, "services", &bundle.names_of("Service"));
    push_named(&mut rules, "configmaps", &bundle.names_of("ConfigMap"));
    let readers = bundle.names_of("ClusterRole");
    if !readers.is_empty() {
        rules.push(RbacRule {
            api_groups: bundle.api_groups(),
            resources: readers.into_iter().map(str::to_owned).collect(),
            verbs: ["get", "watch", "list"].map(str::to_owned).to_vec(),
            ..RbacRule::default()
        });
    }
    RbacRole { name: names.cluster_role(), rules, ..RbacRole::default() }
}

/// Adds the two rules of a resource: one without names, and one with them. Without names there is none:
/// the second rule would be about all objects.
fn push_pair(rules: &mut Vec<RbacRule>, group: &str, resource: &str, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    rules.push(RbacRule::of_resource(group, resource, &CREATE_AND_WATCH));
    rules.push(
        RbacRule::of_resource(group, resource, &OBJECT_VERBS).with_names(names.iter().copied()),
    );
}

/// Adds the two rules of Services and ConfigMaps, whose verbs the documentation splits in another way.
fn push_named(rules: &mut Vec<RbacRule>, resource: &str, names: &[&str]) {
    if names.is_empty() {
        return;
    }
    rules.push(RbacRule::of_resource("", resource, &["create"]));
    let verbs = ["get", "list", "watch", "update", "patch", "delete"];
    rules.push(RbacRule::of_resource("", resource, &verbs).with_names(names.iter().copied()));
}
