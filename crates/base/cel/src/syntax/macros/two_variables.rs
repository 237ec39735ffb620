//! Loops over lists with their indices and over maps with keys and values (cel-go's
//! `ext/comprehensions.go`).

use super::standard::{Quantifier, every, one, some};
use super::{method, name_of, not_accumulator, parts, refusal};
use crate::syntax::ast::{Comprehension, Expr, ExprKind};
use crate::syntax::{ACCUMULATOR, Expanded, Macro, Maker, Refusal};
use std::sync::Arc;

/// The macros with two variables.
pub const TWO_VARIABLES: &[Macro] = &[
    method("all", 3, all),
    method("exists", 3, exists),
    method("existsOne", 3, exists_one),
    method("exists_one", 3, exists_one),
    method("transformList", 3, |make, target, args| transform(make, target, args, list)),
    method("transformList", 4, |make, target, args| transform_if(make, target, args, list)),
    method("transformMap", 3, |make, target, args| transform(make, target, args, map)),
    method("transformMap", 4, |make, target, args| transform_if(make, target, args, map)),
    method("transformMapEntry", 3, |make, target, args| transform(make, target, args, entry)),
    method("transformMapEntry", 4, |make, target, args| transform_if(make, target, args, entry)),
];

/// The function that a map is gathered with.
const INSERT: &str = "cel.@mapInsert";

type Names = (Arc<str>, Arc<str>);

fn names(first: &Expr, second: &Expr) -> Result<Names, Refusal> {
    let name = |arg| name_of(arg).ok_or_else(|| refusal(arg, "argument must be a simple name"));
    let names = (name(first)?, name(second)?);
    if names.0 == names.1 {
        return Err(refusal(second, &format!("duplicate variable name: {}", names.0)));
    }
    not_accumulator(first, names.0)?;
    not_accumulator(second, names.1)?;
    Ok((Arc::clone(names.0), Arc::clone(names.1)))
}

fn comprehension(make: &mut Maker<'_>, range: Expr, names: Names, how: Quantifier) -> Expanded {
    let accu_var = make.name(ACCUMULATOR);
    Expanded::Instead(make.comprehension(Comprehension {
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
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    how: fn(&mut Maker<'_>, Expr) -> Quantifier,
) -> Result<Expanded, Refusal> {
    let (range, [first, second, predicate]) = match parts(target, args) {
        Ok(parts) => parts,
        Err(stays) => return Ok(stays),
    };
    let names = names(&first, &second)?;
    let how = how(make, predicate);
    Ok(comprehension(make, range, names, how))
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

/// What a transformation begins with and how it gathers a value under the first name.
type Gather = fn(&mut Maker<'_>, &str, Expr) -> (Expr, Expr);

fn list(make: &mut Maker<'_>, _: &str, value: Expr) -> (Expr, Expr) {
    let step = make.append(value);
    (make.list(Vec::new()), step)
}

fn map(make: &mut Maker<'_>, key: &str, value: Expr) -> (Expr, Expr) {
    let (so_far, key) = (make.accumulator(), make.ident(key));
    let step = make.call(INSERT, vec![so_far, key, value]);
    (make.node(ExprKind::Map(Vec::new())), step)
}

fn entry(make: &mut Maker<'_>, _: &str, entry: Expr) -> (Expr, Expr) {
    let so_far = make.accumulator();
    let step = make.call(INSERT, vec![so_far, entry]);
    (make.node(ExprKind::Map(Vec::new())), step)
}

fn transform(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    gather: Gather,
) -> Result<Expanded, Refusal> {
    match parts(target, args) {
        Ok((range, [first, second, value])) => {
            transformed(make, range, names(&first, &second)?, None, value, gather)
        }
        Err(stays) => Ok(stays),
    }
}

fn transform_if(
    make: &mut Maker<'_>,
    target: Option<Expr>,
    args: Vec<Expr>,
    gather: Gather,
) -> Result<Expanded, Refusal> {
    match parts(target, args) {
        Ok((range, [first, second, condition, value])) => {
            transformed(make, range, names(&first, &second)?, Some(condition), value, gather)
        }
        Err(stays) => Ok(stays),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as its callers answer")]
fn transformed(
    make: &mut Maker<'_>,
    range: Expr,
    names: Names,
    condition: Option<Expr>,
    value: Expr,
    gather: Gather,
) -> Result<Expanded, Refusal> {
    let (accu_init, step) = gather(make, &names.0, value);
    let step = make.step_if(condition, step);
    let condition = make.bool(true);
    let result = make.accumulator();
    let how = Quantifier { accu_init, condition, step, result };
    Ok(comprehension(make, range, names, how))
}
