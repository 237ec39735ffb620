//! The type checker: what expressions are, and what is wrong with them.
//!
//! Every answer is that of cel-go 0.26 with Kubernetes 1.35's libraries, unless a test says that
//! the rule is our own.

mod limits;
mod literals;
mod names;
mod objects;
mod refusals;
mod types;

use mainstay_cel::Env;
use mainstay_cel::types::Type;

/// Kubernetes' environment with variables of all kinds.
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

/// The type of an expression, or `line:column: message` of all that is wrong, joined by `; `.
fn answer(env: &Env, expression: &str) -> String {
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

/// Asks for each expression and shows all that are answered otherwise.
fn table(env: &Env, rows: &[(&str, &str)]) {
    let wrong: Vec<_> = rows
        .iter()
        .map(|(expression, wanted)| (expression, wanted, answer(env, expression)))
        .filter(|(_, wanted, found)| *wanted != found)
        .map(|(expression, wanted, found)| {
            format!("{expression}\n  wanted {wanted}\n  found  {found}")
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
