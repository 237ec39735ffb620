//! Field paths of a traversal, as a linked list on the stack.
//!
//! A traversal visits many fields and reports few, so a path is rendered only for an error.

use mainstay_object::{FieldError, FieldPath};
use serde_json::Value;
use std::fmt;

/// One step of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    /// A field of an object: `.name`.
    Field(&'a str),
    /// An element of a list: `[3]`.
    Index(usize),
    /// An entry of a map, as field errors print it: `[key]`.
    Key(&'a str),
    /// An entry of a map, as strict decoding prints it: `.key`.
    Entry(&'a str),
    /// An entry of a map, as validation prints it: `.key`, also at the root.
    Value(&'a str),
    /// Go types that embed the next field: only Go's decoder names them.
    Embedded(&'a str),
}

/// A path from the root of a traversal; each step refers to the one above.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trail<'a> {
    above: Option<(&'a Self, Step<'a>)>,
    prefix: &'a str,
}

impl<'a> Trail<'a> {
    /// The path of a root whose own path is `prefix`; empty for none.
    pub(crate) const fn below(prefix: &'a str) -> Self {
        Self { above: None, prefix }
    }

    /// The path one step below.
    pub(crate) const fn then<'b>(&'b self, step: Step<'b>) -> Trail<'b>
    where
        'a: 'b,
    {
        Trail { above: Some((self, step)), prefix: "" }
    }

    /// The path of a field.
    pub(crate) const fn child<'b>(&'b self, name: &'b str) -> Trail<'b>
    where
        'a: 'b,
    {
        self.then(Step::Field(name))
    }

    /// The path of an entry of a map.
    pub(crate) const fn key<'b>(&'b self, key: &'b str) -> Trail<'b>
    where
        'a: 'b,
    {
        self.then(Step::Key(key))
    }

    /// The path of an element of a list.
    pub(crate) const fn index<'b>(&'b self, at: usize) -> Trail<'b>
    where
        'a: 'b,
    {
        self.then(Step::Index(at))
    }

    /// The rendered path.
    pub(crate) fn to_path(self) -> FieldPath {
        FieldPath::new(&self.to_string())
    }

    /// Whether the path is empty.
    pub(crate) const fn is_root(&self) -> bool {
        self.above.is_none() && self.prefix.is_empty()
    }

    /// The names of fields only, separated by dots, as in Go's decoding errors.
    pub(crate) fn field_names(&self) -> String {
        let mut names = Vec::new();
        let mut at = self;
        while let Some((above, step)) = at.above {
            if let Step::Field(name) | Step::Embedded(name) = step {
                names.push(name);
            }
            at = above;
        }
        names.reverse();
        names.join(".")
    }
}

impl fmt::Display for Trail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((above, step)) = self.above else { return f.write_str(self.prefix) };
        above.fmt(f)?;
        match step {
            Step::Embedded(_) => Ok(()),
            Step::Field(name) | Step::Entry(name) if above.is_root() => f.write_str(name),
            Step::Field(name) | Step::Entry(name) | Step::Value(name) => write!(f, ".{name}"),
            Step::Index(at) => write!(f, "[{at}]"),
            Step::Key(key) => write!(f, "[{key}]"),
        }
    }
}

/// [`FieldError::required`] at a path.
pub(crate) fn required(trail: &Trail<'_>, detail: impl Into<String>) -> FieldError {
    FieldError::required(&trail.to_path(), detail)
}

/// [`FieldError::invalid`] at a path.
pub(crate) fn invalid(
    trail: &Trail<'_>,
    value: impl Into<Value>,
    detail: impl Into<String>,
) -> FieldError {
    FieldError::invalid(&trail.to_path(), value, detail)
}

/// [`FieldError::forbidden`] at a path.
pub(crate) fn forbidden(trail: &Trail<'_>, detail: impl Into<String>) -> FieldError {
    FieldError::forbidden(&trail.to_path(), detail)
}

/// [`FieldError::not_supported`] at a path.
pub(crate) fn not_supported(
    trail: &Trail<'_>,
    value: impl Into<Value>,
    allowed: &[&str],
) -> FieldError {
    FieldError::not_supported(&trail.to_path(), value, allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_prints_as_a_field_path() {
        let root = Trail::default();
        let spec = root.then(Step::Field("spec"));
        let list = spec.then(Step::Field("list"));
        let third = list.then(Step::Index(3));
        let name = third.then(Step::Field("name"));
        assert_eq!(name.to_string(), "spec.list[3].name");
        assert_eq!(name.field_names(), "spec.list.name");
        assert_eq!(spec.then(Step::Key("a/b")).to_string(), "spec[a/b]");
        assert_eq!(Trail::below("x.y").then(Step::Field("z")).to_string(), "x.y.z");
    }
}
