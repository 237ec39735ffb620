//! RBAC objects: Roles, ClusterRoles and their bindings, as far as permissions depend on them.

use crate::rule::{RbacRule, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The API group of RBAC objects.
pub(crate) const GROUP: &str = "rbac.authorization.k8s.io";
/// The API version of RBAC objects that this crate writes.
pub(crate) const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// A Role or ClusterRole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RbacRole {
    /// The namespace of a Role; empty for a ClusterRole.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The rules. Those of an aggregated ClusterRole are the ones that the cluster has written into it.
    pub rules: Vec<RbacRule>,
    /// Whether the ClusterRole aggregates the rules of other ClusterRoles: it has a selector.
    pub is_aggregated: bool,
}

/// A RoleBinding or ClusterRoleBinding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RbacBinding {
    /// The namespace of a RoleBinding; empty for a ClusterRoleBinding.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The role.
    pub role: RoleReference,
    /// The users, groups and ServiceAccounts.
    pub subjects: Vec<BindingSubject>,
}

/// The reference of a binding to a role.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleReference {
    /// The kind as written: `Role` or `ClusterRole`.
    pub kind: String,
    /// The name.
    pub name: String,
}

/// A subject of a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingSubject {
    /// `ServiceAccount`, `User` or `Group`.
    pub kind: String,
    /// The name.
    pub name: String,
    /// The namespace of a ServiceAccount; empty means that of the RoleBinding.
    pub namespace: String,
}

/// The role that a reference leads to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReferencedRole {
    /// A Role in the namespace of the binding.
    Role {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A ClusterRole.
    ClusterRole(
        /// Its name.
        String,
    ),
    /// A kind that no binding can reference.
    Unsupported(
        /// The kind.
        String,
    ),
}

impl ReferencedRole {
    /// The resource of the role; empty if its kind is not supported.
    pub(crate) fn resource(&self) -> &'static str {
        match self {
            Self::Role { .. } => "roles",
            Self::ClusterRole(_) => "clusterroles",
            Self::Unsupported(_) => "",
        }
    }

    /// The name of the role.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Role { name, .. } | Self::ClusterRole(name) => name,
            Self::Unsupported(_) => "",
        }
    }
}

impl RbacRole {
    /// Reads a Role or ClusterRole.
    pub fn from_value(value: &Value) -> Self {
        let namespace =
            if is_cluster_kind(value) { "" } else { text(value, "/metadata/namespace") };
        let selectors = value.pointer("/aggregationRule/clusterRoleSelectors");
        Self {
            namespace: namespace.to_owned(),
            name: text(value, "/metadata/name").to_owned(),
            rules: RbacRule::list_from(&value["rules"]),
            is_aggregated: selectors.and_then(Value::as_array).is_some_and(|list| !list.is_empty()),
        }
    }
}

impl RbacBinding {
    /// Reads a RoleBinding or ClusterRoleBinding.
    pub fn from_value(value: &Value) -> Self {
        let namespace =
            if is_cluster_kind(value) { "" } else { text(value, "/metadata/namespace") };
        let subjects = value["subjects"].as_array().into_iter().flatten();
        Self {
            namespace: namespace.to_owned(),
            name: text(value, "/metadata/name").to_owned(),
            role: RoleReference {
                kind: text(value, "/roleRef/kind").to_owned(),
                name: text(value, "/roleRef/name").to_owned(),
            },
            subjects: subjects
                .map(|subject| BindingSubject {
                    kind: text(subject, "/kind").to_owned(),
                    name: text(subject, "/name").to_owned(),
                    namespace: text(subject, "/namespace").to_owned(),
                })
                .collect(),
        }
    }

    /// The role that the binding references.
    pub fn referenced_role(&self) -> ReferencedRole {
        let RoleReference { kind, name } = &self.role;
        match &**kind {
            "Role" => {
                ReferencedRole::Role { namespace: self.namespace.clone(), name: name.clone() }
            }
            "ClusterRole" => ReferencedRole::ClusterRole(name.clone()),
            _ => ReferencedRole::Unsupported(kind.clone()),
        }
    }
}

fn is_cluster_kind(value: &Value) -> bool {
    text(value, "/kind").starts_with("Cluster")
}

/// The Roles, ClusterRoles and bindings of a cluster or of a manifest.
#[derive(Clone, Debug, Default)]
pub struct RbacObjects {
    roles: BTreeMap<ReferencedRole, RbacRole>,
    bindings: Vec<RbacBinding>,
}

impl RbacObjects {
    /// The RBAC objects among some objects; other kinds do not count.
    pub fn from_objects<'v>(objects: impl IntoIterator<Item = &'v Value>) -> Self {
        let mut found = Self::default();
        for object in objects {
            found.add(object);
        }
        found
    }

    /// Adds an object, if it is an RBAC object. A role replaces another one of the same name.
    pub fn add(&mut self, object: &Value) {
        if text(object, "/apiVersion").split_once('/').is_none_or(|(group, _)| group != GROUP) {
            return;
        }
        match text(object, "/kind") {
            "Role" | "ClusterRole" => self.add_role(RbacRole::from_value(object)),
            "RoleBinding" | "ClusterRoleBinding" => {
                self.bindings.push(RbacBinding::from_value(object));
            }
            _ => {}
        }
    }

    /// Adds a Role or ClusterRole. Two roles of one name, such as those of two versions of a bundle, count as
    /// one with the rules of both.
    pub(crate) fn add_role(&mut self, role: RbacRole) {
        let key = if role.namespace.is_empty() {
            ReferencedRole::ClusterRole(role.name.clone())
        } else {
            ReferencedRole::Role { namespace: role.namespace.clone(), name: role.name.clone() }
        };
        match self.roles.entry(key) {
            Entry::Vacant(entry) => {
                entry.insert(role);
            }
            Entry::Occupied(mut entry) => {
                let known = entry.get_mut();
                known.is_aggregated |= role.is_aggregated;
                known.rules.extend(role.rules);
            }
        }
    }

    /// Adds a RoleBinding or ClusterRoleBinding.
    pub(crate) fn add_binding(&mut self, binding: RbacBinding) {
        self.bindings.push(binding);
    }

    /// The Roles and ClusterRoles.
    pub fn roles(&self) -> impl Iterator<Item = &RbacRole> {
        self.roles.values()
    }

    /// The RoleBindings and ClusterRoleBindings.
    pub fn bindings(&self) -> &[RbacBinding] {
        &self.bindings
    }

    /// The role that a reference leads to.
    pub fn find_role(&self, role: &ReferencedRole) -> Option<&RbacRole> {
        self.roles.get(role)
    }
}
