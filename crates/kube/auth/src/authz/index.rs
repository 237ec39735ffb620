//! Roles and bindings, by who they are about.
//!
//! A place is a namespace, or the whole cluster (the empty name). In each the bindings of a user,
//! and of a group, are at hand in order of their names; a binding knows the slot of its role, which
//! may be empty. So a changed role changes one slot, however many bindings name it.

use super::rules::{Gist, PolicyRule, Wanted, nullable};
use super::{Attributes, Decision, GROUP};
use crate::Identity;
use mainstay_gocompat::quote;
use mainstay_store::{Event, EventKind, Expired, Store, Stored, Watch};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// What the store calls the kinds; roles come first, so that fewer slots are empty for a while.
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

/// Namespace and name; the namespace of a cluster role is empty.
type RoleKey = (Arc<str>, Arc<str>);

/// Roles and bindings, as of a revision of the store.
#[derive(Default)]
pub(super) struct Index {
    /// The revision; zero before the first look.
    seen: u64,
    watches: Vec<(Watch, Kind)>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    names: HashMap<RoleKey, usize>,
    places: HashMap<Arc<str>, Place>,
}

/// A role that is there, or that a binding names.
struct Slot {
    key: RoleKey,
    role: Option<Role>,
    /// How many bindings name it.
    bound: usize,
}

struct Role {
    gist: Gist,
    rules: Arc<[PolicyRule]>,
    gists: Vec<Gist>,
}

impl Role {
    fn new(rules: Vec<PolicyRule>) -> Self {
        let gists: Vec<Gist> = rules.iter().map(Gist::of_rule).collect();
        let gist = gists.iter().copied().fold(Gist::default(), Gist::with);
        Self { gist, rules: rules.into(), gists }
    }

    fn allows(&self, asked: &Attributes<'_>, wanted: Wanted) -> bool {
        self.gist.may_have(wanted)
            && self
                .gists
                .iter()
                .zip(&*self.rules)
                .any(|(one, rule)| one.may_have(wanted) && rule.allows(asked))
    }
}

/// The bindings of a namespace, or of the whole cluster.
#[derive(Default)]
struct Place {
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

/// Whom a binding is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Subject {
    kind: String,
    name: String,
    namespace: Option<String>,
}

/// What is read of a role.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RoleView {
    #[serde(deserialize_with = "nullable")]
    rules: Vec<PolicyRule>,
}

/// What is read of a binding.
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
    /// The user that a service account is; none for other kinds, and for one without a namespace.
    fn account(&self, place: &str) -> Option<String> {
        let namespace = match self.namespace.as_deref() {
            None | Some("") => place,
            Some(namespace) => namespace,
        };
        let is_account = self.kind == "ServiceAccount" && !namespace.is_empty();
        is_account.then(|| format!("system:serviceaccount:{namespace}:{}", self.name))
    }

    fn is(&self, identity: &Identity, place: &str) -> bool {
        match self.kind.as_str() {
            "User" => identity.user() == self.name,
            "Group" => identity.is_in(&self.name),
            _ => self.account(place).is_some_and(|account| account == identity.user()),
        }
    }

    /// As reasons name it.
    fn shown(&self, place: &str) -> String {
        let name = match (self.kind.as_str(), self.namespace.as_deref()) {
            ("ServiceAccount", None | Some("")) => format!("{}/{place}", self.name),
            ("ServiceAccount", Some(namespace)) => format!("{}/{namespace}", self.name),
            _ => self.name.clone(),
        };
        format!("{} {}", self.kind, quote(&name))
    }
}

impl Binding {
    /// As reasons name it, with the subject that `identity` is.
    fn shown(&self, identity: &Identity) -> String {
        let (kind, name) = match &*self.namespace {
            "" => ("ClusterRoleBinding", self.name.to_string()),
            namespace => ("RoleBinding", format!("{}/{namespace}", self.name)),
        };
        let subject = self.subjects.iter().find(|one| one.is(identity, &self.namespace));
        let subject = subject.map(|one| one.shown(&self.namespace)).unwrap_or_default();
        let (name, role) = (quote(&name), quote(&self.role_name));
        format!("{kind} {name} of {} {role} to {subject}", self.role_kind)
    }
}

impl Place {
    /// The bindings of somebody: as a user, then by groups; each list in order of names.
    fn lists<'a>(&'a self, identity: &'a Identity) -> impl Iterator<Item = &'a [Arc<Binding>]> {
        let groups = identity.groups().iter().map(|group| self.groups.get(group.as_str()));
        let lists = std::iter::once(self.users.get(identity.user())).chain(groups);
        lists.flatten().map(Vec::as_slice)
    }

    /// The same as one list.
    fn bindings_of<'a>(&'a self, identity: &'a Identity) -> Vec<&'a Arc<Binding>> {
        let mut all: Vec<&Arc<Binding>> = self.lists(identity).flatten().collect();
        all.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        all
    }

    fn link(&mut self, binding: &Arc<Binding>) {
        for (by, key) in binding.keys() {
            let lists = if by == By::User { &mut self.users } else { &mut self.groups };
            let list = lists.entry(key.into_boxed_str()).or_default();
            match list.binary_search_by(|one| one.name.cmp(&binding.name)) {
                Ok(at) => list[at] = binding.clone(),
                Err(at) => list.insert(at, binding.clone()),
            }
        }
    }

    fn unlink(&mut self, binding: &Binding) {
        for (by, key) in binding.keys() {
            let lists = if by == By::User { &mut self.users } else { &mut self.groups };
            let Some(list) = lists.get_mut(key.as_str()) else { continue };
            if let Ok(at) = list.binary_search_by(|one| one.name.cmp(&binding.name)) {
                list.remove(at);
            }
            if list.is_empty() {
                lists.remove(key.as_str());
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    User,
    Group,
}

impl Binding {
    /// Under what it is found.
    fn keys(&self) -> impl Iterator<Item = (By, String)> {
        self.subjects.iter().filter_map(|subject| match subject.kind.as_str() {
            "User" => Some((By::User, subject.name.clone())),
            "Group" => Some((By::Group, subject.name.clone())),
            _ => Some((By::User, subject.account(&self.namespace)?)),
        })
    }
}

impl Index {
    /// An index of nothing, to be brought up to date.
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The revision that the index is of.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    /// Takes over what happened in the store.
    pub(super) fn catch_up(&mut self, store: &Store) {
        // The revision is read first: everything up to it is visible to the watches by now.
        let revision = store.revision();
        if self.watches.len() != KINDS.len() || self.follow().is_err() {
            while self.load(store).is_err() {
                // Only if more was written since the list than is kept, which the next list has.
            }
        }
        self.seen = revision;
    }

    fn follow(&mut self) -> Result<(), Expired> {
        let mut watches = std::mem::take(&mut self.watches);
        let mut outcome = Ok(());
        for (watch, kind) in &mut watches {
            loop {
                match watch.try_next() {
                    Ok(Some(event)) => self.take(*kind, &event),
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

    /// Reads everything anew.
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

    fn take(&mut self, kind: Kind, event: &Event) {
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
                // What was stored was validated; what cannot be read grants nothing.
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
        self.tidy(slot);
    }

    fn put_binding(&mut self, namespace: &Arc<str>, name: &Arc<str>, view: BindingView) {
        let BindingView { role_ref, subjects } = view;
        let role_name: Arc<str> = role_ref.name.into();
        let of = if role_ref.kind == "Role" { namespace.clone() } else { Arc::from("") };
        let slot = self.slot((of, role_name.clone()));
        self.slots[slot].bound += 1;
        let binding = Arc::new(Binding {
            namespace: namespace.clone(),
            name: name.clone(),
            role_kind: role_ref.kind,
            role_name,
            subjects,
            slot,
        });
        let place = self.places.entry(namespace.clone()).or_default();
        place.link(&binding);
        place.bindings.insert(name.clone(), binding);
    }

    fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(place) = self.places.get_mut(namespace) else { return };
        let Some(binding) = place.bindings.remove(name) else { return };
        place.unlink(&binding);
        if place.bindings.is_empty() {
            self.places.remove(namespace);
        }
        self.slots[binding.slot].bound -= 1;
        self.tidy(binding.slot);
    }

    /// The slot of a role; a new one if nobody named it before.
    fn slot(&mut self, key: RoleKey) -> usize {
        if let Some(at) = self.names.get(&key) {
            return *at;
        }
        let slot = Slot { key: key.clone(), role: None, bound: 0 };
        let at = if let Some(at) = self.free.pop() {
            self.slots[at] = slot;
            at
        } else {
            self.slots.push(slot);
            self.slots.len() - 1
        };
        self.names.insert(key, at);
        at
    }

    /// Gives a slot back that is empty and that nobody names.
    fn tidy(&mut self, at: usize) {
        let slot = &self.slots[at];
        if slot.role.is_none() && slot.bound == 0 {
            self.names.remove(&slot.key);
            self.free.push(at);
        }
    }

    /// The cluster's place, and that of a namespace.
    fn places(&self, namespace: &str) -> impl Iterator<Item = &Place> {
        let own = (!namespace.is_empty()).then(|| self.places.get(namespace)).flatten();
        self.places.get("").into_iter().chain(own)
    }

    /// Decides. Of several bindings that allow it the first by name is the reason, those of the
    /// cluster before those of the namespace. (The original's order is that of a hash table.)
    pub(super) fn decide(&self, asked: &Attributes<'_>) -> Decision {
        let wanted = Wanted::of(asked);
        let allows = |binding: &&Arc<Binding>| {
            let role = self.slots[binding.slot].role.as_ref();
            role.is_some_and(|role| role.allows(asked, wanted))
        };
        for place in self.places(asked.namespace) {
            let found = place.lists(asked.identity).filter_map(|list| list.iter().find(allows));
            if let Some(binding) = found.min_by(|a, b| a.name.cmp(&b.name)) {
                let by = binding.shown(asked.identity);
                return Decision::Allow(format!("RBAC: allowed by {by}"));
            }
        }
        let missing = self.missing_for(asked.identity, asked.namespace);
        let missing = missing.filter(|_| !mainstay_fault::is_on("missing-roles-are-not-named"));
        Decision::NoOpinion(missing.map(|missing| format!("RBAC: {missing}")).unwrap_or_default())
    }

    /// The roles that bindings of somebody name and that are not there.
    fn missing_for(&self, identity: &Identity, namespace: &str) -> Option<String> {
        let mut missing = Vec::new();
        for place in self.places(namespace) {
            let is_missing = |one: &&Arc<Binding>| self.slots[one.slot].role.is_none();
            let mut found: Vec<_> = place.lists(identity).flatten().filter(is_missing).collect();
            found.sort_unstable_by(|a, b| a.name.cmp(&b.name));
            missing.extend(found.into_iter().filter_map(|one| {
                self.role_rules(&one.role_kind, &one.role_name, &one.namespace, None).err()
            }));
        }
        joined(&missing)
    }

    /// The rules that hold for somebody, and what roles could not be found, in the original's words:
    /// see [`Index::role_rules`] for `asked_of`.
    pub(super) fn rules_for(
        &self,
        identity: &Identity,
        namespace: &str,
        asked_of: Option<&str>,
    ) -> (Vec<Arc<[PolicyRule]>>, Option<String>) {
        let mut rules = Vec::new();
        let mut missing = Vec::new();
        for binding in self.places(namespace).flat_map(|place| place.bindings_of(identity)) {
            let (kind, name) = (&*binding.role_kind, &*binding.role_name);
            match self.role_rules(kind, name, &binding.namespace, asked_of) {
                Ok(found) => rules.push(found),
                Err(error) => missing.push(error),
            }
        }
        (rules, joined(&missing))
    }

    /// The rules of a role that a binding in a namespace names.
    ///
    /// The original says that a role is missing in the name of the resource that it is asked of,
    /// where it reads roles from its storage to judge a write.
    pub(super) fn role_rules(
        &self,
        kind: &str,
        name: &str,
        namespace: &str,
        asked_of: Option<&str>,
    ) -> Result<Arc<[PolicyRule]>, RoleError> {
        let (of, singular) = match kind {
            "Role" => (namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            _ => return Err(RoleError::UnsupportedKind { kind: kind.to_owned() }),
        };
        let slot = self.names.get(&(Arc::from(of), Arc::from(name)));
        let role = slot.and_then(|at| self.slots[*at].role.as_ref());
        role.map(|role| role.rules.clone()).ok_or_else(|| {
            let resource = asked_of.unwrap_or(singular).to_owned();
            RoleError::NotFound { resource, name: name.to_owned() }
        })
    }
}

/// A role that a binding names is not there, in the original's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub(super) enum RoleError {
    /// The binding names another kind.
    #[error("unsupported role reference kind: {}", quote(kind))]
    UnsupportedKind {
        /// The kind.
        kind: String,
    },
    /// There is no such role.
    #[error("{resource}.{GROUP} {} not found", quote(name))]
    NotFound {
        /// What the role is called.
        resource: String,
        /// Its name.
        name: String,
    },
}

/// Errors as the original shows several: each once, in brackets if they are more than one.
fn joined(errors: &[RoleError]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let once: Vec<String> =
        errors.iter().filter(|error| seen.insert(*error)).map(ToString::to_string).collect();
    match once.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
