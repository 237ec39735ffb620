//! Variables whose fields are variables themselves, such as `variables` of policies.

use mainstay_cel::types::{FieldResolver, ObjectType, Type};
use mainstay_cel::value::{Error, Value, ValueResult, WorkBudget};
use mainstay_cel::{Activation, CostBudget, Env, Program};
use std::cell::RefCell;
use std::sync::Arc;

#[derive(Debug)]
struct FieldTypes;

impl FieldResolver for FieldTypes {
    fn field(&self, _: &str, field: &str) -> Option<Type> {
        ["one", "two", "wrong", "many"].contains(&field).then_some(Type::Dyn)
    }
}

/// Provides values and records the requested names.
#[derive(Default)]
struct RecordingVariables(RefCell<Vec<String>>);

impl<'a> Activation<'a> for RecordingVariables {
    fn get(&self, _: &str) -> Option<Value<'a>> {
        None
    }

    fn look_up(&self, name: &str, work: &WorkBudget) -> Option<ValueResult<'a>> {
        self.0.borrow_mut().push(name.to_owned());
        Some(match name {
            "all.one" => Ok(Value::Int(1)),
            "all.two" => Ok(Value::Int(2)),
            "all.many" => Ok(Value::list(vec![Value::Int(7)])),
            _ => Err(Error::text("no luck", work)),
        })
    }
}

#[test]
fn fields_are_looked_up_lazily_and_once() {
    let all = Type::Object(ObjectType { name: "kinds".into(), fields: Arc::new(FieldTypes) });
    let env = Env::new_expressions().with_variable("all", all);
    let whole = env.with_variable("self", Type::Dyn);
    for (text, expected, cost, asked) in [
        ("all.one == 1", "true", 3, "all.one"),
        ("all.one + all.one == all.two", "true", 8, "all.one all.two"),
        ("false && all.wrong", "false", 0, ""),
        ("all.one == 2 && all.wrong", "false", 3, "all.one"),
        ("all.wrong || true", "true", 2, "all.wrong"),
        ("all.wrong == 1", "no luck", 3, "all.wrong"),
        ("all.many[0] == 7", "true", 4, "all.many"),
        ("[1].all(all, all == 1)", "true", 6, ""),
        ("[1, 2].map(x, x + all.one) == [2, 3]", "true", 0, "all.one"),
        ("has(all.one)", "true", 1, "all.one"),
        ("has(all.wrong)", "no luck", 1, "all.wrong"),
    ] {
        let program = Program::with_parts(&whole.compile(text).unwrap(), "all").unwrap();
        let (given, mut budget) = (RecordingVariables::default(), CostBudget::unlimited());
        let outcome = match program.eval(&given, &mut budget) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(outcome, expected, "{text}");
        assert_eq!(given.0.borrow().join(" "), asked, "{text}");
        if cost > 0 {
            assert_eq!(budget.spent(), cost, "{text}");
        }
    }
    let error = whole.compile("all.three").unwrap_err().to_string();
    assert!(error.contains("undefined field 'three'"), "{error}");
}
