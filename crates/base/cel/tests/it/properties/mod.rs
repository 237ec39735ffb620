//! Properties of random expressions.

mod accepted;
mod budget;
mod generate;
mod literals;
mod printed;
mod random;
mod robust;

use crate::libraries;
use generate::Generator;
use mainstay_cel::check::CheckedExpression;
use mainstay_cel::library::Overload;
use mainstay_cel::syntax::ast::{Expr, ExprKind};
use mainstay_cel::types::Type;
use mainstay_cel::value::{MapKey, MapValue, Value};
use mainstay_cel::{CostBudget, Env, Program, cost};

/// Runs a function on a thread with this stack size.
fn run_on_stack(stack: usize, run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(stack).spawn(run).unwrap().join().unwrap();
}

/// The cost limit.
const COST_LIMIT: u64 = 100_000;

/// Parses, checks, estimates, evaluates and prints an expression, as far as possible.
fn attempt(text: &str) {
    thread_local!(static ENV: Env = libraries::kubernetes()
        .with_variable("self", Type::Dyn)
        .with_variable("x", Type::Dyn)
        .with_variable("y", Type::map(Type::String, Type::Int)));
    ENV.with(|env| {
        let checked = match env.compile(text) {
            Ok(checked) => checked,
            Err(issues) => {
                let _ = issues.to_string();
                return;
            }
        };
        let _ = cost::estimate(&checked, &Unknown);
        if let Ok(program) = Program::new(&checked) {
            let x = Value::list(vec![Value::Int(1), Value::text("a")]);
            let _ = program.eval(&[("x", x)], &mut CostBudget::new(COST_LIMIT));
        }
    });
}

/// No known sizes.
struct Unknown;

impl cost::SizeEstimator for Unknown {
    fn size(&self, _: &[&str]) -> Option<(u64, u64)> {
        None
    }
}

/// A variable of every simple type.
fn variables() -> Vec<(&'static str, Type)> {
    vec![
        ("i", Type::Int),
        ("u", Type::Uint),
        ("d", Type::Double),
        ("s", Type::String),
        ("b", Type::Bool),
        ("y", Type::Bytes),
        ("ints", Type::list(Type::Int)),
        ("texts", Type::list(Type::String)),
        ("map", Type::map(Type::String, Type::Int)),
    ]
}

/// The values of the variables.
fn values() -> Vec<(&'static str, Value<'static>)> {
    let texts = ["a", "bb", "ä"].map(Value::text).to_vec();
    let entries =
        [("a", 1), ("b", 2)].map(|(key, value)| (MapKey::String(key.into()), Value::Int(value)));
    vec![
        ("i", Value::Int(3)),
        ("u", Value::Uint(4)),
        ("d", Value::Double(1.5)),
        ("s", Value::text("hello")),
        ("b", Value::Bool(true)),
        ("y", Value::Bytes(b"abc".to_vec().into())),
        ("ints", Value::list(vec![Value::Int(3), Value::Int(1)])),
        ("texts", Value::list(texts)),
        ("map", Value::Map(MapValue::of(entries.into_iter().collect()))),
    ]
}

/// All functions of an environment whose arguments have literals. Authorizers have none.
fn functions(env: &Env) -> Vec<Overload> {
    env.functions()
        .filter(|overload| !format!("{:?}", overload.params).contains("authorization"))
        .map(|overload| Overload::clone(overload))
        .collect()
}

/// Calls `see` with `count` expressions that the checker accepts in Kubernetes' environment.
fn for_accepted(seed: u64, count: usize, see: impl Fn(&str, &CheckedExpression)) {
    let mut env = libraries::kubernetes();
    for (name, cel_type) in variables() {
        env = env.with_variable(name, cel_type);
    }
    let functions = functions(&env);
    let mut generator = Generator::new(seed, &functions, &variables());
    let mut accepted = 0;
    for _ in 0..count {
        let cel_type = generator.any_type(2);
        let depth = 1 + generator.random.below(4);
        let text = generator.expression(&cel_type, depth);
        // Invalid constant arguments, such as patterns, are rejected here too.
        if let Ok(checked) = env.compile(&text) {
            accepted += 1;
            see(&text, &checked);
        }
    }
    assert!(accepted * 2 > count, "of {count} only {accepted} are accepted");
}

/// The children of a node.
fn children(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => Vec::new(),
        ExprKind::Select { operand, .. } => vec![operand],
        ExprKind::Call { target, args, .. } => target.as_deref().into_iter().chain(args).collect(),
        ExprKind::List { elements, .. } => elements.iter().collect(),
        ExprKind::Map(entries) => {
            entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect()
        }
        ExprKind::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
        ExprKind::Comprehension(comprehension) => {
            vec![
                &comprehension.range,
                &comprehension.accu_init,
                &comprehension.condition,
                &comprehension.step,
                &comprehension.result,
            ]
        }
    }
}
