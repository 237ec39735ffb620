//! Results of cel-go 0.26 in Kubernetes' environment, recorded for generated expressions. Each
//! valid or invalid expression shows something that no shorter one shows.

mod answer;
mod tree;

use crate::libraries;
use serde_json::{Value as Json, json};

pub(crate) use answer::answer;

const EXPRESSIONS: &str = include_str!("expressions.json");

#[test]
fn recorded_expressions_have_the_same_results_and_costs() {
    let recorded: Json = serde_json::from_str(EXPRESSIONS).unwrap();
    let env = libraries::kubernetes();
    let cases = recorded["cases"].as_array().unwrap();
    let mut differences = String::new();
    for case in cases {
        let question = json!({
            "op": "eval",
            "expr": case["expr"],
            "vars": recorded["variables"],
            "input": recorded["values"],
        });
        let mut answer = answer(&env, &question);
        let found = answer.as_object_mut().unwrap();
        found.remove("type");
        found.insert("expr".into(), case["expr"].clone());
        if answer != *case {
            differences +=
                &["answered ", &answer.to_string(), "\nrecorded ", &case.to_string(), "\n"]
                    .concat();
        }
    }
    assert!(differences.is_empty(), "{differences}");
    assert!(cases.len() > 1_000);
}
