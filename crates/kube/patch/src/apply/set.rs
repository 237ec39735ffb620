//! Sets of paths: what a manager owns.
//!
//! A set is a tree of sorted vectors. A path may be a member, have members below it, or both;
//! members above or below each other do not imply one another. Operations that can work in place
//! do, and take what they keep by value, because every write does several of them.

use super::path::{Path, PathElement, Step};
use super::types::TypeRef;
use std::cmp::Ordering;

/// A set of paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted by their elements, which are different; each is a member or has members below it.
    nodes: Vec<Node>,
}

/// A step that is a member, or leads to members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: PathElement,
    pub(super) member: bool,
    pub(super) below: Set,
}

impl Node {
    const fn is_empty(&self) -> bool {
        !self.member && self.below.nodes.is_empty()
    }
}

impl Set {
    /// The empty set.
    pub const fn new() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Whether nothing is in the set.
    pub const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many paths are in the set.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// Adds a path. The empty path, which is the whole object, is never in a set.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                let node = Node { element: first.clone(), member: false, below: Self::new() };
                self.nodes.insert(at, node);
                at
            }
        };
        let node = &mut self.nodes[at];
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
    }

    /// Whether a path is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Ok(at) = self.nodes.binary_search_by(|node| node.element.cmp(first)) else {
            return false;
        };
        if rest.is_empty() { self.nodes[at].member } else { self.nodes[at].below.contains(rest) }
    }

    /// All paths: those of one step first, each in order of elements, then those below each step.
    pub fn paths(&self) -> Vec<Path> {
        let mut found = Vec::with_capacity(self.len());
        self.collect(&mut Vec::new(), &mut found);
        found
    }

    fn collect<'a>(&'a self, above: &mut Vec<&'a PathElement>, found: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            found.push(above.iter().copied().chain([&node.element]).cloned().collect());
        }
        for node in &self.nodes {
            above.push(&node.element);
            node.below.collect(above, found);
            above.pop();
        }
    }

    /// What is in one of two sets.
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

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut found = Self::new();
        self.meet(other, |node, other| {
            let member = node.member && other.member;
            let below = node.below.intersection(&other.below);
            if member || !below.is_empty() {
                found.nodes.push(Node { element: node.element.clone(), member, below });
            }
            true
        });
        found
    }

    /// Whether everything in this set is in another one too.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut met = 0;
        let fits = self.meet(other, |node, other| {
            met += 1;
            (!node.member || other.member) && node.below.is_subset(&other.below)
        });
        fits && met == self.nodes.len()
    }

    /// Visits the steps that both sets have until one visit says no; whether none did.
    fn meet<'a>(
        &'a self,
        other: &'a Self,
        mut visit: impl FnMut(&'a Node, &'a Node) -> bool,
    ) -> bool {
        let mut others = Meeting::new(self.nodes.len(), &other.nodes);
        for node in &self.nodes {
            if let Some(other) = others.same(&node.element)
                && !visit(node, other)
            {
                return false;
            }
        }
        true
    }

    /// What is in this set and not in another one. What lies below a member of the other one
    /// stays.
    #[must_use]
    pub fn difference(mut self, other: &Self) -> Self {
        self.subtract(other, false);
        self
    }

    /// What is in this set and neither in another one nor below one of its members.
    #[must_use]
    pub fn recursive_difference(mut self, other: &Self) -> Self {
        self.subtract(other, true);
        self
    }

    fn subtract(&mut self, other: &Self, whole: bool) {
        if other.is_empty() {
            return;
        }
        let mut others = Meeting::new(self.nodes.len(), &other.nodes);
        self.nodes.retain_mut(|node| {
            let Some(other) = others.same(&node.element) else { return true };
            if whole && other.member {
                return false;
            }
            node.member &= !other.member;
            node.below.subtract(&other.below, whole);
            !node.is_empty()
        });
    }

    /// The paths that have no others below them.
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

    /// Adds the fields that a type names and that have members below them. Sets of what a manager
    /// owns do not have them: who owns `.spec.replicas` does not own `.spec`.
    #[must_use]
    pub fn with_named_fields(mut self, ty: TypeRef<'_>) -> Self {
        self.add_named_fields(ty);
        self
    }

    fn add_named_fields(&mut self, ty: TypeRef<'_>) {
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
            node.below.add_named_fields(below);
        }
    }

    /// Whether this set and the fields that a type names above its members are in another set, with
    /// everything that leads to a member.
    pub(super) fn is_closed_subset(&self, other: &Self, ty: TypeRef<'_>) -> bool {
        let atom = ty.resolve();
        let mut met = 0;
        let fits = self.meet(other, |node, other| {
            met += 1;
            if node.member && !other.member {
                return false;
            }
            if node.below.is_empty() {
                return true;
            }
            let (named, below) = match (&node.element, &atom.map, &atom.list) {
                (PathElement::Field(name), Some(map), _) => {
                    map.field(name).map_or((false, map.element), |field| (true, field))
                }
                (PathElement::Key(_), _, Some(list)) => (false, list.element),
                _ => (false, TypeRef::NOTHING),
            };
            (node.member || named) && node.below.is_closed_subset(&other.below, below)
        });
        fits && met == self.nodes.len()
    }

    /// The steps, sorted.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Keeps the steps that a visit, which may change them, says yes to.
    pub(super) fn filter_nodes(mut self, mut keep: impl FnMut(&mut Node) -> bool) -> Self {
        self.nodes.retain_mut(|node| keep(node) && !node.is_empty());
        self
    }

    /// Whether a step is a member, and what is below it.
    pub(super) fn step(&self, step: &Step<'_>) -> (bool, Option<&Self>) {
        match self.nodes.binary_search_by(|node| node.element.order(step)) {
            Ok(at) => {
                let node = &self.nodes[at];
                (node.member, (!node.below.is_empty()).then_some(&node.below))
            }
            Err(_) => (false, None),
        }
    }

    /// The same for a field.
    pub(super) fn field(&self, name: &str) -> (bool, Option<&Self>) {
        self.step(&Step::Field(name))
    }

    /// Adds a step that is not there yet. Cheap if it comes after all others, as the fields of an
    /// object do when they are visited in order.
    pub(super) fn add(&mut self, step: &Step<'_>, member: bool, below: Self) {
        if !member && below.is_empty() {
            return;
        }
        let node = Node { element: step.to_element(), member, below };
        if self.nodes.last().is_none_or(|last| last.element < node.element) {
            self.nodes.push(node);
        } else {
            self.put(node);
        }
    }

    /// The same for a field.
    pub(super) fn add_field(&mut self, name: &str, member: bool, below: Self) {
        self.add(&Step::Field(name), member, below);
    }

    /// Adds a step or joins it with the one that is there.
    pub(super) fn put(&mut self, node: Node) {
        match self.nodes.binary_search_by(|other| other.element.cmp(&node.element)) {
            Ok(at) => {
                let there = &mut self.nodes[at];
                there.member |= node.member;
                let below = std::mem::take(&mut there.below);
                there.below = below.union(node.below);
            }
            Err(at) => self.nodes.insert(at, node),
        }
    }

    /// A set of steps in any order. Those of one element become one, however many there are.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Self {
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

    /// What is in any of many sets: each step is moved as often as its set is halved, not once for
    /// every other set.
    #[must_use]
    pub fn union_of(sets: Vec<Self>) -> Self {
        Self::from_nodes(sets.into_iter().flat_map(|set| set.nodes).collect())
    }
}

/// The steps of one set that another one has too, asked for in order. Walks along, or searches
/// where few steps meet many: a manager of one field costs no walk through the whole object.
struct Meeting<'a> {
    others: &'a [Node],
    searches: bool,
}

impl<'a> Meeting<'a> {
    /// How much longer the other side must be to be searched.
    const FEW: usize = 16;

    const fn new(count: usize, others: &'a [Node]) -> Self {
        Self { others, searches: count.saturating_mul(Self::FEW) < others.len() }
    }

    fn same(&mut self, element: &PathElement) -> Option<&'a Node> {
        let before = if self.searches {
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

impl<'a> FromIterator<&'a [PathElement]> for Set {
    fn from_iter<T: IntoIterator<Item = &'a [PathElement]>>(paths: T) -> Self {
        let mut set = Self::new();
        for path in paths {
            set.insert(path);
        }
        set
    }
}
