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

/// Objects without a schema that the expressions of the tables look at.
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

/// What comes of an expression: its value, or its error, and what it has cost.
fn answer(text: &str) -> (String, u64) {
    let checked = env().compile(text).map_err(|issues| issues.to_string()).unwrap();
    answer_of(&Program::new(&checked).unwrap())
}

fn answer_of(program: &Program) -> (String, u64) {
    let data = variables();
    let variables: Vec<_> = data
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), Value::from_json(value)))
        .collect();
    let mut budget = CostBudget::unlimited();
    let answer = match program.eval(&variables, &mut budget) {
        Ok(value) => value.to_string(),
        Err(error) => format!("error: {error}"),
    };
    (answer, budget.spent())
}

/// Compares what comes of expressions with what is known to.
fn expect(table: &[(&str, &str, u64)]) {
    let mut wrong = Vec::new();
    for (text, value, cost) in table {
        let (is, spent) = answer(text);
        if (is.as_str(), spent) != (*value, *cost) {
            wrong.push(format!("{text}\n  is     {is} for {spent}\n  not    {value} for {cost}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
