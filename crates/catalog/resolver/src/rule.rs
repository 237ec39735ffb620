//! CEL rules of `olm.constraint`, evaluated within the step budget of a lookup.

use crate::candidates::MAX_LOOKUP_STEPS;
pub(crate) use mainstay_bundle::cel_rule::{CelRule, cel_properties};
use serde_json::Value;

/// Whether properties, in the form that [`cel_properties`] gives them, meet a rule. Adds the cost to `steps`.
/// An evaluation that exceeds its limit uses up all steps of the lookup, which then has no result.
pub(crate) fn holds(rule: &CelRule, properties: &Value, steps: &mut u64) -> bool {
    let (holds, spent) = rule.holds(properties, MAX_LOOKUP_STEPS);
    *steps = steps.saturating_add(spent.unwrap_or(MAX_LOOKUP_STEPS + 1));
    holds
}
