//! Evaluation of nodes.
//!
//! Each kind of node has its own function, so stack frames stay small. Trees are as deep as the
//! parser allows.

use super::go_values::rewrap_value;
use super::node::{Constant, Equality, FastPath, Node, NodeId, SlotId};
use super::{Activation, CostBudget, Program, SlotKind};
use crate::cost::CallCost;
use crate::value::{BytesValue, Error, StringValue, Value, ValueResult, WorkBudget};

/// An evaluation.
pub(super) struct Machine<'a, 'm, 'i> {
    pub program: &'a Program,
    pub variables: &'m dyn Activation<'a>,
    pub slots: &'m mut [Slot<'a>],
    pub budget: &'m mut CostBudget<'i>,
    /// The work that remains; the budget's own is updated when the evaluation ends.
    pub work: &'m WorkBudget,
}

/// A slot for a value.
#[derive(Debug)]
pub(super) enum Slot<'a> {
    /// Not evaluated yet.
    Empty,
    /// The value.
    Value(Value<'a>),
    /// The error of an element that does not match its schema, or of the last step of a
    /// comprehension.
    Failed(Error),
}

impl<'a> Slot<'a> {
    /// The slot for a result.
    pub(super) fn of(outcome: ValueResult<'a>) -> Self {
        match outcome {
            Ok(value) => Self::Value(value),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Programs with more slots need an allocation for them.
const MAX_INLINE_SLOTS: usize = 8;

/// Evaluates a program.
pub(super) fn run<'a>(
    program: &'a Program,
    variables: &dyn Activation<'a>,
    budget: &mut CostBudget<'_>,
) -> ValueResult<'a> {
    let slot_count = program.slots.len();
    let (mut inline, mut heap);
    let slots = if slot_count <= MAX_INLINE_SLOTS {
        inline = [const { Slot::Empty }; MAX_INLINE_SLOTS];
        &mut inline[..slot_count]
    } else {
        heap = Vec::new();
        heap.resize_with(slot_count, || Slot::Empty);
        heap.as_mut_slice()
    };
    let work = WorkBudget::new(budget.work);
    let machine = &mut Machine { program, variables, slots, budget, work: &work };
    let outcome = machine.eval(program.root);
    budget.work = work.remaining();
    outcome
}

/// Whether an error ends the evaluation, so that no operator absorbs it.
pub(super) const fn is_final(error: &Error) -> bool {
    matches!(error, Error::CostLimit | Error::Interrupted | Error::Internal(_))
}

impl<'a> Machine<'a, '_, '_> {
    /// Evaluates a node.
    pub(super) fn eval(&mut self, node: NodeId) -> ValueResult<'a> {
        let program: &'a Program = self.program;
        match &program.nodes[node as usize] {
            Node::Constant(constant) => self.constant(constant),
            Node::Failure(error) => Err(error.clone()),
            Node::Path(path) => self.path(path),
            Node::Conditional(condition, then, otherwise) => {
                self.conditional(*condition, *then, *otherwise)
            }
            Node::And(operands) => self.logical_operator(operands, false),
            Node::Or(operands) => self.logical_operator(operands, true),
            Node::NotStrictlyFalse(operand) => self.not_false(*operand),
            Node::Equality(equal) => self.equal(equal),
            Node::InSet(element, set) => Ok(Value::Bool(set.contains(&self.eval(*element)?))),
            Node::Unary(fast_path, arg, call) => self.unary(*fast_path, *arg, call),
            Node::Binary(fast_path, args, call) => self.binary(*fast_path, *args, call),
            Node::Call(args, call) => self.call(args, call),
            Node::Alternative(first, second) => self.alternative(*first, *second),
            Node::Default(first, second) => self.default(*first, *second),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Object(name, fields) => self.object(name, fields),
            Node::Comprehension(comprehension) => self.comprehension(comprehension),
            Node::Push(accumulator, list) => self.push(*accumulator, *list),
            Node::Insert(accumulator, args) => self.insert(*accumulator, args),
        }
    }

    /// Evaluates a branch of a conditional or an index. A path there has no cost for its root, and
    /// any other node is the root of a path.
    pub(super) fn eval_without_root_cost(&mut self, node: NodeId) -> ValueResult<'a> {
        let program: &'a Program = self.program;
        match &program.nodes[node as usize] {
            Node::Path(path) => self.path_without_root_cost(path),
            Node::Conditional(condition, then, otherwise) => {
                self.conditional(*condition, *then, *otherwise)
            }
            _ => match self.eval(node)? {
                Value::Optional(Some(value)) => Ok(Value::some(rewrap_value(&value, self.work))),
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

    /// Fills the slot of a variable or accumulator if it is empty. False if the variable is not
    /// set.
    pub(super) fn fill_slot(&mut self, slot: SlotId) -> Result<bool, Error> {
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
            SlotKind::Accumulator(first) => match self.eval(*first) {
                Err(error) if is_final(&error) => return Err(error),
                outcome => Slot::of(outcome),
            },
        };
        Ok(true)
    }

    fn conditional(
        &mut self,
        condition: NodeId,
        then: NodeId,
        otherwise: NodeId,
    ) -> ValueResult<'a> {
        match self.eval(condition)? {
            Value::Bool(true) => self.eval_without_root_cost(then),
            Value::Bool(false) => self.eval_without_root_cost(otherwise),
            _ => Err(Error::NoSuchOverload),
        }
    }

    /// Evaluates `&&` and `||`: the first operand with the deciding value decides, whatever the
    /// others are. If none does, the first error is the result.
    fn logical_operator(
        &mut self,
        operands: &'a [NodeId],
        deciding_value: bool,
    ) -> ValueResult<'a> {
        self.evaluate_operands(None, operands, deciding_value).map(Value::Bool)
    }

    /// Evaluates the operands of `&&` and `||` after ones that did not decide, of which one may
    /// have failed.
    pub(super) fn evaluate_operands(
        &mut self,
        mut first_error: Option<Error>,
        operands: &'a [NodeId],
        deciding_value: bool,
    ) -> Result<bool, Error> {
        for operand in operands {
            let error = match self.eval(*operand) {
                Ok(Value::Bool(value)) if value == deciding_value => return Ok(deciding_value),
                Ok(Value::Bool(_)) => continue,
                Ok(_) => Error::NoSuchOverload,
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => error,
            };
            first_error.get_or_insert(error);
        }
        match first_error {
            Some(error) => Err(error),
            None => Ok(!deciding_value),
        }
    }

    fn not_false(&mut self, operand: NodeId) -> ValueResult<'a> {
        let result = match self.eval(operand) {
            Ok(Value::Bool(value)) => value,
            Err(error) if is_final(&error) => return Err(error),
            _ => true,
        };
        self.budget.charge(1)?;
        Ok(Value::Bool(result))
    }

    fn equal(&mut self, equal: &'a Equality) -> ValueResult<'a> {
        let [one, other] = equal.operands;
        let one = match self.eval(one) {
            Ok(one) => one,
            Err(error) => return self.first_failed(error, other, equal.cost),
        };
        let other = match self.eval(other) {
            Ok(other) => other,
            Err(error) => return self.second_failed(one, error, equal.cost),
        };
        let (result, cost) = match (&one, &other) {
            (Value::Int(one), Value::Int(other)) => (one == other, 1),
            (Value::Bool(one), Value::Bool(other)) => (one == other, 1),
            (Value::String(one), Value::String(other)) if is_short(one) && is_short(other) => {
                (one.as_str() == other.as_str(), 1)
            }
            _ => match one.equals(&other, self.work) {
                Ok(result) => {
                    (result, (equal.cost)(&[one, other], &Value::Bool(result), self.work))
                }
                // Values that cannot be compared are not equal.
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
        // The comparison may have ended early because the work is used up.
        self.work.check()?;
        Ok(Value::Bool(result != equal.negate))
    }

    /// The result of a call whose first of two arguments is an error: the second is evaluated all
    /// the same, and the call has the cost with `null` for the error.
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

    /// The result of a call whose second of two arguments is an error.
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

/// Whether a comparison of the string costs one: it has one to ten bytes.
fn is_short(text: &str) -> bool {
    (1..=10).contains(&text.len())
}

/// A constant of the program; strings and bytes are borrowed.
pub(super) fn borrowed<'a>(value: &'a Value<'static>) -> Value<'a> {
    match value {
        Value::String(text) => Value::String(StringValue::Borrowed(text)),
        Value::Bytes(bytes) => Value::Bytes(BytesValue::Borrowed(bytes)),
        other => other.clone(),
    }
}

/// The result of an operator with a fast path for two `int`s.
pub(super) fn fast_int_operation<'a>(
    fast_path: FastPath,
    one: i64,
    other: i64,
) -> Option<Value<'a>> {
    Some(match fast_path {
        FastPath::Less => Value::Bool(one < other),
        FastPath::LessEquals => Value::Bool(one <= other),
        FastPath::Greater => Value::Bool(one > other),
        FastPath::GreaterEquals => Value::Bool(one >= other),
        FastPath::Add => Value::Int(one.checked_add(other)?),
        FastPath::Subtract => Value::Int(one.checked_sub(other)?),
        FastPath::None | FastPath::Not | FastPath::Size => return None,
    })
}
