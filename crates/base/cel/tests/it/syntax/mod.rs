//! The parser: trees, errors, and text again.

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

/// Reads a text as Kubernetes does.
fn parse(text: &str) -> Result<ParsedExpression, Issues> {
    let macros = all_macros();
    let options =
        Options { macros: &macros[..macros.len() - 1], optional: true, quoted_names: false };
    syntax::parse(text, &options)
}

/// Reads a text with all there is.
fn parse_all(text: &str) -> Result<ParsedExpression, Issues> {
    let macros = all_macros();
    syntax::parse(text, &Options { macros: &macros, optional: true, quoted_names: true })
}

/// Reads a text by the standard only.
fn parse_standard(text: &str) -> Result<ParsedExpression, Issues> {
    let options = Options { macros: macros::STANDARD, optional: false, quoted_names: false };
    syntax::parse(text, &options)
}

/// What is wrong, each with its line and column.
fn errors(issues: &Issues) -> Vec<String> {
    let line = |issue: &mainstay_cel::CompileIssue| {
        let (line, column) = issue.at.map_or((-1, -1), |at| (i64::from(at.line), at.column));
        format!("{line}:{column} {}", issue.message)
    };
    issues.iter().map(line).collect()
}

/// A tree as cel-go shows it for debugging, on one line.
fn shown(expr: &Expr) -> String {
    let list = |of: &[Expr]| of.iter().map(shown).collect::<Vec<_>>().join(",");
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
            format!("{}.{field}{}", shown(operand), if *test_only { "~test-only~" } else { "" })
        }
        ExprKind::Call { function, target, args } => {
            let target = target.as_ref().map(|target| shown(target) + ".").unwrap_or_default();
            format!("{target}{function}({})", list(args))
        }
        ExprKind::List { elements, .. } => format!("[{}]", list(elements)),
        ExprKind::Map(entries) => {
            let entry = |it: &syntax::ast::MapEntry| {
                format!("{}{}:{}", mark(it.optional), shown(&it.key), shown(&it.value))
            };
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(","))
        }
        ExprKind::Struct { name, fields } => {
            let field = |it: &syntax::ast::FieldEntry| {
                format!("{}{}:{}", mark(it.optional), it.field, shown(&it.value))
            };
            format!("{name}{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(","))
        }
        ExprKind::Comprehension(it) => {
            let second = it.iter_var2.as_ref().map(|name| format!("{name},")).unwrap_or_default();
            format!(
                "__comprehension__({},{second}{},{},{},{},{},{})",
                it.iter_var,
                shown(&it.range),
                it.accu_var,
                shown(&it.accu_init),
                shown(&it.condition),
                shown(&it.step),
                shown(&it.result),
            )
        }
    }
}
