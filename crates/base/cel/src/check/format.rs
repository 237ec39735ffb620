//! Validation of literal `format` texts and their arguments.
//!
//! Rules: the validator of cel-go's `ext/formatting.go`, for the string library up to version 3.

use super::validate::{Rule, Validator};
use crate::library::strings::clause::Clause;
use crate::library::strings::error::ClauseError;
use crate::syntax::ast::{Expr, ExprKind, Literal};
use crate::types::Type;

/// Validates `target.format(list)`.
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
    match count_clauses(validator, text.as_bytes(), elements) {
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

/// A text does not match its arguments.
#[derive(Debug, thiserror::Error)]
enum FormatCheckError {
    /// The text ends with a percent sign.
    #[error("unexpected end of string")]
    EndOfText,
    /// The text has more clauses than arguments.
    #[error("index {index} out of range")]
    MissingArgument {
        /// The index of the first missing argument.
        index: usize,
    },
    /// The text has an invalid clause.
    #[error(transparent)]
    Clause(#[from] ClauseError),
    /// A clause does not accept its argument.
    #[error("error during formatting: {takes}, was given {given}")]
    Type {
        /// The position of the argument.
        at: u32,
        /// The types that the clause accepts.
        takes: &'static str,
        /// The type of the argument.
        given: String,
    },
}

impl FormatCheckError {
    /// The position, if it is not the whole call.
    const fn at(&self) -> Option<u32> {
        match self {
            Self::Type { at, .. } => Some(*at),
            _ => None,
        }
    }
}

/// Counts the clauses of a text.
fn count_clauses(
    validator: &Validator<'_>,
    text: &[u8],
    args: &[Expr],
) -> Result<usize, FormatCheckError> {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        if let [b'%', after @ ..] = rest {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(FormatCheckError::EndOfText);
        }
        let arg = args.get(count).ok_or(FormatCheckError::MissingArgument { index: count })?;
        count += 1;
        let (clause, read) = Clause::parse(rest)?;
        rest = &rest[read..];
        let Err((rejected, takes)) = check_argument(validator, clause, arg) else { continue };
        let given = validator.checked.type_of(rejected.id).name().to_owned();
        return Err(FormatCheckError::Type { at: rejected.at, takes, given });
    }
    Ok(count)
}

/// Checks that a clause accepts an argument. The error is the argument or its wrong element, and
/// the types that the clause accepts.
fn check_argument<'c>(
    validator: &Validator<'_>,
    clause: Clause,
    arg: &'c Expr,
) -> Result<(), (&'c Expr, &'static str)> {
    use Type::{Bool, Bytes, Double, Dyn, Int, String, Uint};
    let (is_accepted, takes) = match (clause, validator.checked.type_of(arg.id)) {
        (Clause::String, _) => {
            return check_text_argument(validator, arg).map_err(|rejected| {
                let takes = "string clause can only be used on strings, bools, bytes, ints, \
                             doubles, maps, lists, types, durations, and timestamps";
                (rejected, takes)
            });
        }
        (Clause::Decimal, cel_type) => {
            (matches!(cel_type, Dyn | Int | Uint), "decimal clause can only be used on integers")
        }
        // Strings may be "NaN" and "Infinity".
        (Clause::Fixed(_), cel_type) => (
            matches!(cel_type, Dyn | Double | String),
            "fixed-point clause can only be used on doubles",
        ),
        (Clause::Scientific(_), cel_type) => (
            matches!(cel_type, Dyn | Double | String),
            "scientific clause can only be used on doubles",
        ),
        (Clause::Binary, cel_type) => (
            matches!(cel_type, Dyn | Int | Uint | Bool),
            "only integers and bools can be formatted as binary",
        ),
        (Clause::Hex { .. }, cel_type) => (
            matches!(cel_type, Dyn | Int | Uint | String | Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
        (Clause::Octal, cel_type) => {
            (matches!(cel_type, Dyn | Int | Uint), "octal clause can only be used on integers")
        }
    };
    if is_accepted { Ok(()) } else { Err((arg, takes)) }
}

/// Checks that an argument, with all literals in it, can be formatted as text.
fn check_text_argument<'c>(validator: &Validator<'_>, arg: &'c Expr) -> Result<(), &'c Expr> {
    if matches!(
        validator.checked.type_of(arg.id),
        Type::Any | Type::Error | Type::Opaque(_) | Type::Object(_) | Type::Param(_) | Type::Var(_)
    ) {
        return Err(arg);
    }
    match &arg.kind {
        ExprKind::List { elements, .. } => {
            elements.iter().try_for_each(|element| check_text_argument(validator, element))
        }
        ExprKind::Map(entries) => entries.iter().try_for_each(|entry| {
            check_text_argument(validator, &entry.key)?;
            check_text_argument(validator, &entry.value)
        }),
        _ => Ok(()),
    }
}
