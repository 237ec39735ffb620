//! Texts, compared with trees and errors of cel-go 0.26 in Kubernetes' environment.

use super::{debug_text, errors, parse, parse_all, parse_standard};
use serde_json::Value as Json;

/// One text per line, with its tree, its errors, or their display form.
const RECORDED: &str = include_str!("../recorded/syntax.jsonl");

/// The tokens that can start an operand, as in error messages.
const OPERAND: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, \
                       NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";

#[test]
fn texts_have_the_recorded_trees_or_errors() {
    let mut count = 0;
    for line in RECORDED.lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let text = recorded["expr"].as_str().unwrap();
        let parsed = match recorded["env"].as_str() {
            Some("std") => parse_standard(text),
            Some(_) => parse_all(text),
            None => parse(text),
        };
        let expected = &recorded["tree"];
        let issues = match parsed {
            Ok(parsed) => {
                assert_eq!(Some(debug_text(&parsed.root).as_str()), expected.as_str(), "{text}");
                count += 1;
                continue;
            }
            Err(issues) => issues,
        };
        if let Some(whole) = recorded["text"].as_str() {
            assert_eq!(issues.to_string(), whole, "{text}");
        } else {
            let expected: Vec<String> = recorded["errors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|error| error.as_str().unwrap().replace("{OPERAND}", OPERAND))
                .collect();
            assert_eq!(errors(&issues), expected, "{text}");
        }
        count += 1;
    }
    assert!(count > 400, "{count}");
}
