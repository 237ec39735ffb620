//! Loops over lists with their indices and over maps with keys and values (cel-go's
//! `ext/comprehensions.go`).

use super::standard::{Quantifier, every, one, some};
use super::{method, name_of, not_accumulator, parts, refusal};
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

/// The function that a map is gathered with.
const INSERT: &str = "cel.@mapInsert";

type Names = (Arc<str>, Arc<str>);

fn names(first: &Expr, second: &Expr) -> Result<Names, MacroError> {
    let name = |arg| name_of(arg).ok_or_else(|| refusal(arg, "argument must be a simple name"));
    let names = (name(first)?, name(second)?);
    if names.0 == names.1 {
        return Err(refusal(second, &format!("duplicate variable name: {}", names.0)));
    }
    not_accumulator(first, names.0)?;
    not_accumulator(second, names.1)?;
    Ok((Arc::clone(names.0), Arc::clone(names.1)))
}

fn comprehension(
    factory: &mut NodeFactory<'_>,
    range: Expr,
    names: Names,
    how: Quantifier,
) -> Expansion {
    let accu_var = factory.name(ACCUMULATOR);
    Expansion::Replacement(factory.comprehension(Comprehension {
        range,
        iter_var: names.0,
        iter_var2: Some(names.1),
        accu_var,
        accu_init: how.accu_init,
        condition: how.condition,
        step: how.step,
        result: how.result,
    }))
}

fn quantified(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    how: fn(&mut NodeFactory<'_>, Expr) -> Quantifier,
) -> Result<Expansion, MacroError> {
    let (range, [first, second, predicate]) = match parts(target, args) {
        Ok(parts) => parts,
        Err(unchanged) => return Ok(unchanged),
    };
    let names = names(&first, &second)?;
    let how = how(factory, predicate);
    Ok(comprehension(factory, range, names, how))
}

fn all(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    quantified(factory, target, args, every)
}

fn exists(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    quantified(factory, target, args, some)
}

fn exists_one(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<Expansion, MacroError> {
    quantified(factory, target, args, one)
}

/// What a transformation begins with and how it gathers a value under the first name.
type Gather = fn(&mut NodeFactory<'_>, &str, Expr) -> (Expr, Expr);

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
    gather: Gather,
) -> Result<Expansion, MacroError> {
    match parts(target, args) {
        Ok((range, [first, second, value])) => {
            transformed(factory, range, names(&first, &second)?, None, value, gather)
        }
        Err(unchanged) => Ok(unchanged),
    }
}

fn transform_if(
    factory: &mut NodeFactory<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    gather: Gather,
) -> Result<Expansion, MacroError> {
    match parts(target, args) {
        Ok((range, [first, second, condition, value])) => {
            transformed(factory, range, names(&first, &second)?, Some(condition), value, gather)
        }
        Err(unchanged) => Ok(unchanged),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as its callers answer")]
fn transformed(
    factory: &mut NodeFactory<'_>,
    range: Expr,
    names: Names,
    condition: Option<Expr>,
    value: Expr,
    gather: Gather,
) -> Result<Expansion, MacroError> {
    let (accu_init, step) = gather(factory, &names.0, value);
    let step = factory.step_if(condition, step);
    let condition = factory.bool(true);
    let result = factory.accumulator();
    let how = Quantifier { accu_init, condition, step, result };
    Ok(comprehension(factory, range, names, how))
}
