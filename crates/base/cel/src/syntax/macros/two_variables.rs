//! Macros with two variables, over lists with indices and maps with keys (cel-go's
//! `ext/comprehensions.go`).

use super::standard::{Quantifier, all_quantifier, exists_one_quantifier, exists_quantifier};
use super::{check_not_accumulator, macro_error, method, name_of, target_and_args};
use crate::syntax::ast::{Comprehension, Expr, ExprKind};
use crate::syntax::{ACCUMULATOR, Expansion, Macro, MacroError, NodeFactory};
use std::sync::Arc;

/// The macros with two variables.
pub const TWO_VARIABLES: &[Macro] = &[
    method("all", 3, all),
    method("exists", 3, exists),
    method("existsOne", 3, exists_one),
    method("exists_one", 3, exists_one),
    method("transformList", 3, |factory, target, args| transform(factory, target, args, list)),
    method("transformList", 4, |factory, target, args| transform_if(factory, target, args, list)),
    method("transformMap", 3, |factory, target, args| transform(factory, target, args, map)),
    method("transformMap", 4, |factory, target, args| transform_if(factory, target, args, map)),
    method("transformMapEntry", 3, |factory, target, args| transform(factory, target, args, entry)),
    method("transformMapEntry", 4, |factory, target, args| {
        transform_if(factory, target, args, entry)
    }),
];

/// The function that inserts into an accumulated map.
const INSERT: &str = "cel.@mapInsert";

type Names = (Arc<str>, Arc<str>);

fn names(first: &Expr, second: &Expr) -> Result<Names, MacroError> {
    let name = |arg| name_of(arg).ok_or_else(|| macro_error(arg, "argument must be a simple name"));
    let names = (name(first)?, name(second)?);
    if names.0 == names.1 {
        return Err(macro_error(second, &format!("duplicate variable name: {}", names.0)));
    }
    check_not_accumulator(first, names.0)?;
    check_not_accumulator(second, names.1)?;
    Ok((Arc::clone(names.0), Arc::clone(names.1)))
}

fn comprehension(
    factory: &mut NodeFactory<'_>,
    range: Expr,
    names: Names,
    quantifier: Quantifier,
) -> Expansion {
    let accu_var = factory.name(ACCUMULATOR);
    Expansion::Replacement(factory.comprehension(Comprehension {
        range,
        iter_var: names.0,
        iter_var2: Some(names.1),
        accu_var,
        accu_init: quantifier.accu_init,
        condition: quantifier.condition,
        step: quantifier.step,
        result: quantifier.result,
    }))
}

fn quantified(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    quantifier: fn(&mut NodeFactory<'_>, Expr) -> Quantifier,
) -> Result<Expansion, MacroError> {
    let (range, [first, second, predicate]) = match target_and_args(target, args) {
        Ok(target_and_args) => target_and_args,
        Err(unchanged) => return Ok(unchanged),
    };
    let names = names(&first, &second)?;
    let quantifier = quantifier(factory, predicate);
    Ok(comprehension(factory, range, names, quantifier))
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

/// The initial accumulator of a transformation, and the step that adds a value under the name of
/// the first variable.
type Accumulate = fn(&mut NodeFactory<'_>, &str, Expr) -> (Expr, Expr);

fn list(factory: &mut NodeFactory<'_>, _: &str, value: Expr) -> (Expr, Expr) {
    let step = factory.append(value);
    (factory.list(Vec::new()), step)
}

fn map(factory: &mut NodeFactory<'_>, key: &str, value: Expr) -> (Expr, Expr) {
    let (so_far, key) = (factory.accumulator(), factory.ident(key));
    let step = factory.call(INSERT, vec![so_far, key, value]);
    (factory.node(ExprKind::Map(Vec::new())), step)
}

fn entry(factory: &mut NodeFactory<'_>, _: &str, entry: Expr) -> (Expr, Expr) {
    let so_far = factory.accumulator();
    let step = factory.call(INSERT, vec![so_far, entry]);
    (factory.node(ExprKind::Map(Vec::new())), step)
}

fn transform(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    accumulate: Accumulate,
) -> Result<Expansion, MacroError> {
    match target_and_args(target, args) {
        Ok((range, [first, second, value])) => {
            transformation(factory, range, names(&first, &second)?, None, value, accumulate)
        }
        Err(unchanged) => Ok(unchanged),
    }
}

fn transform_if(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    accumulate: Accumulate,
) -> Result<Expansion, MacroError> {
    match target_and_args(target, args) {
        Ok((range, [first, second, condition, value])) => transformation(
            factory,
            range,
            names(&first, &second)?,
            Some(condition),
            value,
            accumulate,
        ),
        Err(unchanged) => Ok(unchanged),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as its callers answer")]
fn transformation(
    factory: &mut NodeFactory<'_>,
    range: Expr,
    names: Names,
    condition: Option<Expr>,
    value: Expr,
    accumulate: Accumulate,
) -> Result<Expansion, MacroError> {
    let (accu_init, step) = accumulate(factory, &names.0, value);
    let step = factory.step_if(condition, step);
    let condition = factory.bool(true);
    let result = factory.accumulator();
    let quantifier = Quantifier { accu_init, condition, step, result };
    Ok(comprehension(factory, range, names, quantifier))
}
