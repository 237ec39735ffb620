//! Estimates of made expressions over nested data, with sizes at some of its places.

use crate::type_text;
use mainstay_cel::Env;
use mainstay_cel::cost::{SizeEstimator, estimate};
use serde_json::Value as Json;

/// Expressions, the types of their variables, sizes by path, and what cel-go estimates. In the
/// first of them two paths share their room (see `cost::path`).
const RECORDED: &str = include_str!("../recorded/estimates.jsonl");

#[derive(Debug)]
struct Known<'j>(&'j Json);

impl SizeEstimator for Known<'_> {
    fn size(&self, path: &[&str]) -> Option<(u64, u64)> {
        let size = self.0.get(path.join("."))?;
        Some((size[0].as_u64()?, size[1].as_u64()?))
    }
}

#[test]
fn estimates_follow_data_through_loops_and_calls() {
    let mut count = 0;
    for line in RECORDED.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let variables = case["vars"].as_object().unwrap();
        let env = variables.iter().fold(Env::new_expressions(), |env, (name, of)| {
            env.with_variable(name, type_text::read(of.as_str().unwrap()))
        });
        let text = case["expr"].as_str().unwrap();
        let found = estimate(&env.compile(text).unwrap(), &Known(&case["sizes"]));
        assert_eq!(serde_json::json!([found.min, found.max]), case["estimate"], "{text}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}
