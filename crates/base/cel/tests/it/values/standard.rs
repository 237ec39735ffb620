//! Expressions of the standard library beside the answers of cel-go 0.26 in Kubernetes'
//! environment.

use crate::library::shown;
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Value as Json, json};

/// An expression and its value or error, a line.
const RECORDED: &str = include_str!("../recorded/standard.jsonl");

#[test]
fn each_expression_answers_as_recorded() {
    let env = Env::new_expressions();
    let mut wrong = Vec::new();
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
            Ok(value) => shown(&value),
            Err(error) => json!({"error": error.to_string()}),
        };
        if got != recorded[1] {
            wrong.push(format!("{text}\n  got    {got}\n  wanted {}", recorded[1]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
