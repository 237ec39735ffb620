//! Abstract syntax trees of expressions.

use std::collections::HashMap;
use std::sync::Arc;

/// The id of a node, unique in its expression. Ids are dense and start at one, so types and
/// references of nodes are in plain vectors.
pub type Id = u32;

/// A node of an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its id.
    pub id: Id,
    /// Its position: the code point for errors. As in cel-go it is the operator of an operator
    /// call, the dot of a selection, and the parenthesis of a function call.
    pub at: u32,
    /// Its kind.
    pub kind: ExprKind,
}

/// The kinds of nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Literal(Literal),
    /// A name; with a leading dot it is absolute.
    Ident(Arc<str>),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        /// The operand.
        operand: Box<Expr>,
        /// The field.
        field: Arc<str>,
        /// Whether it is a presence test: `has(...)`.
        test_only: bool,
    },
    /// A call of a function, an operator (see [`operator`]) or a method.
    Call {
        /// The name.
        function: Arc<str>,
        /// The receiver before the dot.
        target: Option<Box<Expr>>,
        /// The arguments in parentheses.
        args: Vec<Expr>,
    },
    /// `[a, ?b]`.
    List {
        /// The elements.
        elements: Vec<Expr>,
        /// The indices of elements with `?`, ascending.
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
    /// A comprehension, the expansion of most macros.
    Comprehension(Box<Comprehension>),
}

/// A literal.
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

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// Its id.
    pub id: Id,
    /// The position of its colon.
    pub at: u32,
    /// The key.
    pub key: Expr,
    /// The value; an optional if `optional`.
    pub value: Expr,
    /// Whether it has `?`.
    pub optional: bool,
}

/// A field of a message literal.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldEntry {
    /// Its id.
    pub id: Id,
    /// The position of its colon.
    pub at: u32,
    /// Its name.
    pub field: Arc<str>,
    /// The value; an optional if `optional`.
    pub value: Expr,
    /// Whether it has `?`.
    pub optional: bool,
}

/// A comprehension over `range`: the accumulator starts as `accu_init` and becomes `step` for each
/// element while `condition` holds. Its value is `result`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map.
    pub range: Expr,
    /// The variable for the element or map key; with `iter_var2`, for the index or key.
    pub iter_var: Arc<str>,
    /// The variable for the element or map value, with two variables.
    pub iter_var2: Option<Arc<str>>,
    /// The variable for the accumulator.
    pub accu_var: Arc<str>,
    /// The initial accumulator.
    pub accu_init: Expr,
    /// The condition before each step.
    pub condition: Expr,
    /// The next accumulator.
    pub step: Expr,
    /// The result.
    pub result: Expr,
}

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct ParsedExpression {
    /// The text.
    pub source: crate::ExpressionSource,
    /// The tree with expanded macros.
    pub root: Expr,
    /// The original call of each macro, by the id of its expansion. A nested macro in it is an
    /// [`ExprKind::Ident`] with an empty name and the id of its expansion.
    pub macro_calls: HashMap<Id, Expr>,
    /// The greatest id of a node.
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
    /// Whether a comprehension of `all` or `exists` may continue, also if the accumulator is an
    /// error.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    pub const OPT_INDEX: &str = "_[?_]";
    pub const OPT_SELECT: &str = "_?._";
}
