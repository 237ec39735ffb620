//! What expressions cost: at most, before they are evaluated, and in fact.

mod call;
mod estimate;
mod functions;
mod path;
mod range;

use crate::value::{Value, WorkBudget};
pub use call::call_cost;
pub(crate) use call::{CostPanic, cost_panic};
pub use estimate::estimate;
pub use range::CostRange;

/// What the data that an expression looks at may measure: code points of strings, bytes of bytes,
/// elements of lists, entries of maps.
pub trait SizeEstimator {
    /// The least and the greatest size of what lies at a path; none if nothing is known of it. A
    /// path is a variable followed by names of fields, `@items`, `@keys`, `@values`, `@indices`.
    fn size(&self, path: &[&str]) -> Option<(u64, u64)>;
}

/// What a call has cost, by its arguments (the receiver first) and its result. Finding it out may be
/// work.
pub type CallCost = for<'a> fn(args: &[Value<'a>], result: &Value<'a>, work: &WorkBudget) -> u64;

/// Making a list.
pub const LIST_CREATE: u64 = 10;
/// Making a map.
pub const MAP_CREATE: u64 = 30;
/// Making an object.
pub const OBJECT_CREATE: u64 = 40;
/// A variable, or one step along a path.
pub const SELECT: u64 = 1;
/// Each code point of a text that is gone through.
const PER_TEXT: f64 = 0.1;
/// Each code point of a regular expression.
const PER_PATTERN: f64 = 0.25;
/// Each requirement of a selector: a list and an object.
const PER_REQUIREMENT: f64 = 50.0;

/// Whether a call of one of Kubernetes' functions costs one, whatever it is called with.
fn costs_one(function: &str) -> bool {
    matches!(
        function,
        "serviceAccount"
            | "path"
            | "group"
            | "resource"
            | "subresource"
            | "namespace"
            | "name"
            | "allowed"
            | "reason"
            | "error"
            | "errored"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
    )
}
