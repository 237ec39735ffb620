//! A value and where it stands, and the errors that are found on the way.

use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath, PrintedKind};
use serde_json::{Map, Value};

/// One step from a value to a value inside it.
#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    /// No step: the start.
    Start,
    Field(&'p str),
    Index(usize),
    Key(&'p str),
}

/// A value and the way to it. The way is a chain of borrowed steps, written out only when there is
/// an error: an object that is good costs no path at all.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Node<'p, 'v> {
    value: &'v Value,
    up: Option<&'p Self>,
    step: Step<'p>,
}

static NULL: Value = Value::Null;

impl<'p, 'v> Node<'p, 'v> {
    /// The start of a way; its path is empty.
    pub(in super::super) const fn root(value: &'v Value) -> Self {
        Self { value, up: None, step: Step::Start }
    }

    /// A field of an object at the top: its path is the field's name.
    pub(in super::super) const fn top(value: &'v Value, field: &'p str) -> Self {
        Self { value, up: None, step: Step::Field(field) }
    }

    /// A field; null if it is absent.
    pub(in super::super) fn get(&'p self, field: &'p str) -> Self {
        let value = self.value.get(field).unwrap_or(&NULL);
        Self { value, up: Some(self), step: Step::Field(field) }
    }

    /// This path continued by a field that has another value: the original's paths do not always
    /// follow the object.
    pub(in super::super) const fn named(&'p self, field: &'p str, value: &'v Value) -> Self {
        Self { value, up: Some(self), step: Step::Field(field) }
    }

    /// An entry of a map, by its key.
    pub(in super::super) fn key(&'p self, key: &'p str) -> Self {
        let value = self.value.get(key).unwrap_or(&NULL);
        Self { value, up: Some(self), step: Step::Key(key) }
    }

    /// An element of a list; null if there is none.
    pub(in super::super) fn index(&'p self, at: usize) -> Self {
        let value = self.value.get(at).unwrap_or(&NULL);
        Self { value, up: Some(self), step: Step::Index(at) }
    }

    /// The elements of a list; none of anything else.
    pub(in super::super) fn items(&'p self) -> impl Iterator<Item = Node<'p, 'v>> {
        let up = Some(self);
        self.list().iter().enumerate().map(move |(at, value)| Node {
            value,
            up,
            step: Step::Index(at),
        })
    }

    /// The entries of a map, each at its key; none of anything else.
    pub(in super::super) fn entries(&'p self) -> impl Iterator<Item = (&'v str, Node<'p, 'v>)>
    where
        'v: 'p,
    {
        let up = Some(self);
        self.value.as_object().into_iter().flatten().map(move |(key, value)| {
            let key: &'v str = key;
            (key, Node { value, up, step: Step::Key(key) })
        })
    }

    /// The value.
    pub(in super::super) const fn value(&self) -> &'v Value {
        self.value
    }

    /// The value as a list; empty if it is none.
    pub(in super::super) fn list(&self) -> &'v [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    /// The value as a map, if it is one.
    pub(in super::super) fn map(&self) -> Option<&'v Map<String, Value>> {
        self.value.as_object()
    }

    /// How many elements or entries there are.
    pub(in super::super) fn len(&self) -> usize {
        match self.value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }

    /// Whether there is something; null is nothing.
    pub(in super::super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether a field is set.
    pub(in super::super) fn has(&self, field: &str) -> bool {
        self.value.get(field).is_some_and(|value| !value.is_null())
    }

    /// The text; empty if there is none.
    pub(in super::super) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The text of a field; empty if there is none.
    pub(in super::super) fn text_of(&self, field: &str) -> &'v str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The integer, if it is one.
    pub(in super::super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// The integer of a field, if there is one.
    pub(in super::super) fn number_of(&self, field: &str) -> Option<i64> {
        self.value.get(field).and_then(Value::as_i64)
    }

    /// Whether a field is true.
    pub(in super::super) fn is_true(&self, field: &str) -> bool {
        self.value.get(field) == Some(&Value::Bool(true))
    }

    /// The way, written out.
    pub(in super::super) fn path(&self) -> FieldPath {
        let above = self.up.map_or_else(FieldPath::root, Node::path);
        match self.step {
            Step::Start => above,
            Step::Field(field) => above.child(field),
            Step::Index(at) => above.index(at),
            Step::Key(key) => above.key(key),
        }
    }
}

/// What is found wrong, in the order in which the original finds it, bounded in its sum.
#[derive(Debug, Default)]
pub(in super::super) struct Errors(FieldErrors);

impl Errors {
    /// What was found.
    pub(in super::super) fn into_vec(self) -> Vec<FieldError> {
        self.0.into_vec()
    }

    /// Whether further errors are only counted.
    pub(in super::super) const fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// How many there are, to see whether a rule added one.
    pub(in super::super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Any error.
    pub(in super::super) fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// A value is needed.
    pub(in super::super) fn required(&mut self, at: &Node<'_, '_>, detail: impl Into<String>) {
        self.0.push_with(|| FieldError::required(&at.path(), detail));
    }

    /// A value breaks a rule.
    pub(in super::super) fn invalid(
        &mut self,
        at: &Node<'_, '_>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.0.push_with(|| FieldError::invalid(&at.path(), value, detail));
    }

    /// The node's own value breaks a rule.
    pub(in super::super) fn wrong(&mut self, at: &Node<'_, '_>, detail: impl Into<String>) {
        self.0.push_with(|| FieldError::invalid(&at.path(), at.value.clone(), detail));
    }

    /// A value breaks a rule; it is printed in a form of its own, or not at all.
    pub(in super::super) fn printed(
        &mut self,
        at: &Node<'_, '_>,
        value: Option<String>,
        detail: impl Into<String>,
    ) {
        let kind = FieldErrorKind::Printed(PrintedKind::Invalid, value);
        self.0.push_with(|| FieldError::new(&at.path(), kind, detail));
    }

    /// A value may not be set here.
    pub(in super::super) fn forbidden(&mut self, at: &Node<'_, '_>, detail: impl Into<String>) {
        self.0.push_with(|| FieldError::forbidden(&at.path(), detail));
    }

    /// A value occurs twice.
    pub(in super::super) fn duplicate(&mut self, at: &Node<'_, '_>, value: impl Into<Value>) {
        self.0.push_with(|| FieldError::duplicate(&at.path(), value));
    }

    /// A value is none of those allowed.
    pub(in super::super) fn unsupported(
        &mut self,
        at: &Node<'_, '_>,
        value: impl Into<Value>,
        allowed: &[&str],
    ) {
        self.0.push_with(|| FieldError::not_supported(&at.path(), value, allowed));
    }

    /// What a value refers to is not there.
    pub(in super::super) fn not_found(&mut self, at: &Node<'_, '_>, value: &str, detail: &str) {
        self.0.push_with(|| {
            FieldError::new(&at.path(), FieldErrorKind::NotFound(value.into()), detail)
        });
    }

    /// A value has more than so many bytes.
    pub(in super::super) fn too_long(&mut self, at: &Node<'_, '_>, most: usize) {
        self.push(FieldError::new(&at.path(), FieldErrorKind::TooLong(Some(most as u64)), ""));
    }

    /// A list has more than so many elements.
    pub(in super::super) fn too_many(&mut self, at: &Node<'_, '_>, found: usize, most: usize) {
        let kind = FieldErrorKind::TooMany(found as u64, most as u64);
        self.push(FieldError::new(&at.path(), kind, ""));
    }

    /// Each problem of a text as an error of its field.
    pub(in super::super) fn each(&mut self, at: &Node<'_, '_>, text: &str, problems: Vec<String>) {
        if problems.is_empty() {
            return;
        }
        let path = at.path();
        for why in problems {
            self.0.push_with(|| FieldError::invalid(&path, text, why));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_knows_its_way() {
        let value = json!({"spec": {"list": [{"a": 1}], "map": {"k/x": "v"}}});
        let root = Node::root(&value);
        let spec = root.get("spec");
        let list = spec.get("list");
        for item in list.items() {
            assert_eq!(item.get("a").path().as_str(), "spec.list[0].a");
            assert_eq!(item.number_of("a"), Some(1));
        }
        let map = spec.get("map");
        for (key, node) in map.entries() {
            assert_eq!((key, node.text(), node.path().as_str()), ("k/x", "v", "spec.map[k/x]"));
        }
        assert!(!spec.get("none").get("deeper").is_set());
        assert_eq!(Node::top(&value, "x").index(3).path().as_str(), "x[3]");
    }
}
