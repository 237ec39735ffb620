//! Cost budgets.

use super::{for_accepted, values};
use mainstay_cel::value::Error;
use mainstay_cel::{CostBudget, Program};

/// Evaluates with a cost limit: the cost, and whether it exceeded the limit.
fn spend(program: &Program, limit: u64) -> (u64, bool) {
    let mut budget = CostBudget::new(limit);
    let outcome = program.eval(&values(), &mut budget);
    (budget.spent(), matches!(outcome, Err(Error::CostLimit)))
}

#[test]
fn evaluation_stops_at_the_first_step_beyond_the_budget() {
    for_accepted(2, 2_000, |text, checked| {
        let Ok(program) = Program::new(checked) else { return };
        let (all, too_much) = spend(&program, super::COST_LIMIT);
        if too_much {
            return;
        }
        assert_eq!(spend(&program, all), (all, false), "{text}: what it costs is enough");
        let mut limit = 0;
        while limit < all {
            let (spent, stopped) = spend(&program, limit);
            assert!(stopped, "{text}: costs {all} and is not stopped at {limit}");
            assert!(spent > limit, "{text}: stopped at {limit} with {spent} spent");
            // All limits between the two stop at the same step: the last step alone exceeded them.
            assert_eq!(spend(&program, spent - 1), (spent, true), "{text}: limit {limit}");
            limit = spent;
        }
    });
}
