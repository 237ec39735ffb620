//! Standard macros: `has`, `all`, `exists`, `exists_one`, `map` and `filter`.

use super::{macro_error, method, target_and_args, variable};
use crate::syntax::ast::{Comprehension, Expr, ExprKind, Literal, operator};
use crate::syntax::{Expansion, Macro, MacroError, NodeFactory};

/// The standard macros.
pub const STANDARD: &[Macro] = &[
    Macro { name: "has", receiver: false, args: Some(1), expand: has },
    method("all", 2, all),
    method("exists", 2, exists),
    method("exists_one", 2, exists_one),
    method("map", 2, map),
    method("map", 3, map_filtered),
    method("filter", 2, filter),
];

/// The parts of a quantifier's comprehension.
pub(super) struct Quantifier {
    pub(super) accu_init: Expr,
    pub(super) condition: Expr,
    pub(super) step: Expr,
    pub(super) result: Expr,
}

pub(super) fn all_quantifier(factory: &mut NodeFactory<'_>, predicate: Expr) -> Quantifier {
    let accu_init = factory.bool(true);
    let so_far = factory.accumulator();
    let condition = factory.call(operator::NOT_STRICTLY_FALSE, vec![so_far]);
    let so_far = factory.accumulator();
    let step = factory.call(operator::AND, vec![so_far, predicate]);
    let result = factory.accumulator();
    Quantifier { accu_init, condition, step, result }
}

pub(super) fn exists_quantifier(factory: &mut NodeFactory<'_>, predicate: Expr) -> Quantifier {
    let accu_init = factory.bool(false);
    let so_far = factory.accumulator();
    let none = factory.call(operator::NOT, vec![so_far]);
    let condition = factory.call(operator::NOT_STRICTLY_FALSE, vec![none]);
    let so_far = factory.accumulator();
    let step = factory.call(operator::OR, vec![so_far, predicate]);
    let result = factory.accumulator();
    Quantifier { accu_init, condition, step, result }
}

pub(super) fn exists_one_quantifier(factory: &mut NodeFactory<'_>, predicate: Expr) -> Quantifier {
    let accu_init = factory.literal(Literal::Int(0));
    let condition = factory.bool(true);
    let count = factory.accumulator();
    let unit = factory.literal(Literal::Int(1));
    let more = factory.call(operator::ADD, vec![count, unit]);
    let step = factory.step_if(Some(predicate), more);
    let count = factory.accumulator();
    let unit = factory.literal(Literal::Int(1));
    let result = factory.call(operator::EQUALS, vec![count, unit]);
    Quantifier { accu_init, condition, step, result }
}

fn has(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    mut args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    let Some(arg) = args.pop() else { return Ok(Expansion::Unchanged(target, args)) };
    match arg.kind {
        ExprKind::Select { operand, field, .. } => {
            Ok(Expansion::Replacement(factory.node(ExprKind::Select {
                operand,
                field,
                test_only: true,
            })))
        }
        _ => Err(macro_error(&arg, "invalid argument to has() macro")),
    }
}

fn quantified(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    quantifier: fn(&mut NodeFactory<'_>, Expr) -> Quantifier,
) -> Result<Expansion, MacroError> {
    let (range, [name, predicate]) = match target_and_args(target, args) {
        Ok(target_and_args) => target_and_args,
        Err(unchanged) => return Ok(unchanged),
    };
    let iter_var = variable(&name, "argument must be a simple name")?;
    let Quantifier { accu_init, condition, step, result } = quantifier(factory, predicate);
    Ok(Expansion::Replacement(comprehension(
        factory, range, iter_var, accu_init, condition, step, result,
    )))
}

fn comprehension(
    factory: &mut NodeFactory<'_>,
    range: Expr,
    iter_var: std::sync::Arc<str>,
    accu_init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
) -> Expr {
    let accu_var = factory.name(crate::syntax::ACCUMULATOR);
    factory.comprehension(Comprehension {
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

fn all(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    quantified(factory, target, args, all_quantifier)
}

fn exists(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    quantified(factory, target, args, exists_quantifier)
}

fn exists_one(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    quantified(factory, target, args, exists_one_quantifier)
}

/// A comprehension that accumulates a list of the elements for which a condition holds.
fn accumulate_list(
    factory: &mut NodeFactory<'_>,
    range: Expr,
    name: &Expr,
    condition: Option<Expr>,
    element: Option<Expr>,
) -> Result<Expansion, MacroError> {
    let iter_var = variable(name, "argument is not an identifier")?;
    let element = match element {
        Some(element) => element,
        None => factory.copy(name),
    };
    let accu_init = factory.list(Vec::new());
    let continue_condition = factory.bool(true);
    let step = factory.append(element);
    let step = factory.step_if(condition, step);
    let result = factory.accumulator();
    Ok(Expansion::Replacement(comprehension(
        factory,
        range,
        iter_var,
        accu_init,
        continue_condition,
        step,
        result,
    )))
}

pub(crate) fn map(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    match target_and_args(target, args) {
        Ok((range, [name, element])) => accumulate_list(factory, range, &name, None, Some(element)),
        Err(unchanged) => Ok(unchanged),
    }
}

fn map_filtered(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    match target_and_args(target, args) {
        Ok((range, [name, condition, element])) => {
            accumulate_list(factory, range, &name, Some(condition), Some(element))
        }
        Err(unchanged) => Ok(unchanged),
    }
}

fn filter(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    match target_and_args(target, args) {
        Ok((range, [name, condition])) => {
            accumulate_list(factory, range, &name, Some(condition), None)
        }
        Err(unchanged) => Ok(unchanged),
    }
}
