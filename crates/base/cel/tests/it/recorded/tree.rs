//! Trees as one line of text with the position of each node, the form of the recordings.

use crate::tagged;
use mainstay_cel::syntax::ast::{Expr, ExprKind, Literal};
use mainstay_cel::value::{BytesValue, StringValue, Value};
use std::fmt::Write;

/// A tree as `(call@2 _+_ a@0 1@4)`.
pub(crate) fn text(of: &Expr) -> String {
    let mut text = String::new();
    write(&mut text, of);
    text
}

fn write(out: &mut String, of: &Expr) {
    let at = of.at;
    match &of.kind {
        ExprKind::Literal(literal) => {
            let _ = write!(out, "{}@{at}", tagged::write(&value(literal)));
            return;
        }
        ExprKind::Ident(name) => {
            let _ = write!(out, "{name}@{at}");
            return;
        }
        ExprKind::Select { operand, field, test_only } => {
            let _ = write!(out, "({}@{at} ", if *test_only { "has" } else { "sel" });
            write(out, operand);
            let _ = write!(out, " {field}");
        }
        ExprKind::Call { function, target, args } => {
            let kind = if target.is_some() { "method" } else { "call" };
            let _ = write!(out, "({kind}@{at} {function}");
            for part in target.iter().map(|target| &**target).chain(args) {
                out.push(' ');
                write(out, part);
            }
        }
        ExprKind::List { elements, optional } => {
            let _ = write!(out, "(list@{at}");
            for (index, element) in elements.iter().enumerate() {
                let index = u32::try_from(index).unwrap();
                out.push_str(if optional.contains(&index) { " ?" } else { " " });
                write(out, element);
            }
        }
        ExprKind::Map(entries) => {
            let _ = write!(out, "(map@{at}");
            for entry in entries {
                let mark = if entry.optional { " ?" } else { "" };
                let _ = write!(out, " (entry@{}{mark} ", entry.at);
                write(out, &entry.key);
                out.push(' ');
                write(out, &entry.value);
                out.push(')');
            }
        }
        ExprKind::Struct { name, fields } => {
            let _ = write!(out, "(message@{at} {name}");
            for field in fields {
                let mark = if field.optional { " ?" } else { "" };
                let _ = write!(out, " (field@{}{mark} {} ", field.at, field.field);
                write(out, &field.value);
                out.push(')');
            }
        }
        ExprKind::Comprehension(of) => {
            let _ = write!(out, "(loop@{at} {}", of.iter_var);
            if let Some(second) = &of.iter_var2 {
                let _ = write!(out, " {second}");
            }
            let _ = write!(out, " {}", of.accu_var);
            for part in [&of.range, &of.accu_init, &of.condition, &of.step, &of.result] {
                out.push(' ');
                write(out, part);
            }
        }
    }
    out.push(')');
}

fn value(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(bool) => Value::Bool(*bool),
        Literal::Int(int) => Value::Int(*int),
        Literal::Uint(uint) => Value::Uint(*uint),
        Literal::Double(double) => Value::Double(*double),
        Literal::String(text) => Value::String(StringValue::Borrowed(text)),
        Literal::Bytes(bytes) => Value::Bytes(BytesValue::Borrowed(bytes)),
    }
}
