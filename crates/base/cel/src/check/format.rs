//! Texts of `format` that are written out, against arguments that are.
//!
//! Rules: the validator of cel-go's `ext/formatting.go`, that of its string library up to
//! version 3.

use super::validate::{Rule, Validator};
use crate::library::strings::clause::Clause;
use crate::library::strings::error::ClauseError;
use crate::syntax::ast::{Expr, ExprKind, Literal};
use crate::types::Type;

/// Looks at `target.format(list)`.
pub(super) fn validate<'c>(
    validator: &mut Validator<'c>,
    call: &'c Expr,
    target: &'c Expr,
    list: &'c Expr,
) {
    let (ExprKind::Literal(Literal::String(text)), ExprKind::List { elements, .. }) =
        (&target.kind, &list.kind)
    else {
        return;
    };
    match clauses(validator, text.as_bytes(), elements) {
        Ok(count) if elements.len() > count => {
            let message = format!(
                "too many arguments supplied to string.format (expected {count}, got {})",
                elements.len()
            );
            validator.issue(Rule::Format, call.at, message);
        }
        Ok(_) => {}
        Err(error) => {
            let at = error.at().unwrap_or(call.at);
            validator.issue(Rule::Format, at, error.to_string());
        }
    }
}

/// A text does not fit its arguments.
#[derive(Debug, thiserror::Error)]
enum FitError {
    /// It ends in a percent sign.
    #[error("unexpected end of string")]
    End,
    /// It asks for more arguments than there are.
    #[error("index {index} out of range")]
    NoArgument {
        /// The place of the first that is missing.
        index: usize,
    },
    /// It has something that is no clause.
    #[error(transparent)]
    Clause(#[from] ClauseError),
    /// A clause does not take its argument.
    #[error("error during formatting: {takes}, was given {given}")]
    Type {
        /// Where the argument is.
        at: u32,
        /// What the clause takes.
        takes: &'static str,
        /// The type of the argument.
        given: String,
    },
}

impl FitError {
    /// Where it is, if that is not the whole call.
    const fn at(&self) -> Option<u32> {
        match self {
            Self::Type { at, .. } => Some(*at),
            _ => None,
        }
    }
}

/// Counts the arguments that a text asks for.
fn clauses(validator: &Validator<'_>, text: &[u8], args: &[Expr]) -> Result<usize, FitError> {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        if let [b'%', after @ ..] = rest {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(FitError::End);
        }
        let arg = args.get(count).ok_or(FitError::NoArgument { index: count })?;
        count += 1;
        let (clause, read) = Clause::read(rest)?;
        rest = &rest[read..];
        let Err((wrong, takes)) = takes(validator, clause, arg) else { continue };
        let given = validator.checked.type_of(wrong.id).name().to_owned();
        return Err(FitError::Type { at: wrong.at, takes, given });
    }
    Ok(count)
}

/// Whether a clause takes an argument; the argument (or what in it) that it does not take, and
/// what it would.
fn takes<'c>(
    validator: &Validator<'_>,
    clause: Clause,
    arg: &'c Expr,
) -> Result<(), (&'c Expr, &'static str)> {
    use Type::{Bool, Bytes, Double, Dyn, Int, String, Uint};
    let (taken, takes) = match (clause, validator.checked.type_of(arg.id)) {
        (Clause::String, _) => {
            return writable(validator, arg).map_err(|wrong| {
                let takes = "string clause can only be used on strings, bools, bytes, ints, \
                             doubles, maps, lists, types, durations, and timestamps";
                (wrong, takes)
            });
        }
        (Clause::Decimal, of) => {
            (matches!(of, Dyn | Int | Uint), "decimal clause can only be used on integers")
        }
        // Strings may be "NaN" and "Infinity".
        (Clause::Fixed(_), of) => {
            (matches!(of, Dyn | Double | String), "fixed-point clause can only be used on doubles")
        }
        (Clause::Scientific(_), of) => {
            (matches!(of, Dyn | Double | String), "scientific clause can only be used on doubles")
        }
        (Clause::Binary, of) => (
            matches!(of, Dyn | Int | Uint | Bool),
            "only integers and bools can be formatted as binary",
        ),
        (Clause::Hex { .. }, of) => (
            matches!(of, Dyn | Int | Uint | String | Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        (Clause::Octal, of) => {
            (matches!(of, Dyn | Int | Uint), "octal clause can only be used on integers")
        }
    };
    if taken { Ok(()) } else { Err((arg, takes)) }
}

/// Whether an argument, and all that is written out in it, can be written as text.
fn writable<'c>(validator: &Validator<'_>, arg: &'c Expr) -> Result<(), &'c Expr> {
    if matches!(
        validator.checked.type_of(arg.id),
        Type::Any | Type::Error | Type::Opaque(_) | Type::Object(_) | Type::Param(_) | Type::Var(_)
    ) {
        return Err(arg);
    }
    match &arg.kind {
        ExprKind::List { elements, .. } => {
            elements.iter().try_for_each(|element| writable(validator, element))
        }
        ExprKind::Map(entries) => entries.iter().try_for_each(|entry| {
            writable(validator, &entry.key)?;
            writable(validator, &entry.value)
        }),
        _ => Ok(()),
    }
}
