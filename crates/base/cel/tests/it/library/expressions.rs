//! Expressions of the functions of libraries beside what cel-go and Kubernetes made of them: what
//! is wrong with them, what they may cost, what they give and what that has cost.

use super::shown;
use crate::libraries;
use mainstay_cel::cost::{SizeEstimator, estimate};
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Value as Json, json};

/// An expression and its answer a line.
const RECORDED: &str = include_str!("../recorded/library_expressions.jsonl");

/// No size is known.
struct Unknown;

impl SizeEstimator for Unknown {
    fn size(&self, _: &[&str]) -> Option<(u64, u64)> {
        None
    }
}

fn answer(env: &Env, text: &str) -> Json {
    let checked = match env.compile(text) {
        Ok(checked) => checked,
        Err(issues) => return json!({"check": issues.to_string()}),
    };
    let cost = estimate(&checked, &Unknown);
    let (min, max) = (cost.min.to_string(), cost.max.to_string());
    let program = match Program::new(&checked) {
        Ok(program) => program,
        Err(error) => return json!({"min": min, "max": max, "program": error.to_string()}),
    };
    let mut budget = CostBudget::unlimited();
    let (kind, answer) = match program.eval(&(), &mut budget) {
        Ok(value) => ("value", shown(&value)),
        Err(error) => ("eval", error.to_string().into()),
    };
    json!({"min": min, "max": max, kind: answer, "actual": budget.spent()})
}

#[test]
fn each_expression_answers_and_costs_as_recorded() {
    let env = libraries::kubernetes();
    let mut wrong = Vec::new();
    for line in RECORDED.lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let text = recorded[0].as_str().unwrap();
        let got = answer(&env, text);
        if got != recorded[1] {
            wrong.push(format!("{text}\n  got    {got}\n  wanted {}", recorded[1]));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
