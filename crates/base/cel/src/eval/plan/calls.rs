//! Calls.

use super::super::constant_set::Set;
use super::super::node::{Call, Constant, Dispatch, Equal, Fast, Node, NodeId};
use super::super::overload_error::OverloadErrorStyle;
use super::{Known, Planner};
use crate::check::ResolvedReference;
use crate::cost::{breaks, call_cost};
use crate::library::{Implementation, Overload};
use crate::syntax::ast::{Expr, ExprKind, operator};
use crate::types::Type;
use crate::value::{Error, Value};
use std::sync::Arc;

/// What a call means.
struct Callee {
    function: Arc<str>,
    overloads: Vec<Arc<Overload>>,
    /// Whether what stands before the dot is an argument, and not part of the name.
    receiver: bool,
}

impl Planner<'_> {
    /// A call of an operator, a function or a method.
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
            (operator::AND, sides) => {
                let sides = self.sides(sides, true);
                Node::And(sides)
            }
            (operator::OR, sides) => {
                let sides = self.sides(sides, false);
                Node::Or(sides)
            }
            (operator::CONDITIONAL, [condition, yes, no]) => {
                Node::Conditional(*condition, *yes, *no)
            }
            (name @ (operator::EQUALS | operator::NOT_EQUALS), [one, other]) => {
                let negate = name == operator::NOT_EQUALS;
                let id = if negate { "not_equals" } else { "equals" };
                let cost = call_cost(name, id);
                Node::Equal(Box::new(Equal { sides: [*one, *other], negate, cost }))
            }
            (operator::INDEX, [operand, key]) => return self.index(*operand, *key, false),
            (operator::OPT_INDEX | operator::OPT_SELECT, [operand, key]) => {
                return self.index(*operand, *key, true);
            }
            (operator::NOT_STRICTLY_FALSE | "__not_strictly_false__", [of]) => Node::NotFalse(*of),
            ("or", [first, second]) if is_for_optionals(&callee, "optional_or_optional") => {
                Node::Alternative(*first, *second)
            }
            ("orValue", [first, second]) if is_for_optionals(&callee, "optional_orValue_value") => {
                Node::Default(*first, *second)
            }
            _ => return self.plan_function(&callee, nodes),
        };
        Ok(self.add(node))
    }

    /// What a call means: the function and its overloads, of which there is one if the checker
    /// knew the types of all arguments.
    fn callee(&self, expr: &Expr, function: &Arc<str>, target: Option<&Expr>) -> Callee {
        let env = match self.known {
            Known::Checked(_) => {
                let overloads = match self.reference(expr) {
                    Some(ResolvedReference::Overloads(overloads)) => overloads.clone(),
                    _ => Vec::new(),
                };
                return Callee { function: function.clone(), overloads, receiver: true };
            }
            Known::Names(env) => env,
        };
        let named = |name: &str, receiver| {
            env.candidates(name).find_map(|full| {
                let overloads = env.function(&full)?.to_vec();
                Some(Callee { function: full.as_ref().into(), overloads, receiver })
            })
        };
        let qualified = match target {
            Some(target) => qualified_name(target)
                .and_then(|prefix| named(&format!("{prefix}.{function}"), false)),
            None => named(function, true),
        };
        qualified.unwrap_or_else(|| Callee {
            function: function.trim_start_matches('.').into(),
            overloads: env.function(function).map(<[_]>::to_vec).unwrap_or_default(),
            receiver: true,
        })
    }

    /// The sides of `&&` or `||`, those of sides of the same kind among them.
    fn sides(&mut self, nodes: &[NodeId], and: bool) -> Box<[NodeId]> {
        let mut sides = Vec::with_capacity(nodes.len());
        for node in nodes {
            match &mut self.nodes[*node as usize] {
                Node::And(inner) if and => sides.append(&mut std::mem::take(inner).into_vec()),
                Node::Or(inner) if !and => sides.append(&mut std::mem::take(inner).into_vec()),
                _ => sides.push(*node),
            }
        }
        sides.into()
    }

    /// A call that is no operator of the evaluator's own.
    fn plan_function(&mut self, callee: &Callee, nodes: Vec<NodeId>) -> Result<NodeId, Error> {
        let function = &callee.function;
        let one = match callee.overloads.as_slice() {
            [one] => Some(one),
            _ => None,
        };
        // Costs of expressions that were not checked do not know the overload.
        let id = match (one, self.known) {
            (Some(one), Known::Checked(_)) => one.id,
            _ => "",
        };
        let error_style = if callee.overloads.is_empty() {
            OverloadErrorStyle::Unknown
        } else {
            OverloadErrorStyle::of(function)
        };
        self.refuse_count(callee, error_style, nodes.len())?;
        if id == "in_list"
            && let [element, list] = *nodes
            && let Some(node) = self.within(element, list)
        {
            return Ok(self.add(node));
        }
        let prepare = callee.overloads.iter().find_map(|overload| overload.prepare);
        let pattern = nodes.get(1).and_then(|pattern| self.plain(*pattern));
        let run = match (prepare, pattern, one) {
            (Some(prepare), Some(pattern @ Value::String(_)), _) => {
                Dispatch::Prepared(prepare(pattern, &self.work)?)
            }
            // Even where the checker knew their types arguments may be of others: `null` of what may
            // be null, data that has lost its schema in an optional.
            (_, _, Some(one)) if error_style == OverloadErrorStyle::Signature => {
                Dispatch::Guarded(one.clone())
            }
            // Operators do the same for all their overloads, and look at their arguments.
            _ if error_style != OverloadErrorStyle::Signature && !callee.overloads.is_empty() => {
                Dispatch::Known(callee.overloads[0].clone())
            }
            _ => Dispatch::ByArguments(callee.overloads.clone()),
        };
        let cost = call_cost(function, id);
        let call = Call { function: function.clone(), cost, breaks: breaks(id), error_style, run };
        if let Some(node) = self.fold_call(&call, &callee.overloads, &nodes)? {
            return Ok(self.add(node));
        }
        // A function that is found by its arguments, or whose regular expression is known, takes
        // any number of them, and asks for no more of them after an error; as does `format`, which
        // is declared so.
        let any = match &call.run {
            _ if &**function == "format" => true,
            Dispatch::Prepared(_) => true,
            Dispatch::ByArguments(_) => error_style == OverloadErrorStyle::Signature,
            Dispatch::Known(_) | Dispatch::Guarded(_) => false,
        };
        let call = Box::new(call);
        let node = match nodes.as_slice() {
            [arg] => Node::Unary(fast(function, 1), *arg, call),
            [one, other] if !any => Node::Binary(fast(function, 2), [*one, *other], call),
            _ => Node::Call(nodes.into(), call),
        };
        Ok(self.add(node))
    }

    /// Refuses a function that never takes as many arguments, where cel-go knows that before it
    /// evaluates anything.
    fn refuse_count(
        &self,
        callee: &Callee,
        error_style: OverloadErrorStyle,
        count: usize,
    ) -> Result<(), Error> {
        let Known::Names(_) = self.known else { return Ok(()) };
        let bound_once =
            error_style != OverloadErrorStyle::Signature || callee.overloads.len() == 1;
        let fits = callee.overloads.iter().any(|overload| overload.params.len() == count);
        if fits || !bound_once || (callee.overloads.is_empty() && count > 0) {
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
    fn within(&self, element: NodeId, list: NodeId) -> Option<Node> {
        let Value::List(list) = self.plain(list)? else { return None };
        if list.is_empty() {
            // What is looked for is not even asked for.
            return Some(Node::Constant(Constant {
                value: Value::Bool(false),
                cost: 0,
                plain: true,
            }));
        }
        Some(Node::Within(element, Box::new(Set::of(list)?)))
    }

    /// The result of a call of constants.
    ///
    /// Conversions are what cel-go computes beforehand, which makes them free, and errors of them
    /// errors of the program. Other calls are computed if their results are small, and keep their
    /// costs; if they fail they do so when they are evaluated. Calls of their results are not
    /// computed, so that each step is still paid for by itself.
    fn fold_call(
        &self,
        call: &Call,
        overloads: &[Arc<Overload>],
        nodes: &[NodeId],
    ) -> Result<Option<Node>, Error> {
        let known: Option<Vec<_>> = nodes.iter().map(|node| self.plain(*node).cloned()).collect();
        let Some(values) = known else { return Ok(None) };
        if nodes.len() == 1 && is_conversion(&call.function) {
            let value = call.run(&values, &self.work)?;
            return Ok(Some(Node::Constant(Constant { value, cost: 0, plain: true })));
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
        Ok(Some(Node::Constant(Constant { value, cost, plain: false })))
    }
}

fn is_for_optionals(callee: &Callee, id: &str) -> bool {
    match callee.overloads.as_slice() {
        [one] => one.id == id,
        many => many.iter().any(|overload| overload.id == id),
    }
}

/// Functions that cel-go calls beforehand if their argument is constant.
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

fn fast(function: &str, count: usize) -> Fast {
    match (function, count) {
        (operator::NOT, 1) => Fast::Not,
        ("size", 1) => Fast::Size,
        (operator::LESS, 2) => Fast::Less,
        (operator::LESS_EQUALS, 2) => Fast::LessEquals,
        (operator::GREATER, 2) => Fast::Greater,
        (operator::GREATER_EQUALS, 2) => Fast::GreaterEquals,
        (operator::ADD, 2) => Fast::Add,
        (operator::SUBTRACT, 2) => Fast::Subtract,
        _ => Fast::No,
    }
}

/// The name that names and selections spell.
fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select { operand, field, test_only: false } => {
            Some(format!("{}.{field}", qualified_name(operand)?))
        }
        _ => None,
    }
}
