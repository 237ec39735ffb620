//! The ownership graph: owners, their dependents, and the objects that a change makes the collector
//! check.

use mainstay_object::{NamespacedName, Object, OwnerReference, Resource};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// The finalizer by which a deleted owner waits for its dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer by which a deleted owner waits until its dependents have forgotten it.
pub(crate) const ORPHAN: &str = "orphan";

/// An object that the collector has to check.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    pub(crate) uid: Arc<str>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) key: NamespacedName,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.resource.group_resource(), self.key)
    }
}

/// The metadata of an object in the graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) item: Item,
    pub(crate) owners: Vec<OwnerReference>,
    pub(crate) terminating: bool,
    /// The object is being deleted and waits for its dependents.
    pub(crate) foreground: bool,
    /// The object is being deleted and its dependents must drop their references to it.
    pub(crate) orphan: bool,
}

impl Node {
    /// Reads the metadata of an object.
    pub(crate) fn of(resource: &Arc<Resource>, object: &Object) -> Self {
        let terminating = object.is_terminating();
        let held_by =
            |name: &str| terminating && object.finalizers().any(|finalizer| finalizer == name);
        Self {
            item: Item {
                uid: object.uid().into(),
                resource: Arc::clone(resource),
                key: object.key(),
            },
            owners: object.owner_references(),
            terminating,
            foreground: held_by(FOREGROUND),
            orphan: held_by(ORPHAN),
        }
    }

    /// Whether a reference by this object's uid also gives the object's kind, name and namespace:
    /// its namespace is that of the dependent, or none.
    pub(crate) fn is_named_by(&self, owner: &OwnerReference, dependent: &Item) -> bool {
        let namespace = self.item.key.namespace();
        *owner.name == *self.item.key.name
            && *owner.kind == *self.item.resource.kind
            && (namespace.is_none() || namespace == dependent.key.namespace())
    }

    fn is_owned_by(&self, uid: &str) -> bool {
        self.owners.iter().any(|owner| owner.uid == uid)
    }
}

/// All objects by uid, and the dependents of each.
#[derive(Default)]
pub(crate) struct Graph {
    nodes: FxHashMap<Arc<str>, Arc<Node>>,
    dependents: FxHashMap<Arc<str>, FxHashSet<Arc<str>>>,
    /// The uids of the objects that were removed last, oldest first; at most [`Graph::REMEMBERED`].
    removed: VecDeque<Arc<str>>,
}

impl Graph {
    /// As many absent owners as kube-controller-manager remembers.
    const REMEMBERED: usize = 500;

    /// Whether the object of a uid was removed recently.
    pub(crate) fn was_removed(&self, uid: &str) -> bool {
        self.removed.iter().any(|removed_uid| **removed_uid == *uid)
    }

    /// The object of a uid.
    pub(crate) fn get(&self, uid: &str) -> Option<&Arc<Node>> {
        self.nodes.get(uid)
    }

    /// The objects that name a uid as owner, whether or not that owner is known.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Arc<Node>> {
        let uids = self.dependents.get(uid).into_iter().flatten();
        uids.filter_map(|uid| self.nodes.get(uid)).cloned().collect()
    }

    /// Adds a new or changed object and returns the objects that must be checked.
    pub(crate) fn put(&mut self, node: &Arc<Node>) -> Vec<Item> {
        let uid = &node.item.uid;
        let old = self.nodes.insert(Arc::clone(uid), Arc::clone(node));
        let mut to_check = Vec::new();
        let old_owners = old.as_ref().map_or(&[][..], |old| old.owners.as_slice());
        for owner in old_owners.iter().filter(|owner| !node.is_owned_by(&owner.uid)) {
            self.forget(&owner.uid, uid);
            to_check.extend(self.waiting(&owner.uid));
        }
        let mut doubtful = false;
        for owner in &node.owners {
            self.dependents.entry(owner.uid.as_str().into()).or_default().insert(Arc::clone(uid));
            let is_new = old.as_ref().is_none_or(|old| !old.is_owned_by(&owner.uid));
            doubtful |= is_new
                && self.nodes.get(owner.uid.as_str()).is_none_or(|owner_node| {
                    owner_node.foreground || !owner_node.is_named_by(owner, &node.item)
                });
            // The owner may wait for a reference that no longer blocks its deletion.
            let unblocked = !is_new && old_owners != node.owners.as_slice();
            if unblocked {
                to_check.extend(self.waiting(&owner.uid));
            }
        }
        if doubtful {
            to_check.push(node.item.clone());
        }
        if node.foreground && !old.as_ref().is_some_and(|old| old.foreground) {
            to_check
                .extend(self.dependents(uid).into_iter().map(|dependent| dependent.item.clone()));
            to_check.push(node.item.clone());
        }
        if node.orphan && !old.as_ref().is_some_and(|old| old.orphan) {
            to_check.push(node.item.clone());
        }
        to_check
    }

    /// Removes an object that is gone and returns the objects that must be checked.
    pub(crate) fn remove(&mut self, uid: &str) -> Vec<Item> {
        let Some((uid, node)) = self.nodes.remove_entry(uid) else { return Vec::new() };
        let uid = &*uid;
        if self.removed.len() == Self::REMEMBERED {
            self.removed.pop_front();
        }
        self.removed.push_back(uid.into());
        let mut to_check = Vec::new();
        for owner in &node.owners {
            self.forget(&owner.uid, uid);
            to_check.extend(self.waiting(&owner.uid));
        }
        to_check.extend(self.dependents(uid).into_iter().map(|dependent| dependent.item.clone()));
        to_check
    }

    fn waiting(&self, uid: &str) -> Option<Item> {
        self.nodes.get(uid).filter(|owner| owner.foreground).map(|owner| owner.item.clone())
    }

    fn forget(&mut self, owner: &str, dependent: &str) {
        if let Some(set) = self.dependents.get_mut(owner) {
            set.remove(dependent);
            if set.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::builtin;
    use serde_json::{Value, json};

    fn node(uid: &str, owners: &[&str], finalizer: Option<&str>) -> Arc<Node> {
        let owners: Vec<Value> = owners
            .iter()
            .map(|uid| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid}))
            .collect();
        let mut object = Object::from_value(json!({
            "metadata": {"name": uid, "namespace": "n", "uid": uid, "ownerReferences": owners},
        }))
        .unwrap();
        if let Some(finalizer) = finalizer {
            object.set(&["metadata", "finalizers"], json!([finalizer]));
            object.set(&["metadata", "deletionTimestamp"], "2026-01-01T00:00:00Z".into());
        }
        Arc::new(Node::of(&Arc::new(builtin::CONFIG_MAP), &object))
    }

    fn names(items: &[Item]) -> Vec<&str> {
        let mut names: Vec<&str> = items.iter().map(|item| &*item.uid).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn only_dependents_of_unknown_or_terminating_owners_are_checked() {
        let mut graph = Graph::default();
        assert_eq!(names(&graph.put(&node("owner", &[], None))), [""; 0]);
        assert_eq!(names(&graph.put(&node("child", &["owner"], None))), [""; 0]);
        assert_eq!(names(&graph.put(&node("lost", &["nobody"], None))), ["lost"]);
        assert_eq!(names(&graph.remove("owner")), ["child"]);
        assert_eq!(names(&graph.remove("child")), [""; 0]);
    }

    #[test]
    fn a_waiting_owner_is_checked_when_a_dependent_is_removed() {
        let mut graph = Graph::default();
        graph.put(&node("owner", &[], None));
        graph.put(&node("child", &["owner"], None));
        let waiting = node("owner", &[], Some(FOREGROUND));
        assert_eq!(names(&graph.put(&waiting)), ["child", "owner"]);
        assert_eq!(names(&graph.put(&waiting)), [""; 0]);
        assert_eq!(names(&graph.put(&node("late", &["owner"], None))), ["late"]);
        assert_eq!(names(&graph.remove("child")), ["owner"]);
        assert_eq!(names(&graph.put(&node("late", &[], None))), ["owner"]);
        assert!(graph.dependents("owner").is_empty());
    }

    #[test]
    fn an_orphaning_owner_is_checked_once() {
        let mut graph = Graph::default();
        let orphaning = node("owner", &[], Some(ORPHAN));
        assert_eq!(names(&graph.put(&orphaning)), ["owner"]);
        assert_eq!(names(&graph.put(&orphaning)), [""; 0]);
    }
}
