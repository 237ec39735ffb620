//! Calls, compared with recorded results of Kubernetes' and cel-go's libraries.

use super::{evaluate, recorded_form};
use serde_json::{Value as Json, json};

/// One call and its result per line.
const RECORDED: &str = include_str!("../recorded/library.jsonl");

#[test]
fn calls_have_the_recorded_results() {
    let mut differences = Vec::new();
    let mut count = 0;
    for line in RECORDED.lines() {
        count += 1;
        let recorded: Json = serde_json::from_str(line).unwrap();
        let got = match evaluate(&recorded[0]) {
            Ok(value) => recorded_form(&value),
            Err(error) => json!({"error": error.to_string()}),
        };
        if got != recorded[1] {
            differences
                .push(format!("{}\n  got      {got}\n  expected {}", recorded[0], recorded[1]));
        }
    }
    let first: Vec<&str> = differences.iter().map(String::as_str).take(60).collect();
    assert!(
        differences.is_empty(),
        "{} of {count} differ:\n{}",
        differences.len(),
        first.join("\n")
    );
}
