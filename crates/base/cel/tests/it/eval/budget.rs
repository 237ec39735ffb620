//! Limits of cost, work and time.

use super::env;
use mainstay_cel::value::{Error, Value};
use mainstay_cel::{CostBudget, Program};
use std::cell::Cell;

fn program(text: &str) -> Program {
    Program::new(&env().compile(text).unwrap()).unwrap()
}

#[test]
fn budgets_may_be_used_up_but_not_exceeded() {
    let program = program("[1, 2, 3].all(y, y > 0)");
    let mut budget = CostBudget::new(16);
    assert!(matches!(program.eval(&(), &mut budget), Ok(Value::Bool(true))));
    assert_eq!(budget.spent(), 16);
    for limit in 0..16 {
        let mut budget = CostBudget::new(limit);
        assert_eq!(program.eval(&(), &mut budget).unwrap_err(), Error::CostLimit);
        assert_eq!(budget.spent(), limit + 1);
    }
}

#[test]
fn operators_do_not_absorb_cost_errors() {
    for text in [
        "1 + 1 + 1 == 3 || true",
        "1 + 1 + 1 == 4 && false",
        "[1].exists(y, y + y + y == 3) || true",
        "[[1, 2]].all(y, y.size() + 1 == 3) || true",
        "[1 + 1 + 1, 2][0] == 3 || true",
        "{'a': 1 + 1 + 1}.a == 3 || true",
        "'aaaa'.replace('a', string(1 + 1 + 1)) == '' || true",
        "optional.of(1 + 1 + 1).hasValue() || true",
    ] {
        let program = program(text);
        let result = program.eval(&(), &mut CostBudget::new(2));
        assert_eq!(result.unwrap_err(), Error::CostLimit, "{text}");
    }
}

#[test]
fn cancellation_is_checked_every_hundred_iterations() {
    let list = vec!["1"; 60].join(",");
    let program = program(&format!("[{list}].all(y, [{list}].all(z, z == 1)) || true"));
    for (turns, asked) in [(1, 1), (5, 5), (100, 36)] {
        let count = Cell::new(0);
        let ask = || {
            count.set(count.get() + 1);
            count.get() == turns
        };
        let mut budget = CostBudget::unlimited().interrupted_by(&ask);
        let result = program.eval(&(), &mut budget);
        assert_eq!(count.get(), asked);
        match result {
            Err(error) => assert_eq!(error, Error::Interrupted),
            Ok(_) => assert!(turns > asked),
        }
    }
}

#[test]
fn evaluations_share_a_budget() {
    let program = program("unset + 1");
    let mut budget = CostBudget::new(5);
    let variables = [("unset", Value::Int(1))];
    assert!(matches!(program.eval(&variables, &mut budget), Ok(Value::Int(2))));
    assert!(matches!(program.eval(&variables, &mut budget), Ok(Value::Int(2))));
    assert_eq!(program.eval(&variables, &mut budget).unwrap_err(), Error::CostLimit);
}

#[test]
fn doubling_a_list_reaches_the_work_limit() {
    let program = program(&format!("[[1, 2]]{}.size() == 1", ".map(y, y + y)".repeat(60)));
    let result = program.eval(&(), &mut CostBudget::unlimited());
    assert_eq!(result.unwrap_err(), Error::CostLimit);
}
