//! Evaluation of the expressions of a policy within a cost budget.
//!
//! A variable is evaluated when an expression first needs it: the expression stops, the variable is
//! evaluated, and the expression starts again. So variables may refer to one another at any depth
//! without a deep stack. The cost of an expression is that of its last run, as if it had never
//! stopped. A variable is charged to the same budget, once.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/cel/activation.go` and `composition.go`.

use super::compile::{CompileError, PolicyExpression, ReturnType};
use super::declarations::{
    AUTHORIZER, ExpressionScope, NAMESPACE, OBJECT, OLD_OBJECT, PARAMS, REQUEST, REQUEST_RESOURCE,
    VARIABLES,
};
use mainstay_cel::kubernetes::limits;
use mainstay_cel::library::kubernetes::authorizer::{self, Authorizer, ResourceAttributes};
use mainstay_cel::value::{Error, Value, ValueResult, WorkBudget};
use mainstay_cel::{Activation, CostBudget, Program};
use mainstay_gocompat::quote;
use serde_json::Value as Json;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The cost budget of all match conditions of a policy or webhook together.
pub(super) const CONDITIONS: u64 = limits::COST_PER_OBJECT / 4;

/// The error when a budget is used up.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression has no value; the texts are those of Kubernetes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpressionError {
    /// The expression does not compile.
    #[error("compilation error: {detail}")]
    Compile {
        /// The error of the compiler.
        detail: String,
    },
    /// The evaluation failed.
    #[error("expression '{text}' resulted in error: {source}")]
    Evaluate {
        /// The expression.
        text: String,
        /// The error of the evaluation.
        source: Error,
    },
}

/// The budget is used up; no further expression is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// An expression and the result of its compilation.
#[derive(Debug)]
pub(crate) struct Expression {
    text: Box<str>,
    compiled: Result<Program, CompileError>,
}

/// A variable of a policy.
#[derive(Debug)]
pub struct PolicyVariable {
    name: Box<str>,
    expression: Expression,
}

impl Expression {
    fn from_compiled(text: &str, compiled: Result<PolicyExpression, CompileError>) -> Self {
        Self { text: text.into(), compiled: compiled.map(|compiled| compiled.program) }
    }

    /// Compiles an expression.
    pub(crate) fn new(
        scope: &ExpressionScope,
        text: &str,
        returns: ReturnType,
        authorizer: bool,
    ) -> Self {
        Self::from_compiled(text, scope.compile(text, returns, authorizer))
    }

    /// The text of the expression.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl PolicyVariable {
    /// Compiles a variable and declares it for later expressions.
    pub(crate) fn new(scope: &ExpressionScope, name: &str, text: &str) -> Self {
        let expression = Expression::from_compiled(text, scope.compile_variable(name, text));
        Self { name: name.into(), expression }
    }
}

/// The values of `authorizer` and `authorizer.requestResource`.
#[derive(Clone, Debug)]
pub struct RequestAuthorizer {
    /// Checks permissions of the user of the request.
    pub authorizer: Arc<dyn Authorizer>,
    /// The resource of the request.
    pub resource: ResourceAttributes,
}

/// The values of the variables of an evaluation.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationInput<'a> {
    /// The new object, or null.
    pub object: &'a Json,
    /// The old object, or null.
    pub old: &'a Json,
    /// The `AdmissionRequest` without its objects.
    pub request: &'a Json,
    /// The parameter resource, or null.
    pub params: &'a Json,
    /// The namespace, or null.
    pub namespace: &'a Json,
    /// The authorizer; none where expressions may not use it.
    pub authorizer: Option<&'a RequestAuthorizer>,
}

/// The state of the evaluation of a variable.
#[derive(Debug)]
enum VariableState<'a> {
    Pending,
    Running,
    Done(ValueResult<'a>),
}

/// Evaluates expressions that share variables and a budget.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    input: EvaluationInput<'a>,
    variables: &'a [PolicyVariable],
    states: RefCell<Vec<VariableState<'a>>>,
    /// The index of the variable that the last expression stopped for.
    next_variable: Cell<Option<usize>>,
    budget: CostBudget<'static>,
    remaining: u64,
}

impl<'a> Evaluation<'a> {
    /// Starts with a budget for all expressions together.
    pub(crate) fn new(
        input: EvaluationInput<'a>,
        variables: &'a [PolicyVariable],
        budget: u64,
    ) -> Self {
        let states = variables.iter().map(|_| VariableState::Pending).collect();
        Self {
            input,
            variables,
            states: RefCell::new(states),
            next_variable: Cell::new(None),
            budget: CostBudget::new(limits::COST_PER_CALL),
            remaining: budget,
        }
    }

    /// The rest of the budget.
    pub(crate) const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Evaluates an expression.
    pub(crate) fn value(
        &mut self,
        expression: &'a Expression,
    ) -> Result<Result<Value<'a>, ExpressionError>, OutOfBudget> {
        let program = match &expression.compiled {
            Ok(program) => program,
            Err(error) => {
                let detail = error.detail.clone();
                return Ok(Err(ExpressionError::Compile { detail }));
            }
        };
        let (outcome, variables_cost, own_cost) = self.run(program);
        for cost in [variables_cost, own_cost] {
            self.remaining = self.remaining.checked_sub(cost).ok_or(OutOfBudget)?;
        }
        Ok(outcome.map_err(|source| {
            let text = expression.text.to_string();
            ExpressionError::Evaluate { text, source }
        }))
    }

    /// Runs a program, and before it the variables that it needs. Returns the outcome, the cost of
    /// the variables and the cost of the program.
    fn run(&mut self, root: &'a Program) -> (ValueResult<'a>, u64, u64) {
        let mut running: Vec<(usize, &'a Program)> = Vec::new();
        let mut cost = 0_u64;
        let mut budget = self.budget.clone();
        let outcome = loop {
            let program = running.last().map_or(root, |(_, program)| program);
            budget.renew(limits::COST_PER_CALL);
            let outcome = program.eval(self, &mut budget);
            if let Some(next) = self.next_variable.take()
                && let Ok(program) = &self.variables[next].expression.compiled
            {
                self.states.borrow_mut()[next] = VariableState::Running;
                running.push((next, program));
                continue;
            }
            let Some((index, _)) = running.pop() else { break outcome };
            cost = cost.saturating_add(budget.spent());
            let name = &self.variables[index].name;
            self.states.borrow_mut()[index] = VariableState::Done(outcome.map_err(|error| {
                let text =
                    format!("composited variable {} fails to evaluate: {error}", quote(name));
                Error::text(text, &WorkBudget::unlimited())
            }));
        };
        let own = budget.spent();
        self.budget = budget;
        (outcome, cost, own)
    }

    fn variable(&self, name: &str, work: &WorkBudget) -> Option<ValueResult<'a>> {
        // Of several variables with one name the last counts.
        let index = self.variables.iter().rposition(|variable| *variable.name == *name)?;
        if let Err(error) = &self.variables[index].expression.compiled {
            return Some(Err(Error::text(
                format!("composited variable {} fails to compile: {}", quote(name), error.detail),
                work,
            )));
        }
        Some(match &self.states.borrow()[index] {
            VariableState::Done(outcome) => outcome.clone(),
            VariableState::Running => {
                Err(Error::text(format!("variable {} needs its own value", quote(name)), work))
            }
            VariableState::Pending => {
                self.next_variable.set(Some(index));
                Err(Error::Interrupted)
            }
        })
    }
}

impl<'a> Activation<'a> for Evaluation<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        let authorizer = self.input.authorizer;
        Some(match name {
            OBJECT => Value::from_json(self.input.object),
            OLD_OBJECT => Value::from_json(self.input.old),
            PARAMS => Value::from_json(self.input.params),
            REQUEST => Value::from_json(self.input.request),
            NAMESPACE => Value::from_json(self.input.namespace),
            AUTHORIZER => authorizer::authorizer(Arc::clone(&authorizer?.authorizer)),
            REQUEST_RESOURCE => {
                let RequestAuthorizer { authorizer, resource } = authorizer?;
                authorizer::request_resource(Arc::clone(authorizer), resource.clone())
            }
            _ => return None,
        })
    }

    fn look_up(&self, name: &str, work: &WorkBudget) -> Option<ValueResult<'a>> {
        let part = name.strip_prefix(VARIABLES).and_then(|rest| rest.strip_prefix('.'));
        match part {
            Some(name) => self.variable(name, work),
            None => self.get(name).map(Ok),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NULL: &Json = &Json::Null;

    fn outcomes(variables: &[(&str, &str)], texts: &[&str], budget: u64) -> Vec<String> {
        let scope = ExpressionScope::new(true, true);
        let variables: Vec<_> =
            variables.iter().map(|(name, text)| PolicyVariable::new(&scope, name, text)).collect();
        let object = json!({"a": 1, "list": (0..1000).collect::<Vec<_>>()});
        let input = EvaluationInput {
            object: &object,
            old: NULL,
            request: NULL,
            params: NULL,
            namespace: NULL,
            authorizer: None,
        };
        let expressions: Vec<_> =
            texts.iter().map(|text| Expression::new(&scope, text, ReturnType::Any, true)).collect();
        let mut evaluation = Evaluation::new(input, &variables, budget);
        let each = expressions.iter().map(|expression| match evaluation.value(expression) {
            Ok(Ok(value)) => value.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(OutOfBudget) => "out of budget".to_owned(),
        });
        each.collect()
    }

    #[test]
    fn variables_are_evaluated_when_they_are_needed() {
        let variables = [
            ("a", "object.a + 1"),
            ("b", "variables.a + 1"),
            ("wrong", "object.missing"),
            ("worse", "variables.wrong"),
            ("broken", "1 +"),
        ];
        for (text, expected) in [
            ("variables.b + variables.a", "5"),
            ("false && variables.wrong", "false"),
            ("variables.wrong || true", "true"),
            (
                "variables.wrong",
                "expression 'variables.wrong' resulted in error: composited variable \"wrong\" fails to evaluate: no such key: missing",
            ),
            (
                "variables.worse",
                "expression 'variables.worse' resulted in error: composited variable \"worse\" fails to evaluate: composited variable \"wrong\" fails to evaluate: no such key: missing",
            ),
            ("oldObject == null && params == null", "true"),
            (
                "authorizer.path('/').check('get').allowed()",
                "expression 'authorizer.path('/').check('get').allowed()' resulted in error: no such attribute(s): authorizer",
            ),
        ] {
            assert_eq!(outcomes(&variables, &[text], 1_000_000), [expected], "{text}");
        }
        let broken = outcomes(&variables, &["variables.broken"], 1000).remove(0);
        let begin = "expression 'variables.broken' resulted in error: composited variable \"broken\" fails to compile: compilation failed: ERROR: <input>:1:4: Syntax error";
        assert!(broken.starts_with(begin), "{broken}");
    }

    #[test]
    fn a_variable_is_charged_once() {
        let variables = [("all", "object.list.all(x, x >= 0)")];
        let twice = ["variables.all", "variables.all", "object.a == 1"];
        assert_eq!(outcomes(&variables, &twice, 6010), ["true", "true", "true"]);
        assert_eq!(outcomes(&variables, &twice, 100)[0], "out of budget");
    }

    #[test]
    fn an_expression_that_exceeds_its_cost_limit_fails() {
        let text = "object.list.all(x, object.list.all(y, x + y >= 0))";
        let expected = format!(
            "expression '{text}' resulted in error: operation cancelled: actual cost limit exceeded"
        );
        assert_eq!(outcomes(&[], &[text], 2_000_000), [expected]);
        assert_eq!(outcomes(&[], &[text], 1_000_000), ["out of budget"]);
        let variables = [("slow", text)];
        let outcome = outcomes(&variables, &["variables.slow"], 2_000_000).remove(0);
        let expected = "\"slow\" fails to evaluate: operation cancelled";
        assert!(outcome.contains(expected), "{outcome:?} lacks {expected:?}");
    }

    #[test]
    fn variables_may_refer_to_one_another_at_any_depth() {
        let names: Vec<String> = (0..3000).map(|at| format!("v{at}")).collect();
        let texts: Vec<String> = (0..3000_usize)
            .map(|at| at.checked_sub(1).map_or("1".into(), |at| format!("variables.v{at} + 1")))
            .collect();
        let variables: Vec<_> =
            names.iter().zip(&texts).map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(outcomes(&variables, &["variables.v2999"], 1_000_000), ["3000"]);
    }

    #[test]
    fn a_variable_that_refers_to_itself_fails() {
        let variables = [("a", "1"), ("a", "variables.a + 1")];
        let outcome = outcomes(&variables, &["variables.a"], 1000).remove(0);
        let expected = "variable \"a\" needs its own value";
        assert!(outcome.ends_with(expected), "{outcome:?} lacks {expected:?}");
    }
}
