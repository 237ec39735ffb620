//! Texts beside the trees and errors that cel-go 0.26 makes of them in Kubernetes' environment.

use super::{errors, parse, parse_all, parse_standard, shown};
use serde_json::Value as Json;

/// A text and its tree, its errors, or how they are shown, a line.
const RECORDED: &str = include_str!("../recorded/syntax.jsonl");

/// What can begin an operand, as errors list it.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
                       NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

#[test]
fn each_text_gives_the_tree_or_the_errors_that_are_recorded() {
    let mut count = 0;
    for line in RECORDED.lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let text = recorded["expr"].as_str().unwrap();
        let parsed = match recorded["env"].as_str() {
            Some("std") => parse_standard(text),
            Some(_) => parse_all(text),
            None => parse(text),
        };
        let wanted = &recorded["tree"];
        let issues = match parsed {
            Ok(parsed) => {
                assert_eq!(Some(shown(&parsed.root).as_str()), wanted.as_str(), "{text}");
                count += 1;
                continue;
            }
            Err(issues) => issues,
        };
        if let Some(whole) = recorded["text"].as_str() {
            assert_eq!(issues.to_string(), whole, "{text}");
        } else {
            let wanted: Vec<String> = recorded["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|error| error.as_str().unwrap().replace("{OPERAND}", OPERAND))
                .collect();
            assert_eq!(errors(&issues), wanted, "{text}");
        }
        count += 1;
    }
    assert!(count > 400, "{count}");
}
