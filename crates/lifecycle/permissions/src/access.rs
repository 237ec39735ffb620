//! User access: ClusterRoles with which users work with the custom resources of an extension.
//!
//! OLM v1 creates none. An administrator binds these to users and groups, or lets the cluster's own roles
//! `view`, `edit` and `admin` aggregate them.

use crate::rbac_object::RbacRole;
use crate::rule::{RbacRule, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How much users may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AccessLevel {
    /// Read.
    View,
    /// Read and write.
    Edit,
    /// All verbs.
    Admin,
}

impl AccessLevel {
    /// All levels, from the lowest.
    const ALL: [Self; 3] = [Self::View, Self::Edit, Self::Admin];

    /// The word in names and labels.
    fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }

    /// The verbs.
    fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::View => &["get", "list", "watch"],
            Self::Edit => &["get", "list", "watch", "create", "update", "patch", "delete"],
            Self::Admin => &["*"],
        }
    }

    /// The name of the ClusterRole of an extension.
    fn role_name(self, extension: &str) -> String {
        format!("{extension}-{}", self.as_str())
    }
}

/// The ClusterRoles `EXTENSION-view`, `-edit` and `-admin` for the resources of some CRDs; none without
/// CRDs. With `aggregate` the cluster's role of the same level aggregates each.
pub fn user_access_roles<'v>(
    extension: &str,
    crds: impl IntoIterator<Item = &'v Value>,
    aggregate: bool,
) -> Vec<Value> {
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for crd in crds {
        if text(crd, "/kind") == "CustomResourceDefinition" {
            let resources = groups.entry(text(crd, "/spec/group")).or_default();
            resources.insert(text(crd, "/spec/names/plural"));
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let roles = AccessLevel::ALL.into_iter().map(|level| {
        let rules = groups.iter().map(|(group, resources)| RbacRule {
            resources: resources.iter().map(|resource| (*resource).to_owned()).collect(),
            ..RbacRule::of_resource(group, "", level.verbs())
        });
        let role = RbacRole {
            name: level.role_name(extension),
            rules: rules.collect(),
            ..RbacRole::default()
        };
        let mut object = role.to_value();
        if aggregate {
            let label = format!("rbac.authorization.k8s.io/aggregate-to-{}", level.as_str());
            object["metadata"]["labels"] = json!({label: "true"});
        }
        object
    });
    roles.collect()
}
