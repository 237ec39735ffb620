//! Rules over objects with a schema, compared with results of apiserver.

use mainstay_cel::CostBudget;
use mainstay_cel::kubernetes::rules::RuleScope;
use mainstay_cel::kubernetes::{ListShape, ShapeProperty, ValueShape};
use mainstay_cel::value::{Value, WorkBudget};
use serde_json::{Value as Json, json};

fn text(max_length: u64) -> ValueShape {
    ValueShape::string("", Some(max_length), None)
}

fn format(name: &str) -> ValueShape {
    ValueShape::string(name, None, None)
}

fn object(properties: impl IntoIterator<Item = (&'static str, ValueShape)>) -> ValueShape {
    ValueShape::object(properties.into_iter().map(|(name, shape)| ShapeProperty {
        name: name.into(),
        shape,
        required: name == "k",
        defaulted: false,
    }))
}

/// A schema with every kind of value.
fn shape() -> ValueShape {
    let entry = object([
        ("k", text(10)),
        ("v", ValueShape::integer()),
        ("o", object([("x", ValueShape::integer())])),
    ]);
    let keys = ListShape::Map(vec!["k".into()].into());
    object([
        ("i", ValueShape::integer()),
        ("d", ValueShape::number()),
        ("s", text(20)),
        ("b", ValueShape::boolean()),
        ("ts", format("date-time")),
        ("dt", format("date")),
        ("du", format("duration")),
        ("by", format("byte")),
        ("ios", ValueShape::int_or_string(None)),
        ("nul", format("").nullable(true)),
        ("li", ValueShape::list(ValueShape::integer(), ListShape::Atomic, Some(10))),
        ("ls", ValueShape::list(text(10), ListShape::Set, Some(10))),
        ("lm", ValueShape::list(entry, keys, Some(10))),
        ("m", ValueShape::map(text(10), Some(10))),
        ("mi", ValueShape::map(ValueShape::integer(), Some(10))),
        (
            "o",
            object([
                ("x", ValueShape::integer()),
                ("y", text(10)),
                ("namespace", text(10)),
                ("a-b", ValueShape::integer()),
            ]),
        ),
        // Its data has other fields, which the schema preserves.
        ("pu", object([("q", ValueShape::integer())])),
        ("ln", ValueShape::list(text(10).nullable(true), ListShape::Atomic, Some(5))),
    ])
}

#[test]
fn rules_have_the_recorded_results() {
    let recorded: Json = serde_json::from_str(include_str!("../recorded/eval_rules.json")).unwrap();
    let objects = recorded["objects"].as_array().unwrap();
    let shape = shape();
    let scope = RuleScope::new(&shape).unwrap();
    let view = |at: u64| {
        shape.view(&objects[usize::try_from(at).unwrap()], &WorkBudget::unlimited()).unwrap()
    };
    let mut differences = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let optional = case["optional"] == true;
        let rule = scope.rule(case["rule"].as_str().unwrap(), optional).unwrap();
        let mut variables = vec![("self", view(case["self"].as_u64().unwrap()))];
        let old = case["old"].as_u64().map(view);
        if optional {
            variables.push(("oldSelf", old.map_or(Value::Optional(None), Value::some)));
        } else if let Some(old) = old {
            variables.push(("oldSelf", old));
        }
        let mut budget = CostBudget::new(1_000_000);
        let result = match rule.program.eval(&variables, &mut budget) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        if case["answer"] != result || case["cost"] != json!(budget.spent()) {
            differences.push(format!("is  {result} for {}\nnot {case}", budget.spent()));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
