//! Planning of calls.

use super::super::constant_set::ConstantSet;
use super::super::node::{Call, Constant, Dispatch, Equality, FastPath, Node, NodeId};
use super::super::overload_error::OverloadErrorStyle;
use super::{PlanSource, Planner};
use crate::check::ResolvedReference;
use crate::cost::{call_cost, cost_panic};
use crate::library::{Implementation, Overload};
use crate::syntax::ast::{Expr, ExprKind, operator};
use crate::types::Type;
use crate::value::{Error, Value};
use std::sync::Arc;

/// The function of a call.
struct Callee {
    function: Arc<str>,
    overloads: Vec<Arc<Overload>>,
    /// Whether the text before the dot is an argument and not part of the name.
    receiver: bool,
}

impl Planner<'_> {
    /// Plans a call of an operator, a function or a method.
    pub(super) fn plan_call(&mut self, expr: &Expr) -> Result<NodeId, Error> {
        let ExprKind::Call { function, target, args } = &expr.kind else {
            return Err(Error::NoSuchOverload);
        };
        let callee = self.callee(expr, function, target.as_deref());
        let mut nodes = Vec::with_capacity(args.len() + 1);
        let exprs: Vec<&Expr> =
            target.as_deref().filter(|_| callee.receiver).into_iter().chain(args).collect();
        for arg in &exprs {
            nodes.push(self.plan(arg)?);
        }
        let node = match (&*callee.function, nodes.as_slice()) {
            (operator::AND, operands) => {
                let operands = self.flatten_operands(operands, true);
                Node::And(operands)
            }
            (operator::OR, operands) => {
                let operands = self.flatten_operands(operands, false);
                Node::Or(operands)
            }
            (operator::CONDITIONAL, [condition, yes, no]) => {
                Node::Conditional(*condition, *yes, *no)
            }
            (name @ (operator::EQUALS | operator::NOT_EQUALS), [one, other]) => {
                let negate = name == operator::NOT_EQUALS;
                let id = if negate { "not_equals" } else { "equals" };
                let cost = call_cost(name, id);
                Node::Equality(Box::new(Equality { operands: [*one, *other], negate, cost }))
            }
            (operator::INDEX, [operand, key]) => return self.index(*operand, *key, false),
            (operator::OPT_INDEX | operator::OPT_SELECT, [operand, key]) => {
                return self.index(*operand, *key, true);
            }
            (operator::NOT_STRICTLY_FALSE | "__not_strictly_false__", [operand]) => {
                Node::NotStrictlyFalse(*operand)
            }
            ("or", [first, second]) if has_overload(&callee, "optional_or_optional") => {
                Node::Alternative(*first, *second)
            }
            ("orValue", [first, second]) if has_overload(&callee, "optional_orValue_value") => {
                Node::Default(*first, *second)
            }
            _ => return self.plan_function(&callee, nodes),
        };
        Ok(self.add(node))
    }

    /// The function and overloads of a call; one overload if the checker knew the types of all
    /// arguments.
    fn callee(&self, expr: &Expr, function: &Arc<str>, target: Option<&Expr>) -> Callee {
        let env = match self.source {
            PlanSource::Checked(_) => {
                let overloads = match self.reference(expr) {
                    Some(ResolvedReference::Overloads(overloads)) => overloads.clone(),
                    _ => Vec::new(),
                };
                return Callee { function: function.clone(), overloads, receiver: true };
            }
            PlanSource::Names(env) => env,
        };
        let find_function = |name: &str, receiver| {
            env.candidates(name).find_map(|full| {
                let overloads = env.function(&full)?.to_vec();
                Some(Callee { function: full.as_ref().into(), overloads, receiver })
            })
        };
        let qualified = match target {
            Some(target) => qualified_name(target)
                .and_then(|prefix| find_function(&format!("{prefix}.{function}"), false)),
            None => find_function(function, true),
        };
        qualified.unwrap_or_else(|| Callee {
            function: function.trim_start_matches('.').into(),
            overloads: env.function(function).map(<[_]>::to_vec).unwrap_or_default(),
            receiver: true,
        })
    }

    /// The operands of `&&` or `||`, with nested ones of the same operator flattened.
    fn flatten_operands(&mut self, nodes: &[NodeId], and: bool) -> Box<[NodeId]> {
        let mut operands = Vec::with_capacity(nodes.len());
        for node in nodes {
            match &mut self.nodes[*node as usize] {
                Node::And(inner) if and => operands.append(&mut std::mem::take(inner).into_vec()),
                Node::Or(inner) if !and => operands.append(&mut std::mem::take(inner).into_vec()),
                _ => operands.push(*node),
            }
        }
        operands.into()
    }

    /// Plans a call that has no special node.
    fn plan_function(&mut self, callee: &Callee, nodes: Vec<NodeId>) -> Result<NodeId, Error> {
        let function = &callee.function;
        let one = match callee.overloads.as_slice() {
            [one] => Some(one),
            _ => None,
        };
        // The cost of an unchecked expression does not depend on the overload.
        let id = match (one, self.source) {
            (Some(one), PlanSource::Checked(_)) => one.id,
            _ => "",
        };
        let error_style = if callee.overloads.is_empty() {
            OverloadErrorStyle::Unknown
        } else {
            OverloadErrorStyle::of(function)
        };
        self.check_argument_count(callee, error_style, nodes.len())?;
        if id == "in_list"
            && let [element, list] = *nodes
            && let Some(node) = self.in_set(element, list)
        {
            return Ok(self.add(node));
        }
        let prepare = callee.overloads.iter().find_map(|overload| overload.prepare);
        let pattern = nodes.get(1).and_then(|pattern| self.constant_value(*pattern));
        let dispatch = match (prepare, pattern, one) {
            (Some(prepare), Some(pattern @ Value::String(_)), _) => {
                Dispatch::Prepared(prepare(pattern, &self.work)?)
            }
            // Arguments may have other types than the checker knew: `null` for a nullable field,
            // data that lost its schema in an optional.
            (_, _, Some(one)) if error_style == OverloadErrorStyle::Signature => {
                Dispatch::Guarded(one.clone())
            }
            // Operators have one implementation for all their overloads, which checks its
            // arguments.
            _ if error_style != OverloadErrorStyle::Signature && !callee.overloads.is_empty() => {
                Dispatch::Single(callee.overloads[0].clone())
            }
            _ => Dispatch::ByArguments(callee.overloads.clone()),
        };
        let cost = call_cost(function, id);
        let call = Call {
            function: function.clone(),
            cost,
            cost_panic: cost_panic(id),
            error_style,
            dispatch,
        };
        if let Some(node) = self.compute_call(&call, &callee.overloads, &nodes)? {
            return Ok(self.add(node));
        }
        // A call whose overload depends on its arguments, or with a prepared regular expression, is
        // variadic in cel-go: it evaluates no argument after an error. So is `format`.
        let is_variadic = match &call.dispatch {
            _ if &**function == "format" => true,
            Dispatch::Prepared(_) => true,
            Dispatch::ByArguments(_) => error_style == OverloadErrorStyle::Signature,
            Dispatch::Single(_) | Dispatch::Guarded(_) => false,
        };
        let call = Box::new(call);
        let node = match nodes.as_slice() {
            [arg] => Node::Unary(fast_path(function, 1), *arg, call),
            [one, other] if !is_variadic => {
                Node::Binary(fast_path(function, 2), [*one, *other], call)
            }
            _ => Node::Call(nodes.into(), call),
        };
        Ok(self.add(node))
    }

    /// Refuses a call whose number of arguments no overload has, if cel-go detects that before
    /// evaluation.
    fn check_argument_count(
        &self,
        callee: &Callee,
        error_style: OverloadErrorStyle,
        count: usize,
    ) -> Result<(), Error> {
        let PlanSource::Names(_) = self.source else { return Ok(()) };
        let bound_once =
            error_style != OverloadErrorStyle::Signature || callee.overloads.len() == 1;
        let accepts_count = callee.overloads.iter().any(|overload| overload.params.len() == count);
        if accepts_count || !bound_once || (callee.overloads.is_empty() && count > 0) {
            return Ok(());
        }
        let args = match count {
            0 => "()",
            1 => "(arg)",
            2 => "(lhs, rhs)",
            _ => "(...)",
        };
        Err(Error::NoSuchOverloadOf(format!("{}{args}", callee.function).into()))
    }

    /// `x in [constants]`
    fn in_set(&self, element: NodeId, list: NodeId) -> Option<Node> {
        let Value::List(list) = self.constant_value(list)? else { return None };
        if list.is_empty() {
            // The element is not even evaluated.
            return Some(Node::Constant(Constant {
                value: Value::Bool(false),
                cost: 0,
                known_to_cel_go: true,
            }));
        }
        Some(Node::InSet(element, Box::new(ConstantSet::of(list)?)))
    }

    /// Computes a call with constant arguments.
    ///
    /// cel-go precomputes conversions: they cost nothing, and their errors are errors of the
    /// program. Other calls are computed here if their results are small. They keep their cost, and
    /// their errors occur at evaluation. Their results do not count as constants for further calls,
    /// so each call keeps its own cost.
    fn compute_call(
        &self,
        call: &Call,
        overloads: &[Arc<Overload>],
        nodes: &[NodeId],
    ) -> Result<Option<Node>, Error> {
        let constants: Option<Vec<_>> =
            nodes.iter().map(|node| self.constant_value(*node).cloned()).collect();
        let Some(values) = constants else { return Ok(None) };
        if nodes.len() == 1 && is_conversion(&call.function) {
            let value = call.run(&values, &self.work)?;
            return Ok(Some(Node::Constant(Constant { value, cost: 0, known_to_cel_go: true })));
        }
        let small = overloads.iter().all(|overload| {
            matches!(overload.run, Implementation::Strict(_))
                && !matches!(
                    overload.result,
                    Type::String | Type::Bytes | Type::List(_) | Type::Map(_)
                )
        });
        if !small || overloads.is_empty() {
            return Ok(None);
        }
        let Ok(value) = call.run(&values, &self.work) else { return Ok(None) };
        let cost = (call.cost)(&values, &value, &self.work);
        Ok(Some(Node::Constant(Constant { value, cost, known_to_cel_go: false })))
    }
}

fn has_overload(callee: &Callee, id: &str) -> bool {
    match callee.overloads.as_slice() {
        [one] => one.id == id,
        many => many.iter().any(|overload| overload.id == id),
    }
}

/// Whether cel-go precomputes a function of a constant.
fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool"
            | "bytes"
            | "double"
            | "duration"
            | "dyn"
            | "int"
            | "string"
            | "timestamp"
            | "type"
            | "uint"
    )
}

fn fast_path(function: &str, count: usize) -> FastPath {
    match (function, count) {
        (operator::NOT, 1) => FastPath::Not,
        ("size", 1) => FastPath::Size,
        (operator::LESS, 2) => FastPath::Less,
        (operator::LESS_EQUALS, 2) => FastPath::LessEquals,
        (operator::GREATER, 2) => FastPath::Greater,
        (operator::GREATER_EQUALS, 2) => FastPath::GreaterEquals,
        (operator::ADD, 2) => FastPath::Add,
        (operator::SUBTRACT, 2) => FastPath::Subtract,
        _ => FastPath::None,
    }
}

/// The name in a chain of identifiers and selections.
fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select { operand, field, test_only: false } => {
            Some(format!("{}.{field}", qualified_name(operand)?))
        }
        _ => None,
    }
}
