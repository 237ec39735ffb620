//! The parser and the printer.

mod hostile;
mod print;
mod recorded;
mod trees;

use mainstay_cel::Issues;
use mainstay_cel::syntax::ast::{Expr, ExprKind, Literal, ParsedExpression};
use mainstay_cel::syntax::{self, Macro, Options, macros};

/// The macros of Kubernetes' environment, then `cel.bind`.
fn all_macros() -> Vec<Macro> {
    [macros::STANDARD, macros::OPTIONAL, macros::TWO_VARIABLES, macros::BIND].concat()
}

/// Parses a text with Kubernetes' options.
fn parse(text: &str) -> Result<ParsedExpression, Issues> {
    let macros = all_macros();
    let options =
        Options { macros: &macros[..macros.len() - 1], optional: true, quoted_names: false };
    syntax::parse(text, &options)
}

/// Parses a text with all options and macros.
fn parse_all(text: &str) -> Result<ParsedExpression, Issues> {
    let macros = all_macros();
    syntax::parse(text, &Options { macros: &macros, optional: true, quoted_names: true })
}

/// Parses a text with standard CEL only.
fn parse_standard(text: &str) -> Result<ParsedExpression, Issues> {
    let options = Options { macros: macros::STANDARD, optional: false, quoted_names: false };
    syntax::parse(text, &options)
}

/// The errors with their lines and columns.
fn errors(issues: &Issues) -> Vec<String> {
    let line = |issue: &mainstay_cel::CompileIssue| {
        let (line, column) = issue.at.map_or((-1, -1), |at| (i64::from(at.line), at.column));
        format!("{line}:{column} {}", issue.message)
    };
    issues.iter().map(line).collect()
}

/// A tree in cel-go's debug form, on one line.
fn debug_text(expr: &Expr) -> String {
    let list = |of: &[Expr]| of.iter().map(debug_text).collect::<Vec<_>>().join(",");
    let mark = |optional: bool| if optional { "?" } else { "" };
    match &expr.kind {
        ExprKind::Literal(literal) => match literal {
            Literal::Null => "null".to_owned(),
            Literal::Bool(value) => value.to_string(),
            Literal::Int(value) => value.to_string(),
            Literal::Uint(value) => format!("{value}u"),
            Literal::Double(value) => value.to_string(),
            Literal::String(value) => format!("{value:?}"),
            Literal::Bytes(value) => format!("b\"{}\"", value.escape_ascii()),
        },
        ExprKind::Ident(name) => name.to_string(),
        ExprKind::Select { operand, field, test_only } => {
            format!(
                "{}.{field}{}",
                debug_text(operand),
                if *test_only { "~test-only~" } else { "" }
            )
        }
        ExprKind::Call { function, target, args } => {
            let target = target.as_ref().map(|target| debug_text(target) + ".").unwrap_or_default();
            format!("{target}{function}({})", list(args))
        }
        ExprKind::List { elements, .. } => format!("[{}]", list(elements)),
        ExprKind::Map(entries) => {
            let entry = |entry: &syntax::ast::MapEntry| {
                format!(
                    "{}{}:{}",
                    mark(entry.optional),
                    debug_text(&entry.key),
                    debug_text(&entry.value)
                )
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(","))
        }
        ExprKind::Struct { name, fields } => {
            let field = |field: &syntax::ast::FieldEntry| {
                format!("{}{}:{}", mark(field.optional), field.field, debug_text(&field.value))
            };
            format!("{name}{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        ExprKind::Comprehension(comprehension) => {
            let second =
                comprehension.iter_var2.as_ref().map(|name| format!("{name},")).unwrap_or_default();
            format!(
                "__comprehension__({},{second}{},{},{},{},{},{})",
                comprehension.iter_var,
                debug_text(&comprehension.range),
                comprehension.accu_var,
                debug_text(&comprehension.accu_init),
                debug_text(&comprehension.condition),
                debug_text(&comprehension.step),
                debug_text(&comprehension.result),
            )
        }
    }
}
