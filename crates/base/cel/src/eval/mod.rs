//! Programs: expressions, ready to be evaluated.
//!
//! A program is planned once and evaluated often, by many threads at the same time. Planning finds
//! out all that does not depend on data: names become numbers, calls are bound to the one overload
//! that the checker left, calls with constant arguments become their results, regular expressions
//! are compiled, and lists of constants that are searched become sets. None of that changes what
//! an evaluation costs: the costs of what was done before are added all the same, as they are
//! part of the API.
//!
//! Evaluation walks the tree. It borrows from the program and from the objects that it looks at
//! (`'a`), and allocates only for strings, lists and maps that it makes.
//!
//! Rules, texts and costs: cel-go's `interpreter` package (`planner.go`, `interpretable.go`,
//! `attributes.go`, `decorators.go`, `runtimecost.go`) with the options that Kubernetes gives
//! (`OptOptimize`, `OptTrackCost`, `PresenceTestHasCost(false)`).

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

/// An expression, ready to be evaluated.
#[derive(Debug)]
pub struct Program {
    nodes: Box<[Node]>,
    root: NodeId,
    slots: Box<[SlotKind]>,
}

/// What a place for a value is for.
#[derive(Debug)]
enum SlotKind {
    /// A variable, by its full name.
    Variable(Arc<str>),
    /// An element of what a loop goes through.
    Element,
    /// What a loop gathers; its first value is what this node gives, if it is asked for.
    Gathered(NodeId),
}

/// The variables of an evaluation.
pub trait Activation<'a> {
    /// The value of a variable, by its full name; none if it is not set. It is asked for at most
    /// once in an evaluation.
    fn get(&self, name: &str) -> Option<Value<'a>>;

    /// As [`Self::get`], where finding a value may fail, and is work of the evaluation. What is not
    /// asked for needs not be found: with [`Program::with_parts`], so are the fields of a variable,
    /// each by itself.
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
        named(self, name)
    }
}

impl<'a, const N: usize> Activation<'a> for [(&str, Value<'a>); N] {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        named(self, name)
    }
}

impl<'a> Activation<'a> for Vec<(&str, Value<'a>)> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        named(self, name)
    }
}

fn named<'a>(variables: &[(&str, Value<'a>)], name: &str) -> Option<Value<'a>> {
    variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
}

/// What an evaluation may cost and has cost, and who may stop it.
///
/// Beside costs there is a limit of work ([`WorkBudget`]), which callers cannot choose: no evaluation takes
/// more than about a second or some hundred megabytes, whatever it may cost.
#[derive(Clone)]
pub struct CostBudget<'i> {
    limit: u64,
    spent: u64,
    /// The work that remains. An evaluation takes it over as its [`WorkBudget`], and puts back the rest.
    work: u64,
    turns: u32,
    interrupt: Option<&'i dyn Fn() -> bool>,
}

/// How many turns of loops there are between two questions whether to stop (apiserver's
/// `CheckFrequency`).
const TURNS: u32 = 100;

impl<'i> CostBudget<'i> {
    /// One without an end.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// One that may be used up, but not exceeded.
    pub const fn new(limit: u64) -> Self {
        Self { limit, spent: 0, work: work::LIMIT, turns: 0, interrupt: None }
    }

    /// The same, with something to ask, every 100 turns of loops, whether to stop.
    #[must_use]
    pub const fn interrupted_by(mut self, interrupt: &'i dyn Fn() -> bool) -> Self {
        self.interrupt = Some(interrupt);
        self
    }

    /// The budget of the next evaluation of several: what they cost is counted for each, their work
    /// for all of them.
    pub const fn renew(&mut self, limit: u64) {
        self.limit = limit;
        self.spent = 0;
    }

    /// What has been spent. After [`Error::CostLimit`] it is more than the limit, by no more than
    /// the last step.
    pub const fn spent(&self) -> u64 {
        self.spent
    }

    /// Spends.
    #[inline]
    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(Error::CostLimit) } else { Ok(()) }
    }

    /// Takes back the cost of one step.
    const fn refund(&mut self) {
        self.spent = self.spent.saturating_sub(1);
    }

    /// Takes note of a turn of a loop.
    #[inline]
    fn turn(&mut self, work: &WorkBudget) -> Result<(), Error> {
        // An operator may have absorbed the error of the step that used up the work.
        work.check()?;
        let Some(interrupt) = self.interrupt else { return Ok(()) };
        self.turns += 1;
        if self.turns < TURNS {
            return Ok(());
        }
        self.turns = 0;
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
    /// Plans an expression that has been checked.
    ///
    /// # Errors
    ///
    /// If a part that does not depend on data fails: a conversion of a constant (`int("x")`), a
    /// regular expression.
    pub fn new(checked: &CheckedExpression) -> Result<Self, Error> {
        plan::checked(checked)
    }

    /// The same, where the fields of the variable `whole` are variables too: `whole.a` is looked up
    /// under that name. Looking for one is a step of a path, as it would be in an object, and costs
    /// as much.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn with_parts(checked: &CheckedExpression, whole: &str) -> Result<Self, Error> {
        plan::with_parts(checked, whole)
    }

    /// Plans an expression that has not been checked: what names mean is found out by the names
    /// alone, and what functions do by their arguments, when it is evaluated.
    ///
    /// # Errors
    ///
    /// As [`Self::new`]; or if an object of an unknown type is made, or a function is called with
    /// a number of arguments that it never takes.
    pub fn unchecked(parsed: &ParsedExpression, env: &Env) -> Result<Self, Error> {
        plan::unchecked(parsed, env)
    }

    /// Evaluates it.
    ///
    /// # Errors
    ///
    /// As the expression has it; [`Error::CostLimit`] if the budget does not suffice,
    /// [`Error::Interrupted`] if it was asked to stop.
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

    /// What comes of an expression that has little to go through and make.
    fn measured(text: &str) -> ValueResult<'static> {
        let checked = Env::new_expressions().compile(text).unwrap();
        let program = Box::leak(Box::new(Program::new(&checked).unwrap()));
        program.eval(&(), &mut CostBudget { work: 1 << 14, ..CostBudget::unlimited() })
    }

    /// What is put together of two of the same, sixteen times.
    fn doubled(first: &str, step: &str, last: &str) -> String {
        format!("[{first}]{}.all(a, {last})", format!(".map(a, {step})").repeat(16))
    }

    /// Something that is done a thousand times with a text.
    fn many(what: &str) -> String {
        let what = what.replace("<text>", &"a".repeat(2000));
        format!("[{}].all(i, {what})", vec!["0"; 1000].join(", "))
    }

    #[test]
    fn what_costs_little_takes_little_all_the_same() {
        let text = "a".repeat(400);
        for text in [
            doubled("['a']", "a + a", "a.size() > 0"),
            doubled("[1.5]", "[a, a]", "a == a"),
            doubled("[1.5]", "[a, a]", "!(a != a)"),
            doubled("[1.5]", "[a, a]", "a in [a]"),
            doubled("[1.5]", "[a, a]", "[?dyn(a)] == []"),
            doubled("[1.5]", "[a, a]", "{?'a': dyn(a)} == {}"),
            doubled("[1.5]", "[a, a]", "{'a': a} == {'a': a}"),
            doubled("[1.5]", "[a, a]", "[a].indexOf(a) == 0"),
            doubled("[1.5]", "[a, a]", "'%s'.format([a]) != ''"),
            doubled("[1.5]", "[a, a]", "sets.equivalent([a], [a])"),
            doubled("[1.5]", "[a, a]", "[dyn(a)][?0].orValue([]) == a"),
            doubled("dyn(1.5)", "{'a': a, 'b': a}", "a == a"),
            format!("'{text}'.replace('', '{text}') != ''"),
            "[1, 2, 3].all(a, 'a'.matches('a' + string(a)) || true)".to_owned(),
            many("['<text>'].all(text, int(text) == 1 || true)"),
            many("['<text>'].all(text, size(text) > 0)"),
            many("['<text>'] == ['<text>']"),
            many("{'a': 1}['<text>'] == 1 || true"),
        ] {
            let answer = measured(&text);
            assert!(matches!(answer, Err(Error::CostLimit)), "{answer:?}: {text}");
        }
        let answer = measured(&doubled("[1.5]", "[a, a]", "a.size() == 2"));
        assert!(matches!(answer, Ok(Value::Bool(true))), "{answer:?}");
    }

    #[test]
    fn evaluations_that_share_a_budget_share_what_they_go_through() {
        let checked = Env::new_expressions().compile("[[1, 2]] == [[1, 2]]").unwrap();
        let program = Program::new(&checked).unwrap();
        let mut budget = CostBudget { work: 7, ..CostBudget::new(30) };
        for answer in [Ok(true), Ok(true), Err(Error::CostLimit)] {
            budget.renew(30);
            let is = program.eval(&(), &mut budget);
            let is = is.map(|value| matches!(value, Value::Bool(true)));
            assert_eq!(is, answer);
        }
    }

    #[test]
    fn an_evaluation_within_another_has_work_of_its_own() {
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
