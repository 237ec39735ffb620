//! Field filters: the fields of a request that count for ownership.
//!
//! A subresource writes only a part of an object, and the main resource does not write `status`.
//! Other fields of a request are reset before the object is stored, so the request does not own
//! them.

use super::path::PathElement;
use super::set::FieldSet;

/// The fields of a request that count for ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldFilter {
    /// All fields except these and those below them.
    Exclude(FieldSet),
    /// Only the fields that match one of these patterns, and those below them.
    Include(Vec<Vec<PathPattern>>),
}

/// A path element of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathPattern {
    /// This path element.
    Exact(PathElement),
    /// Any path element.
    Any,
}

impl FieldFilter {
    /// The part of a set that counts.
    #[must_use]
    pub fn apply(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::Exclude(fields) => set.recursive_difference(fields),
            Self::Include(patterns) => {
                let patterns: Vec<&[PathPattern]> = patterns.iter().map(Vec::as_slice).collect();
                include(set, &patterns)
            }
        }
    }
}

/// Keeps the members that match a pattern.
fn include(set: FieldSet, patterns: &[&[PathPattern]]) -> FieldSet {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set;
    }
    set.filter_nodes(|node| {
        let below: Vec<&[PathPattern]> = patterns
            .iter()
            .filter_map(|pattern| {
                let (first, rest) = pattern.split_first()?;
                let matches = match first {
                    PathPattern::Any => true,
                    PathPattern::Exact(element) => *element == node.element,
                };
                matches.then_some(rest)
            })
            .collect();
        if below.is_empty() {
            return false;
        }
        node.below = include(std::mem::take(&mut node.below), &below);
        true
    })
}
