//! The tree of compared values, with counts of equal and different leaves.

use super::edits::{Edit, Likeness, edit_script};
use crate::go::{Kind, SCHEMA_POINTER, Schema, Type, Value};
use std::collections::{BTreeMap, HashMap};

/// Two values at one place. One of them is missing where an item or entry was added or removed.
#[derive(Debug)]
pub(crate) struct Node<'v> {
    pub(crate) kind: &'static Type,
    pub(crate) old: Option<&'v Value>,
    pub(crate) new: Option<&'v Value>,
    /// The number of equal leaves below.
    pub(crate) same: usize,
    /// The number of different leaves below.
    pub(crate) different: usize,
    /// The number of nodes below.
    pub(crate) descendants: usize,
    /// The number of levels below.
    pub(crate) depth: usize,
    /// The kind of the value around this one.
    pub(crate) parent: Option<Kind>,
    /// Fields, items or entries.
    pub(crate) records: Vec<(Key<'v>, Self)>,
    /// The target of a pointer.
    pub(crate) target: Option<Box<Self>>,
}

/// What names a child.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key<'v> {
    /// A field of a struct.
    Field(&'static str),
    /// An item of a slice.
    Item,
    /// An entry of a map.
    Entry(&'v str),
}

/// A pointer to the schema.
pub(crate) fn root_value(schema: &Schema) -> Value {
    Value::Pointer(Some(Box::new(schema.to_value())))
}

/// Compares two values that [`root_value`] made.
pub(crate) fn compare<'v>(old: &'v Value, new: &'v Value) -> Node<'v> {
    Comparer { known: HashMap::new() }.node(&SCHEMA_POINTER, Some(old), Some(new), None)
}

/// The places of two values in memory. The values outlive the comparison and do not move.
type Pair = (*const Value, *const Value);

struct Comparer {
    /// Likeness of pairs of items. Without it nested lists would be compared again on each level.
    known: HashMap<Pair, Likeness>,
}

impl Comparer {
    fn node<'v>(
        &mut self,
        kind: &'static Type,
        old: Option<&'v Value>,
        new: Option<&'v Value>,
        parent: Option<Kind>,
    ) -> Node<'v> {
        let mut node = Node {
            kind,
            old,
            new,
            same: 0,
            different: 0,
            descendants: 0,
            depth: 0,
            parent,
            records: Vec::new(),
            target: None,
        };
        let (Some(old), Some(new)) = (old, new) else {
            node.different = 1;
            return node;
        };
        let own = Some(kind.kind);
        let element = kind.element.unwrap_or(kind);
        match (old, new) {
            (Value::Struct(old), Value::Struct(new)) => {
                for ((field, old), new) in kind.fields.iter().zip(old).zip(new) {
                    let child = self.node(field.kind, Some(old), Some(new), own);
                    node.add(Key::Field(field.name), child);
                }
            }
            (Value::Pointer(Some(old)), Value::Pointer(Some(new))) => {
                let child = self.node(element, Some(old), Some(new), own);
                node.count(&child);
                node.target = Some(Box::new(child));
            }
            (Value::Slice(Some(old)), Value::Slice(Some(new))) => {
                for (old, new) in self.pairs(element, old, new) {
                    let child = self.node(element, old, new, own);
                    node.add(Key::Item, child);
                }
            }
            (Value::Map(Some(old)), Value::Map(Some(new))) => {
                for key in keys(old, new) {
                    let child = self.node(element, old.get(key), new.get(key), own);
                    node.add(Key::Entry(key), child);
                }
            }
            _ => {
                let equal = old == new;
                node.same = usize::from(equal);
                node.different = usize::from(!equal);
            }
        }
        node
    }

    /// The items of two lists that belong together, in the order of the edit script.
    fn pairs<'v>(
        &mut self,
        element: &'static Type,
        old: &'v [Value],
        new: &'v [Value],
    ) -> Vec<(Option<&'v Value>, Option<&'v Value>)> {
        let mut likeness = |x: usize, y: usize| self.likeness(element, &old[x], &new[y]);
        let edits = edit_script(old.len(), new.len(), &mut likeness);
        let (mut old, mut new) = (old.iter(), new.iter());
        let pair = |edit| match edit {
            Edit::OnlyOld => (old.next(), None),
            Edit::OnlyNew => (None, new.next()),
            Edit::Identity | Edit::Modified => (old.next(), new.next()),
        };
        edits.into_iter().map(pair).collect()
    }

    fn likeness(&mut self, kind: &'static Type, old: &Value, new: &Value) -> Likeness {
        let is_nested = kind.kind == Kind::Struct;
        let pair: Pair = (old, new);
        if is_nested && let Some(known) = self.known.get(&pair) {
            return *known;
        }
        let node = self.node(kind, Some(old), Some(new), None);
        let likeness = Likeness { same: node.same, different: node.different };
        if is_nested {
            self.known.insert(pair, likeness);
        }
        likeness
    }
}

/// The keys of both maps, sorted.
fn keys<'v>(
    old: &'v BTreeMap<String, Value>,
    new: &'v BTreeMap<String, Value>,
) -> impl Iterator<Item = &'v str> {
    let mut keys: Vec<&str> = old.keys().chain(new.keys()).map(String::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter()
}

impl<'v> Node<'v> {
    fn count(&mut self, child: &Self) {
        self.same += child.same;
        self.different += child.different;
        self.descendants += child.descendants + 1;
        self.depth = self.depth.max(child.depth + 1);
    }

    fn add(&mut self, key: Key<'v>, child: Self) {
        self.count(&child);
        self.records.push((key, child));
    }

    /// Whether this is a `[]byte`.
    pub(crate) fn is_bytes(&self) -> bool {
        self.kind.kind == Kind::Slice && self.kind.element.is_some_and(|e| e.kind == Kind::Byte)
    }
}
