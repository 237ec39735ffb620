//! Granted rules: all that a user, usually a ServiceAccount, may do.
//!
//! Bindings name a user, a ServiceAccount or a group. Each ServiceAccount is in three groups.
//! operator-controller leaves the groups out, and then reports permissions as missing that the account has.

use crate::covering::{matches_resource, matches_word};
use crate::rbac_object::{BindingSubject, RbacObjects, RbacRole, ReferencedRole};
use crate::rule::RbacRule;
use std::collections::{BTreeMap, BTreeSet};

/// A user with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RbacSubject {
    /// The user name, such as `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// The groups.
    pub groups: BTreeSet<String>,
}

impl RbacSubject {
    /// A ServiceAccount, with the groups that each ServiceAccount has.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        Self {
            user: format!("system:serviceaccount:{namespace}:{name}"),
            groups: groups.into_iter().collect(),
        }
    }

    /// Whether a binding in a namespace names this user or one of its groups. The namespace of a
    /// ClusterRoleBinding is empty.
    fn is_named_by(&self, subject: &BindingSubject, namespace: &str) -> bool {
        match &*subject.kind {
            "User" => subject.name == self.user,
            "Group" => self.groups.contains(&subject.name),
            "ServiceAccount" => {
                let namespace =
                    if subject.namespace.is_empty() { namespace } else { &subject.namespace };
                let account = self.user.strip_prefix("system:serviceaccount:");
                !namespace.is_empty()
                    && account.and_then(|account| account.split_once(':'))
                        == Some((namespace, &subject.name))
            }
            _ => false,
        }
    }
}

/// The rules that a user has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GrantedRules {
    /// The rules in the whole cluster.
    pub cluster: Vec<RbacRule>,
    /// The further rules in namespaces.
    pub namespaces: BTreeMap<String, Vec<RbacRule>>,
    /// The roles that bindings of the user reference and that do not exist, by the namespace of the binding;
    /// that of a ClusterRoleBinding is empty.
    pub unresolved: BTreeMap<String, BTreeSet<ReferencedRole>>,
}

/// A request about a resource.
#[derive(Clone, Copy, Debug)]
pub struct AccessRequest<'a> {
    /// The verb.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural, with its subresource: `deployments/scale`.
    pub resource: &'a str,
    /// The namespace; empty for the whole cluster.
    pub namespace: &'a str,
    /// The name of the object; empty if the request is about no single object.
    pub name: &'a str,
}

impl GrantedRules {
    /// The rules that bindings grant to a user.
    pub fn new(objects: &RbacObjects, subject: &RbacSubject) -> Self {
        let mut granted = Self::default();
        for binding in objects.bindings() {
            let namespace = &*binding.namespace;
            if !binding.subjects.iter().any(|named| subject.is_named_by(named, namespace)) {
                continue;
            }
            let reference = binding.referenced_role();
            match objects.find_role(&reference) {
                None => {
                    let unresolved = granted.unresolved.entry(namespace.to_owned());
                    unresolved.or_default().insert(reference);
                }
                Some(role) if namespace.is_empty() => {
                    granted.cluster.extend_from_slice(&role.rules);
                }
                Some(role) => {
                    let rules = granted.namespaces.entry(namespace.to_owned()).or_default();
                    rules.extend_from_slice(&role.rules);
                }
            }
        }
        granted
    }

    /// The rules of roles where they are: those of ClusterRoles in the whole cluster, those of Roles in their
    /// namespaces. Whether they are bound does not count.
    pub fn of_roles<'r>(roles: impl IntoIterator<Item = &'r RbacRole>) -> Self {
        let mut granted = Self::default();
        for RbacRole { namespace, rules, .. } in roles {
            let scope = match &**namespace {
                "" => &mut granted.cluster,
                namespace => granted.namespaces.entry(namespace.to_owned()).or_default(),
            };
            scope.extend_from_slice(rules);
        }
        granted
    }

    /// All rules that apply in a namespace; empty means the whole cluster.
    pub fn in_namespace(&self, namespace: &str) -> Vec<&RbacRule> {
        let namespaced = self.namespaces.get(namespace).into_iter().flatten();
        self.cluster.iter().chain(namespaced).collect()
    }

    /// Whether the rules allow a request.
    pub fn allow(&self, request: &AccessRequest<'_>) -> bool {
        let namespaced = self.namespaces.get(request.namespace).into_iter().flatten();
        self.cluster.iter().chain(namespaced).any(|rule| {
            matches_word(&rule.verbs, request.verb)
                && matches_word(&rule.api_groups, request.group)
                && matches_resource(rule, request.resource)
                && (rule.resource_names.is_empty()
                    || rule.resource_names.iter().any(|name| name == request.name))
        })
    }

    /// The missing roles of bindings that apply in a namespace.
    pub(crate) fn unresolved_in(&self, namespace: &str) -> impl Iterator<Item = &ReferencedRole> {
        let scopes = [Some(""), (!namespace.is_empty()).then_some(namespace)];
        scopes.into_iter().flatten().filter_map(|scope| self.unresolved.get(scope)).flatten()
    }
}
