//! Limits of the checker against hostile expressions. These rules are our own: cel-go uses
//! unlimited time and memory.

use super::env;
use mainstay_cel::cost::{SizeEstimator, estimate};
use mainstay_cel::library::{FunctionLibrary, optional, standard};
use mainstay_cel::syntax::macros;
use mainstay_cel::{Env, EnvOptions};
use std::fmt::Write as _;

static BIND: FunctionLibrary =
    FunctionLibrary { name: "bind", overloads: Vec::new, macros: macros::BIND, types: Vec::new };

fn env_with_bind() -> Env {
    let libraries = [&standard::LIBRARY, &optional::LIBRARY, &BIND];
    Env::new(&libraries, EnvOptions::default())
}

/// Binds `v0` to `v(count)`, each computed from the one before it.
fn chain(first: &str, count: usize, next: impl Fn(&str) -> String, last: &str) -> String {
    let mut text = format!("cel.bind(v0, {first}, ");
    for number in 1..=count {
        let value = next(&format!("v{}", number - 1));
        let _ = write!(text, "cel.bind(v{number}, {value}, ");
    }
    text + last + &")".repeat(count + 1)
}

#[test]
fn exponentially_growing_types_are_errors() {
    for last in ["1", "v40", "v40 == v40", "v40 + 1", "[v40, 1]"] {
        let text = chain("{1: 1}", 40, |v| format!("{{{v}: {v}}}"), last);
        let issues = env_with_bind().compile(&text).unwrap_err();
        assert!(issues.to_string().contains("types are too large or nested too deeply"), "{last}");
    }
    for last in ["v40", "v0 == v40"] {
        let text = chain("[]", 40, |v| format!("[{{{v}: {v}}}, {{}}]"), last);
        assert!(env_with_bind().compile(&text).is_err(), "{last}");
    }
}

#[test]
fn too_deep_types_are_errors() {
    let nested = |v: &str| format!("{}{v}{}", "[".repeat(150), "]".repeat(150));
    for last in ["1", "v60 == v60", "v60 + 1"] {
        assert!(env_with_bind().compile(&chain("1", 60, nested, last)).is_err(), "{last}");
    }
    let with_free_types =
        |v: &str| format!("{}{v}{} == [[]] ? [] : []", "[".repeat(20), "]".repeat(20));
    let _ = env_with_bind().compile(&chain("[]", 60, with_free_types, "v60"));
}

#[test]
fn large_expressions_are_accepted() {
    let list = format!("[{}]", vec!["[{'a': 1}]"; 5000].join(", "));
    assert!(env().compile(&list).is_ok());
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(env().compile(&deep).unwrap().output().to_string().len(), 200 * 6 - 1 + 4);
    let sum = vec!["li"; 200].join(" + ");
    assert!(env().compile(&sum).is_ok());
    // Each comparison is checked against many overloads.
    let long = vec!["x<x"; 20_000].join("||");
    assert!(env().compile(&long).is_ok());
}

/// The deepest expression of a kind that the parser accepts.
fn deepest(nest: impl Fn(usize) -> String) -> String {
    let env = env();
    let mut depth = 1;
    while env.parse(&nest(depth + 1)).is_ok() {
        depth += 1;
    }
    nest(depth)
}

#[test]
fn accepted_expressions_fit_on_the_stack() {
    struct Unknown;
    impl SizeEstimator for Unknown {
        fn size(&self, _: &[&str]) -> Option<(u64, u64)> {
            None
        }
    }
    let wrap = |before: &'static str, inner: &'static str, after: &'static str| {
        move |depth: usize| before.repeat(depth) + inner + &after.repeat(depth)
    };
    let nests: [Box<dyn Fn(usize) -> String>; 11] = [
        Box::new(wrap("[", "1", "]")),
        Box::new(wrap("{1: ", "1", "}")),
        Box::new(wrap("-(", "i", ")")),
        Box::new(wrap("!(", "b", ")")),
        Box::new(wrap("(", "i", " + 1)")),
        Box::new(wrap("size([", "1", "])")),
        Box::new(wrap("", "x", ".y")),
        Box::new(wrap("", "x", ".?y")),
        Box::new(wrap("", "x", "[0]")),
        Box::new(wrap("(b ? ", "1", " : 2)")),
        Box::new(wrap("li.map(v, ", "v", ")")),
    ];
    for nest in nests {
        let text = deepest(nest);
        let checked = env().compile(&text).unwrap();
        estimate(&checked, &Unknown);
    }
}
