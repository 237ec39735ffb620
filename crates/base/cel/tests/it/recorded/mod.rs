//! What cel-go 0.26 answers in Kubernetes' environment, recorded: made expressions, right and
//! wrong ones, each for something that no shorter one shows.

mod answer;
mod tree;

use crate::libraries;
use serde_json::{Value as Json, json};

pub(crate) use answer::answer;

const EXPRESSIONS: &str = include_str!("expressions.json");

#[test]
fn recorded_expressions_are_refused_valued_and_cost_as_in_cel_go() {
    let recorded: Json = serde_json::from_str(EXPRESSIONS).unwrap();
    let env = libraries::kubernetes();
    let cases = recorded["cases"].as_array().unwrap();
    let mut wrong = String::new();
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
            wrong += &["answered ", &answer.to_string(), "\nrecorded ", &case.to_string(), "\n"]
                .concat();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases.len() > 1_000);
}
