//! Field sets: the fields that a manager owns.
//!
//! A set is a tree of sorted vectors. A path may be a member, have members below it, or both;
//! neither implies the other. Operations work in place where possible, because each write performs
//! several of them.

use super::path::{ObjectPath, PathElement, Step};
use super::types::TypeRef;
use std::cmp::Ordering;

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by their elements without duplicates; each node is a member or has members below it.
    nodes: Vec<SetNode>,
}

/// A path element that is a member, or leads to members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SetNode {
    pub(super) element: PathElement,
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl SetNode {
    const fn is_empty(&self) -> bool {
        !self.member && self.below.nodes.is_empty()
    }
}

impl FieldSet {
    /// The empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Whether the set has no members.
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// Adds a path. The empty path, which is the whole object, is never a member.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let index = match self.nodes.binary_search_by(|node| node.element.cmp(first)) {
            Ok(index) => index,
            Err(index) => {
                let node = SetNode { element: first.clone(), member: false, below: Self::new() };
                self.nodes.insert(index, node);
                index
            }
        };
        let node = &mut self.nodes[index];
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// Whether a path is a member.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Ok(index) = self.nodes.binary_search_by(|node| node.element.cmp(first)) else {
            return false;
        };
        if rest.is_empty() {
            self.nodes[index].member
        } else {
            self.nodes[index].below.contains(rest)
        }
    }

    /// All members: those of this level first, in order of elements, then those below each element.
    pub fn paths(&self) -> Vec<ObjectPath> {
        let mut found = Vec::with_capacity(self.len());
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect<'a>(&'a self, above: &mut Vec<&'a PathElement>, found: &mut Vec<ObjectPath>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            found.push(above.iter().copied().chain([&node.element]).cloned().collect());
        }
        for node in &self.nodes {
            above.push(&node.element);
            node.below.collect(above, found);
            above.pop();
        }
    }

    /// The members of either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len() + other.nodes.len());
        let (mut left, mut right) = (self.nodes.into_iter(), other.nodes.into_iter());
        let (mut first, mut second) = (left.next(), right.next());
        loop {
            match (first, second) {
                (Some(mut one), Some(two)) => match one.element.cmp(&two.element) {
                    Ordering::Less => {
                        nodes.push(one);
                        (first, second) = (left.next(), Some(two));
                    }
                    Ordering::Greater => {
                        nodes.push(two);
                        (first, second) = (Some(one), right.next());
                    }
                    Ordering::Equal => {
                        one.member |= two.member;
                        one.below = one.below.union(two.below);
                        nodes.push(one);
                        (first, second) = (left.next(), right.next());
                    }
                },
                (Some(one), None) => {
                    nodes.push(one);
                    nodes.extend(left);
                    break;
                }
                (None, Some(two)) => {
                    nodes.push(two);
                    nodes.extend(right);
                    break;
                }
                (None, None) => break,
            }
        }
        Self { nodes }
    }

    /// The members of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut found = Self::new();
        self.visit_common(other, |node, other| {
            let member = node.member && other.member;
            let below = node.below.intersection(&other.below);
            if member || !below.is_empty() {
                found.nodes.push(SetNode { element: node.element.clone(), member, below });
            }
            true
        });
        found
    }

    /// Whether all members of this set are in another one.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut common = 0;
        let fits = self.visit_common(other, |node, other| {
            common += 1;
            (!node.member || other.member) && node.below.is_subset(&other.below)
        });
        fits && common == self.nodes.len()
    }

    /// Visits the path elements of both sets until a visit returns false; returns whether none did.
    fn visit_common<'a>(
        &'a self,
        other: &'a Self,
        mut visit: impl FnMut(&'a SetNode, &'a SetNode) -> bool,
    ) -> bool {
        let mut others = NodeSearch::new(self.nodes.len(), &other.nodes);
        for node in &self.nodes {
            if let Some(other) = others.find(&node.element)
                && !visit(node, other)
            {
                return false;
            }
        }
        true
    }

    /// The members of this set that are not in another one. Members below those of the other one
    /// stay.
    #[must_use]
    pub fn difference(mut self, other: &Self) -> Self {
        self.subtract(other, false);
        self
    }

    /// The members of this set that are neither in another one nor below one of its members.
    #[must_use]
    pub fn recursive_difference(mut self, other: &Self) -> Self {
        self.subtract(other, true);
        self
    }

    fn subtract(&mut self, other: &Self, recursive: bool) {
        if other.is_empty() {
            return;
        }
        let mut others = NodeSearch::new(self.nodes.len(), &other.nodes);
        self.nodes.retain_mut(|node| {
            let Some(other) = others.find(&node.element) else { return true };
            if recursive && other.member {
                return false;
            }
            node.member &= !other.member;
            node.below.subtract(&other.below, recursive);
            !node.is_empty()
        });
    }

    /// The members without others below them.
    #[must_use]
    pub fn leaves(mut self) -> Self {
        self.keep_leaves();
        self
    }

    fn keep_leaves(&mut self) {
        for node in &mut self.nodes {
            node.member &= node.below.is_empty();
            node.below.keep_leaves();
        }
    }

    /// Adds the declared fields of a type that have members below them. Ownership sets omit them:
    /// the owner of `.spec.replicas` does not own `.spec`.
    #[must_use]
    pub fn with_declared_fields(mut self, ty: TypeRef<'_>) -> Self {
        self.add_declared_fields(ty);
        self
    }

    fn add_declared_fields(&mut self, ty: TypeRef<'_>) {
        let atom = ty.resolve();
        for node in self.nodes.iter_mut().filter(|node| !node.below.is_empty()) {
            let below = match (&node.element, &atom.map, &atom.list) {
                (PathElement::Field(name), Some(map), _) => match map.field(name) {
                    Some(field) => {
                        node.member = true;
                        field
                    }
                    None => map.element,
                },
                (PathElement::Key(_), _, Some(list)) => list.element,
                _ => TypeRef::NOTHING,
            };
            node.below.add_declared_fields(below);
        }
    }

    /// Whether another set has this set, the declared fields above its members, and all path
    /// elements that lead to a member.
    pub(super) fn is_closed_subset(&self, other: &Self, ty: TypeRef<'_>) -> bool {
        let atom = ty.resolve();
        let mut common = 0;
        let fits = self.visit_common(other, |node, other| {
            common += 1;
            if node.member && !other.member {
                return false;
            }
            if node.below.is_empty() {
                return true;
            }
            let (declared, below) = match (&node.element, &atom.map, &atom.list) {
                (PathElement::Field(name), Some(map), _) => {
                    map.field(name).map_or((false, map.element), |field| (true, field))
                }
                (PathElement::Key(_), _, Some(list)) => (false, list.element),
                _ => (false, TypeRef::NOTHING),
            };
            (node.member || declared) && node.below.is_closed_subset(&other.below, below)
        });
        fits && common == self.nodes.len()
    }

    /// The nodes, sorted.
    pub(super) fn nodes(&self) -> &[SetNode] {
        &self.nodes
    }

    /// Keeps the nodes for which a visit, which may change them, returns true.
    pub(super) fn filter_nodes(mut self, mut keep: impl FnMut(&mut SetNode) -> bool) -> Self {
        self.nodes.retain_mut(|node| keep(node) && !node.is_empty());
        self
    }

    /// Whether a path element is a member, and the set below it.
    pub(super) fn step(&self, step: &Step<'_>) -> (bool, Option<&Self>) {
        match self.nodes.binary_search_by(|node| node.element.order(step)) {
            Ok(index) => {
                let node = &self.nodes[index];
                (node.member, (!node.below.is_empty()).then_some(&node.below))
            }
            Err(_) => (false, None),
        }
    }

    /// Whether a field is a member, and the set below it.
    pub(super) fn field(&self, name: &str) -> (bool, Option<&Self>) {
        self.step(&Step::Field(name))
    }

    /// Adds a new path element. That is cheap for one that comes after all others, as in a
    /// traversal in order.
    pub(super) fn add(&mut self, step: &Step<'_>, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = SetNode { element: step.to_element(), member, below };
        if self.nodes.last().is_none_or(|last| last.element < node.element) {
            self.nodes.push(node);
        } else {
            self.insert_node(node);
        }
    }

    /// Adds a new field.
    pub(super) fn add_field(&mut self, name: &str, member: bool, below: Self) {
        self.add(&Step::Field(name), member, below);
    }

    /// Adds a node, or merges it with the one of the same element.
    pub(super) fn insert_node(&mut self, node: SetNode) {
        match self.nodes.binary_search_by(|other| other.element.cmp(&node.element)) {
            Ok(index) => {
                let existing = &mut self.nodes[index];
                existing.member |= node.member;
                let below = std::mem::take(&mut existing.below);
                existing.below = below.union(node.below);
            }
            Err(index) => self.nodes.insert(index, node),
        }
    }

    /// A set of nodes in any order. Nodes of the same element are merged.
    pub(super) fn from_nodes(mut nodes: Vec<SetNode>) -> Self {
        if nodes.is_sorted_by(|left, right| left.element < right.element) {
            return Self { nodes };
        }
        nodes.sort_by(|left, right| left.element.cmp(&right.element));
        let mut set = Self { nodes: Vec::with_capacity(nodes.len()) };
        let mut joined = false;
        for node in nodes {
            match set.nodes.last_mut() {
                Some(last) if last.element == node.element => {
                    last.member |= node.member;
                    joined |= !node.below.is_empty() && !last.below.is_empty();
                    last.below.nodes.extend(node.below.nodes);
                }
                _ => set.nodes.push(node),
            }
        }
        if joined {
            for node in &mut set.nodes {
                node.below = Self::from_nodes(std::mem::take(&mut node.below.nodes));
            }
        }
        set
    }

    /// The union of many sets. The nodes are sorted once, which is cheaper than merging set by set.
    #[must_use]
    pub fn union_of(sets: Vec<Self>) -> Self {
        Self::from_nodes(sets.into_iter().flat_map(|set| set.nodes).collect())
    }
}

/// Finds nodes of one set in another one, in ascending order. It walks along, or uses binary search
/// if the other set is much longer. So a manager of one field does not cost a walk through the
/// whole object.
struct NodeSearch<'a> {
    others: &'a [SetNode],
    is_binary: bool,
}

impl<'a> NodeSearch<'a> {
    /// How many times longer the other set must be for binary search.
    const BINARY_SEARCH_RATIO: usize = 16;

    const fn new(count: usize, others: &'a [SetNode]) -> Self {
        let is_binary = count.saturating_mul(Self::BINARY_SEARCH_RATIO) < others.len();
        Self { others, is_binary }
    }

    fn find(&mut self, element: &PathElement) -> Option<&'a SetNode> {
        let before = if self.is_binary {
            self.others.partition_point(|other| other.element < *element)
        } else {
            self.others.iter().take_while(|other| other.element < *element).count()
        };
        self.others = &self.others[before..];
        let (first, rest) = self.others.split_first()?;
        if first.element != *element {
            return None;
        }
        self.others = rest;
        Some(first)
    }
}

impl<'a> FromIterator<&'a [PathElement]> for FieldSet {
    fn from_iter<T: IntoIterator<Item = &'a [PathElement]>>(paths: T) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path);
        }
        set
    }
}
