//! Privilege escalation check: a user grants only permissions that the user holds.
//!
//! The writer of a role must hold all its permissions, or have the verb `escalate` on it. The
//! writer of a binding must hold all permissions of its role, or have the verb `bind` on the role.
//! An aggregation rule can select any rules, so it needs all permissions. Messages are
//! kube-apiserver's.

use super::index::RoleError;
use super::rules::PolicyRule;
use super::{Attributes, Authorizer, GROUP, cover};
use crate::{Identity, MASTERS};
use mainstay_object::{Object, Reason, Status};
use serde::Deserialize;
use std::sync::Arc;

/// A write of an RBAC object, and its user.
#[derive(Clone, Copy, Debug)]
pub struct RbacWrite<'a> {
    /// The user.
    pub identity: &'a Identity,
    /// API group of the kind.
    pub group: &'a str,
    /// Plural of the kind.
    pub plural: &'a str,
    /// Namespace of the path.
    pub namespace: &'a str,
    /// Name of the path; empty for a POST.
    pub name: &'a str,
}

impl RbacWrite<'_> {
    /// Whether the write needs the check: it writes an RBAC object, and the user is no cluster
    /// admin.
    pub fn needs_check(&self) -> bool {
        self.group == GROUP && !self.identity.is_in(MASTERS)
    }
}

impl Authorizer {
    /// Rejects a role or binding that grants permissions which its writer does not hold. The object
    /// has all defaults; an update has the old object too. Other kinds pass.
    pub fn check_escalation(
        &self,
        write: RbacWrite<'_>,
        object: &Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        if !write.needs_check() || old.is_some_and(|old| differs_in_metadata_only(object, old)) {
            return Ok(());
        }
        match write.plural {
            "roles" | "clusterroles" => self.check_role(write, object, old),
            "rolebindings" | "clusterrolebindings"
                if !mainstay_fault::is_on("bindings-are-not-judged") =>
            {
                self.check_binding(write, object)
            }
            _ => Ok(()),
        }
    }

    fn check_role(
        &self,
        write: RbacWrite<'_>,
        object: &Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        let RbacWrite { identity, plural, namespace, name, .. } = write;
        let escalate = Attributes::resource(identity, "escalate", GROUP, plural);
        if self.decide(&escalate.in_namespace(namespace).with_name(name)).is_allowed() {
            return Ok(());
        }
        let rules: Vec<PolicyRule> = object
            .array(&["rules"])
            .iter()
            .filter_map(|rule| PolicyRule::deserialize(rule).ok())
            .collect();
        self.check_rules(write, object, &rules)?;
        let aggregates = |object: &Object| {
            object.get(&["aggregationRule"]).is_some_and(|rule| !rule.is_null())
                && !object.array(&["aggregationRule", "clusterRoleSelectors"]).is_empty()
        };
        if aggregates(object) || old.is_some_and(aggregates) {
            self.check_rules(write, object, &all_permissions()).map_err(|_| {
                let message = "must have cluster-admin privileges to use the aggregationRule";
                Status::forbidden(GROUP, plural, object.name(), message)
            })?;
        }
        Ok(())
    }

    fn check_binding(&self, write: RbacWrite<'_>, object: &Object) -> Result<(), Status> {
        let part = |field: &str| object.str(&["roleRef", field]).unwrap_or_default();
        let (group, kind, name) = (part("apiGroup"), part("kind"), part("name"));
        let resource = match kind {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            _ => "",
        };
        let bind = Attributes::resource(write.identity, "bind", group, resource);
        let bind = bind.in_namespace(write.namespace).with_name(name);
        if !resource.is_empty() && self.decide(&bind).is_allowed() {
            return Ok(());
        }
        let found = self.current().role_rules(kind, name, write.namespace, Some(write.plural));
        let rules: Arc<[PolicyRule]> = found.map_err(|error| match error {
            RoleError::UnsupportedKind { .. } => Status::new(Reason::Unknown, error.to_string()),
            RoleError::NotFound { .. } => Status::not_found(GROUP, write.plural, name),
        })?;
        self.check_rules(write, object, &rules)
    }

    fn check_rules(
        &self,
        write: RbacWrite<'_>,
        object: &Object,
        wanted: &[PolicyRule],
    ) -> Result<(), Status> {
        let identity = write.identity;
        let (held, unresolved) =
            self.current().rules_for(identity, write.namespace, Some(write.plural));
        let held: Vec<&PolicyRule> = held.iter().flat_map(|rules| rules.iter()).collect();
        let message = match cover::missing_rules(&held, wanted) {
            Ok(missing)
                if missing.is_empty() || mainstay_fault::is_on("roles-may-grant-anything") =>
            {
                return Ok(());
            }
            Ok(missing) => {
                let unresolved = unresolved.as_deref();
                cover::escalation_message(identity.user(), identity.groups(), &missing, unresolved)
            }
            Err(count) => format!(
                "the rules grant {count} single permissions, which are too many to compare with those of the user"
            ),
        };
        Err(Status::forbidden(GROUP, write.plural, object.name(), &message))
    }
}

/// All permissions, because an aggregation rule could select any of them.
fn all_permissions() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources =
        PolicyRule { api_groups: all(), resources: all(), verbs: all(), ..PolicyRule::default() };
    let paths = PolicyRule { non_resource_urls: all(), verbs: all(), ..PolicyRule::default() };
    [resources, paths]
}

/// Whether two objects differ only in metadata that garbage collection changes.
fn differs_in_metadata_only(object: &Object, old: &Object) -> bool {
    let without_metadata = |object: &Object| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            object.remove(&["metadata", field]);
        }
        object
    };
    without_metadata(object) == without_metadata(old)
}
