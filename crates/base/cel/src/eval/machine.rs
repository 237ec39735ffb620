//! Walking the tree.
//!
//! Each kind of node has a function of its own, so that the frames on the stack stay small: trees
//! are as deep as the parser lets them be.

use super::go_values::repacked;
use super::node::{Constant, Equal, Fast, Node, NodeId, SlotId};
use super::{Activation, CostBudget, Program, SlotKind};
use crate::cost::CallCost;
use crate::value::{BytesValue, Error, StringValue, Value, ValueResult, WorkBudget};

/// An evaluation.
pub(super) struct Machine<'a, 'm, 'i> {
    pub program: &'a Program,
    pub variables: &'m dyn Activation<'a>,
    pub slots: &'m mut [Slot<'a>],
    pub budget: &'m mut CostBudget<'i>,
    /// The work that remains; that of the budget is out of date until the evaluation ends.
    pub work: &'m WorkBudget,
}

/// A place for a value.
#[derive(Debug)]
pub(super) enum Slot<'a> {
    /// Nothing was asked for yet.
    Empty,
    /// The value.
    Value(Value<'a>),
    /// An element that is not what its schema says, or a loop whose last step failed.
    Failed(Error),
}

impl<'a> Slot<'a> {
    /// What came out of a node.
    pub(super) fn of(outcome: ValueResult<'a>) -> Self {
        match outcome {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Programs with more places need an allocation for them.
const FEW: usize = 8;

/// Evaluates a program.
pub(super) fn run<'a>(
    program: &'a Program,
    variables: &dyn Activation<'a>,
    budget: &mut CostBudget<'_>,
) -> ValueResult<'a> {
    let many = program.slots.len();
    let (mut inline, mut heap);
    let slots = if many <= FEW {
        inline = [const { Slot::Empty }; FEW];
        &mut inline[..many]
    } else {
        heap = Vec::new();
        heap.resize_with(many, || Slot::Empty);
        heap.as_mut_slice()
    };
    let work = WorkBudget::new(budget.work);
    let machine = &mut Machine { program, variables, slots, budget, work: &work };
    let outcome = machine.eval(program.root);
    budget.work = work.remaining();
    outcome
}

/// Whether an error ends the evaluation whatever operators stand around it.
pub(super) const fn is_final(error: &Error) -> bool {
    matches!(error, Error::CostLimit | Error::Interrupted | Error::Internal(_))
}

impl<'a> Machine<'a, '_, '_> {
    /// The value of a node.
    pub(super) fn eval(&mut self, node: NodeId) -> ValueResult<'a> {
        let program: &'a Program = self.program;
        match &program.nodes[node as usize] {
            Node::Constant(constant) => self.constant(constant),
            Node::Failure(error) => Err(error.clone()),
            Node::Path(path) => self.path(path),
            Node::Conditional(condition, yes, no) => self.conditional(*condition, *yes, *no),
            Node::And(sides) => self.junction(sides, false),
            Node::Or(sides) => self.junction(sides, true),
            Node::NotFalse(of) => self.not_false(*of),
            Node::Equal(equal) => self.equal(equal),
            Node::Within(of, set) => Ok(Value::Bool(set.contains(&self.eval(*of)?))),
            Node::Unary(fast, arg, call) => self.unary(*fast, *arg, call),
            Node::Binary(fast, args, call) => self.binary(*fast, *args, call),
            Node::Call(args, call) => self.call(args, call),
            Node::Alternative(first, second) => self.alternative(*first, *second),
            Node::Default(first, second) => self.default(*first, *second),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Object(name, fields) => self.object(name, fields),
            Node::Loop(fold) => self.fold(fold),
            Node::Push(gathered, list) => self.push(*gathered, *list),
            Node::Insert(gathered, args) => self.insert(*gathered, args),
        }
    }

    /// The value of a node that is a branch of a conditional or an index: there a path is free of
    /// the cost of its beginning, and all that is no path is the beginning of one.
    pub(super) fn resolve(&mut self, node: NodeId) -> ValueResult<'a> {
        let program: &'a Program = self.program;
        match &program.nodes[node as usize] {
            Node::Path(path) => self.walk(path),
            Node::Conditional(condition, yes, no) => self.conditional(*condition, *yes, *no),
            _ => match self.eval(node)? {
                Value::Optional(Some(held)) => Ok(Value::some(repacked(&held, self.work))),
                value => Ok(value),
            },
        }
    }

    fn constant(&mut self, constant: &'a Constant) -> ValueResult<'a> {
        if constant.cost > 0 {
            self.budget.charge(constant.cost)?;
        }
        Ok(borrowed(&constant.value))
    }

    /// Fills a place for a variable, or for what a loop gathers, if it is empty. False if there is
    /// nothing to fill it with.
    pub(super) fn fill(&mut self, slot: SlotId) -> Result<bool, Error> {
        let at = slot as usize;
        if !matches!(self.slots[at], Slot::Empty) {
            return Ok(true);
        }
        let program: &'a Program = self.program;
        self.slots[at] = match &program.slots[at] {
            SlotKind::Variable(name) => match self.variables.look_up(name, self.work) {
                Some(Err(error)) if is_final(&error) => return Err(error),
                Some(outcome) => Slot::of(outcome),
                None => return Ok(false),
            },
            SlotKind::Element => return Ok(false),
            SlotKind::Gathered(first) => match self.eval(*first) {
                Err(error) if is_final(&error) => return Err(error),
                outcome => Slot::of(outcome),
            },
        };
        Ok(true)
    }

    fn conditional(&mut self, condition: NodeId, yes: NodeId, no: NodeId) -> ValueResult<'a> {
        match self.eval(condition)? {
            Value::Bool(true) => self.resolve(yes),
            Value::Bool(false) => self.resolve(no),
            _ => Err(Error::NoSuchOverload),
        }
    }

    /// `&&` and `||`: the first side that decides does so, whatever the others are; if none does,
    /// the first error.
    fn junction(&mut self, sides: &'a [NodeId], decides: bool) -> ValueResult<'a> {
        self.more_sides(None, sides, decides).map(Value::Bool)
    }

    /// `&&` and `||` behind sides that did not decide, of which one may have failed.
    pub(super) fn more_sides(
        &mut self,
        mut failed: Option<Error>,
        sides: &'a [NodeId],
        decides: bool,
    ) -> Result<bool, Error> {
        for side in sides {
            let error = match self.eval(*side) {
                Ok(Value::Bool(value)) if value == decides => return Ok(decides),
                Ok(Value::Bool(_)) => continue,
                Ok(_) => Error::NoSuchOverload,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => error,
            };
            failed.get_or_insert(error);
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(!decides),
        }
    }

    fn not_false(&mut self, of: NodeId) -> ValueResult<'a> {
        let answer = match self.eval(of) {
            Ok(Value::Bool(value)) => value,
            Err(error) if is_final(&error) => return Err(error),
            _ => true,
        };
        self.budget.charge(1)?;
        Ok(Value::Bool(answer))
    }

    fn equal(&mut self, equal: &'a Equal) -> ValueResult<'a> {
        let [one, other] = equal.sides;
        let one = match self.eval(one) {
            Ok(one) => one,
            Err(error) => return self.first_failed(error, other, equal.cost),
        };
        let other = match self.eval(other) {
            Ok(other) => other,
            Err(error) => return self.second_failed(one, error, equal.cost),
        };
        let (answer, cost) = match (&one, &other) {
            (Value::Int(one), Value::Int(other)) => (one == other, 1),
            (Value::Bool(one), Value::Bool(other)) => (one == other, 1),
            (Value::String(one), Value::String(other)) if is_short(one) && is_short(other) => {
                (one.as_str() == other.as_str(), 1)
            }
            _ => match one.equals(&other, self.work) {
                Ok(answer) => {
                    (answer, (equal.cost)(&[one, other], &Value::Bool(answer), self.work))
                }
                // Not being comparable is a way of being different.
                Err(_) if equal.negate => {
                    (false, (equal.cost)(&[one, other], &Value::Null, self.work))
                }
                Err(error) => {
                    self.budget.charge((equal.cost)(&[one, other], &Value::Null, self.work))?;
                    return Err(error);
                }
            },
        };
        self.budget.charge(cost)?;
        // The comparison may have ended early, with an answer, for want of work.
        self.work.check()?;
        Ok(Value::Bool(answer != equal.negate))
    }

    /// What becomes of a call of two arguments if the first is an error: the second is asked for
    /// all the same, and the call costs what it would with something in place of the error.
    #[cold]
    pub(super) fn first_failed(
        &mut self,
        error: Error,
        second: NodeId,
        cost: CallCost,
    ) -> ValueResult<'a> {
        if is_final(&error) {
            return Err(error);
        }
        let second = match self.eval(second) {
            Err(error) if is_final(&error) => return Err(error),
            outcome => outcome.unwrap_or(Value::Null),
        };
        self.budget.charge(cost(&[Value::Null, second], &Value::Null, self.work))?;
        Err(error)
    }

    /// What becomes of a call of two arguments if the second is an error.
    #[cold]
    pub(super) fn second_failed(
        &mut self,
        first: Value<'a>,
        error: Error,
        cost: CallCost,
    ) -> ValueResult<'a> {
        if !is_final(&error) {
            self.budget.charge(cost(&[first, Value::Null], &Value::Null, self.work))?;
        }
        Err(error)
    }

    /// `a.or(b)`
    fn alternative(&mut self, first: NodeId, second: NodeId) -> ValueResult<'a> {
        match self.eval(first)? {
            Value::Optional(None) => self.eval(second),
            value => Ok(value),
        }
    }

    /// `a.orValue(b)`
    fn default(&mut self, first: NodeId, second: NodeId) -> ValueResult<'a> {
        match self.eval(first)? {
            Value::Optional(None) => self.eval(second),
            Value::Optional(Some(value)) => std::sync::Arc::try_unwrap(value)
                .unwrap_or_else(|shared| (*shared).clone())
                .into_result(),
            value => Ok(value),
        }
    }
}

/// Whether a string has at least one code point and at most ten, which costs one to compare.
fn is_short(text: &str) -> bool {
    (1..=10).contains(&text.len())
}

/// A constant of the program, without a copy of what it can lend.
pub(super) fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(StringValue::Borrowed(text)),
        Value::Bytes(bytes) => Value::Bytes(BytesValue::Borrowed(bytes)),
        other => other.clone(),
    }
}

/// What is done at once with two whole numbers.
pub(super) fn of_ints<'a>(fast: Fast, one: i64, other: i64) -> Option<Value<'a>> {
    Some(match fast {
        Fast::Less => Value::Bool(one < other),
        Fast::LessEquals => Value::Bool(one <= other),
        Fast::Greater => Value::Bool(one > other),
        Fast::GreaterEquals => Value::Bool(one >= other),
        Fast::Add => Value::Int(one.checked_add(other)?),
        Fast::Subtract => Value::Int(one.checked_sub(other)?),
        Fast::No | Fast::Not | Fast::Size => return None,
    })
}
