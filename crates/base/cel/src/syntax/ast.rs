//! Expressions as trees.

use std::collections::HashMap;
use std::sync::Arc;

/// The number of a node, unique in its expression; small and dense, counted from one, so that
/// what is known about nodes (types, references) lies in plain vectors.
pub type Id = u32;

/// A node of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its number.
    pub id: Id,
    /// Where it is: the code point that errors point at (of a call of an operator the operator, of
    /// a selection its dot, of a function's call the parenthesis, as in cel-go).
    pub at: u32,
    /// What it is.
    pub kind: ExprKind,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A value written out.
    Literal(Literal),
    /// A name; with a leading dot if it is meant from the root of all names.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// Of what.
        operand: Box<Expr>,
        /// Which field.
        field: Arc<str>,
        /// Whether it is only asked for: `has(...)`.
        test_only: bool,
    },
    /// A call of a function, an operator (see [`operator`]) or a method.
    Call {
        /// The name.
        function: Arc<str>,
        /// What stands before the dot.
        target: Option<Box<Expr>>,
        /// What stands in the parentheses.
        args: Vec<Expr>,
    },
    /// `[a, ?b]`.
    List {
        /// The elements.
        elements: Vec<Expr>,
        /// Which of them are marked `?`, ascending.
        optional: Vec<u32>,
    },
    /// `{k: v, ?k: v}`.
    Map(Vec<MapEntry>),
    /// `a.b.Type{field: v, ?field: v}`.
    Struct {
        /// The name of the type.
        name: Arc<str>,
        /// Its fields.
        fields: Vec<FieldEntry>,
    },
    /// A loop; macros become these.
    Comprehension(Box<Comprehension>),
}

/// A value written out.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true`, `false`
    Bool(bool),
    /// `1`, `-0x1F`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.5`
    Double(f64),
    /// `"a"`
    String(Arc<str>),
    /// `b"a"`
    Bytes(Arc<[u8]>),
}

/// An entry of a map written out.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// Its number.
    pub id: Id,
    /// Where its colon is.
    pub at: u32,
    /// The key.
    pub key: Expr,
    /// The value; an optional if `optional`.
    pub value: Expr,
    /// Whether it is marked `?`.
    pub optional: bool,
}

/// A field of a message written out.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldEntry {
    /// Its number.
    pub id: Id,
    /// Where its colon is.
    pub at: u32,
    /// Its name.
    pub field: Arc<str>,
    /// The value; an optional if `optional`.
    pub value: Expr,
    /// Whether it is marked `?`.
    pub optional: bool,
}

/// A loop over `range`: `accu` begins as `accu_init` and becomes `step` for each element as long
/// as `condition` holds; `result` is its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// What is gone through.
    pub range: Expr,
    /// The name of the element (of a map's key); with `iter_var2` the index or key.
    pub iter_var: Arc<str>,
    /// The name of the element (of a map's value), in loops of two variables.
    pub iter_var2: Option<Arc<str>>,
    /// The name of what is gathered.
    pub accu_var: Arc<str>,
    /// Its first value.
    pub accu_init: Expr,
    /// Whether to go on, asked before each step.
    pub condition: Expr,
    /// Its next value.
    pub step: Expr,
    /// What comes out.
    pub result: Expr,
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct ParsedExpression {
    /// The text.
    pub source: crate::ExpressionSource,
    /// The tree, macros expanded.
    pub root: Expr,
    /// By the number of what a macro became: its call as it was written (nested macros in it are
    /// nodes with their number and [`ExprKind::Ident`] of an empty name, to be looked up again).
    pub macro_calls: HashMap<Id, Expr>,
    /// The greatest number of a node.
    pub last_id: Id,
}

/// The names of operators as functions (cel-spec, "Standard definitions").
#[expect(missing_docs, reason = "the values say it")]
pub mod operator {
    pub const CONDITIONAL: &str = "_?_:_";
    pub const AND: &str = "_&&_";
    pub const OR: &str = "_||_";
    pub const NOT: &str = "!_";
    pub const NEGATE: &str = "-_";
    pub const EQUALS: &str = "_==_";
    pub const NOT_EQUALS: &str = "_!=_";
    pub const LESS: &str = "_<_";
    pub const LESS_EQUALS: &str = "_<=_";
    pub const GREATER: &str = "_>_";
    pub const GREATER_EQUALS: &str = "_>=_";
    pub const ADD: &str = "_+_";
    pub const SUBTRACT: &str = "_-_";
    pub const MULTIPLY: &str = "_*_";
    pub const DIVIDE: &str = "_/_";
    pub const MODULO: &str = "_%_";
    pub const INDEX: &str = "_[_]";
    pub const IN: &str = "@in";
    /// Whether a loop of `all` or `exists` may go on; also where the gathered value is an error.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub const OPT_INDEX: &str = "_[?_]";
    pub const OPT_SELECT: &str = "_?._";
}
