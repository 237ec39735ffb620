//! The type checker: types and errors of expressions.
//!
//! All results are those of cel-go 0.26 with Kubernetes 1.35's libraries, unless a test says that
//! the rule is our own.

mod errors;
mod limits;
mod literals;
mod names;
mod objects;
mod types;

use mainstay_cel::Env;
use mainstay_cel::types::Type;

/// Kubernetes' environment with variables of all types.
fn env() -> Env {
    let strings = || Type::list(Type::String);
    [
        ("i", Type::Int),
        ("u", Type::Uint),
        ("d", Type::Double),
        ("s", Type::String),
        ("b", Type::Bool),
        ("y", Type::Bytes),
        ("n", Type::Null),
        ("ts", Type::Timestamp),
        ("du", Type::Duration),
        ("x", Type::Dyn),
        ("li", Type::list(Type::Int)),
        ("ls", strings()),
        ("ld", Type::list(Type::Dyn)),
        ("mss", Type::map(Type::String, Type::String)),
        ("msl", Type::map(Type::String, strings())),
        ("mis", Type::map(Type::Int, Type::String)),
        ("o", Type::optional(Type::Int)),
        ("a.b", Type::Int),
        ("a.b.c", Type::String),
    ]
    .into_iter()
    .fold(Env::kubernetes(34), |env, (name, of)| env.with_variable(name, of))
}

/// The type of an expression, or its errors as `line:column: message`, joined by `; `.
fn type_or_errors(env: &Env, expression: &str) -> String {
    match env.compile(expression) {
        Ok(checked) => checked.output().to_string(),
        Err(issues) => issues
            .iter()
            .map(|issue| match issue.at {
                Some(at) => format!("{}:{}: {}", at.line, at.column + 1, issue.message),
                None => issue.message.clone(),
            })
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// Checks each expression and reports all differences.
fn check_table(env: &Env, rows: &[(&str, &str)]) {
    let differences: Vec<_> = rows
        .iter()
        .map(|(expression, expected)| (expression, expected, type_or_errors(env, expression)))
        .filter(|(_, expected, found)| *expected != found)
        .map(|(expression, expected, found)| {
            format!("{expression}\n  expected {expected}\n  found    {found}")
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
