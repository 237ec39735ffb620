//! Limits.

use super::env;
use mainstay_cel::value::{Error, Value};
use mainstay_cel::{CostBudget, Program};
use std::cell::Cell;

fn program(text: &str) -> Program {
    Program::new(&env().compile(text).unwrap()).unwrap()
}

#[test]
fn a_budget_may_be_used_up_but_not_exceeded() {
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
fn no_operator_makes_up_for_a_budget_that_is_used_up() {
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
        let answer = program.eval(&(), &mut CostBudget::new(2));
        assert_eq!(answer.unwrap_err(), Error::CostLimit, "{text}");
    }
}

#[test]
fn every_hundred_turns_it_is_asked_whether_to_stop() {
    let list = vec!["1"; 60].join(",");
    let program = program(&format!("[{list}].all(y, [{list}].all(z, z == 1)) || true"));
    for (turns, asked) in [(1, 1), (5, 5), (100, 36)] {
        let count = Cell::new(0);
        let ask = || {
            count.set(count.get() + 1);
            count.get() == turns
        };
        let mut budget = CostBudget::unlimited().interrupted_by(&ask);
        let answer = program.eval(&(), &mut budget);
        assert_eq!(count.get(), asked);
        match answer {
            Err(error) => assert_eq!(error, Error::Interrupted),
            Ok(_) => assert!(turns > asked),
        }
    }
}

#[test]
fn a_budget_goes_on_where_the_last_evaluation_has_left_it() {
    let program = program("unset + 1");
    let mut budget = CostBudget::new(5);
    let variables = [("unset", Value::Int(1))];
    assert!(matches!(program.eval(&variables, &mut budget), Ok(Value::Int(2))));
    assert!(matches!(program.eval(&variables, &mut budget), Ok(Value::Int(2))));
    assert_eq!(program.eval(&variables, &mut budget).unwrap_err(), Error::CostLimit);
}

#[test]
fn a_list_is_not_doubled_until_no_memory_is_left() {
    let program = program(&format!("[[1, 2]]{}.size() == 1", ".map(y, y + y)".repeat(60)));
    let answer = program.eval(&(), &mut CostBudget::unlimited());
    assert_eq!(answer.unwrap_err(), Error::CostLimit);
}
