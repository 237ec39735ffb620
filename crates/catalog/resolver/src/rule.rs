//! Rules of constraints within the budget of a search.

use crate::candidates::MAX_LOOKUP_STEPS;
pub(crate) use mainstay_bundle::rule::{Rule, told};
use serde_json::Value;

/// Whether properties meet a rule, as [`told`] makes them; `steps` grows by what that costs. One look
/// that cannot be finished uses up all steps there are: it has no answer.
pub(crate) fn holds(rule: &Rule, properties: &Value, steps: &mut u64) -> bool {
    let (holds, spent) = rule.holds(properties, MAX_LOOKUP_STEPS);
    *steps = steps.saturating_add(spent.unwrap_or(MAX_LOOKUP_STEPS + 1));
    holds
}
