//! What expressions cost: at most, before they are evaluated, and in fact.

use crate::value::Value;

/// A cost that is known only in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostRange {
    /// The least.
    pub min: u64,
    /// The most; [`u64::MAX`] if nothing bounds it.
    pub max: u64,
}

/// What the data that an expression looks at may measure: code points of strings, bytes of bytes,
/// elements of lists, entries of maps.
pub trait Sizes {
    /// The least and the greatest size of what lies at a path; none if nothing is known of it. A
    /// path is a variable followed by names of fields, `@items`, `@keys`, `@values`, `@indices`.
    fn size(&self, path: &[&str]) -> Option<(u64, u64)>;
}

/// What a call has cost, by its arguments (the receiver first) and its result.
pub type CallCost = for<'a> fn(args: &[Value<'a>], result: &Value<'a>) -> u64;
