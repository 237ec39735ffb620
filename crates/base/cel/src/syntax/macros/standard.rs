//! The macros of the language's standard: `has`, `all`, `exists`, `exists_one`, `map` and
//! `filter`.

use super::{method, parts, refusal, variable};
use crate::syntax::ast::{Comprehension, Expr, ExprKind, Literal, operator};
use crate::syntax::{Expanded, Macro, Maker, Refusal};

/// The macros of the standard.
pub const STANDARD: &[Macro] = &[
    Macro { name: "has", receiver: false, args: Some(1), expand: has },
    method("all", 2, all),
    method("exists", 2, exists),
    method("exists_one", 2, exists_one),
    method("map", 2, map),
    method("map", 3, map_filtered),
    method("filter", 2, filter),
];

/// How a quantifier goes on from element to element.
pub(super) struct Quantifier {
    pub(super) accu_init: Expr,
    pub(super) condition: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

pub(super) fn every(make: &mut Maker<'_>, predicate: Expr) -> Quantifier {
    let accu_init = make.bool(true);
    let so_far = make.accumulator();
    let condition = make.call(operator::NOT_STRICTLY_FALSE, vec![so_far]);
    let so_far = make.accumulator();
    let step = make.call(operator::AND, vec![so_far, predicate]);
    let result = make.accumulator();
    Quantifier { accu_init, condition, step, result }
}

pub(super) fn some(make: &mut Maker<'_>, predicate: Expr) -> Quantifier {
    let accu_init = make.bool(false);
    let so_far = make.accumulator();
    let none = make.call(operator::NOT, vec![so_far]);
    let condition = make.call(operator::NOT_STRICTLY_FALSE, vec![none]);
    let so_far = make.accumulator();
    let step = make.call(operator::OR, vec![so_far, predicate]);
    let result = make.accumulator();
    Quantifier { accu_init, condition, step, result }
}

pub(super) fn one(make: &mut Maker<'_>, predicate: Expr) -> Quantifier {
    let accu_init = make.literal(Literal::Int(0));
    let condition = make.bool(true);
    let count = make.accumulator();
    let unit = make.literal(Literal::Int(1));
    let more = make.call(operator::ADD, vec![count, unit]);
    let step = make.step_if(Some(predicate), more);
    let count = make.accumulator();
    let unit = make.literal(Literal::Int(1));
    let result = make.call(operator::EQUALS, vec![count, unit]);
    Quantifier { accu_init, condition, step, result }
}

fn has(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    mut args: Vec<Expr>,
) -> Result<Expanded, Refusal> {
    let Some(arg) = args.pop() else { return Ok(Expanded::Stays(target, args)) };
    match arg.kind {
        ExprKind::Select { operand, field, .. } => {
            Ok(Expanded::Instead(make.node(ExprKind::Select { operand, field, test_only: true })))
        }
        _ => Err(refusal(&arg, "invalid argument to has() macro")),
    }
}

fn quantified(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    how: fn(&mut Maker<'_>, Expr) -> Quantifier,
) -> Result<Expanded, Refusal> {
    let (range, [name, predicate]) = match parts(target, args) {
        Ok(parts) => parts,
        Err(stays) => return Ok(stays),
    };
    let iter_var = variable(&name, "argument must be a simple name")?;
    let Quantifier { accu_init, condition, step, result } = how(make, predicate);
    Ok(Expanded::Instead(comprehension(make, range, iter_var, accu_init, condition, step, result)))
}

fn comprehension(
    make: &mut Maker<'_>,
    range: Expr,
    iter_var: std::sync::Arc<str>,
    accu_init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
) -> Expr {
    let accu_var = make.name(crate::syntax::ACCUMULATOR);
    make.comprehension(Comprehension {
        range,
        iter_var,
        iter_var2: None,
        accu_var,
        accu_init,
        condition,
        step,
        result,
    })
}

fn all(make: &mut Maker<'_>, target: Option<Expr>, args: Vec<Expr>) -> Result<Expanded, Refusal> {
    quantified(make, target, args, every)
}

fn exists(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expanded, Refusal> {
    quantified(make, target, args, some)
}

fn exists_one(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expanded, Refusal> {
    quantified(make, target, args, one)
}

/// A loop that gathers a list of elements for which a condition holds.
fn gather(
    make: &mut Maker<'_>,
    range: Expr,
    name: &Expr,
    condition: Option<Expr>,
    element: Option<Expr>,
) -> Result<Expanded, Refusal> {
    let iter_var = variable(name, "argument is not an identifier")?;
    let element = match element {
        Some(element) => element,
        None => make.copy(name),
    };
    let accu_init = make.list(Vec::new());
    let go_on = make.bool(true);
    let step = make.append(element);
    let step = make.step_if(condition, step);
    let result = make.accumulator();
    Ok(Expanded::Instead(comprehension(make, range, iter_var, accu_init, go_on, step, result)))
}

pub(crate) fn map(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expanded, Refusal> {
    match parts(target, args) {
        Ok((range, [name, element])) => gather(make, range, &name, None, Some(element)),
        Err(stays) => Ok(stays),
    }
}

fn map_filtered(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expanded, Refusal> {
    match parts(target, args) {
        Ok((range, [name, condition, element])) => {
            gather(make, range, &name, Some(condition), Some(element))
        }
        Err(stays) => Ok(stays),
    }
}

fn filter(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expanded, Refusal> {
    match parts(target, args) {
        Ok((range, [name, condition])) => gather(make, range, &name, Some(condition), None),
        Err(stays) => Ok(stays),
    }
}
