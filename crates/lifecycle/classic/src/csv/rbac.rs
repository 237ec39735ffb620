//! RBAC of a ClusterServiceVersion in its target namespaces.
//!
//! ```text
//! spec.install.spec.permissions ─► permissions::namespaced ─► granted? ─┬─► ClusterRole + ClusterRoleBinding
//! (all that is written)            names, rules, subjects               └─► Role + RoleBinding in each target
//! ```
//!
//! * For an OperatorGroup that targets all namespaces, each permission is *lifted* to a ClusterRole
//!   of the same name, which may also read namespaces.
//! * For any other OperatorGroup, each permission is *copied* into its target namespaces.
//!
//! **No rule is taken from objects that users write.** An admin of the CSV's namespace may create
//! Roles and RoleBindings with any labels, names and owner references there. So the rules come from
//! the CSV alone. Roles and RoleBindings of the namespace only answer whether a permission is
//! granted. It is granted while a Role with the owner labels of the CSV covers it, and a
//! RoleBinding with these labels binds that Role to the ServiceAccount of the permission. A forged
//! pair grants what the CSV says, and no more.
//!
//! **Only rules of this controller are bound.** A ClusterRole, Role or binding of another owner
//! under the same name stays as it is; nothing is bound to it, and an Event reports it. An object
//! of the CSV, by labels or by the uid of its copied CSV, is corrected. A binding is written after
//! the rules that it binds were checked.
//!
//! **The ServiceAccount of the OperatorGroup limits all of it**, if there is one: everything is
//! written with its permissions, so RBAC refuses what the ServiceAccount may not grant.
//!
//! A lifted or copied object is deleted in three cases: the OperatorGroup no longer targets its
//! namespace, the CSV no longer lists the permission, or the permission is no longer granted in the
//! CSV's own namespace. Copied objects carry `olm.copiedFrom` and belong to the copied CSV in their
//! namespace.

use super::finalizer::remove;
use super::observe::is_owner;
use super::requirements::allows;
use crate::context::{Caches, Context};
use crate::copied_csv;
use crate::error::Error;
use crate::fields::{Binding, Role, Rule};
use crate::permissions::{self, NamespacedPermission, csv_owner};
use mainstay_api::{OperatorGroup, names};
use mainstay_client::{Cluster, DeleteOptions, ObjectList};
use mainstay_controller::{RequestError, WithOperation as _};
use mainstay_object::{NamespacedName, Object, Resource, builtin};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const RBAC: &str = "rbac.authorization.k8s.io";

/// A CSV, its OperatorGroup, and the cluster client that writes the RBAC objects.
#[derive(Clone, Copy)]
pub(crate) struct TargetRbac<'a> {
    pub(crate) context: &'a Context,
    /// The cluster client with the permissions of the OperatorGroup's ServiceAccount, or with our
    /// own.
    pub(crate) cluster: &'a Cluster,
    /// The CSV.
    pub(crate) csv: &'a Object,
    pub(crate) group: &'a OperatorGroup,
}

/// The state of an object after it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placement {
    Right,
    /// An object of another owner has the name.
    Foreign,
    /// The object cannot exist now: it or its namespace is terminating, or it was deleted meanwhile.
    Absent,
}

/// Where the objects of a permission are written, and how they are identified.
struct RbacScope<'a> {
    /// The target namespace; none for the whole cluster.
    namespace: Option<&'a str>,
    /// The uid of the copied CSV in the target namespace.
    owner: Option<&'a str>,
    role: Resource,
    binding: Resource,
}

impl TargetRbac<'_> {
    /// Ensures that the CSV has its permissions in its target namespaces and nowhere else; writes
    /// only what differs. Returns why permissions are missing somewhere.
    pub(crate) async fn ensure(&self) -> Result<Vec<String>, Error> {
        let wanted = permissions::namespaced(self.csv);
        let granted = self.granted(&wanted);
        let mut missing = Vec::new();
        let outcome = self.ensure_in_targets(&granted, &mut missing).await;
        self.remove_stale(&wanted, &granted, true).await?;
        outcome.map(|()| missing)
    }

    /// Removes what the CSV has outside of its namespace for permissions that it lost. The CSV does
    /// not run, so the targets of its OperatorGroup do not matter.
    pub(crate) async fn prune(&self) -> Result<(), Error> {
        let wanted = permissions::namespaced(self.csv);
        self.remove_stale(&wanted, &self.granted(&wanted), false).await
    }

    fn targets_all(&self) -> bool {
        self.group.status.namespaces.iter().any(String::is_empty)
    }

    async fn ensure_in_targets(
        &self,
        granted: &[&NamespacedPermission],
        missing: &mut Vec<String>,
    ) -> Result<(), Error> {
        if self.targets_all() {
            let scope = RbacScope {
                namespace: None,
                owner: None,
                role: builtin::CLUSTER_ROLE,
                binding: builtin::CLUSTER_ROLE_BINDING,
            };
            return self.ensure_in_scope(&scope, granted, missing).await;
        }
        let own = self.csv.namespace();
        let mut failed = None;
        for namespace in self.group.status.namespaces.iter().filter(|namespace| **namespace != own)
        {
            // A target may be listed before it exists; its creation triggers a reconciliation.
            let key = NamespacedName::cluster(namespace.as_str());
            let target = self.context.caches.namespaces.get(&key);
            if target.is_none_or(|namespace| namespace.deleting) {
                continue;
            }
            // The objects in a target namespace belong to the copied CSV there. A failure in one
            // namespace, which its users may cause, does not stop the others.
            let copy = copied_csv::ensure(self.context, self.csv, namespace).await;
            let owner = match copy {
                Ok(Some(owner)) => owner,
                Ok(None) => continue,
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            let scope = RbacScope {
                namespace: Some(namespace),
                owner: Some(&owner),
                role: builtin::ROLE,
                binding: builtin::ROLE_BINDING,
            };
            if let Err(error) = self.ensure_in_scope(&scope, granted, missing).await {
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn ensure_in_scope(
        &self,
        scope: &RbacScope<'_>,
        granted: &[&NamespacedPermission],
        missing: &mut Vec<String>,
    ) -> Result<(), Error> {
        for permission in granted {
            let foreign = |resource: &Resource| {
                let name = scope.key(&permission.name);
                format!(
                    "{} {name} is not of this ClusterServiceVersion: ServiceAccount {}/{} lacks a permission {}; delete or rename it",
                    resource.kind,
                    self.csv.namespace(),
                    permission.account,
                    scope.namespace.map_or_else(
                        || "outside its namespace".to_owned(),
                        |namespace| format!("in namespace {namespace}")
                    ),
                )
            };
            let mut resource = &scope.role;
            let mut outcome = self.ensure_role(scope, permission).await;
            if matches!(outcome, Ok(Placement::Right)) {
                resource = &scope.binding;
                outcome = self.ensure_binding(scope, permission).await;
            }
            match outcome {
                Ok(Placement::Right | Placement::Absent) => {}
                Ok(Placement::Foreign) => missing.push(foreign(resource)),
                // The ServiceAccount of the OperatorGroup may not grant the permission; the other
                // permissions are still tried.
                Err(Error::Request(RequestError { source, .. })) if source.is_forbidden() => {
                    missing.push(
                        source.status().map_or_else(String::new, |status| status.message.clone()),
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn ensure_role(
        &self,
        scope: &RbacScope<'_>,
        permission: &NamespacedPermission,
    ) -> Result<Placement, Error> {
        let mut rules = permission.rules.as_array().cloned().unwrap_or_default();
        if scope.namespace.is_none() {
            rules.push(see_namespaces());
        }
        let key = scope.key(&permission.name);
        let caches = &self.context.caches;
        let cache = if scope.namespace.is_none() { &caches.cluster_roles } else { &caches.roles };
        let found = cache.get(&key);
        let right = |role: &Arc<Role>| {
            self.is_marked(scope, &role.labels, role.owners.iter().map(|owner| owner.uid.as_str()))
                && scope.is_owned(role.owners.iter().map(|owner| owner.uid.as_str()))
                && role.aggregation.is_none()
                && parsed(&rules).is_some_and(|rules| role.rules == rules)
        };
        if found.as_ref().is_some_and(right) {
            return Ok(Placement::Right);
        }
        let mut role = self.object(scope, &scope.role, &permission.name, &permission.role_labels);
        role.set(&["rules"], Value::Array(rules));
        self.write(scope, &scope.role, &role, found.is_some()).await
    }

    async fn ensure_binding(
        &self,
        scope: &RbacScope<'_>,
        permission: &NamespacedPermission,
    ) -> Result<Placement, Error> {
        let key = scope.key(&permission.name);
        let caches = &self.context.caches;
        let cache = if scope.namespace.is_none() {
            &caches.cluster_role_bindings
        } else {
            &caches.role_bindings
        };
        let found = cache.get(&key);
        let right = |binding: &Arc<Binding>| {
            self.is_marked(
                scope,
                &binding.labels,
                binding.owners.iter().map(|owner| owner.uid.as_str()),
            ) && scope.is_owned(binding.owners.iter().map(|owner| owner.uid.as_str()))
                && binding.role == ((*scope.role.kind).to_owned(), permission.name.clone())
                && self.binds_only(binding, &permission.account)
        };
        if found.as_ref().is_some_and(right) {
            return Ok(Placement::Right);
        }
        let labels = &permission.binding_labels;
        let mut binding = self.object(scope, &scope.binding, &permission.name, labels);
        let role_ref = json!({"apiGroup": RBAC, "kind": scope.role.kind, "name": permission.name});
        binding.set(&["roleRef"], role_ref);
        binding.set(&["subjects"], permission.subjects.clone());
        self.write(scope, &scope.binding, &binding, found.is_some()).await
    }

    fn binds_only(&self, binding: &Binding, account: &str) -> bool {
        let [subject] = binding.subjects.as_slice() else { return false };
        subject.kind == "ServiceAccount"
            && subject.name == account
            && subject.namespace == self.csv.namespace()
    }

    /// An object of the CSV in a scope.
    fn object(
        &self,
        scope: &RbacScope<'_>,
        resource: &Resource,
        name: &str,
        labels: &Map<String, Value>,
    ) -> Object {
        let mut object = Object::new(&resource.gvk(), name);
        object.set(&["metadata", "labels"], Value::Object(labels.clone()));
        if let Some(namespace) = scope.namespace {
            object.set(&["metadata", "namespace"], namespace.into());
            object.set_label(names::OWNER_NAMESPACE, namespace);
            object.set_label(names::COPIED_FROM, self.csv.namespace());
        }
        if let Some(owner) = scope.owner {
            let owner = csv_owner(self.csv.name(), owner);
            object.set(&["metadata", "ownerReferences"], json!([owner]));
        }
        object
    }

    /// Whether labels or the owner of an object make it the CSV's in a scope.
    fn is_marked<'o>(
        &self,
        scope: &RbacScope<'_>,
        labels: &BTreeMap<String, String>,
        mut owners: impl Iterator<Item = &'o str>,
    ) -> bool {
        let (own, name) = (self.csv.namespace(), self.csv.name());
        match scope.namespace {
            None => is_owner(labels, own, name),
            Some(namespace) => {
                let from = labels.get(names::COPIED_FROM).map(String::as_str);
                (from == Some(own) && is_owner(labels, namespace, name))
                    || owners.any(|uid| scope.owner == Some(uid))
            }
        }
    }

    /// Creates an object, or corrects the existing one if it belongs to the CSV.
    async fn write(
        &self,
        scope: &RbacScope<'_>,
        resource: &Resource,
        wanted: &Object,
        exists: bool,
    ) -> Result<Placement, Error> {
        const OPERATION: &str = "granting a permission in a target namespace";
        // Other clients may create and delete the object meanwhile. Nothing reports the deletion of
        // an object of another owner to this controller, so it is not waited for.
        let mut attempts = 3;
        let mut exists = exists;
        let live = loop {
            if !exists {
                match self.cluster.create(resource, wanted).await {
                    Ok(_) => return Ok(Placement::Right),
                    Err(error) if error.is_namespace_terminating() => return Ok(Placement::Absent),
                    Err(error) if error.is_already_exists() && attempts > 1 => attempts -= 1,
                    Err(error) => return Err(error).during(OPERATION).map_err(Error::from),
                }
            }
            let found = self.context.cluster.find(resource, scope.namespace, wanted.name()).await;
            match found.during(OPERATION)? {
                Some(live) => break live,
                None => exists = false,
            }
        };
        let labels = live.labels().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        let owners = live.owner_references();
        if !self.is_marked(scope, &labels, owners.iter().map(|owner| owner.uid.as_str())) {
            return Ok(Placement::Foreign);
        }
        // The end of the deletion triggers a reconciliation.
        if live.is_terminating() {
            return Ok(Placement::Absent);
        }
        let new = corrected(&live, wanted);
        if new == live {
            return Ok(Placement::Right);
        }
        // The `roleRef` of a binding is immutable.
        if live.get(&["roleRef"]) != new.get(&["roleRef"]) {
            let options = DeleteOptions::uid(live.uid());
            let gone =
                self.cluster.ensure_deleted(resource, scope.namespace, wanted.name(), &options);
            gone.await.during(OPERATION)?;
            self.cluster.create(resource, wanted).await.during(OPERATION)?;
            return Ok(Placement::Right);
        }
        match self.cluster.update(resource, &new).await {
            // It was deleted meanwhile. The cache reports that for an object with the labels of the
            // CSV, which triggers a reconciliation.
            Err(error) if error.is_not_found() => Ok(Placement::Absent),
            updated => updated.during(OPERATION).map(|_| Placement::Right).map_err(Error::from),
        }
    }

    /// The permissions that are granted in the CSV's own namespace, by the caches.
    fn granted<'p>(&self, wanted: &'p [NamespacedPermission]) -> Vec<&'p NamespacedPermission> {
        let caches = &self.context.caches;
        let own = Some(self.csv.namespace());
        let roles: Vec<_> =
            caches.roles.list(own).into_iter().map(|(k, role)| (k.name, role)).collect();
        let bindings: Vec<_> =
            caches.role_bindings.list(own).into_iter().map(|(_, binding)| binding).collect();
        self.granted_by(wanted, &roles, &bindings)
    }

    fn granted_by<'p>(
        &self,
        wanted: &'p [NamespacedPermission],
        roles: &[(Arc<str>, Arc<Role>)],
        bindings: &[Arc<Binding>],
    ) -> Vec<&'p NamespacedPermission> {
        let (own, name) = (self.csv.namespace(), self.csv.name());
        let roles: BTreeMap<&str, &Role> = roles
            .iter()
            .filter(|(_, role)| is_owner(&role.labels, own, name))
            .map(|(name, role)| (&**name, &**role))
            .collect();
        let bindings: Vec<&Arc<Binding>> =
            bindings.iter().filter(|binding| is_owner(&binding.labels, own, name)).collect();
        let is_granted = |permission: &&NamespacedPermission| {
            let Some(rules) = parsed(permission.rules.as_array().map_or(&[], Vec::as_slice)) else {
                return false;
            };
            bindings.iter().any(|binding| {
                let bound = binding.subjects.iter().any(|subject| {
                    subject.kind == "ServiceAccount"
                        && subject.name == permission.account
                        && (subject.namespace == own || subject.namespace.is_empty())
                });
                let role = roles.get(binding.role.1.as_str());
                bound
                    && binding.role.0 == *builtin::ROLE.kind
                    && role.is_some_and(|role| rules.iter().all(|rule| allows(&role.rules, rule)))
            })
        };
        wanted.iter().filter(is_granted).collect()
    }

    /// Removes lifted and copied objects that are no longer wanted. Before it removes an object
    /// because its permission seems revoked, it queries the API: the caches may have that object,
    /// but not yet the Role that grants the permission.
    async fn remove_stale(
        &self,
        wanted: &[NamespacedPermission],
        granted: &[&NamespacedPermission],
        by_target: bool,
    ) -> Result<(), Error> {
        let (own, name) = (self.csv.namespace(), self.csv.name());
        let caches = &self.context.caches;
        let namespaces = &self.group.status.namespaces;
        let mut stale = Vec::new();
        let mut doubtful = Vec::new();
        let is = |all: &[&NamespacedPermission], key: &NamespacedName| {
            all.iter().any(|object| *object.name == *key.name)
        };
        let all: Vec<&NamespacedPermission> = wanted.iter().collect();
        for (resource, key) in copies(caches, own, name) {
            let targeted =
                !by_target || namespaces.iter().any(|namespace| **namespace == *key.namespace);
            if !targeted || !is(&all, &key) {
                stale.push((resource, key));
            } else if !is(granted, &key) {
                doubtful.push((resource, key));
            }
        }
        for (resource, key) in self.lifted(wanted) {
            if (by_target && !self.targets_all()) || !is(&all, &key) {
                stale.push((resource, key));
            } else if !is(granted, &key) {
                doubtful.push((resource, key));
            }
        }
        if !doubtful.is_empty() {
            let (roles, bindings) = self.live().await?;
            let granted = self.granted_by(wanted, &roles, &bindings);
            stale.extend(doubtful.into_iter().filter(|(_, key)| !is(&granted, key)));
        }
        for (resource, key) in &stale {
            remove(self.context, resource, key).await?;
        }
        Ok(())
    }

    /// The lifted objects, bindings before their roles. They have the names of the permissions, or
    /// of the remaining Roles of permissions that the CSV no longer lists.
    fn lifted(&self, wanted: &[NamespacedPermission]) -> Vec<(Resource, NamespacedName)> {
        let caches = &self.context.caches;
        let (own, name) = (self.csv.namespace(), self.csv.name());
        let is_ours = |labels: &BTreeMap<String, String>| is_owner(labels, own, name);
        let mut bindings = Vec::new();
        let mut roles = Vec::new();
        let mut add = |key: &NamespacedName| {
            if caches
                .cluster_role_bindings
                .get(key)
                .is_some_and(|cluster_binding| is_ours(&cluster_binding.labels))
            {
                bindings.push((builtin::CLUSTER_ROLE_BINDING, key.clone()));
            }
            if caches
                .cluster_roles
                .get(key)
                .is_some_and(|cluster_role| is_ours(&cluster_role.labels))
            {
                roles.push((builtin::CLUSTER_ROLE, key.clone()));
            }
        };
        for permission in wanted {
            add(&NamespacedName::cluster(permission.name.as_str()));
        }
        // A Role of the namespace only yields a name. The ClusterRole itself shows whether it was
        // lifted, and is neither generated for a cluster permission nor part of the bundle; nobody
        // without cluster permissions can write it.
        let namespace_rules = parsed(&[see_namespaces()]).unwrap_or_default();
        for (key, role) in caches.roles.list(Some(own)) {
            if !is_ours(&role.labels) || wanted.iter().any(|object| *object.name == *key.name) {
                continue;
            }
            let key = NamespacedName::cluster(key.name);
            let twin = caches.cluster_roles.get(&key);
            let is_lifted = twin.is_some_and(|role| {
                role.labels.contains_key(names::PERMISSIONS_HASH)
                    && role.rules.ends_with(&namespace_rules)
            });
            if is_lifted
                && !permissions::cluster_role_names(self.csv).any(|name| *name == *key.name)
            {
                add(&key);
            }
        }
        bindings.extend(roles);
        bindings
    }

    /// The Roles and RoleBindings with the owner labels of the CSV, from the API.
    async fn live(&self) -> Result<(Vec<(Arc<str>, Arc<Role>)>, Vec<Arc<Binding>>), Error> {
        let cluster = &self.context.cluster;
        let own = Some(self.csv.namespace());
        // A name that is too long for a label value has no owner label.
        let all = ObjectList::labels(names::OWNER);
        let roles = cluster.list(&builtin::ROLE, own, &all).await;
        let roles = roles.during("listing the Roles of a ClusterServiceVersion")?.items;
        let bindings = cluster.list(&builtin::ROLE_BINDING, own, &all).await;
        let bindings =
            bindings.during("listing the RoleBindings of a ClusterServiceVersion")?.items;
        let roles =
            roles.iter().map(|role| (role.name().into(), Arc::new(Role::of(role)))).collect();
        Ok((roles, bindings.iter().map(|binding| Arc::new(Binding::of(binding))).collect()))
    }
}

impl RbacScope<'_> {
    fn key(&self, name: &str) -> NamespacedName {
        match self.namespace {
            Some(namespace) => NamespacedName::new(namespace, name),
            None => NamespacedName::cluster(name),
        }
    }

    fn is_owned<'o>(&self, mut owners: impl Iterator<Item = &'o str>) -> bool {
        self.owner.is_none_or(|wanted| owners.any(|uid| uid == wanted))
    }
}

/// The additional rule of a lifted ClusterRole.
fn see_namespaces() -> Value {
    json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"]})
}

/// Rules in the form that decisions compare; none if they are invalid.
fn parsed(rules: &[Value]) -> Option<Vec<Rule>> {
    rules.iter().map(|rule| serde_json::from_value(rule.clone()).ok()).collect()
}

/// A live object with the desired labels, owner, rules, role and subjects. Labels and owners of
/// other clients stay; aggregated rules do not.
fn corrected(live: &Object, wanted: &Object) -> Object {
    let mut new = live.clone();
    for (key, value) in wanted.labels() {
        new.set_label(key, value);
    }
    let owners = live.array(&["metadata", "ownerReferences"]);
    let wanted_owners = wanted.array(&["metadata", "ownerReferences"]);
    let missing = |value: &&Value| !owners.iter().any(|owner| owner["uid"] == value["uid"]);
    let more: Vec<Value> = wanted_owners.iter().filter(missing).cloned().collect();
    if !more.is_empty() {
        // An owner of the same kind and name with an old uid is dropped.
        let is_kept = |value: &&Value| {
            !wanted_owners
                .iter()
                .any(|own| own["kind"] == value["kind"] && own["name"] == value["name"])
        };
        let all: Vec<Value> = owners.iter().filter(is_kept).cloned().chain(more).collect();
        new.set(&["metadata", "ownerReferences"], all.into());
    }
    for field in ["rules", "roleRef", "subjects"] {
        if let Some(value) = wanted.get(&[field]) {
            new.set(&[field], value.clone());
        }
    }
    if wanted.get(&["rules"]).is_some() {
        new.remove(&["aggregationRule"]);
    }
    new
}

/// The Roles and RoleBindings that were copied into other namespaces for a CSV.
pub(super) fn copies(caches: &Caches, from: &str, name: &str) -> Vec<(Resource, NamespacedName)> {
    let is_copy = |key: &NamespacedName, labels: &BTreeMap<String, String>| {
        labels.get(names::COPIED_FROM).map(String::as_str) == Some(from)
            && is_owner(labels, &key.namespace, name)
    };
    let mut out = Vec::new();
    for (key, binding) in caches.role_bindings.list(None) {
        if is_copy(&key, &binding.labels) {
            out.push((builtin::ROLE_BINDING, key));
        }
    }
    for (key, role) in caches.roles.list(None) {
        if is_copy(&key, &role.labels) {
            out.push((builtin::ROLE, key));
        }
    }
    out
}
