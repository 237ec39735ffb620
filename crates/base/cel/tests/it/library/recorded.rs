//! Calls beside the answers that Kubernetes' libraries and cel-go's gave.

use super::{evaluate, shown};
use serde_json::{Value as Json, json};

/// One call and its answer a line.
const RECORDED: &str = include_str!("../recorded/library.jsonl");

#[test]
fn each_call_answers_as_recorded() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in RECORDED.lines() {
        count += 1;
        let recorded: Json = serde_json::from_str(line).unwrap();
        let got = match evaluate(&recorded[0]) {
            Ok(value) => shown(&value),
            Err(error) => json!({"error": error.to_string()}),
        };
        if got != recorded[1] {
            wrong.push(format!("{}\n  got    {got}\n  wanted {}", recorded[0], recorded[1]));
        }
    }
    let shown: Vec<&str> = wrong.iter().map(String::as_str).take(60).collect();
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), shown.join("\n"));
}
