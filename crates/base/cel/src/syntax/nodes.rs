//! Creation of nodes.

use super::ast::{Comprehension, Expr, ExprKind, FieldEntry, Id, Literal, MapEntry, operator};
use std::collections::HashSet;
use std::sync::Arc;

/// The maximum depth of trees: a chain of 250 operators, selections or calls, as in cel-go, which
/// counts no other nodes. Mainstay counts all nodes after macro expansion, so every function may
/// recurse.
pub const MAX_DEPTH: u16 = 251;

/// The maximum number of nodes. Only macros that copy their target (`optMap`) reach it; the longest
/// text without them has less than half.
pub const MAX_NODES: u32 = 200_000;

/// The accumulator variable of macros, which no text can name.
pub const ACCUMULATOR: &str = "@result";

/// Creates nodes with ids within the limits of trees.
#[derive(Debug)]
pub(super) struct Nodes {
    /// The depth of each node, by its id less one; a leaf has the depth 1.
    depths: Vec<u16>,
    names: HashSet<Arc<str>>,
    /// The message of an exceeded limit. Later nodes are meaningless.
    pub(super) exceeded_limit: Option<&'static str>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self { depths: Vec::new(), names: HashSet::new(), exceeded_limit: None }
    }

    pub(super) fn last_id(&self) -> Id {
        // At most the limit, and the nodes of one step beyond it.
        u32::try_from(self.depths.len()).unwrap_or(u32::MAX)
    }

    /// A name; equal names share memory.
    pub(super) fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(shared_name) = self.names.get(name) {
            return Arc::clone(shared_name);
        }
        let new: Arc<str> = name.into();
        self.names.insert(Arc::clone(&new));
        new
    }

    /// An id for an entry, which is not a node.
    pub(super) fn id(&mut self) -> Id {
        self.depths.push(0);
        self.last_id()
    }

    /// Creates a node; beyond a limit it is a leaf.
    pub(super) fn node(&mut self, at: u32, kind: ExprKind) -> Expr {
        let mut depth = 0;
        for_each_child(&kind, &mut |child: &Expr| {
            let below = (child.id as usize).checked_sub(1).and_then(|at| self.depths.get(at));
            depth = depth.max(below.copied().unwrap_or(0));
        });
        self.depths.push(depth + 1);
        let id = self.last_id();
        if depth >= MAX_DEPTH {
            self.too_deep();
        } else if id > MAX_NODES {
            self.exceeded_limit.get_or_insert("expression size exceeds limit: 200000 nodes");
        } else {
            return Expr { id, at, kind };
        }
        self.depths[id as usize - 1] = 1;
        Expr { id, at, kind: ExprKind::Literal(Literal::Null) }
    }

    /// Records that the tree is too deep.
    pub(super) fn too_deep(&mut self) {
        self.exceeded_limit.get_or_insert("max recursion depth exceeded");
    }

    pub(super) fn call(&mut self, at: u32, function: &str, args: Vec<Expr>) -> Expr {
        let function = self.name(function);
        self.node(at, ExprKind::Call { function, target: None, args })
    }
}

/// Calls `visit` for each child of a node.
pub(super) fn for_each_child<'e>(kind: &'e ExprKind, visit: &mut impl FnMut(&'e Expr)) {
    match kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } => visit(operand),
        ExprKind::Call { target, args, .. } => {
            target.as_deref().into_iter().chain(args).for_each(visit);
        }
        ExprKind::List { elements, .. } => elements.iter().for_each(visit),
        ExprKind::Map(entries) => {
            for entry in entries {
                visit(&entry.key);
                visit(&entry.value);
            }
        }
        ExprKind::Struct { fields, .. } => fields.iter().for_each(|field| visit(&field.value)),
        ExprKind::Comprehension(comprehension) => {
            for part in [
                &comprehension.range,
                &comprehension.accu_init,
                &comprehension.condition,
                &comprehension.step,
                &comprehension.result,
            ] {
                visit(part);
            }
        }
    }
}

/// Creates nodes for a macro, at the position of its call.
#[derive(Debug)]
pub struct NodeFactory<'a> {
    pub(super) nodes: &'a mut Nodes,
    pub(super) at: u32,
}

impl NodeFactory<'_> {
    /// The position of the macro's parenthesis.
    pub fn at(&self) -> u32 {
        self.at
    }

    /// Creates a node at the macro's position.
    pub fn node(&mut self, kind: ExprKind) -> Expr {
        self.nodes.node(self.at, kind)
    }

    /// A literal.
    pub fn literal(&mut self, literal: Literal) -> Expr {
        self.node(ExprKind::Literal(literal))
    }

    /// `true` or `false`.
    pub fn bool(&mut self, value: bool) -> Expr {
        self.literal(Literal::Bool(value))
    }

    /// A name.
    pub fn ident(&mut self, name: &str) -> Expr {
        let name = self.nodes.name(name);
        self.node(ExprKind::Ident(name))
    }

    /// The accumulator of the macro.
    pub fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    /// A call of a function or an operator.
    pub fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.nodes.call(self.at, function, args)
    }

    /// A call of a method.
    pub fn method(&mut self, target: Expr, function: &str, args: Vec<Expr>) -> Expr {
        let function = self.nodes.name(function);
        self.node(ExprKind::Call { function, target: Some(Box::new(target)), args })
    }

    /// `accumulator + [element]`
    pub fn append(&mut self, element: Expr) -> Expr {
        let accumulator = self.accumulator();
        let list = self.list(vec![element]);
        self.call(operator::ADD, vec![accumulator, list])
    }

    /// `condition ? step : accumulator`; without a condition, the step.
    pub fn step_if(&mut self, condition: Option<Expr>, step: Expr) -> Expr {
        let Some(condition) = condition else { return step };
        let unchanged = self.accumulator();
        self.call(operator::CONDITIONAL, vec![condition, step, unchanged])
    }

    /// A list literal.
    pub fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.node(ExprKind::List { elements, optional: Vec::new() })
    }

    /// A comprehension.
    pub fn comprehension(&mut self, comprehension: Comprehension) -> Expr {
        self.node(ExprKind::Comprehension(Box::new(comprehension)))
    }

    /// A comprehension without iterations: `result`, in which `name` is `value`.
    pub fn bind(&mut self, name: Arc<str>, value: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.bool(false);
        let step = self.node(ExprKind::Ident(Arc::clone(&name)));
        let iter_var = self.nodes.name("#unused");
        self.comprehension(Comprehension {
            range,
            iter_var,
            iter_var2: None,
            accu_var: name,
            accu_init: value,
            condition,
            step,
            result,
        })
    }

    /// A shared name.
    pub fn name(&mut self, name: &str) -> Arc<str> {
        self.nodes.name(name)
    }

    /// A copy of a tree with new ids.
    pub fn copy(&mut self, expr: &Expr) -> Expr {
        if self.nodes.exceeded_limit.is_some() {
            return self.bool(false);
        }
        let kind = match &expr.kind {
            ExprKind::Literal(literal) => ExprKind::Literal(literal.clone()),
            ExprKind::Ident(name) => ExprKind::Ident(Arc::clone(name)),
            ExprKind::Select { operand, field, test_only } => ExprKind::Select {
                operand: Box::new(self.copy(operand)),
                field: Arc::clone(field),
                test_only: *test_only,
            },
            ExprKind::Call { function, target, args } => ExprKind::Call {
                function: Arc::clone(function),
                target: target.as_ref().map(|target| Box::new(self.copy(target))),
                args: args.iter().map(|arg| self.copy(arg)).collect(),
            },
            ExprKind::List { elements, optional } => ExprKind::List {
                elements: elements.iter().map(|element| self.copy(element)).collect(),
                optional: optional.clone(),
            },
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|entry| MapEntry {
                        id: self.nodes.id(),
                        at: self.at,
                        key: self.copy(&entry.key),
                        value: self.copy(&entry.value),
                        optional: entry.optional,
                    })
                    .collect(),
            ),
            ExprKind::Struct { name, fields } => ExprKind::Struct {
                name: Arc::clone(name),
                fields: fields
                    .iter()
                    .map(|field| FieldEntry {
                        id: self.nodes.id(),
                        at: self.at,
                        field: Arc::clone(&field.field),
                        value: self.copy(&field.value),
                        optional: field.optional,
                    })
                    .collect(),
            },
            ExprKind::Comprehension(comprehension) => {
                ExprKind::Comprehension(Box::new(Comprehension {
                    range: self.copy(&comprehension.range),
                    iter_var: Arc::clone(&comprehension.iter_var),
                    iter_var2: comprehension.iter_var2.clone(),
                    accu_var: Arc::clone(&comprehension.accu_var),
                    accu_init: self.copy(&comprehension.accu_init),
                    condition: self.copy(&comprehension.condition),
                    step: self.copy(&comprehension.step),
                    result: self.copy(&comprehension.result),
                }))
            }
        };
        self.nodes.node(expr.at, kind)
    }
}
