//! The crate's results in the form of the recordings.

use super::tree;
use crate::{tagged, type_text};
use mainstay_cel::cost::{SizeEstimator, estimate};
use mainstay_cel::types::Type;
use mainstay_cel::value::Value;
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Map, Value as Json, json};

/// No known sizes.
struct Unknown;

impl SizeEstimator for Unknown {
    fn size(&self, _: &[&str]) -> Option<(u64, u64)> {
        None
    }
}

/// The result of a recorded query about the expression `expr`. `op` selects parsing (`parse`), type
/// checking (`check`) or evaluation with the variables `vars` and their values `input` (`eval`).
/// Estimates are minimum and maximum.
pub(crate) fn answer(base: &Env, question: &Json) -> Json {
    let text = question["expr"].as_str().unwrap();
    let op = question["op"].as_str().unwrap();
    if op == "parse" {
        return match base.parse(text) {
            Ok(parsed) => json!({ "sexpr": tree::text(&parsed.root) }),
            Err(issues) => json!({ "error": issues.to_string() }),
        };
    }
    let mut env = base.clone();
    let declared: Vec<(&str, Type)> = question["vars"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, of)| (name.as_str(), type_text::read(of.as_str().unwrap())))
        .collect();
    for (name, of) in &declared {
        env = env.with_variable(name, of.clone());
    }
    let checked = match env.compile(text) {
        Ok(checked) => checked,
        Err(issues) if op == "check" => return json!({ "error": issues.to_string() }),
        Err(issues) => return json!({ "issues": issues.to_string() }),
    };
    let mut answer = Map::new();
    answer.insert("type".into(), json!(checked.output().to_string()));
    if op == "check" {
        return Json::Object(answer);
    }
    let range = estimate(&checked, &Unknown);
    answer.insert("estimate".into(), json!([range.min, range.max]));
    let program = match Program::new(&checked) {
        Ok(program) => program,
        Err(error) => {
            answer.insert("program_error".into(), json!(error.to_string()));
            return Json::Object(answer);
        }
    };
    let input: Vec<(&str, Value<'_>)> = declared
        .iter()
        .filter_map(|(name, of)| Some((*name, tagged::read(question["input"].get(name)?, of))))
        .collect();
    let mut budget = CostBudget::new(question["limit"].as_u64().unwrap_or(u64::MAX >> 1));
    match program.eval(&input, &mut budget) {
        Ok(value) => answer.insert("value".into(), tagged::write(&value)),
        Err(error) => answer.insert("error".into(), json!(error.to_string())),
    };
    answer.insert("cost".into(), json!(budget.spent()));
    Json::Object(answer)
}
