//! Rules over objects, compared with results of Kubernetes: comparison, concatenation and access
//! for lists, sets, lists with keys, maps and objects.

use mainstay_cel::kubernetes::{ListShape, ShapeProperty, ValueShape};
use mainstay_cel::value::{Value, WorkBudget};
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::Value as Json;

/// One rule, object and result per line.
const RECORDED: &str = include_str!("../recorded/objects.jsonl");

/// The schema of a field by its name in the recordings: `l_d2` is a list of durations.
fn field(name: &str) -> ValueShape {
    let name = if name.starts_with('o') { name } else { name.trim_end_matches('2') };
    let keys = |names: &[&str]| {
        let keys = names.iter().map(|name| (*name).into()).collect();
        ValueShape::list(object(), ListShape::Map(keys), None)
    };
    match name {
        "o1" | "o2" => object(),
        "lo" => ValueShape::list(object(), ListShape::Atomic, None),
        "mo" => ValueShape::map(object(), None),
        "k0" => keys(&["s"]),
        "k1" => keys(&["s", "i"]),
        "k" => keys(&["namespace"]),
        "k3" => keys(&["s", "i", "b"]),
        "k4" => keys(&["x"]),
        "ll" => {
            let inner = ValueShape::list(ValueShape::integer(), ListShape::Atomic, None);
            ValueShape::list(inner, ListShape::Atomic, None)
        }
        "ml" => ValueShape::map(ValueShape::list(text(""), ListShape::Set, None), None),
        _ => {
            let (kind, of) = name.split_once('_').unwrap();
            match kind {
                "f" => scalar(of),
                "l" => ValueShape::list(scalar(of), ListShape::Atomic, None),
                "set" => ValueShape::list(scalar(of), ListShape::Set, None),
                _ => ValueShape::map(scalar(of), None),
            }
        }
    }
}

fn text(format: &str) -> ValueShape {
    ValueShape::string(format, None, None)
}

fn scalar(of: &str) -> ValueShape {
    match of {
        "d" => text("duration"),
        "t" => text("date-time"),
        "dt" => text("date"),
        "y" => text("byte"),
        "i" => ValueShape::integer(),
        "n" => ValueShape::number(),
        "b" => ValueShape::boolean(),
        "x" => ValueShape::int_or_string(None),
        "sn" => text("").nullable(true),
        _ => text(""),
    }
}

fn with_fields(fields: impl IntoIterator<Item = (&'static str, ValueShape)>) -> ValueShape {
    ValueShape::object(fields.into_iter().map(|(name, shape)| ShapeProperty {
        name: name.into(),
        shape,
        required: false,
        defaulted: false,
    }))
}

fn object() -> ValueShape {
    let mut fields: Vec<_> = ["s", "d", "t", "dt", "y", "i", "n", "b", "x", "sn"]
        .into_iter()
        .map(|name| (name, scalar(name)))
        .collect();
    fields.extend([
        ("namespace", text("")),
        ("a-b", text("")),
        ("a__b", text("")),
        ("__x__", ValueShape::integer()),
        ("u", ValueShape::preserved()),
        ("o", with_fields([("s", text("")), ("i", ValueShape::integer())])),
        ("e", with_fields([])),
    ]);
    with_fields(fields)
}

/// The names of the fields in a rule or an object.
fn fields(rule: &str, object: &Json) -> Vec<String> {
    let word = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        text[..end.unwrap_or(text.len())].to_owned()
    };
    let mut names: Vec<String> = rule.split("self.").skip(1).map(word).collect();
    names.extend(object.as_object().unwrap().keys().cloned());
    names.sort();
    names.dedup();
    names
}

#[test]
fn rules_have_the_recorded_results() {
    let env = Env::new_expressions();
    let mut differences = Vec::new();
    for line in RECORDED.lines() {
        let recorded: Json = serde_json::from_str(line).unwrap();
        let (rule, object) = (recorded[0].as_str().unwrap(), &recorded[1]);
        let shape =
            ValueShape::object(fields(rule, object).into_iter().map(|name| ShapeProperty {
                shape: field(&name),
                name: name.into(),
                required: false,
                defaulted: false,
            }));
        let checked = env.with_variable("self", shape.to_type("self1").unwrap()).compile(rule);
        let program = Program::new(&checked.unwrap()).unwrap();
        let this = shape.view(object, &WorkBudget::unlimited()).unwrap();
        let got = match program.eval(&[("self", this)], &mut CostBudget::unlimited()) {
            Ok(Value::Bool(value)) => value.to_string(),
            Ok(other) => format!("{other:?}"),
            Err(error) => error.to_string(),
        };
        if recorded[2] != got {
            differences
                .push(format!("{rule}\n  {object}\n  got      {got}\n  expected {}", recorded[2]));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
