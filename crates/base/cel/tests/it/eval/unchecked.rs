//! Expressions that were not checked.

use super::{answer_of, env};
use mainstay_cel::value::Value;
use mainstay_cel::{CostBudget, Env, EnvOptions, Program, library};

#[test]
fn what_names_mean_is_found_out_when_they_are_looked_up() {
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
        let answer = match Program::unchecked(&parsed, &env()) {
            Ok(program) => answer_of(&program).0,
            Err(error) => format!("no program: {error}"),
        };
        assert_eq!(answer, value, "{text}");
    }
}

#[test]
fn names_in_the_container_and_longer_names_come_first() {
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
        let answer = program.eval(&all[at..].to_vec(), &mut CostBudget::unlimited());
        assert_eq!(answer.unwrap().to_string(), expected);
    }
    let error = program.eval(&(), &mut CostBudget::unlimited()).unwrap_err();
    assert_eq!(error.to_string(), "no such attribute(s): a.b.x.y, a.x.y, x.y");
}
