//! What one policy says of one object with one set of parameters.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/validating/validator.go` and
//! `pkg/admission/plugin/webhook/matchconditions`.

use super::compile::Gives;
use super::evaluate::{
    CONDITIONS, Evaluation, Expression, Input, OUT_OF_BUDGET, OutOfBudget, Variable,
};
use crate::Scope;
use mainstay_cel::kubernetes::limits;
use mainstay_cel::value::Value;
use serde_json::Value as Json;

/// What is said if an expression fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request fails.
    Fail,
    /// As if there were no such expression.
    Ignore,
}

impl Failure {
    /// Reads `failurePolicy`.
    pub fn read(spec: &Json) -> Self {
        match text(spec, "failurePolicy") {
            "Ignore" => Self::Ignore,
            _ => Self::Fail,
        }
    }
}

fn text<'v>(value: &'v Json, field: &str) -> &'v str {
    value.get(field).and_then(Json::as_str).unwrap_or_default()
}

fn list<'v>(value: &'v Json, field: &str) -> impl Iterator<Item = &'v Json> {
    value.get(field).and_then(Json::as_array).into_iter().flatten()
}

/// Conditions cannot be evaluated; the texts are the original's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionsError {
    /// They are too costly.
    #[error("{OUT_OF_BUDGET}")]
    OutOfBudget,
    /// Expressions failed: the texts of their errors.
    #[error("{}", aggregate(.0))]
    Evaluate(Vec<String>),
}

/// Conditions under which a policy or a webhook is asked.
#[derive(Debug, Default)]
pub struct Conditions(Vec<Expression>);

impl Conditions {
    /// Compiles `matchConditions`.
    pub fn read(scope: &Scope, owner: &Json) -> Self {
        let each = list(owner, "matchConditions");
        let compile = |one| Expression::new(scope, text(one, "expression"), Gives::Truth, true);
        Self(each.map(compile).collect())
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all of them hold. One that does not decides, whatever the others are; one that
    /// fails counts as `failure` says. Namespaces are not seen.
    ///
    /// # Errors
    /// If expressions fail, or are too costly.
    pub fn hold(
        &self,
        input: Input<'_>,
        variables: &[Variable],
        failure: Failure,
    ) -> Result<bool, ConditionsError> {
        let input = Input { namespace: &Json::Null, ..input };
        let mut evaluation = Evaluation::new(input, variables, CONDITIONS);
        let mut outcomes = Vec::with_capacity(self.0.len());
        for condition in &self.0 {
            match evaluation.value(condition) {
                Ok(outcome) => outcomes.push(outcome),
                Err(OutOfBudget) if failure == Failure::Ignore => return Ok(false),
                Err(OutOfBudget) => return Err(ConditionsError::OutOfBudget),
            }
        }
        if outcomes.iter().any(|outcome| matches!(outcome, Ok(Value::Bool(false)))) {
            return Ok(false);
        }
        let errors = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        match (errors.is_empty(), failure) {
            (true, _) => Ok(true),
            (false, Failure::Ignore) => Ok(false),
            (false, Failure::Fail) => Err(ConditionsError::Evaluate(errors)),
        }
    }
}

/// Several errors as one: each text once, in brackets if there are several.
fn aggregate(errors: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for error in errors {
        if !seen.contains(&error.as_str()) {
            seen.push(error);
        }
    }
    match *seen {
        [one] => one.to_owned(),
        _ => format!("[{}]", seen.join(", ")),
    }
}

/// One rule of a policy.
#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: Box<str>,
    words: Option<Expression>,
    reason: Box<str>,
}

/// The expressions of a policy, compiled.
#[derive(Debug)]
pub struct Programs {
    failure: Failure,
    conditions: Conditions,
    variables: Vec<Variable>,
    validations: Vec<Validation>,
    annotations: Vec<(Box<str>, Expression)>,
}

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which rule, by position.
    pub at: usize,
    /// What is said.
    pub message: String,
    /// The reason that a refusal has; empty if something failed.
    pub reason: String,
}

/// What a policy says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The rules that do not hold.
    pub broken: Vec<Broken>,
    /// What is to be noted with the request.
    pub notes: Vec<(String, String)>,
    /// What failed on the way to such notes; the request fails.
    pub failed: Vec<String>,
}

impl Judged {
    fn failure(failure: Failure, message: String) -> Self {
        let mut judged = Self::default();
        if failure == Failure::Fail {
            judged.broken.push(Broken { at: 0, message, reason: String::new() });
        }
        judged
    }
}

impl Programs {
    /// Compiles the expressions of a policy's `spec`.
    pub fn read(spec: &Json) -> Self {
        let params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
        let scope = Scope::new(params, true);
        let variables = list(spec, "variables")
            .map(|one| Variable::new(&scope, text(one, "name"), text(one, "expression")))
            .collect();
        let validation = |one: &Json| Validation {
            expression: Expression::new(&scope, text(one, "expression"), Gives::Truth, true),
            message: text(one, "message").into(),
            words: Some(text(one, "messageExpression"))
                .filter(|text| !text.is_empty())
                .map(|text| Expression::new(&scope, text, Gives::Text, false)),
            reason: Some(text(one, "reason"))
                .filter(|text| !text.is_empty())
                .unwrap_or("Invalid")
                .into(),
        };
        let annotation = |one: &Json| {
            let value = text(one, "valueExpression");
            (text(one, "key").into(), Expression::new(&scope, value, Gives::TextOrNull, true))
        };
        Self {
            failure: Failure::read(spec),
            conditions: Conditions::read(&scope, spec),
            variables,
            validations: list(spec, "validations").map(validation).collect(),
            annotations: list(spec, "auditAnnotations").map(annotation).collect(),
        }
    }

    /// Judges an object. `conditional` is what conditions look at: they see the request under the
    /// resource that it names, the other expressions under the one that the policy names.
    pub fn judge(&self, input: Input<'_>, conditional: Input<'_>) -> Judged {
        if !self.conditions.is_empty() {
            match self.conditions.hold(conditional, &self.variables, self.failure) {
                Ok(true) => {}
                Ok(false) => return Judged::default(),
                Err(error) => return Judged::failure(self.failure, error.to_string()),
            }
        }
        let mut judged = match self.broken(input) {
            Ok(broken) => Judged { broken, ..Judged::default() },
            Err(OutOfBudget) => return Judged::failure(self.failure, OUT_OF_BUDGET.to_owned()),
        };
        // Neither here nor in messages may anybody be asked who may do what.
        let mute = Input { asking: None, ..input };
        let mut evaluation = Evaluation::new(mute, &self.variables, limits::COST_PER_OBJECT);
        for (key, expression) in &self.annotations {
            match evaluation.value(expression) {
                Err(OutOfBudget) => return Judged::failure(self.failure, OUT_OF_BUDGET.to_owned()),
                Ok(Ok(Value::String(value))) if !value.trim().is_empty() => {
                    judged.notes.push((key.to_string(), value.trim().to_owned()));
                }
                Ok(Err(error)) if self.failure == Failure::Fail => {
                    judged.failed.push(error.to_string());
                }
                Ok(_) => {}
            }
        }
        judged
    }

    fn broken(&self, input: Input<'_>) -> Result<Vec<Broken>, OutOfBudget> {
        let mut evaluation = Evaluation::new(input, &self.variables, limits::COST_PER_OBJECT);
        let mut outcomes = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            outcomes.push(evaluation.value(&validation.expression)?);
        }
        if outcomes.iter().all(|outcome| matches!(outcome, Ok(Value::Bool(true)))) {
            // What would be said is not asked for.
            let costly = self.validations.iter().any(|validation| validation.words.is_some());
            if !costly {
                return Ok(Vec::new());
            }
        }
        let words = self.words(input, evaluation.remaining());
        let mut broken = Vec::new();
        for (at, (validation, outcome)) in self.validations.iter().zip(outcomes).enumerate() {
            let failed = match (&outcome, &words) {
                (Err(error), _) => Some(error.to_string()),
                (_, Err(OutOfBudget)) => Some(format!("failed messageExpression: {OUT_OF_BUDGET}")),
                _ => None,
            };
            if let Some(message) = failed {
                if self.failure == Failure::Fail
                    && !mainstay_fault::is_on("rules-that-fail-are-forgiven")
                {
                    broken.push(Broken { at, message, reason: String::new() });
                }
                continue;
            }
            if matches!(outcome, Ok(Value::Bool(true))) {
                continue;
            }
            let own = words.as_ref().ok().and_then(|words| words[at].clone());
            let own = own.filter(|_| !mainstay_fault::is_on("messages-of-policies-are-not-made"));
            let message = own.unwrap_or_else(|| validation.message.trim().to_owned());
            let message = if message.is_empty() {
                format!("failed expression: {}", validation.expression.text().trim())
            } else {
                message
            };
            broken.push(Broken { at, message, reason: validation.reason.to_string() });
        }
        Ok(broken)
    }

    /// The messages that expressions give, of those that can be shown.
    fn words(&self, input: Input<'_>, budget: u64) -> Result<Vec<Option<String>>, OutOfBudget> {
        let mute = Input { asking: None, ..input };
        let mut evaluation = Evaluation::new(mute, &self.variables, budget);
        let mut all = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let said = match &validation.words {
                Some(words) => evaluation.value(words)?.ok(),
                None => None,
            };
            all.push(match said {
                Some(Value::String(said)) => Some(said.trim().to_owned()).filter(|message| {
                    !message.is_empty()
                        && message.len() <= limits::MESSAGE_BYTES
                        && !message.contains('\n')
                }),
                _ => None,
            });
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NULL: &Json = &Json::Null;

    fn judged(spec: &Json, object: &Json) -> Judged {
        let input =
            Input { object, old: NULL, request: NULL, params: NULL, namespace: NULL, asking: None };
        Programs::read(spec).judge(input, input)
    }

    fn messages(spec: &Json, object: &Json) -> Vec<String> {
        judged(spec, object).broken.into_iter().map(|broken| broken.message).collect()
    }

    #[test]
    fn what_is_said_of_a_broken_rule() {
        let object = json!({"n": 5});
        for (validation, expected) in [
            (json!({"expression": " object.n > 5 "}), Some("failed expression: object.n > 5")),
            (json!({"expression": "object.n > 5", "message": " too small "}), Some("too small")),
            (
                json!({"expression": "object.n > 5", "message": "m",
                    "messageExpression": "'is ' + string(object.n) + ' '"}),
                Some("is 5"),
            ),
            (
                json!({"expression": "object.n > 5", "message": "m",
                    "messageExpression": "object.missing"}),
                Some("m"),
            ),
            (
                json!({"expression": "object.n > 5", "messageExpression": "'a\\nb'"}),
                Some("failed expression: object.n > 5"),
            ),
            (
                json!({"expression": "object.n > 5", "message": "m", "messageExpression":
                    format!("'{}'", "x".repeat(5 * 1024 + 1))}),
                Some("m"),
            ),
            (json!({"expression": "object.n == 5"}), None),
            (
                json!({"expression": "object.x == 5"}),
                Some("expression 'object.x == 5' resulted in error: no such key: x"),
            ),
        ] {
            let spec = json!({"failurePolicy": "Fail", "validations": [validation]});
            let expected: Vec<_> = expected.into_iter().collect();
            assert_eq!(messages(&spec, &object), expected, "{validation}");
        }
    }

    #[test]
    fn what_fails_is_forgiven_where_the_policy_says_so() {
        let validations = json!([
            {"expression": "object.x == 5"}, {"expression": "1 +"}, {"expression": "object.n == 6"},
        ]);
        let spec = json!({"failurePolicy": "Ignore", "validations": validations});
        assert_eq!(messages(&spec, &json!({"n": 5})), ["failed expression: object.n == 6"]);
        let spec = json!({"failurePolicy": "Fail", "validations": validations});
        let said = messages(&spec, &json!({"n": 6}));
        assert_eq!(said.len(), 2);
        assert!(said[1].starts_with("compilation error: compilation failed: ERROR"), "{}", said[1]);
    }

    #[test]
    fn conditions_decide_before_anything_else() {
        let spec = |failure: &str, conditions: &[&str]| {
            let conditions: Vec<_> =
                conditions.iter().map(|text| json!({"name": "c", "expression": text})).collect();
            json!({
                "failurePolicy": failure, "matchConditions": conditions,
                "validations": [{"expression": "false", "message": "no"}],
            })
        };
        let error = |text: &str| format!("expression '{text}' resulted in error: no such key: x");
        for (failure, conditions, expected) in [
            ("Fail", &["true"][..], vec!["no".to_owned()]),
            ("Fail", &["true", "false"], vec![]),
            ("Fail", &["object.x == 1", "false"], vec![]),
            ("Fail", &["object.x == 1", "true"], vec![error("object.x == 1")]),
            (
                "Fail",
                &["object.x == 1", "object.x == 2", "object.x == 1"],
                vec![format!("[{}, {}]", error("object.x == 1"), error("object.x == 2"))],
            ),
            ("Ignore", &["object.x == 1", "true"], vec![]),
        ] {
            assert_eq!(
                messages(&spec(failure, conditions), &json!({})),
                expected,
                "{conditions:?}"
            );
        }
    }

    #[test]
    fn notes_are_texts_that_say_something() {
        let spec = |failure: &str| {
            json!({
                "failurePolicy": failure,
                "auditAnnotations": [
                    {"key": "a", "valueExpression": "' x '"},
                    {"key": "b", "valueExpression": "null"},
                    {"key": "c", "valueExpression": "'  '"},
                    {"key": "d", "valueExpression": "string(object.x)"},
                ],
            })
        };
        let found = judged(&spec("Fail"), &json!({}));
        assert_eq!(found.notes, [("a".to_owned(), "x".to_owned())]);
        let why = "expression 'string(object.x)' resulted in error: no such key: x";
        assert_eq!(found.failed, [why]);
        assert!(judged(&spec("Ignore"), &json!({})).failed.is_empty());
    }

    #[test]
    fn rules_that_cost_too_much_together_are_one_failure() {
        let list: Vec<usize> = (0..1000).collect();
        let object = json!({"list": list});
        let slow = "object.list.all(x, object.list.all(y, x + y >= 0)) || true";
        let rules: Vec<_> = (0..12).map(|_| json!({"expression": slow})).collect();
        let spec = json!({"failurePolicy": "Fail", "validations": rules});
        assert_eq!(messages(&spec, &object), [OUT_OF_BUDGET]);
        let words = json!({"expression": "false", "messageExpression": format!("string({slow})")});
        let spec = json!({"failurePolicy": "Fail", "validations": vec![words; 12]});
        let said = messages(&spec, &object);
        assert_eq!(said[0], format!("failed messageExpression: {OUT_OF_BUDGET}"));
    }
}
