//! Macros of Kubernetes' environment.

mod bind;
mod standard;
mod two_variables;

pub use bind::{BIND, OPTIONAL};
pub use standard::STANDARD;
pub(crate) use standard::map;
pub use two_variables::TWO_VARIABLES;

use super::ast::{Expr, ExprKind};
use super::{ACCUMULATOR, ExpandMacro, Expansion, Macro, MacroError};
use std::sync::Arc;

/// The accumulator variable of older versions, which is still reserved.
const OLD_ACCUMULATOR: &str = "__result__";

const fn method(name: &'static str, args: usize, expand: ExpandMacro) -> Macro {
    Macro { name, receiver: true, args: Some(args), expand }
}

/// The name in an argument, if it is an identifier.
fn name_of(expr: &Expr) -> Option<&Arc<str>> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name),
        _ => None,
    }
}

/// The variable of a macro: any simple name except the accumulator.
fn variable(arg: &Expr, message: &str) -> Result<Arc<str>, MacroError> {
    let name = name_of(arg).ok_or_else(|| macro_error(arg, message))?;
    check_not_accumulator(arg, name)?;
    Ok(Arc::clone(name))
}

fn check_not_accumulator(arg: &Expr, name: &str) -> Result<(), MacroError> {
    if [ACCUMULATOR, OLD_ACCUMULATOR].contains(&name) {
        return Err(macro_error(arg, "iteration variable overwrites accumulator variable"));
    }
    Ok(())
}

fn macro_error(arg: &Expr, message: &str) -> MacroError {
    MacroError { at: arg.at, message: message.to_owned() }
}

/// The target and arguments of a method. If their number is wrong, the call stays as it is.
fn target_and_args<const N: usize>(
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<(Expr, [Expr; N]), Expansion> {
    match (target, <[Expr; N]>::try_from(args)) {
        (Some(target), Ok(args)) => Ok((target, args)),
        (target, Ok(args)) => Err(Expansion::Unchanged(target, args.into())),
        (target, Err(args)) => Err(Expansion::Unchanged(target, args)),
    }
}
