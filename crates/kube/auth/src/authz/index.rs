//! The RBAC index: roles and bindings by subject.
//!
//! A scope is a namespace, or the whole cluster (the empty name). In each scope, the bindings of a
//! user or group are sorted by name. A binding knows the slot of its role, which may be empty. So a
//! changed role changes one slot, however many bindings refer to it.

use super::rules::{PolicyRule, RuleFilter, WantedFilter, nullable};
use super::{Attributes, Decision, GROUP};
use crate::Identity;
use mainstay_gocompat::quote;
use mainstay_store::{Event, EventKind, Expired, Store, Stored, WatchCursor};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The store's keys of the kinds. Roles are loaded first, so that fewer slots are empty meanwhile.
const KINDS: [(&str, Kind); 4] = [
    ("rbac.authorization.k8s.io/clusterroles", Kind::Role),
    ("rbac.authorization.k8s.io/roles", Kind::Role),
    ("rbac.authorization.k8s.io/clusterrolebindings", Kind::Binding),
    ("rbac.authorization.k8s.io/rolebindings", Kind::Binding),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Role,
    Binding,
}

/// Namespace and name; the namespace of a ClusterRole is empty.
type RoleKey = (Arc<str>, Arc<str>);

/// Roles and bindings at a revision of the store.
#[derive(Default)]
pub(super) struct Index {
    /// The revision; zero before the first update.
    revision: u64,
    watches: Vec<(WatchCursor, Kind)>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    role_slots: HashMap<RoleKey, usize>,
    scopes: HashMap<Arc<str>, BindingScope>,
}

/// A role that exists, or that a binding refers to.
struct Slot {
    key: RoleKey,
    role: Option<Role>,
    /// How many bindings refer to the role.
    bindings: usize,
}

struct Role {
    filter: RuleFilter,
    rules: Arc<[PolicyRule]>,
    rule_filters: Vec<RuleFilter>,
}

impl Role {
    fn new(rules: Vec<PolicyRule>) -> Self {
        let rule_filters: Vec<RuleFilter> = rules.iter().map(RuleFilter::of_rule).collect();
        let filter = rule_filters.iter().copied().fold(RuleFilter::default(), RuleFilter::union);
        Self { filter, rules: rules.into(), rule_filters }
    }

    fn allows(&self, attributes: &Attributes<'_>, wanted: WantedFilter) -> bool {
        self.filter.may_match(wanted)
            && self
                .rule_filters
                .iter()
                .zip(&*self.rules)
                .any(|(filter, rule)| filter.may_match(wanted) && rule.allows(attributes))
    }
}

/// The bindings of a namespace, or of the whole cluster.
#[derive(Default)]
struct BindingScope {
    bindings: HashMap<Arc<str>, Arc<Binding>>,
    users: HashMap<Box<str>, Vec<Arc<Binding>>>,
    groups: HashMap<Box<str>, Vec<Arc<Binding>>>,
}

pub(super) struct Binding {
    namespace: Arc<str>,
    name: Arc<str>,
    role_kind: String,
    role_name: Arc<str>,
    subjects: Vec<Subject>,
    slot: usize,
}

/// A subject of a binding.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: Option<String>,
}

/// The fields of a role that the index reads.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleView {
    #[serde(deserialize_with = "nullable")]
    rules: Vec<PolicyRule>,
}

/// The fields of a binding that the index reads.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BindingView {
    role_ref: RoleRef,
    #[serde(deserialize_with = "nullable")]
    subjects: Vec<Subject>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleRef {
    kind: String,
    name: String,
}

impl Subject {
    /// The user name of a ServiceAccount; none for other kinds, and without a namespace.
    fn account(&self, scope: &str) -> Option<String> {
        let namespace = match self.namespace.as_deref() {
            None | Some("") => scope,
            Some(namespace) => namespace,
        };
        let is_account = self.kind == "ServiceAccount" && !namespace.is_empty();
        is_account.then(|| format!("system:serviceaccount:{namespace}:{}", self.name))
    }

    fn matches(&self, identity: &Identity, scope: &str) -> bool {
        match self.kind.as_str() {
            "User" => identity.user() == self.name,
            "Group" => identity.is_in(&self.name),
            _ => self.account(scope).is_some_and(|account| account == identity.user()),
        }
    }

    /// The text for the reason of a decision.
    fn describe(&self, scope: &str) -> String {
        let name = match (self.kind.as_str(), self.namespace.as_deref()) {
            ("ServiceAccount", None | Some("")) => format!("{}/{scope}", self.name),
            ("ServiceAccount", Some(namespace)) => format!("{}/{namespace}", self.name),
            _ => self.name.clone(),
        };
        format!("{} {}", self.kind, quote(&name))
    }
}

impl Binding {
    /// The text for the reason of a decision, with the subject that matches `identity`.
    fn describe(&self, identity: &Identity) -> String {
        let (kind, name) = match &*self.namespace {
            "" => ("ClusterRoleBinding", self.name.to_string()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        let subject =
            self.subjects.iter().find(|subject| subject.matches(identity, &self.namespace));
        let subject = subject.map(|subject| subject.describe(&self.namespace)).unwrap_or_default();
        let (name, role) = (quote(&name), quote(&self.role_name));
        format!("{kind} {name} of {} {role} to {subject}", self.role_kind)
    }
}

impl BindingScope {
    /// The bindings of a user, then those of the groups; each list sorted by name.
    fn lists<'a>(&'a self, identity: &'a Identity) -> impl Iterator<Item = &'a [Arc<Binding>]> {
        let groups = identity.groups().iter().map(|group| self.groups.get(group.as_str()));
        let lists = std::iter::once(self.users.get(identity.user())).chain(groups);
        lists.flatten().map(Vec::as_slice)
    }

    /// All bindings of an identity, sorted by name.
    fn bindings_of<'a>(&'a self, identity: &'a Identity) -> Vec<&'a Arc<Binding>> {
        let mut all: Vec<&Arc<Binding>> = self.lists(identity).flatten().collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        all
    }

    fn link(&mut self, binding: &Arc<Binding>) {
        for (subject_type, key) in binding.subject_keys() {
            let lists =
                if subject_type == SubjectType::User { &mut self.users } else { &mut self.groups };
            let list = lists.entry(key.into_boxed_str()).or_default();
            match list.binary_search_by(|other| other.name.cmp(&binding.name)) {
                Ok(index) => list[index] = binding.clone(),
                Err(index) => list.insert(index, binding.clone()),
            }
        }
    }

    fn unlink(&mut self, binding: &Binding) {
        for (subject_type, key) in binding.subject_keys() {
            let lists =
                if subject_type == SubjectType::User { &mut self.users } else { &mut self.groups };
            let Some(list) = lists.get_mut(key.as_str()) else { continue };
            if let Ok(index) = list.binary_search_by(|other| other.name.cmp(&binding.name)) {
                list.remove(index);
            }
            if list.is_empty() {
                lists.remove(key.as_str());
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SubjectType {
    User,
    Group,
}

impl Binding {
    /// The keys of the binding in the lists of users and groups.
    fn subject_keys(&self) -> impl Iterator<Item = (SubjectType, String)> {
        self.subjects.iter().filter_map(|subject| match subject.kind.as_str() {
            "User" => Some((SubjectType::User, subject.name.clone())),
            "Group" => Some((SubjectType::Group, subject.name.clone())),
            _ => Some((SubjectType::User, subject.account(&self.namespace)?)),
        })
    }
}

impl Index {
    /// An empty index at revision zero.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The revision of the index.
    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Updates the index to the current revision of the store.
    pub(super) fn update(&mut self, store: &Store) {
        // The revision is read first: the watches have all events up to it.
        let revision = store.revision();
        if self.watches.len() != KINDS.len() || self.apply_events().is_err() {
            while self.load(store).is_err() {
                // The watch expired before it began. The next list has the missed changes.
            }
        }
        self.revision = revision;
    }

    fn apply_events(&mut self) -> Result<(), Expired> {
        let mut watches = std::mem::take(&mut self.watches);
        let mut outcome = Ok(());
        for (watch, kind) in &mut watches {
            loop {
                match watch.try_next() {
                    Ok(Some(event)) => self.apply_event(*kind, &event),
                    Ok(None) => break,
                    Err(expired) => {
                        outcome = Err(expired);
                        break;
                    }
                }
            }
        }
        self.watches = watches;
        outcome
    }

    /// Loads all roles and bindings from the store.
    fn load(&mut self, store: &Store) -> Result<(), Expired> {
        *self = Self::default();
        for (resource, kind) in KINDS {
            let list = store.list(resource, None);
            self.watches.push((store.watch(resource, list.revision())?, kind));
            for stored in list.iter() {
                self.put(kind, stored);
            }
        }
        Ok(())
    }

    fn apply_event(&mut self, kind: Kind, event: &Event) {
        match event.kind {
            EventKind::Added | EventKind::Modified => self.put(kind, &event.object),
            EventKind::Deleted => {
                let key = &event.object.key;
                match kind {
                    Kind::Role => self.put_role((key.namespace.clone(), key.name.clone()), None),
                    Kind::Binding if mainstay_fault::is_on("deleted-bindings-stay-in-force") => {}
                    Kind::Binding => self.remove_binding(&key.namespace, &key.name),
                }
            }
        }
    }

    fn put(&mut self, kind: Kind, stored: &Stored) {
        let key = &stored.key;
        match kind {
            Kind::Role => {
                // Stored objects are valid; one that does not parse grants nothing.
                let view: RoleView = stored.parse().unwrap_or_default();
                let role = Role::new(view.rules);
                self.put_role((key.namespace.clone(), key.name.clone()), Some(role));
            }
            Kind::Binding => {
                let view: BindingView = stored.parse().unwrap_or_default();
                self.remove_binding(&key.namespace, &key.name);
                self.put_binding(&key.namespace, &key.name, view);
            }
        }
    }

    fn put_role(&mut self, key: RoleKey, role: Option<Role>) {
        let slot = self.slot(key);
        self.slots[slot].role = role;
        self.free_if_unused(slot);
    }

    fn put_binding(&mut self, namespace: &Arc<str>, name: &Arc<str>, view: BindingView) {
        let BindingView { role_ref, subjects } = view;
        let role_name: Arc<str> = role_ref.name.into();
        let role_namespace =
            if role_ref.kind == "Role" { namespace.clone() } else { Arc::from("") };
        let slot = self.slot((role_namespace, role_name.clone()));
        self.slots[slot].bindings += 1;
        let binding = Arc::new(Binding {
            namespace: namespace.clone(),
            name: name.clone(),
            role_kind: role_ref.kind,
            role_name,
            subjects,
            slot,
        });
        let scope = self.scopes.entry(namespace.clone()).or_default();
        scope.link(&binding);
        scope.bindings.insert(name.clone(), binding);
    }

    fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(scope) = self.scopes.get_mut(namespace) else { return };
        let Some(binding) = scope.bindings.remove(name) else { return };
        scope.unlink(&binding);
        if scope.bindings.is_empty() {
            self.scopes.remove(namespace);
        }
        self.slots[binding.slot].bindings -= 1;
        self.free_if_unused(binding.slot);
    }

    /// The slot of a role; a new one for an unknown role.
    fn slot(&mut self, key: RoleKey) -> usize {
        if let Some(index) = self.role_slots.get(&key) {
            return *index;
        }
        let slot = Slot { key: key.clone(), role: None, bindings: 0 };
        let index = if let Some(index) = self.free.pop() {
            self.slots[index] = slot;
            index
        } else {
            self.slots.push(slot);
            self.slots.len() - 1
        };
        self.role_slots.insert(key, index);
        index
    }

    /// Frees a slot without a role and without bindings.
    fn free_if_unused(&mut self, index: usize) {
        let slot = &self.slots[index];
        if slot.role.is_none() && slot.bindings == 0 {
            self.role_slots.remove(&slot.key);
            self.free.push(index);
        }
    }

    /// The scope of the cluster, then that of a namespace.
    fn scopes(&self, namespace: &str) -> impl Iterator<Item = &BindingScope> {
        let own = (!namespace.is_empty()).then(|| self.scopes.get(namespace)).flatten();
        self.scopes.get("").into_iter().chain(own)
    }

    /// Decides a request. The reason is the first binding by name that allows the request; bindings
    /// of the cluster come before those of the namespace. (kube-apiserver's order is that of a hash
    /// table.)
    pub(super) fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        let wanted = WantedFilter::of(attributes);
        let allows = |binding: &&Arc<Binding>| {
            let role = self.slots[binding.slot].role.as_ref();
            role.is_some_and(|role| role.allows(attributes, wanted))
        };
        for scope in self.scopes(attributes.namespace) {
            let found =
                scope.lists(attributes.identity).filter_map(|list| list.iter().find(allows));
            if let Some(binding) = found.min_by(|a, b| a.name.cmp(&b.name)) {
                let binding = binding.describe(attributes.identity);
                return Decision::Allow(format!("RBAC: allowed by {binding}"));
            }
        }
        let missing = self.missing_roles(attributes.identity, attributes.namespace);
        let missing = missing.filter(|_| !mainstay_fault::is_on("missing-roles-are-not-named"));
        Decision::NoOpinion(missing.map(|missing| format!("RBAC: {missing}")).unwrap_or_default())
    }

    /// The error about missing roles that bindings of an identity refer to.
    fn missing_roles(&self, identity: &Identity, namespace: &str) -> Option<String> {
        let mut missing = Vec::new();
        for scope in self.scopes(namespace) {
            let is_missing = |binding: &&Arc<Binding>| self.slots[binding.slot].role.is_none();
            let mut found: Vec<_> = scope.lists(identity).flatten().filter(is_missing).collect();
            found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            missing.extend(found.into_iter().filter_map(|binding| {
                self.role_rules(&binding.role_kind, &binding.role_name, &binding.namespace, None)
                    .err()
            }));
        }
        aggregate_errors(&missing)
    }

    /// The rules that apply to an identity, and the error about missing roles.
    /// [`Index::role_rules`] explains `resource`.
    pub(super) fn rules_for(
        &self,
        identity: &Identity,
        namespace: &str,
        resource: Option<&str>,
    ) -> (Vec<Arc<[PolicyRule]>>, Option<String>) {
        let mut rules = Vec::new();
        let mut missing = Vec::new();
        for binding in self.scopes(namespace).flat_map(|scope| scope.bindings_of(identity)) {
            let (kind, name) = (&*binding.role_kind, &*binding.role_name);
            match self.role_rules(kind, name, &binding.namespace, resource) {
                Ok(found) => rules.push(found),
                Err(error) => missing.push(error),
            }
        }
        (rules, aggregate_errors(&missing))
    }

    /// The rules of a role that a binding in a namespace refers to.
    ///
    /// kube-apiserver reads roles from storage to check a write. Its error about a missing role
    /// then has the resource of the write, `resource`.
    pub(super) fn role_rules(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
        resource: Option<&str>,
    ) -> Result<Arc<[PolicyRule]>, RoleError> {
        let (role_namespace, singular) = match kind {
            "Role" => (namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            _ => return Err(RoleError::UnsupportedKind { kind: kind.to_owned() }),
        };
        let slot = self.role_slots.get(&(Arc::from(role_namespace), Arc::from(name)));
        let role = slot.and_then(|index| self.slots[*index].role.as_ref());
        role.map(|role| role.rules.clone()).ok_or_else(|| {
            let resource = resource.unwrap_or(singular).to_owned();
            RoleError::NotFound { resource, name: name.to_owned() }
        })
    }
}

/// A role of a binding does not exist; the texts are kube-apiserver's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(super) enum RoleError {
    /// The binding refers to another kind.
    #[error("unsupported role reference kind: {}", quote(kind))]
    UnsupportedKind {
        /// The kind.
        kind: String,
    },
    /// The role does not exist.
    #[error("{resource}.{GROUP} {} not found", quote(name))]
    NotFound {
        /// The resource of the role.
        resource: String,
        /// The name of the role.
        name: String,
    },
}

/// Several errors as Go's `utilerrors.Aggregate` prints them: each once, in brackets for more than
/// one.
fn aggregate_errors(errors: &[RoleError]) -> Option<String> {
    let mut unique = BTreeSet::new();
    let texts: Vec<String> =
        errors.iter().filter(|error| unique.insert(*error)).map(ToString::to_string).collect();
    match texts.as_slice() {
        [] => None,
        [text] => Some(text.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
