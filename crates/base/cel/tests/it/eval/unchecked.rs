//! Evaluation without type checking.

use super::{env, program_result};
use mainstay_cel::value::Value;
use mainstay_cel::{CostBudget, Env, EnvOptions, Program, library};

#[test]
fn names_are_resolved_at_run_time() {
    for (text, value) in [
        ("x.a.b", "1"),
        ("x.list.map(y, y + x.one)", "[2, 3, 4]"),
        ("x.list.map(x, x)", "[1, 2, 3]"),
        ("optional.of(1).value()", "1"),
        ("type(1) == int", "true"),
        ("x.text.size()", "4"),
        ("size(x.text, 1)", "no program: no such overload: size(lhs, rhs)"),
        ("x.text.nothing()", "error: no such overload"),
        ("x.one.nothing()", "error: no such overload: nothing"),
        ("nothing.at.all", "error: no such attribute(s): nothing.at.all"),
        ("x.one.lowerAscii()", "error: no such overload: lowerAscii(int)"),
        ("1 + 'a'", "error: no such overload"),
        ("Nothing{}", "no program: unknown type: Nothing"),
    ] {
        let parsed = env().parse(text).unwrap();
        let result = match Program::unchecked(&parsed, &env()) {
            Ok(program) => program_result(&program).0,
            Err(error) => format!("no program: {error}"),
        };
        assert_eq!(result, value, "{text}");
    }
}

#[test]
fn container_names_and_longer_names_have_precedence() {
    let options = EnvOptions { container: "a.b".into(), ..EnvOptions::default() };
    let env = Env::new(&[&library::standard::LIBRARY], options);
    let parsed = env.parse("x.y").unwrap();
    let program = Program::unchecked(&parsed, &env).unwrap();
    let object = serde_json::json!({"y": "field"});
    let all = [
        ("a.b.x.y", Value::text("a.b.x.y")),
        ("a.x.y", Value::text("a.x.y")),
        ("x.y", Value::text("x.y")),
        ("x", Value::from_json(&object)),
    ];
    for (at, expected) in ["a.b.x.y", "a.x.y", "x.y", "field"].into_iter().enumerate() {
        let result = program.eval(&all[at..].to_vec(), &mut CostBudget::unlimited());
        assert_eq!(result.unwrap().to_string(), expected);
    }
    let error = program.eval(&(), &mut CostBudget::unlimited()).unwrap_err();
    assert_eq!(error.to_string(), "no such attribute(s): a.b.x.y, a.x.y, x.y");
}
