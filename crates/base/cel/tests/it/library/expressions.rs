//! Expressions with library functions, compared with recordings of cel-go and Kubernetes: errors,
//! estimates, values and costs.

use super::recorded_form;
use crate::libraries;
use mainstay_cel::cost::{SizeEstimator, estimate};
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Value as Json, json};

/// One expression and its result per line.
const RECORDED: &str = include_str!("../recorded/library_expressions.jsonl");

/// No known sizes.
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
        Ok(value) => ("value", recorded_form(&value)),
        Err(error) => ("eval", error.to_string().into()),
    };
    json!({"min": min, "max": max, kind: answer, "actual": budget.spent()})
}

#[test]
fn expressions_have_the_recorded_results_and_costs() {
    let env = libraries::kubernetes();
    let mut differences = Vec::new();
    for line in RECORDED.lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let text = recorded[0].as_str().unwrap();
        let got = answer(&env, text);
        if got != recorded[1] {
            differences.push(format!("{text}\n  got      {got}\n  expected {}", recorded[1]));
        }
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
