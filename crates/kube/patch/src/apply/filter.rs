//! Which fields of a request count.
//!
//! A subresource writes a part of an object only, and the main resource does not write `status`.
//! What a request says of other fields is reset before it is stored; so nobody comes to own them
//! by it either.

use super::path::PathElement;
use super::set::Set;

/// Which fields of a request count for ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All but these, each with everything below it.
    Exclude(Set),
    /// Those that one of these patterns leads to, and everything below them.
    Include(Vec<Vec<Pattern>>),
}

/// A step of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// This step.
    Is(PathElement),
    /// Any step.
    Any,
}

impl Filter {
    /// What counts of a set.
    #[must_use]
    pub fn apply(&self, set: Set) -> Set {
        match self {
            Self::Exclude(fields) => set.recursive_difference(fields),
            Self::Include(patterns) => {
                let patterns: Vec<&[Pattern]> = patterns.iter().map(Vec::as_slice).collect();
                include(set, &patterns)
            }
        }
    }
}

/// Keeps what patterns lead to, and the steps on the way.
fn include(set: Set, patterns: &[&[Pattern]]) -> Set {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set;
    }
    set.filter_nodes(|node| {
        let below: Vec<&[Pattern]> = patterns
            .iter()
            .filter_map(|pattern| {
                let (first, rest) = pattern.split_first()?;
                let fits = match first {
                    Pattern::Any => true,
                    Pattern::Is(element) => *element == node.element,
                };
                fits.then_some(rest)
            })
            .collect();
        if below.is_empty() {
            return false;
        }
        node.below = include(std::mem::take(&mut node.below), &below);
        true
    })
}
