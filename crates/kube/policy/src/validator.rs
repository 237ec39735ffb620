//! The validator of one policy: its result for one object and one parameter resource.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/policy/validating/validator.go` and
//! `pkg/admission/plugin/webhook/matchconditions`.

use super::compile::ReturnType;
use super::evaluate::{
    CONDITIONS, Evaluation, EvaluationInput, Expression, OUT_OF_BUDGET, OutOfBudget, PolicyVariable,
};
use crate::ExpressionScope;
use mainstay_cel::kubernetes::limits;
use mainstay_cel::value::Value;
use serde_json::Value as Json;

/// `failurePolicy`: the effect of an error in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request fails.
    Fail,
    /// The expression is ignored.
    Ignore,
}

impl FailurePolicy {
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

/// Match conditions could not be evaluated; the texts are those of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchConditionsError {
    /// The conditions exceed their cost budget.
    #[error("{OUT_OF_BUDGET}")]
    OutOfBudget,
    /// Expressions failed: their errors.
    #[error("{}", aggregate(.0))]
    Evaluate(Vec<String>),
}

/// The compiled `matchConditions` of a policy or a webhook.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<Expression>);

impl MatchConditions {
    /// Compiles `matchConditions`.
    pub fn compile(scope: &ExpressionScope, owner: &Json) -> Self {
        let conditions = list(owner, "matchConditions");
        let compile = |condition| {
            Expression::new(scope, text(condition, "expression"), ReturnType::Bool, true)
        };
        Self(conditions.map(compile).collect())
    }

    /// Whether there are no conditions.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all conditions are true. A false condition decides even if others fail. Without one,
    /// `failure` decides about a condition that fails. Conditions do not see `namespaceObject`.
    ///
    /// # Errors
    /// Expressions fail, or exceed the cost budget.
    pub fn matches(
        &self,
        input: EvaluationInput<'_>,
        variables: &[PolicyVariable],
        failure_policy: FailurePolicy,
    ) -> Result<bool, MatchConditionsError> {
        let input = EvaluationInput { namespace: &Json::Null, ..input };
        let mut evaluation = Evaluation::new(input, variables, CONDITIONS);
        let mut outcomes = Vec::with_capacity(self.0.len());
        for condition in &self.0 {
            match evaluation.value(condition) {
                Ok(outcome) => outcomes.push(outcome),
                Err(OutOfBudget) if failure_policy == FailurePolicy::Ignore => return Ok(false),
                Err(OutOfBudget) => return Err(MatchConditionsError::OutOfBudget),
            }
        }
        if outcomes.iter().any(|outcome| matches!(outcome, Ok(Value::Bool(false)))) {
            return Ok(false);
        }
        let errors = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
        let errors: Vec<String> = errors.map(ToString::to_string).collect();
        match (errors.is_empty(), failure_policy) {
            (true, _) => Ok(true),
            (false, FailurePolicy::Ignore) => Ok(false),
            (false, FailurePolicy::Fail) => Err(MatchConditionsError::Evaluate(errors)),
        }
    }
}

/// Several errors as Go aggregates them: each text once, in brackets if there are several.
fn aggregate(errors: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for error in errors {
        if !distinct.contains(&error.as_str()) {
            distinct.push(error);
        }
    }
    match *distinct {
        [error] => error.to_owned(),
        _ => format!("[{}]", distinct.join(", ")),
    }
}

/// One of the `validations` of a policy.
#[derive(Debug)]
struct Validation {
    expression: Expression,
    message: Box<str>,
    message_expression: Option<Expression>,
    reason: Box<str>,
}

/// The compiled expressions of a policy.
#[derive(Debug)]
pub struct CompiledPolicy {
    failure_policy: FailurePolicy,
    conditions: MatchConditions,
    variables: Vec<PolicyVariable>,
    validations: Vec<Validation>,
    audit_annotations: Vec<(Box<str>, Expression)>,
}

/// A validation that is false, or that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyViolation {
    /// The index of the validation in the policy.
    pub index: usize,
    /// The message of the response.
    pub message: String,
    /// The reason of the response; empty if an expression failed.
    pub reason: String,
}

/// The result of a policy for one object.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ValidationResult {
    /// The validations that are false or failed.
    pub violations: Vec<PolicyViolation>,
    /// The audit annotations of the request.
    pub audit_annotations: Vec<(String, String)>,
    /// Errors of the expressions of audit annotations; the request fails.
    pub audit_errors: Vec<String>,
}

impl ValidationResult {
    fn from_error(failure_policy: FailurePolicy, message: String) -> Self {
        let mut result = Self::default();
        if failure_policy == FailurePolicy::Fail {
            result.violations.push(PolicyViolation { index: 0, message, reason: String::new() });
        }
        result
    }
}

impl CompiledPolicy {
    /// Compiles the expressions of a policy's `spec`.
    pub fn compile(spec: &Json) -> Self {
        let params = spec.get("paramKind").is_some_and(|kind| !kind.is_null());
        let scope = ExpressionScope::new(params, true);
        let variables = list(spec, "variables")
            .map(|variable| {
                PolicyVariable::new(&scope, text(variable, "name"), text(variable, "expression"))
            })
            .collect();
        let compile_validation = |validation: &Json| Validation {
            expression: Expression::new(
                &scope,
                text(validation, "expression"),
                ReturnType::Bool,
                true,
            ),
            message: text(validation, "message").into(),
            message_expression: Some(text(validation, "messageExpression"))
                .filter(|text| !text.is_empty())
                .map(|text| Expression::new(&scope, text, ReturnType::String, false)),
            reason: Some(text(validation, "reason"))
                .filter(|text| !text.is_empty())
                .unwrap_or("Invalid")
                .into(),
        };
        let compile_annotation = |annotation: &Json| {
            let value = text(annotation, "valueExpression");
            let expression = Expression::new(&scope, value, ReturnType::StringOrNull, true);
            (text(annotation, "key").into(), expression)
        };
        Self {
            failure_policy: FailurePolicy::read(spec),
            conditions: MatchConditions::compile(&scope, spec),
            variables,
            validations: list(spec, "validations").map(compile_validation).collect(),
            audit_annotations: list(spec, "auditAnnotations").map(compile_annotation).collect(),
        }
    }

    /// Validates an object. `condition_input` is the input of match conditions: they see the
    /// resource of the request, the other expressions see the resource of the policy's rule.
    pub fn validate(
        &self,
        input: EvaluationInput<'_>,
        condition_input: EvaluationInput<'_>,
    ) -> ValidationResult {
        if !self.conditions.is_empty() {
            match self.conditions.matches(condition_input, &self.variables, self.failure_policy) {
                Ok(true) => {}
                Ok(false) => return ValidationResult::default(),
                Err(error) => {
                    return ValidationResult::from_error(self.failure_policy, error.to_string());
                }
            }
        }
        let out_of_budget =
            || ValidationResult::from_error(self.failure_policy, OUT_OF_BUDGET.to_owned());
        let mut result = match self.violations(input) {
            Ok(violations) => ValidationResult { violations, ..ValidationResult::default() },
            Err(OutOfBudget) => return out_of_budget(),
        };
        // Audit annotations and messages may not use the authorizer.
        let input = EvaluationInput { authorizer: None, ..input };
        let mut evaluation = Evaluation::new(input, &self.variables, limits::COST_PER_OBJECT);
        for (key, expression) in &self.audit_annotations {
            match evaluation.value(expression) {
                Err(OutOfBudget) => return out_of_budget(),
                Ok(Ok(Value::String(value))) if !value.trim().is_empty() => {
                    result.audit_annotations.push((key.to_string(), value.trim().to_owned()));
                }
                Ok(Err(error)) if self.failure_policy == FailurePolicy::Fail => {
                    result.audit_errors.push(error.to_string());
                }
                Ok(_) => {}
            }
        }
        result
    }

    fn violations(&self, input: EvaluationInput<'_>) -> Result<Vec<PolicyViolation>, OutOfBudget> {
        let mut evaluation = Evaluation::new(input, &self.variables, limits::COST_PER_OBJECT);
        let mut outcomes = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            outcomes.push(evaluation.value(&validation.expression)?);
        }
        if outcomes.iter().all(|outcome| matches!(outcome, Ok(Value::Bool(true)))) {
            // Message expressions run even now: one that exceeds the budget is a failure.
            let has_message_expressions =
                self.validations.iter().any(|validation| validation.message_expression.is_some());
            if !has_message_expressions {
                return Ok(Vec::new());
            }
        }
        let messages = self.messages(input, evaluation.remaining());
        let mut violations = Vec::new();
        for (index, (validation, outcome)) in self.validations.iter().zip(outcomes).enumerate() {
            let error = match (&outcome, &messages) {
                (Err(error), _) => Some(error.to_string()),
                (_, Err(OutOfBudget)) => Some(format!("failed messageExpression: {OUT_OF_BUDGET}")),
                _ => None,
            };
            if let Some(message) = error {
                if self.failure_policy == FailurePolicy::Fail
                    && !mainstay_fault::is_on("rules-that-fail-are-forgiven")
                {
                    violations.push(PolicyViolation { index, message, reason: String::new() });
                }
                continue;
            }
            if matches!(outcome, Ok(Value::Bool(true))) {
                continue;
            }
            let evaluated = messages.as_ref().ok().and_then(|messages| messages[index].clone());
            let evaluated =
                evaluated.filter(|_| !mainstay_fault::is_on("messages-of-policies-are-not-made"));
            let message = evaluated.unwrap_or_else(|| validation.message.trim().to_owned());
            let message = if message.is_empty() {
                format!("failed expression: {}", validation.expression.text().trim())
            } else {
                message
            };
            violations.push(PolicyViolation {
                index,
                message,
                reason: validation.reason.to_string(),
            });
        }
        Ok(violations)
    }

    /// The values of the message expressions: those that are one line of an allowed length.
    fn messages(
        &self,
        input: EvaluationInput<'_>,
        budget: u64,
    ) -> Result<Vec<Option<String>>, OutOfBudget> {
        let input = EvaluationInput { authorizer: None, ..input };
        let mut evaluation = Evaluation::new(input, &self.variables, budget);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let value = match &validation.message_expression {
                Some(expression) => evaluation.value(expression)?.ok(),
                None => None,
            };
            messages.push(match value {
                Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|message| {
                    !message.is_empty()
                        && message.len() <= limits::MESSAGE_BYTES
                        && !message.contains('\n')
                }),
                _ => None,
            });
        }
        Ok(messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NULL: &Json = &Json::Null;

    fn validate(spec: &Json, object: &Json) -> ValidationResult {
        let input = EvaluationInput {
            object,
            old: NULL,
            request: NULL,
            params: NULL,
            namespace: NULL,
            authorizer: None,
        };
        CompiledPolicy::compile(spec).validate(input, input)
    }

    fn messages(spec: &Json, object: &Json) -> Vec<String> {
        validate(spec, object).violations.into_iter().map(|violation| violation.message).collect()
    }

    #[test]
    fn a_violation_has_the_message_of_its_expression_or_field() {
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
    fn failing_validations_are_ignored_with_failure_policy_ignore() {
        let validations = json!([
            {"expression": "object.x == 5"}, {"expression": "1 +"}, {"expression": "object.n == 6"},
        ]);
        let spec = json!({"failurePolicy": "Ignore", "validations": validations});
        assert_eq!(messages(&spec, &json!({"n": 5})), ["failed expression: object.n == 6"]);
        let spec = json!({"failurePolicy": "Fail", "validations": validations});
        let found = messages(&spec, &json!({"n": 6}));
        assert_eq!(found.len(), 2, "{found:?}");
        let expected = "compilation error: compilation failed: ERROR";
        assert!(found[1].starts_with(expected), "{expected}: {}", found[1]);
    }

    #[test]
    fn match_conditions_decide_before_validations() {
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
    fn audit_annotations_are_strings_that_are_not_blank() {
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
        let found = validate(&spec("Fail"), &json!({}));
        assert_eq!(found.audit_annotations, [("a".to_owned(), "x".to_owned())]);
        let error = "expression 'string(object.x)' resulted in error: no such key: x";
        assert_eq!(found.audit_errors, [error]);
        assert_eq!(validate(&spec("Ignore"), &json!({})).audit_errors, [""; 0]);
    }

    #[test]
    fn validations_that_exceed_the_budget_together_are_one_failure() {
        let list: Vec<usize> = (0..1000).collect();
        let object = json!({"list": list});
        let slow = "object.list.all(x, object.list.all(y, x + y >= 0)) || true";
        let validations: Vec<_> = (0..12).map(|_| json!({"expression": slow})).collect();
        let spec = json!({"failurePolicy": "Fail", "validations": validations});
        assert_eq!(messages(&spec, &object), [OUT_OF_BUDGET]);
        let validation =
            json!({"expression": "false", "messageExpression": format!("string({slow})")});
        let spec = json!({"failurePolicy": "Fail", "validations": vec![validation; 12]});
        let found = messages(&spec, &object);
        assert_eq!(found[0], format!("failed messageExpression: {OUT_OF_BUDGET}"));
    }
}
