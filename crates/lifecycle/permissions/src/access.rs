//! User access: ClusterRoles with which users work with the custom resources of an extension.
//!
//! OLM v1 creates none. An administrator binds these to users and groups, or lets the cluster's own roles
//! `view`, `edit` and `admin` gather them.

use crate::rbac_object::{BindingSubject, RbacBinding, RbacRole, RoleReference};
use crate::rule::{RbacRule, text};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How much users may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessLevel {
    /// Read.
    View,
    /// Read and write.
    Edit,
    /// All verbs.
    Admin,
}

impl AccessLevel {
    /// All levels, from the lowest.
    pub const ALL: [Self; 3] = [Self::View, Self::Edit, Self::Admin];

    /// The word in names and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Edit => "edit",
            Self::Admin => "admin",
        }
    }

    /// The verbs.
    pub fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::View => &["get", "list", "watch"],
            Self::Edit => &["get", "list", "watch", "create", "update", "patch", "delete"],
            Self::Admin => &["*"],
        }
    }

    /// The name of the ClusterRole of an extension.
    pub fn role_name(self, extension: &str) -> String {
        format!("{extension}-{}", self.as_str())
    }
}

/// A user or a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessSubject {
    /// A user.
    User(
        /// Its name.
        String,
    ),
    /// A group.
    Group(
        /// Its name.
        String,
    ),
}

/// The ClusterRoles `EXTENSION-view`, `-edit` and `-admin` for the resources of some CRDs; none without
/// CRDs. With `aggregate` the cluster's role of the same level gathers each.
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

/// The binding of a user or group to such a ClusterRole: in a namespace, or in the whole cluster.
pub fn user_access_binding(
    extension: &str,
    level: AccessLevel,
    subject: &AccessSubject,
    namespace: Option<&str>,
) -> Value {
    let (kind, name) = match subject {
        AccessSubject::User(name) => ("User", name),
        AccessSubject::Group(name) => ("Group", name),
    };
    let role = level.role_name(extension);
    let binding = RbacBinding {
        namespace: namespace.unwrap_or_default().to_owned(),
        name: format!("{role}-binding"),
        role: RoleReference { kind: "ClusterRole".to_owned(), name: role },
        subjects: vec![BindingSubject {
            kind: kind.to_owned(),
            name: name.clone(),
            namespace: String::new(),
        }],
    };
    binding.to_value()
}
