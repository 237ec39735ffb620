//! Estimates of generated expressions over nested data, with known sizes for some paths.

use crate::type_text;
use mainstay_cel::Env;
use mainstay_cel::cost::{SizeEstimator, estimate};
use serde_json::Value as Json;

/// Expressions, the types of their variables, sizes by path, and the estimates of cel-go. In the
/// first row two paths share their storage (see `cost::path`).
const RECORDED: &str = include_str!("../recorded/estimates.jsonl");

#[derive(Debug)]
struct KnownSizes<'j>(&'j Json);

impl SizeEstimator for KnownSizes<'_> {
    fn size(&self, path: &[&str]) -> Option<(u64, u64)> {
        let size = self.0.get(path.join("."))?;
        Some((size[0].as_u64()?, size[1].as_u64()?))
    }
}

#[test]
fn estimates_follow_paths_through_comprehensions_and_calls() {
    let mut count = 0;
    for line in RECORDED.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let variables = case["vars"].as_object().unwrap();
        let env = variables.iter().fold(Env::new_expressions(), |env, (name, of)| {
            env.with_variable(name, type_text::read(of.as_str().unwrap()))
        });
        let text = case["expr"].as_str().unwrap();
        let found = estimate(&env.compile(text).unwrap(), &KnownSizes(&case["sizes"]));
        assert_eq!(serde_json::json!([found.min, found.max]), case["estimate"], "{text}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}
