//! Nodes of programs.
//!
//! Nodes are in one vector and refer to each other by index. They stay small, and a node can refer
//! to one outside of its subtree: a slot refers to the initial value of its accumulator.

use super::constant_set::ConstantSet;
use crate::cost::{CallCost, CostPanic};
use crate::kubernetes::{ObjectShape, ShapeKind, ValueShape, names};
use crate::library::{Overload, PreparedCall};
use crate::types::Type;
use crate::value::{Error, LookupResult, ObjectValue, Value, WorkBudget};
use std::sync::{Arc, OnceLock};

/// The index of a node.
pub(super) type NodeId = u32;

/// The index of a slot for a variable or a comprehension's variable.
pub(super) type SlotId = u32;

/// A node.
#[derive(Debug)]
pub(super) enum Node {
    /// A constant.
    Constant(Constant),
    /// A constant error.
    Failure(Error),
    /// A path from a variable or from the result of a node.
    Path(Path),
    /// `a ? b : c`
    Conditional(NodeId, NodeId, NodeId),
    /// `a && b && …`
    And(Box<[NodeId]>),
    /// `a || b || …`
    Or(Box<[NodeId]>),
    /// `@not_strictly_false(a)`: true for anything but `false`.
    NotStrictlyFalse(NodeId),
    /// `a == b` or `a != b`.
    Equality(Box<Equality>),
    /// `a in b` for a constant `b`.
    InSet(NodeId, Box<ConstantSet>),
    /// A call with one argument.
    Unary(FastPath, NodeId, Box<Call>),
    /// A call with two arguments.
    Binary(FastPath, [NodeId; 2], Box<Call>),
    /// Any other call; the first argument with an error ends it.
    Call(Box<[NodeId]>, Box<Call>),
    /// `a.or(b)` of optionals.
    Alternative(NodeId, NodeId),
    /// `a.orValue(b)` of an optional.
    Default(NodeId, NodeId),
    /// `[a, ?b]`
    List(Box<[LiteralItem]>),
    /// `{a: b, ?c: d}`
    Map(Box<[(NodeId, LiteralItem)]>),
    /// `Type{a: b, ?c: d}`
    Object(Arc<str>, Box<[(Arc<str>, LiteralItem)]>),
    /// A comprehension.
    Comprehension(Box<ComprehensionNode>),
    /// `accumulator + [a]` as the next accumulator.
    Push(SlotId, NodeId),
    /// Inserts a key and value, or all entries of a map, into the accumulated map. The result is the
    /// next accumulator.
    Insert(SlotId, Box<[NodeId]>),
}

/// A constant.
#[derive(Debug)]
pub(super) struct Constant {
    /// The value.
    pub value: Value<'static>,
    /// The cost of computing it.
    pub cost: u64,
    /// Whether it is a constant in cel-go too, which makes lists of such values free of cost.
    pub known_to_cel_go: bool,
}

/// A path: its root and its steps.
#[derive(Debug)]
pub(super) struct Path {
    /// Its root.
    pub root: Root,
    /// The steps.
    pub steps: Vec<PathStep>,
    /// Whether it is a presence test (`has`): the result is whether the last step exists.
    pub has: bool,
}

/// The root of a path.
#[derive(Debug)]
pub(super) enum Root {
    /// A variable.
    Slot(SlotId),
    /// A variable that is a field of another variable, such as `variables.x` in admission policies.
    /// Its lookup is the first step; the flag says whether that is a presence test.
    VariableField(SlotId, bool),
    /// The result of a node.
    Node(NodeId),
    /// The result of a conditional, which makes the path itself free of cost.
    Branches(NodeId),
    /// The first name that exists; for unchecked expressions.
    Names(Vec<NameCandidate>),
}

/// The names that the root of a path may mean: `a.b.c` may be the field `b.c` of the variable `a`,
/// the field `c` of the variable `a.b`, or the variable `a.b.c`.
#[derive(Debug)]
pub(super) struct NameCandidate {
    /// The full names, the most specific first.
    pub names: Vec<Arc<str>>,
    /// The variables and types that they may be, in the same order.
    pub sources: Vec<NameSource>,
    /// The number of steps that are part of the names.
    pub steps_in_name: usize,
}

/// A variable or type that a name may be.
#[derive(Debug)]
pub(super) enum NameSource {
    /// A variable.
    Slot(SlotId),
    /// A type, if no steps follow.
    Type(Type),
}

/// A step of a path.
#[derive(Debug)]
pub(super) struct PathStep {
    /// Its field, index or key.
    pub key: StepKey,
    /// Whether it is optional (`.?a`, `[?a]`); the steps after it are then optional too.
    pub optional: bool,
    /// Whether it is a presence test.
    pub test: bool,
}

/// The field, index or key of a step.
#[derive(Debug)]
pub(super) enum StepKey {
    /// A field or string key.
    Field(Field),
    /// A constant index or key.
    Constant(Value<'static>),
    /// A computed index or key.
    Computed(NodeId),
}

/// The name of a field.
#[derive(Debug)]
pub(super) struct Field {
    /// The name in the expression.
    pub name: Box<str>,
    /// The unescaped name in the schema; none if the name is not a valid escape.
    property: Option<Box<str>>,
    /// A cache: the first object shape and the field's shape in it. Most evaluations have the same
    /// object shape.
    first_shape: OnceLock<(Arc<ObjectShape>, Option<ValueShape>)>,
}

impl Field {
    /// A field of this name.
    pub(super) fn new(name: &str) -> Self {
        let property = names::unescape(name).map(|property| property.as_ref().into());
        Self { name: name.into(), property, first_shape: OnceLock::new() }
    }

    /// The value of this field, if it exists.
    pub(super) fn value_in<'a>(&'a self, value: &Value<'a>, work: &WorkBudget) -> LookupResult<'a> {
        if let Value::Object(ObjectValue::Json { fields, shape }) = value
            && let ShapeKind::Object(object) = &shape.kind
        {
            let Some(property) = &self.property else { return Ok(None) };
            let Some(json) = fields.get(&**property).filter(|json| !json.is_null()) else {
                return Ok(None);
            };
            let find = || object.fields.get(property).map(|field| &field.shape);
            let (first_shape, cached) =
                self.first_shape.get_or_init(|| (object.clone(), find().cloned()));
            let shape = if Arc::ptr_eq(first_shape, object) { cached.as_ref() } else { find() };
            return shape.map(|shape| shape.view(json, work)).transpose();
        }
        value.find_field(&self.name, work)
    }
}

/// A comparison.
#[derive(Debug)]
pub(super) struct Equality {
    /// The operands.
    pub operands: [NodeId; 2],
    /// Whether it is `!=`.
    pub negate: bool,
    /// Its cost for values other than two `int`s, two `bool`s or two short strings, which the
    /// evaluator compares directly.
    pub cost: CallCost,
}

/// An element or value of a literal.
#[derive(Debug)]
pub(super) struct LiteralItem {
    /// Its node.
    pub node: NodeId,
    /// Whether it is an optional, which is omitted if it is empty.
    pub optional: bool,
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct Call {
    /// The function's name.
    pub function: Arc<str>,
    /// How it chooses its overload.
    pub dispatch: Dispatch,
    /// The cost.
    pub cost: CallCost,
    /// The argument for which the cost function of cel-go panics.
    pub cost_panic: Option<CostPanic>,
    /// The style of its errors for wrong arguments.
    pub error_style: super::overload_error::OverloadErrorStyle,
}

/// How a call chooses its overload.
#[derive(Debug)]
pub(super) enum Dispatch {
    /// One overload, for any arguments.
    Single(Arc<Overload>),
    /// One overload, if it accepts the arguments.
    Guarded(Arc<Overload>),
    /// The first overload that accepts the arguments.
    ByArguments(Vec<Arc<Overload>>),
    /// A call prepared for a constant argument.
    Prepared(Arc<dyn PreparedCall>),
}

/// Functions with a fast path: `!` for a `bool`, `size` for a list, and the other operators for two
/// `int`s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FastPath {
    /// No fast path.
    None,
    Not,
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    Add,
    Subtract,
    Size,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct ComprehensionNode {
    /// The range.
    pub range: NodeId,
    /// The slot of the element or key.
    pub first: SlotId,
    /// The slot of the value, with two variables; `first` is then the index or key.
    pub second: Option<SlotId>,
    /// The slot of the accumulator.
    pub accumulator: SlotId,
    /// The condition to continue.
    pub condition: NodeId,
    /// The next accumulator.
    pub step: NodeId,
    /// The result.
    pub result: NodeId,
    /// The predicate, if the comprehension is that of `all` or `exists`.
    pub quantifier: Option<Quantifier>,
}

/// The predicate of `all` or `exists`.
#[derive(Debug)]
pub(super) struct Quantifier {
    /// The operands of `&&` or `||` after the accumulator.
    pub operands: Box<[NodeId]>,
    /// The value for one element that decides the result.
    pub deciding_value: bool,
}
