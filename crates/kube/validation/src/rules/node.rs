//! A JSON value with its field path, and the collected errors.

use mainstay_object::{FieldError, FieldErrorKind, FieldErrors, FieldPath, PrintedKind};
use serde_json::{Map, Value};

/// One step of a field path.
#[derive(Clone, Copy, Debug)]
enum PathStep<'p> {
    /// The root, without a step.
    Start,
    Field(&'p str),
    Index(usize),
    Key(&'p str),
}

/// A value and its field path. The path is a chain of borrowed steps; it is formatted only for an
/// error, so a valid object costs no path.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Node<'p, 'v> {
    value: &'v Value,
    parent: Option<&'p Self>,
    step: PathStep<'p>,
}

static NULL: Value = Value::Null;

impl<'p, 'v> Node<'p, 'v> {
    /// A root node; its path is empty.
    pub(in super::super) const fn root(value: &'v Value) -> Self {
        Self { value, parent: None, step: PathStep::Start }
    }

    /// A top-level field of an object: its path is the field name.
    pub(in super::super) const fn top_level(value: &'v Value, field: &'p str) -> Self {
        Self { value, parent: None, step: PathStep::Field(field) }
    }

    /// A field; null if it is absent.
    pub(in super::super) fn get(&'p self, field: &'p str) -> Self {
        let value = self.value.get(field).unwrap_or(&NULL);
        Self { value, parent: Some(self), step: PathStep::Field(field) }
    }

    /// A child with this field name in its path and another value: paths in Kubernetes do not always
    /// follow the object.
    pub(in super::super) const fn child_with_value(
        &'p self,
        field: &'p str,
        value: &'v Value,
    ) -> Self {
        Self { value, parent: Some(self), step: PathStep::Field(field) }
    }

    /// An entry of a map, by its key.
    pub(in super::super) fn key(&'p self, key: &'p str) -> Self {
        let value = self.value.get(key).unwrap_or(&NULL);
        Self { value, parent: Some(self), step: PathStep::Key(key) }
    }

    /// An element of a list; null if it is absent.
    pub(in super::super) fn index(&'p self, at: usize) -> Self {
        let value = self.value.get(at).unwrap_or(&NULL);
        Self { value, parent: Some(self), step: PathStep::Index(at) }
    }

    /// The elements of a list; none for other values.
    pub(in super::super) fn items(&'p self) -> impl Iterator<Item = Node<'p, 'v>> {
        let parent = Some(self);
        self.list().iter().enumerate().map(move |(at, value)| Node {
            value,
            parent,
            step: PathStep::Index(at),
        })
    }

    /// The entries of a map; none for other values.
    pub(in super::super) fn entries(&'p self) -> impl Iterator<Item = (&'v str, Node<'p, 'v>)>
    where
        'v: 'p,
    {
        let parent = Some(self);
        self.value.as_object().into_iter().flatten().map(move |(key, value)| {
            let key: &'v str = key;
            (key, Node { value, parent, step: PathStep::Key(key) })
        })
    }

    /// The value.
    pub(in super::super) const fn value(&self) -> &'v Value {
        self.value
    }

    /// The value as a list; empty for other values.
    pub(in super::super) fn list(&self) -> &'v [Value] {
        self.value.as_array().map_or(&[], Vec::as_slice)
    }

    /// The value as a map, if it is one.
    pub(in super::super) fn map(&self) -> Option<&'v Map<String, Value>> {
        self.value.as_object()
    }

    /// The number of elements or entries.
    pub(in super::super) fn len(&self) -> usize {
        match self.value {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        }
    }

    /// Whether the value is not null.
    pub(in super::super) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Whether a field is not null.
    pub(in super::super) fn has(&self, field: &str) -> bool {
        self.value.get(field).is_some_and(|value| !value.is_null())
    }

    /// The string; empty for other values.
    pub(in super::super) fn text(&self) -> &'v str {
        self.value.as_str().unwrap_or_default()
    }

    /// The string of a field; empty for other values.
    pub(in super::super) fn text_of(&self, field: &str) -> &'v str {
        self.value.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The value as an integer.
    pub(in super::super) fn number(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// The integer of a field.
    pub(in super::super) fn number_of(&self, field: &str) -> Option<i64> {
        self.value.get(field).and_then(Value::as_i64)
    }

    /// Whether a field is true.
    pub(in super::super) fn is_true(&self, field: &str) -> bool {
        self.value.get(field) == Some(&Value::Bool(true))
    }

    /// The formatted path.
    pub(in super::super) fn path(&self) -> FieldPath {
        let above = self.parent.map_or_else(FieldPath::root, Node::path);
        match self.step {
            PathStep::Start => above,
            PathStep::Field(field) => above.child(field),
            PathStep::Index(at) => above.index(at),
            PathStep::Key(key) => above.key(key),
        }
    }
}

/// Field errors in the order in which Kubernetes finds them, with a bound on their total.
#[derive(Debug, Default)]
pub(in super::super) struct Errors(FieldErrors);

impl Errors {
    /// The errors.
    pub(in super::super) fn into_vec(self) -> Vec<FieldError> {
        self.0.into_vec()
    }

    /// Whether further errors are only counted.
    pub(in super::super) const fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// The number of errors, to see whether a rule added one.
    pub(in super::super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds an error.
    pub(in super::super) fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// A value is required.
    pub(in super::super) fn required(&mut self, at: &Node<'_, '_>, detail: impl Into<String>) {
        self.0.push_with(|| FieldError::required(&at.path(), detail));
    }

    /// A value is invalid.
    pub(in super::super) fn invalid(
        &mut self,
        at: &Node<'_, '_>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) {
        self.0.push_with(|| FieldError::invalid(&at.path(), value, detail));
    }

    /// The value of the node is invalid.
    pub(in super::super) fn invalid_value(&mut self, at: &Node<'_, '_>, detail: impl Into<String>) {
        self.0.push_with(|| FieldError::invalid(&at.path(), at.value.clone(), detail));
    }

    /// A value is invalid; it is printed as this text, or not at all.
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

    /// A value is not supported.
    pub(in super::super) fn unsupported(
        &mut self,
        at: &Node<'_, '_>,
        value: impl Into<Value>,
        allowed: &[&str],
    ) {
        self.0.push_with(|| FieldError::not_supported(&at.path(), value, allowed));
    }

    /// The object that a value names does not exist.
    pub(in super::super) fn not_found(&mut self, at: &Node<'_, '_>, value: &str, detail: &str) {
        self.0.push_with(|| {
            FieldError::new(&at.path(), FieldErrorKind::NotFound(value.into()), detail)
        });
    }

    /// A value has too many bytes.
    pub(in super::super) fn too_long(&mut self, at: &Node<'_, '_>, max: usize) {
        self.push(FieldError::new(&at.path(), FieldErrorKind::TooLong(Some(max as u64)), ""));
    }

    /// A list has too many elements.
    pub(in super::super) fn too_many(&mut self, at: &Node<'_, '_>, found: usize, max: usize) {
        let kind = FieldErrorKind::TooMany(found as u64, max as u64);
        self.push(FieldError::new(&at.path(), kind, ""));
    }

    /// Adds an error for each problem of a string.
    pub(in super::super) fn add_problems(
        &mut self,
        at: &Node<'_, '_>,
        text: &str,
        problems: Vec<String>,
    ) {
        if problems.is_empty() {
            return;
        }
        let path = at.path();
        for problem in problems {
            self.0.push_with(|| FieldError::invalid(&path, text, problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_has_the_path_of_its_steps() {
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
        assert_eq!(Node::top_level(&value, "x").index(3).path().as_str(), "x[3]");
    }
}
