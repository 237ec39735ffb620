//! Evaluation of expressions: programs, their variables and their budgets.
//!
//! A program is planned once and evaluated often, by many threads at the same time. The plan has
//! everything that does not depend on data: names are numbers, calls are bound to the overload of
//! the checker, and calls with constant arguments are results. Regular expressions are compiled,
//! and constant lists that are searched are sets. The plan does not change the cost of an
//! evaluation, which is part of the API: the cost of precomputed results is added.
//!
//! The evaluation is recursive over the tree. It borrows from the program and from objects (`'a`),
//! and allocates only for new strings, lists and maps.
//!
//! Rules, messages and costs: cel-go's `interpreter` package (`planner.go`, `interpretable.go`,
//! `attributes.go`, `decorators.go`, `runtimecost.go`) with Kubernetes' options (`OptOptimize`,
//! `OptTrackCost`, `PresenceTestHasCost(false)`).

mod call;
mod comprehension;
mod constant_set;
mod construct;
mod go_values;
mod machine;
mod node;
mod overload_error;
mod path;
mod plan;

use crate::check::CheckedExpression;
use crate::env::Env;
use crate::syntax::ast::ParsedExpression;
use crate::value::{Error, Value, ValueResult, WorkBudget, work};
use node::{Node, NodeId};
use std::sync::Arc;

/// A planned expression.
#[derive(Debug)]
pub struct Program {
    nodes: Box<[Node]>,
    root: NodeId,
    slots: Box<[SlotKind]>,
}

/// The kinds of slots for values.
#[derive(Debug)]
enum SlotKind {
    /// A variable, by its full name.
    Variable(Arc<str>),
    /// An iteration variable of a comprehension.
    Element,
    /// The accumulator of a comprehension; the node computes its initial value on first use.
    Accumulator(NodeId),
}

/// The variables of an evaluation.
pub trait Activation<'a> {
    /// The value of a variable by its full name; none if it is not set. An evaluation requests it
    /// at most once.
    fn get(&self, name: &str) -> Option<Value<'a>>;

    /// As [`Self::get`], where the lookup may fail and takes work. Only variables that are needed
    /// are looked up. With [`Program::with_parts`], so is each field of a variable.
    fn look_up(&self, name: &str, _work: &WorkBudget) -> Option<ValueResult<'a>> {
        self.get(name).map(Ok)
    }
}

impl<'a> Activation<'a> for () {
    fn get(&self, _: &str) -> Option<Value<'a>> {
        None
    }
}

impl<'a> Activation<'a> for &[(&str, Value<'a>)] {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        find_variable(self, name)
    }
}

impl<'a, const N: usize> Activation<'a> for [(&str, Value<'a>); N] {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        find_variable(self, name)
    }
}

impl<'a> Activation<'a> for Vec<(&str, Value<'a>)> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        find_variable(self, name)
    }
}

fn find_variable<'a>(variables: &[(&str, Value<'a>)], name: &str) -> Option<Value<'a>> {
    variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

/// The cost limit, the cost so far, and the interrupt of an evaluation.
///
/// In addition there is a fixed limit of work ([`WorkBudget`]): no evaluation takes more than about
/// a second or some hundred megabytes, whatever its cost limit.
#[derive(Clone)]
pub struct CostBudget<'i> {
    limit: u64,
    spent: u64,
    /// The work that remains. An evaluation takes it as its [`WorkBudget`] and returns the rest.
    work: u64,
    iterations: u32,
    interrupt: Option<&'i dyn Fn() -> bool>,
}

/// The number of iterations between two checks of the interrupt (apiserver's `CheckFrequency`).
const ITERATIONS_PER_CHECK: u32 = 100;

impl<'i> CostBudget<'i> {
    /// A budget without a limit.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// A budget with a limit, which may be reached but not exceeded.
    pub const fn new(limit: u64) -> Self {
        Self { limit, spent: 0, work: work::LIMIT, iterations: 0, interrupt: None }
    }

    /// The budget with an interrupt, which is checked every 100 iterations.
    #[must_use]
    pub const fn interrupted_by(mut self, interrupt: &'i dyn Fn() -> bool) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// Renews the budget for the next of several evaluations: costs count for each, work for all of
    /// them.
    pub const fn renew(&mut self, limit: u64) {
        self.limit = limit;
        self.spent = 0;
    }

    /// The cost so far. After [`Error::CostLimit`] it exceeds the limit by at most the last step.
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// Charges a cost.
    #[inline]
    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(Error::CostLimit) } else { Ok(()) }
    }

    /// Refunds the cost of one step.
    const fn refund(&mut self) {
        self.spent = self.spent.saturating_sub(1);
    }

    /// Counts an iteration and checks the interrupt.
    #[inline]
    fn count_iteration(&mut self, work: &WorkBudget) -> Result<(), Error> {
        // An operator may have absorbed the error of exhausted work.
        work.check()?;
        let Some(interrupt) = self.interrupt else { return Ok(()) };
        self.iterations += 1;
        if self.iterations < ITERATIONS_PER_CHECK {
            return Ok(());
        }
        self.iterations = 0;
        if interrupt() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

impl std::fmt::Debug for CostBudget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Budget")
            .field("limit", &self.limit)
            .field("spent", &self.spent)
            .finish_non_exhaustive()
    }
}

impl Program {
    /// Plans a checked expression.
    ///
    /// # Errors
    ///
    /// If a constant part fails: a conversion of a constant (`int("x")`) or a regular expression.
    pub fn new(checked: &CheckedExpression) -> Result<Self, Error> {
        plan::checked(checked)
    }

    /// Plans an expression in which the fields of the variable `whole` are variables too: `whole.a`
    /// is looked up under that name. The lookup costs as much as selecting a field of an object.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn with_parts(checked: &CheckedExpression, whole: &str) -> Result<Self, Error> {
        plan::with_parts(checked, whole)
    }

    /// Plans an unchecked expression: names are resolved at evaluation, and overloads by their
    /// arguments.
    ///
    /// # Errors
    ///
    /// As [`Self::new`]; or for an object of an unknown type, or a call whose number of arguments
    /// no overload has.
    pub fn unchecked(parsed: &ParsedExpression, env: &Env) -> Result<Self, Error> {
        plan::unchecked(parsed, env)
    }

    /// Evaluates the program.
    ///
    /// # Errors
    ///
    /// The error of the expression; [`Error::CostLimit`] if the budget is exceeded,
    /// [`Error::Interrupted`] after an interrupt.
    pub fn eval<'a>(
        &'a self,
        variables: &dyn Activation<'a>,
        budget: &mut CostBudget<'_>,
    ) -> ValueResult<'a> {
        machine::run(self, variables, budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates an expression with little work.
    fn evaluate_with_little_work(text: &str) -> ValueResult<'static> {
        let checked = Env::new_expressions().compile(text).unwrap();
        let program = Box::leak(Box::new(Program::new(&checked).unwrap()));
        program.eval(&(), &mut CostBudget { work: 1 << 14, ..CostBudget::unlimited() })
    }

    /// An expression that doubles a value sixteen times.
    fn doubling(first: &str, step: &str, last: &str) -> String {
        format!("[{first}]{}.all(a, {last})", format!(".map(a, {step})").repeat(16))
    }

    /// An expression that repeats an operation on a text a thousand times.
    fn repeated(what: &str) -> String {
        let what = what.replace("<text>", &"a".repeat(2000));
        format!("[{}].all(i, {what})", vec!["0"; 1000].join(", "))
    }

    #[test]
    fn cheap_expressions_cannot_take_much_work() {
        let text = "a".repeat(400);
        for text in [
            doubling("['a']", "a + a", "a.size() > 0"),
            doubling("[1.5]", "[a, a]", "a == a"),
            doubling("[1.5]", "[a, a]", "!(a != a)"),
            doubling("[1.5]", "[a, a]", "a in [a]"),
            doubling("[1.5]", "[a, a]", "[?dyn(a)] == []"),
            doubling("[1.5]", "[a, a]", "{?'a': dyn(a)} == {}"),
            doubling("[1.5]", "[a, a]", "{'a': a} == {'a': a}"),
            doubling("[1.5]", "[a, a]", "[a].indexOf(a) == 0"),
            doubling("[1.5]", "[a, a]", "'%s'.format([a]) != ''"),
            doubling("[1.5]", "[a, a]", "sets.equivalent([a], [a])"),
            doubling("[1.5]", "[a, a]", "[dyn(a)][?0].orValue([]) == a"),
            doubling("dyn(1.5)", "{'a': a, 'b': a}", "a == a"),
            format!("'{text}'.replace('', '{text}') != ''"),
            "[1, 2, 3].all(a, 'a'.matches('a' + string(a)) || true)".to_owned(),
            repeated("['<text>'].all(text, int(text) == 1 || true)"),
            repeated("['<text>'].all(text, size(text) > 0)"),
            repeated("['<text>'] == ['<text>']"),
            repeated("{'a': 1}['<text>'] == 1 || true"),
        ] {
            let result = evaluate_with_little_work(&text);
            assert!(matches!(result, Err(Error::CostLimit)), "{result:?}: {text}");
        }
        let result = evaluate_with_little_work(&doubling("[1.5]", "[a, a]", "a.size() == 2"));
        assert!(matches!(result, Ok(Value::Bool(true))), "{result:?}");
    }

    #[test]
    fn evaluations_with_a_shared_budget_share_its_work() {
        let checked = Env::new_expressions().compile("[[1, 2]] == [[1, 2]]").unwrap();
        let program = Program::new(&checked).unwrap();
        let mut budget = CostBudget { work: 7, ..CostBudget::new(30) };
        for expected in [Ok(true), Ok(true), Err(Error::CostLimit)] {
            budget.renew(30);
            let found = program.eval(&(), &mut budget);
            let found = found.map(|value| matches!(value, Value::Bool(true)));
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_nested_evaluation_has_its_own_work() {
        struct Nested<'p>(&'p Program);

        impl<'a> Activation<'a> for Nested<'a> {
            fn get(&self, _: &str) -> Option<Value<'a>> {
                let mut budget = CostBudget { work: 1, ..CostBudget::unlimited() };
                let outcome = self.0.eval(&(), &mut budget);
                assert!(matches!(outcome, Err(Error::CostLimit)), "{outcome:?}");
                assert_eq!(budget.work, 0);
                Some(Value::Bool(true))
            }
        }

        let env = Env::new_expressions().with_variable("nested", crate::types::Type::Bool);
        let program = |text: &str| Program::new(&env.compile(text).unwrap()).unwrap();
        let (outer, inner) = (program("nested && [1] == [1]"), program("[1, 2, 3] == [1, 2, 3]"));
        let mut budget = CostBudget { work: 10, ..CostBudget::unlimited() };
        let outcome = outer.eval(&Nested(&inner), &mut budget);
        assert!(matches!(outcome, Ok(Value::Bool(true))), "{outcome:?}");
        assert_eq!(budget.work, 9);
    }
}
