//! Nobody grants what they do not hold.
//!
//! Who writes a role must hold everything that it grants, or have the verb `escalate` on it; who
//! writes a binding must hold everything that its role grants, or have the verb `bind` on the role.
//! An aggregation rule can gather anything, so it asks for everything. Messages are the original's.

use super::index::RoleError;
use super::rules::PolicyRule;
use super::{Attributes, Authorizer, GROUP, cover};
use crate::{Identity, MASTERS};
use mainstay_object::{Object, Reason, Status};
use serde::Deserialize;
use std::sync::Arc;

/// What is written, and by whom.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// User that writes.
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

impl Write<'_> {
    /// Whether roles or bindings are written by somebody who does not hold everything anyway.
    pub fn matters(&self) -> bool {
        self.group == GROUP && !self.identity.is_in(MASTERS)
    }
}

impl Authorizer {
    /// Refuses a role or binding that grants what its writer does not hold: with all defaults, and
    /// on an update with what was there. Says nothing of other kinds.
    pub fn confirm(
        &self,
        write: Write<'_>,
        object: &Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        if !write.matters() || old.is_some_and(|old| is_collected(object, old)) {
            return Ok(());
        }
        match write.plural {
            "roles" | "clusterroles" => self.confirm_role(write, object, old),
            "rolebindings" | "clusterrolebindings"
                if !mainstay_fault::is_on("bindings-are-not-judged") =>
            {
                self.confirm_binding(write, object)
            }
            _ => Ok(()),
        }
    }

    fn confirm_role(
        &self,
        write: Write<'_>,
        object: &Object,
        old: Option<&Object>,
    ) -> Result<(), Status> {
        let Write { identity, plural, namespace, name, .. } = write;
        let asked = Attributes::resource(identity, "escalate", GROUP, plural);
        if self.decide(&asked.in_namespace(namespace).named(name)).is_allowed() {
            return Ok(());
        }
        let rules: Vec<PolicyRule> = object
            .array(&["rules"])
            .iter()
            .filter_map(|rule| PolicyRule::deserialize(rule).ok())
            .collect();
        self.confirm_rules(write, object, &rules)?;
        let aggregates = |object: &Object| {
            object.get(&["aggregationRule"]).is_some_and(|rule| !rule.is_null())
                && !object.array(&["aggregationRule", "clusterRoleSelectors"]).is_empty()
        };
        if aggregates(object) || old.is_some_and(aggregates) {
            self.confirm_rules(write, object, &everything()).map_err(|_| {
                let why = "must have cluster-admin privileges to use the aggregationRule";
                Status::forbidden(GROUP, plural, object.name(), why)
            })?;
        }
        Ok(())
    }

    fn confirm_binding(&self, write: Write<'_>, object: &Object) -> Result<(), Status> {
        let part = |field: &str| object.str(&["roleRef", field]).unwrap_or_default();
        let (group, kind, name) = (part("apiGroup"), part("kind"), part("name"));
        let resource = match kind {
            "Role" => "roles",
            "ClusterRole" => "clusterroles",
            _ => "",
        };
        let asked = Attributes::resource(write.identity, "bind", group, resource);
        let asked = asked.in_namespace(write.namespace).named(name);
        if !resource.is_empty() && self.decide(&asked).is_allowed() {
            return Ok(());
        }
        let found = self.current().role_rules(kind, name, write.namespace, Some(write.plural));
        let rules: Arc<[PolicyRule]> = found.map_err(|error| match error {
            RoleError::UnsupportedKind { .. } => Status::new(Reason::Unknown, error.to_string()),
            RoleError::NotFound { .. } => Status::not_found(GROUP, write.plural, name),
        })?;
        self.confirm_rules(write, object, &rules)
    }

    fn confirm_rules(
        &self,
        write: Write<'_>,
        object: &Object,
        wanted: &[PolicyRule],
    ) -> Result<(), Status> {
        let identity = write.identity;
        let (held, unresolved) =
            self.current().rules_for(identity, write.namespace, Some(write.plural));
        let held: Vec<&PolicyRule> = held.iter().flat_map(|rules| rules.iter()).collect();
        let why = match cover::missing(&held, wanted) {
            Ok(missing)
                if missing.is_empty() || mainstay_fault::is_on("roles-may-grant-anything") =>
            {
                return Ok(());
            }
            Ok(missing) => {
                let unresolved = unresolved.as_deref();
                cover::refusal(identity.user(), identity.groups(), &missing, unresolved)
            }
            Err(count) => format!(
                "the rules grant {count} single permissions, which are too many to compare with those of the user"
            ),
        };
        Err(Status::forbidden(GROUP, write.plural, object.name(), &why))
    }
}

/// Everything: what an aggregation rule could gather.
fn everything() -> [PolicyRule; 2] {
    let all = || vec!["*".to_owned()];
    let resources =
        PolicyRule { api_groups: all(), resources: all(), verbs: all(), ..PolicyRule::default() };
    let paths = PolicyRule { non_resource_urls: all(), verbs: all(), ..PolicyRule::default() };
    [resources, paths]
}

/// Whether nothing differs but what garbage collection changes.
fn is_collected(object: &Object, old: &Object) -> bool {
    let bare = |object: &Object| {
        let mut object = object.clone();
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            object.remove(&["metadata", field]);
        }
        object
    };
    bare(object) == bare(old)
}
