//! Costs of expressions: the estimate before evaluation, and the actual cost.

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

/// The sizes of data: code points of strings, bytes, elements of lists, entries of maps.
pub trait SizeEstimator {
    /// The minimum and maximum size at a path; none if unknown. A path is a variable followed by
    /// names of fields, `@items`, `@keys`, `@values`, `@indices`.
    fn size(&self, path: &[&str]) -> Option<(u64, u64)>;
}

/// Computes the actual cost of a call from its arguments (the receiver first) and its result. It
/// also charges the work budget.
pub type CallCost = for<'a> fn(args: &[Value<'a>], result: &Value<'a>, work: &WorkBudget) -> u64;

/// The cost of creating a list.
pub const LIST_CREATE: u64 = 10;
/// The cost of creating a map.
pub const MAP_CREATE: u64 = 30;
/// The cost of creating an object.
pub const OBJECT_CREATE: u64 = 40;
/// The cost of a variable or of a step of a path.
pub const SELECT: u64 = 1;
/// The cost for each code point of a traversed text.
const COST_PER_CODE_POINT: f64 = 0.1;
/// The cost for each code point of a regular expression.
const COST_PER_PATTERN_CODE_POINT: f64 = 0.25;
/// The cost for each requirement of a selector: [`LIST_CREATE`] and [`OBJECT_CREATE`].
const COST_PER_REQUIREMENT: f64 = 50.0;

/// Whether a function of Kubernetes costs one for any arguments.
fn has_unit_cost(function: &str) -> bool {
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
