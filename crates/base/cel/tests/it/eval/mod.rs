//! Evaluation: values, errors and costs.

mod budget;
mod constants;
mod deep;
mod logic;
mod loops;
mod optionals;
mod parts;
mod paths;
mod recorded;
mod rules;
mod unchecked;

use mainstay_cel::types::Type;
use mainstay_cel::value::Value;
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Value as Json, json};

/// Variables without a schema, used by the expressions of the tables.
fn variables() -> Json {
    json!({
        "x": {
            "a": {"b": 1},
            "list": [1, 2, 3],
            "strings": ["a", "b"],
            "one": 1,
            "text": "text",
            "yes": true,
            "gone": null,
        },
        "long": "0123456789abcdefghij",
    })
}

fn env() -> Env {
    Env::new_expressions()
        .with_variable("x", Type::Dyn)
        .with_variable("long", Type::String)
        .with_variable("unset", Type::Int)
}

/// The value or error of an expression, and its cost.
fn result_and_cost(text: &str) -> (String, u64) {
    let checked = env().compile(text).map_err(|issues| issues.to_string()).unwrap();
    program_result(&Program::new(&checked).unwrap())
}

fn program_result(program: &Program) -> (String, u64) {
    let data = variables();
    let variables: Vec<_> = data
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), Value::from_json(value)))
        .collect();
    let mut budget = CostBudget::unlimited();
    let result = match program.eval(&variables, &mut budget) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    };
    (result, budget.spent())
}

/// Compares results and costs of expressions with a table.
fn check_table(table: &[(&str, &str, u64)]) {
    let mut differences = Vec::new();
    for (text, value, cost) in table {
        let (is, spent) = result_and_cost(text);
        if (is.as_str(), spent) != (*value, *cost) {
            differences
                .push(format!("{text}\n  is     {is} for {spent}\n  not    {value} for {cost}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
