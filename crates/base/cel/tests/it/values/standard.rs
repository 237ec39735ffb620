//! Expressions with the standard library, compared with results of cel-go 0.26 in Kubernetes'
//! environment.

use crate::library::recorded_form;
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Value as Json, json};

/// One expression and its value or error per line.
const RECORDED: &str = include_str!("../recorded/standard.jsonl");

#[test]
fn expressions_have_the_recorded_results() {
    let env = Env::new_expressions();
    let mut differences = Vec::new();
    for line in RECORDED.lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let text = recorded[0].as_str().unwrap();
        let checked = env.compile(text).unwrap();
        let program = Program::new(&checked);
        let value = match &program {
            Ok(program) => program.eval(&(), &mut CostBudget::unlimited()),
            Err(error) => Err(error.clone()),
        };
        let got = match value {
            Ok(value) => recorded_form(&value),
            Err(error) => json!({"error": error.to_string()}),
        };
        if got != recorded[1] {
            differences.push(format!("{text}\n  got      {got}\n  expected {}", recorded[1]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
