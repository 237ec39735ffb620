//! What programs are made of.
//!
//! Nodes lie in one vector and name each other by number: they stay small, and a node may be named
//! from within its own subtree, which the first value of a loop needs that is made only when it is
//! asked for.

use super::constant_set::Set;
use crate::cost::{Breaks, CallCost};
use crate::kubernetes::{ObjectShape, ShapeKind, ValueShape, names};
use crate::library::{Overload, PreparedCall};
use crate::types::Type;
use crate::value::{Error, LookupResult, ObjectValue, Value, WorkBudget};
use std::sync::{Arc, OnceLock};

/// The number of a node.
pub(super) type NodeId = u32;

/// The number of a variable, or of a name in a loop.
pub(super) type SlotId = u32;

/// One step.
#[derive(Debug)]
pub(super) enum Node {
    /// A value that is known.
    Constant(Constant),
    /// An error that is known.
    Failure(Error),
    /// A variable or the result of a node, and a path from there.
    Path(Path),
    /// `a ? b : c`
    Conditional(NodeId, NodeId, NodeId),
    /// `a && b && …`
    And(Box<[NodeId]>),
    /// `a || b || …`
    Or(Box<[NodeId]>),
    /// Whether a loop may go on: anything but `false`.
    NotFalse(NodeId),
    /// `a == b`, or `a != b`.
    Equal(Box<Equal>),
    /// `a in b` where `b` is constant.
    Within(NodeId, Box<Set>),
    /// A call of one argument.
    Unary(Fast, NodeId, Box<Call>),
    /// A call of two arguments.
    Binary(Fast, [NodeId; 2], Box<Call>),
    /// Any other call; an argument that is an error ends it, and those behind are not asked for.
    Call(Box<[NodeId]>, Box<Call>),
    /// `a.or(b)` of optionals.
    Alternative(NodeId, NodeId),
    /// `a.orValue(b)` of an optional.
    Default(NodeId, NodeId),
    /// `[a, ?b]`
    List(Box<[Item]>),
    /// `{a: b, ?c: d}`
    Map(Box<[(NodeId, Item)]>),
    /// `Type{a: b, ?c: d}`
    Object(Arc<str>, Box<[(Arc<str>, Item)]>),
    /// A loop.
    Loop(Box<Loop>),
    /// `gathered + [a]`, where what comes out is what is gathered next.
    Push(SlotId, NodeId),
    /// A map that is gathered, and a key and a value for it, or another map; what comes out is
    /// what is gathered next.
    Insert(SlotId, Box<[NodeId]>),
}

/// A value that is known.
#[derive(Debug)]
pub(super) struct Constant {
    /// The value.
    pub value: Value<'static>,
    /// What finding it would have cost.
    pub cost: u64,
    /// Whether cel-go knows it as well, which makes lists of such values free of cost.
    pub plain: bool,
}

/// Where a path begins, and its steps.
#[derive(Debug)]
pub(super) struct Path {
    /// Where it begins.
    pub root: Root,
    /// The steps.
    pub steps: Vec<Step>,
    /// Whether it is only asked for (`has`): the result is whether the last step leads somewhere.
    pub has: bool,
}

/// Where a path begins.
#[derive(Debug)]
pub(super) enum Root {
    /// At a variable.
    Slot(SlotId),
    /// At a variable that is a field of another: finding it is the first step. Whether it is only
    /// asked for.
    Part(SlotId, bool),
    /// At the result of a node.
    Node(NodeId),
    /// At the result of a conditional, which makes the path itself free of cost.
    Branches(NodeId),
    /// At the first of these that there is; of expressions that were not checked.
    Names(Vec<Candidate>),
}

/// A beginning of a path whose first steps may be part of a name.
#[derive(Debug)]
pub(super) struct Candidate {
    /// The names in full, the most specific first.
    pub names: Vec<Arc<str>>,
    /// What they may be, in the same order.
    pub sources: Vec<NameSource>,
    /// How many steps are part of the names.
    pub skip: usize,
}

/// What a name may be.
#[derive(Debug)]
pub(super) enum NameSource {
    /// A variable.
    Slot(SlotId),
    /// A type, if nothing follows.
    Type(Type),
}

/// A step of a path.
#[derive(Debug)]
pub(super) struct Step {
    /// Where to.
    pub key: StepKey,
    /// Whether there may be nothing (`.?a`, `[?a]`); what follows may then be missing as well.
    pub optional: bool,
    /// Whether it is only asked for.
    pub test: bool,
}

/// Where a step leads.
#[derive(Debug)]
pub(super) enum StepKey {
    /// To a field, or to what is under a string.
    Field(Field),
    /// To what is at a known index or key.
    Constant(Value<'static>),
    /// To what is at an index or key that is computed.
    Computed(NodeId),
}

/// The name of a field.
#[derive(Debug)]
pub(super) struct Field {
    /// As it is written.
    pub name: Box<str>,
    /// As it is in data that has a schema; none if nothing is called so there.
    property: Option<Box<str>>,
    /// The shape of objects that it was first asked of, and what it is there: it will be asked of
    /// such objects again and again, and need not be looked up then.
    seen: OnceLock<(Arc<ObjectShape>, Option<ValueShape>)>,
}

impl Field {
    /// A field of this name.
    pub(super) fn new(name: &str) -> Self {
        let property = names::unescape(name).map(|property| property.as_ref().into());
        Self { name: name.into(), property, seen: OnceLock::new() }
    }

    /// The field of a value; none if it has none of this name.
    pub(super) fn of<'a>(&'a self, value: &Value<'a>, work: &WorkBudget) -> LookupResult<'a> {
        if let Value::Object(ObjectValue::Json { fields, shape }) = value
            && let ShapeKind::Object(object) = &shape.kind
        {
            let Some(property) = &self.property else { return Ok(None) };
            let Some(json) = fields.get(&**property).filter(|json| !json.is_null()) else {
                return Ok(None);
            };
            let find = || object.fields.get(property).map(|field| &field.shape);
            let (seen, known) = self.seen.get_or_init(|| (object.clone(), find().cloned()));
            let shape = if Arc::ptr_eq(seen, object) { known.as_ref() } else { find() };
            return shape.map(|shape| shape.view(json, work)).transpose();
        }
        value.find_field(&self.name, work)
    }
}

/// A comparison.
#[derive(Debug)]
pub(super) struct Equal {
    /// What is compared.
    pub sides: [NodeId; 2],
    /// Whether the answer is turned around.
    pub negate: bool,
    /// What it costs, where the values are not of the simplest kinds.
    pub cost: CallCost,
}

/// An element or a value.
#[derive(Debug)]
pub(super) struct Item {
    /// What it is.
    pub node: NodeId,
    /// Whether it is an optional, and left out if there is nothing in it.
    pub optional: bool,
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct Call {
    /// The function's name.
    pub function: Arc<str>,
    /// What is called.
    pub run: Dispatch,
    /// What it costs.
    pub cost: CallCost,
    /// The argument that has to be what it should for the cost to be known.
    pub breaks: Option<Breaks>,
    /// How it refuses arguments.
    pub error_style: super::overload_error::OverloadErrorStyle,
}

/// What is called.
#[derive(Debug)]
pub(super) enum Dispatch {
    /// This, whatever the arguments.
    Known(Arc<Overload>),
    /// This, if it takes the arguments.
    Guarded(Arc<Overload>),
    /// The first that takes the arguments.
    ByArguments(Vec<Arc<Overload>>),
    /// What a constant argument was made into.
    Prepared(Arc<dyn PreparedCall>),
}

/// What is done at once with values of the simplest kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fast {
    /// Nothing.
    No,
    Not,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    Add,
    Subtract,
    Size,
}

/// A loop.
#[derive(Debug)]
pub(super) struct Loop {
    /// What is gone through.
    pub range: NodeId,
    /// The element, or the key.
    pub first: SlotId,
    /// The value, in loops of two variables; `first` is then the index or the key.
    pub second: Option<SlotId>,
    /// What is gathered.
    pub gathered: SlotId,
    /// Whether to go on.
    pub condition: NodeId,
    /// What is gathered next.
    pub step: NodeId,
    /// What comes out.
    pub result: NodeId,
    /// What is asked of each element, if all that this loop does is to ask whether that holds for
    /// all of them, or for one.
    pub quantifier: Option<Quantifier>,
}

/// `all` and `exists`.
#[derive(Debug)]
pub(super) struct Quantifier {
    /// What is asked, as the sides of `&&` or `||`.
    pub sides: Box<[NodeId]>,
    /// What one element has to answer for the others not to be asked.
    pub decides: bool,
}
