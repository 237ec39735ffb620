//! Texts of `format` that are written out, against arguments that are.
//!
//! Rules: the validator of cel-go's `ext/formatting.go`, that of its string library up to
//! version 3.

use super::validate::{Rule, Validator};
use crate::library::strings::clause::Clause;
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
        Err((at, message)) => validator.issue(Rule::Format, at.unwrap_or(call.at), message),
    }
}

/// Counts the arguments that a text asks for.
fn clauses(
    validator: &Validator<'_>,
    text: &[u8],
    args: &[Expr],
) -> Result<usize, (Option<u32>, String)> {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        if let [b'%', after @ ..] = rest {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err((None, "unexpected end of string".to_owned()));
        }
        let arg = args.get(count).ok_or_else(|| (None, format!("index {count} out of range")))?;
        count += 1;
        let (clause, read) = Clause::read(rest).map_err(|message| (None, message))?;
        rest = &rest[read..];
        let Err((wrong, takes)) = takes(validator, clause, arg) else { continue };
        let given = validator.checked.type_of(wrong.id).name();
        return Err((
            Some(wrong.at),
            format!("error during formatting: {takes}, was given {given}"),
        ));
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
