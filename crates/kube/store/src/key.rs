//! Object keys, and the order of lists.

use crate::Stored;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The key of one object: where it is stored, in no particular API version.
///
/// An object has the same key in every version of its API.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Group and plural, `apps/deployments`; the plural alone for the core group, `pods`.
    pub resource: Arc<str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// The key of an object; `namespace` is empty for cluster-scoped objects.
    pub fn new(
        resource: impl Into<Arc<str>>,
        namespace: impl Into<Arc<str>>,
        name: impl Into<Arc<str>>,
    ) -> Self {
        Self { resource: resource.into(), namespace: namespace.into(), name: name.into() }
    }

    /// The key of a cluster-scoped object.
    pub fn cluster(resource: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self::new(resource, "", name)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.resource, self.name)
        } else {
            write!(f, "{} {}/{}", self.resource, self.namespace, self.name)
        }
    }
}

/// A position in the order of one resource: by `namespace/name` as bytes, so that namespace `a-b`
/// comes before `a`.
///
/// It is a trait so that a lookup by borrowed strings needs no owned key: the ordered set contains
/// the objects themselves, and both sides are compared through this trait.
pub(crate) trait Position {
    fn namespace(&self) -> &str;
    fn name(&self) -> &str;
}

impl PartialEq for dyn Position + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn Position + '_ {}

impl PartialOrd for dyn Position + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Position + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        let (mine, theirs) = (self.namespace(), other.namespace());
        // Namespaces are interned, so the common case is one pointer comparison.
        let by_namespace =
            if std::ptr::eq(mine, theirs) { Ordering::Equal } else { by_path(mine, theirs) };
        by_namespace.then_with(|| self.name().cmp(other.name()))
    }
}

/// The order of two namespaces, each with a slash at its end.
pub(crate) fn by_path(mine: &str, theirs: &str) -> Ordering {
    let (mine, theirs) = (mine.as_bytes(), theirs.as_bytes());
    let shared = mine.len().min(theirs.len());
    let by_bytes = mine[..shared].cmp(&theirs[..shared]);
    by_bytes.then_with(|| match (mine.get(shared), theirs.get(shared)) {
        (Some(more), None) => more.cmp(&b'/'),
        (None, Some(more)) => b'/'.cmp(more),
        _ => Ordering::Equal,
    })
}

/// A position from strings.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
}

impl Position for At<'_> {
    fn namespace(&self) -> &str {
        self.namespace
    }

    fn name(&self) -> &str {
        self.name
    }
}

/// A stored object as an element of its resource's ordered set.
#[derive(Clone)]
pub(crate) struct Entry(pub(crate) Arc<Stored>);

impl Position for Entry {
    fn namespace(&self) -> &str {
        &self.0.key.namespace
    }

    fn name(&self) -> &str {
        &self.0.key.name
    }
}

impl<'a> Borrow<dyn Position + 'a> for Entry {
    fn borrow(&self) -> &(dyn Position + 'a) {
        self
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (self as &dyn Position).cmp(other as &dyn Position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_ordered_as_parts_of_a_path() {
        let mut names = ["b", "a", "a-b", "a0", "", "a-b-c"];
        names.sort_by(|a, b| by_path(a, b));
        assert_eq!(names, ["", "a-b-c", "a-b", "a", "a0", "b"]);
        assert_eq!(by_path("a", "a"), Ordering::Equal);
    }
}
