//! The macros that Kubernetes knows.

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

/// The name that older versions gave to what macros gather; still refused as a variable.
const OLD_ACCUMULATOR: &str = "__result__";

const fn method(name: &'static str, args: usize, expand: ExpandMacro) -> Macro {
    Macro { name, receiver: true, args: Some(args), expand }
}

/// The name that an argument is, if it is one.
fn name_of(expr: &Expr) -> Option<&Arc<str>> {
    match &expr.kind {
        ExprKind::Ident(name) => Some(name),
        _ => None,
    }
}

/// A macro's variable, which may be every simple name but those for its own use.
fn variable(arg: &Expr, no_name: &str) -> Result<Arc<str>, MacroError> {
    let name = name_of(arg).ok_or_else(|| refusal(arg, no_name))?;
    not_accumulator(arg, name)?;
    Ok(Arc::clone(name))
}

fn not_accumulator(arg: &Expr, name: &str) -> Result<(), MacroError> {
    if [ACCUMULATOR, OLD_ACCUMULATOR].contains(&name) {
        return Err(refusal(arg, "iteration variable overwrites accumulator variable"));
    }
    Ok(())
}

fn refusal(arg: &Expr, message: &str) -> MacroError {
    MacroError { at: arg.at, message: message.to_owned() }
}

/// A method's target and its arguments. Macros are only asked with what they say they take, so the
/// call stays what it is where that is not so.
fn parts<const N: usize>(
    target: Option<Expr>,
    args: Vec<Expr>,
) -> Result<(Expr, [Expr; N]), Expansion> {
    match (target, <[Expr; N]>::try_from(args)) {
        (Some(target), Ok(args)) => Ok((target, args)),
        (target, Ok(args)) => Err(Expansion::Unchanged(target, args.into())),
        (target, Err(args)) => Err(Expansion::Unchanged(target, args)),
    }
}
