//! Evaluating the expressions of a policy, with what they may cost.
//!
//! A variable is evaluated when the first expression needs it: that one stops, the variable is
//! evaluated, and the expression begins again, so that variables may build on one another as deep
//! as they like without a deep stack. What an expression costs is what its last run costs, as if it
//! had never stopped. Variables are paid for from the same budget, once.
//!
//! Rules and texts: apiserver's `pkg/admission/plugin/cel/activation.go` and `composition.go`.

use super::compile::{Broken, Gives, Ready};
use super::declarations::{
    AUTHORIZER, NAMESPACE, OBJECT, OLD_OBJECT, PARAMS, REQUEST, REQUEST_RESOURCE, Scope, VARIABLES,
};
use mainstay_cel::kubernetes::limits;
use mainstay_cel::library::kubernetes::authorizer::{self, Authorizer, ResourceAttributes};
use mainstay_cel::value::{Error, Value, ValueResult, WorkBudget};
use mainstay_cel::{Activation, CostBudget, Program};
use mainstay_gocompat::quote;
use serde_json::Value as Json;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What all conditions under which a policy or webhook applies may cost together.
pub(super) const CONDITIONS: u64 = limits::COST_PER_OBJECT / 4;

/// What is said when a budget is used up.
pub(super) const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// An expression has no value; the texts are the original's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExpressionError {
    /// The expression does not compile.
    #[error("compilation error: {detail}")]
    Compile {
        /// What is wrong with it.
        detail: String,
    },
    /// The evaluation failed.
    #[error("expression '{text}' resulted in error: {source}")]
    Evaluate {
        /// The expression.
        text: String,
        /// Why.
        source: Error,
    },
}

/// The budget is used up: nothing more is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfBudget;

/// An expression and what became of it when it was compiled.
#[derive(Debug)]
pub(crate) struct Expression {
    text: Box<str>,
    compiled: Result<Program, Broken>,
}

/// A variable of a policy.
#[derive(Debug)]
pub struct Variable {
    name: Box<str>,
    expression: Expression,
}

impl Expression {
    fn of(text: &str, compiled: Result<Ready, Broken>) -> Self {
        Self { text: text.into(), compiled: compiled.map(|ready| ready.program) }
    }

    /// Compiles an expression.
    pub(crate) fn new(scope: &Scope, text: &str, gives: Gives, authorizer: bool) -> Self {
        Self::of(text, scope.compile(text, gives, authorizer))
    }

    /// Its text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Variable {
    /// Compiles a variable, which those that follow see.
    pub(crate) fn new(scope: &Scope, name: &str, text: &str) -> Self {
        let expression = Expression::of(text, scope.variable(name, text));
        Self { name: name.into(), expression }
    }
}

/// Who answers questions about permissions, and what the request itself is about.
#[derive(Clone, Debug)]
pub struct Asking {
    /// Who answers, about whoever sent the request.
    pub authorizer: Arc<dyn Authorizer>,
    /// The request's own resource.
    pub resource: ResourceAttributes,
}

/// What expressions look at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The object as it will be, or null.
    pub object: &'a Json,
    /// The object as it was, or null.
    pub old: &'a Json,
    /// The request.
    pub request: &'a Json,
    /// The parameters, or null.
    pub params: &'a Json,
    /// The namespace, or null.
    pub namespace: &'a Json,
    /// Where permissions are asked for; none where expressions cannot.
    pub asking: Option<&'a Asking>,
}

/// What is known of a variable.
#[derive(Debug)]
enum State<'a> {
    Unknown,
    /// It is being evaluated.
    Busy,
    Known(ValueResult<'a>),
}

/// Evaluates expressions that share variables and a budget.
#[derive(Debug)]
pub(crate) struct Evaluation<'a> {
    input: Input<'a>,
    variables: &'a [Variable],
    states: RefCell<Vec<State<'a>>>,
    /// The variable that an expression stopped for.
    wanted: Cell<Option<usize>>,
    budget: CostBudget<'static>,
    remaining: u64,
}

impl<'a> Evaluation<'a> {
    /// Begins with a budget for everything.
    pub(crate) fn new(input: Input<'a>, variables: &'a [Variable], budget: u64) -> Self {
        let states = variables.iter().map(|_| State::Unknown).collect();
        Self {
            input,
            variables,
            states: RefCell::new(states),
            wanted: Cell::new(None),
            budget: CostBudget::new(limits::COST_PER_CALL),
            remaining: budget,
        }
    }

    /// What is left of the budget.
    pub(crate) const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// The value of an expression, or why it has none.
    pub(crate) fn value(
        &mut self,
        expression: &'a Expression,
    ) -> Result<Result<Value<'a>, ExpressionError>, OutOfBudget> {
        let program = match &expression.compiled {
            Ok(program) => program,
            Err(broken) => {
                let detail = broken.detail.clone();
                return Ok(Err(ExpressionError::Compile { detail }));
            }
        };
        let (outcome, variables, own) = self.run(program);
        for cost in [variables, own] {
            self.remaining = self.remaining.checked_sub(cost).ok_or(OutOfBudget)?;
        }
        Ok(outcome.map_err(|source| {
            let text = expression.text.to_string();
            ExpressionError::Evaluate { text, source }
        }))
    }

    /// Runs a program, and before it the variables that it needs: what comes out, what the
    /// variables cost, and what it cost itself.
    fn run(&mut self, root: &'a Program) -> (ValueResult<'a>, u64, u64) {
        let mut needed: Vec<(usize, &'a Program)> = Vec::new();
        let mut cost = 0_u64;
        let mut budget = self.budget.clone();
        let outcome = loop {
            let program = needed.last().map_or(root, |(_, program)| program);
            budget.renew(limits::COST_PER_CALL);
            let outcome = program.eval(self, &mut budget);
            if let Some(next) = self.wanted.take()
                && let Ok(program) = &self.variables[next].expression.compiled
            {
                self.states.borrow_mut()[next] = State::Busy;
                needed.push((next, program));
                continue;
            }
            let Some((at, _)) = needed.pop() else { break outcome };
            cost = cost.saturating_add(budget.spent());
            let name = &self.variables[at].name;
            self.states.borrow_mut()[at] = State::Known(outcome.map_err(|error| {
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
        // Of several of one name the last counts.
        let at = self.variables.iter().rposition(|variable| *variable.name == *name)?;
        if let Err(broken) = &self.variables[at].expression.compiled {
            return Some(Err(Error::text(
                format!("composited variable {} fails to compile: {}", quote(name), broken.detail),
                work,
            )));
        }
        Some(match &self.states.borrow()[at] {
            State::Known(outcome) => outcome.clone(),
            State::Busy => {
                Err(Error::text(format!("variable {} needs its own value", quote(name)), work))
            }
            State::Unknown => {
                self.wanted.set(Some(at));
                Err(Error::Interrupted)
            }
        })
    }
}

impl<'a> Activation<'a> for Evaluation<'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        let asking = self.input.asking;
        Some(match name {
            OBJECT => Value::from_json(self.input.object),
            OLD_OBJECT => Value::from_json(self.input.old),
            PARAMS => Value::from_json(self.input.params),
            REQUEST => Value::from_json(self.input.request),
            NAMESPACE => Value::from_json(self.input.namespace),
            AUTHORIZER => authorizer::authorizer(Arc::clone(&asking?.authorizer)),
            REQUEST_RESOURCE => {
                let Asking { authorizer, resource } = asking?;
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
        let scope = Scope::new(true, true);
        let variables: Vec<_> =
            variables.iter().map(|(name, text)| Variable::new(&scope, name, text)).collect();
        let object = json!({"a": 1, "list": (0..1000).collect::<Vec<_>>()});
        let input = Input {
            object: &object,
            old: NULL,
            request: NULL,
            params: NULL,
            namespace: NULL,
            asking: None,
        };
        let expressions: Vec<_> =
            texts.iter().map(|text| Expression::new(&scope, text, Gives::Anything, true)).collect();
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
    fn a_variable_is_paid_for_once() {
        let variables = [("all", "object.list.all(x, x >= 0)")];
        let twice = ["variables.all", "variables.all", "object.a == 1"];
        assert_eq!(outcomes(&variables, &twice, 6010), ["true", "true", "true"]);
        assert_eq!(outcomes(&variables, &twice, 100)[0], "out of budget");
    }

    #[test]
    fn no_expression_costs_more_than_it_may() {
        let text = "object.list.all(x, object.list.all(y, x + y >= 0))";
        let expected = format!(
            "expression '{text}' resulted in error: operation cancelled: actual cost limit exceeded"
        );
        assert_eq!(outcomes(&[], &[text], 2_000_000), [expected]);
        assert_eq!(outcomes(&[], &[text], 1_000_000), ["out of budget"]);
        let variables = [("slow", text)];
        let answer = outcomes(&variables, &["variables.slow"], 2_000_000).remove(0);
        assert!(answer.contains("\"slow\" fails to evaluate: operation cancelled"), "{answer}");
    }

    #[test]
    fn variables_may_build_on_one_another_as_deep_as_they_like() {
        let names: Vec<String> = (0..3000).map(|at| format!("v{at}")).collect();
        let texts: Vec<String> = (0..3000_usize)
            .map(|at| at.checked_sub(1).map_or("1".into(), |at| format!("variables.v{at} + 1")))
            .collect();
        let variables: Vec<_> =
            names.iter().zip(&texts).map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(outcomes(&variables, &["variables.v2999"], 1_000_000), ["3000"]);
    }

    #[test]
    fn a_variable_that_means_itself_fails() {
        let variables = [("a", "1"), ("a", "variables.a + 1")];
        let answer = outcomes(&variables, &["variables.a"], 1000).remove(0);
        assert!(answer.ends_with("variable \"a\" needs its own value"), "{answer}");
    }
}
