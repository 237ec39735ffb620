//! Expressions, compared with results of cel-go.

use mainstay_cel::types::Type;
use mainstay_cel::value::{BytesValue, Value, WorkBudget, go_double};
use mainstay_cel::{CostBudget, Env, Program};
use serde_json::{Value as Json, json};

#[test]
fn expressions_have_the_recorded_results() {
    let recorded: Json = serde_json::from_str(include_str!("../recorded/eval.json")).unwrap();
    let types = recorded["types"].as_object().unwrap();
    let env = types.iter().fold(Env::new_expressions(), |env, (name, of)| {
        env.with_variable(name, read_type(of.as_str().unwrap()))
    });
    let variables: Vec<_> = recorded["variables"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, value)| (name.as_str(), read(value, types[name].as_str().unwrap())))
        .collect();
    let mut differences = Vec::new();
    for case in recorded["cases"].as_array().unwrap() {
        let text = case["expr"].as_str().unwrap();
        let checked = env.compile(text).map_err(|issues| issues.to_string()).unwrap();
        let mut result = json!({"expr": text});
        let mut budget = CostBudget::unlimited();
        if let Some(limit) = case["limit"].as_u64() {
            result["limit"] = limit.into();
            budget = CostBudget::new(limit);
        }
        match Program::new(&checked) {
            Ok(program) => {
                match program.eval(&variables, &mut budget) {
                    Ok(value) => result["value"] = write(&value),
                    Err(error) => result["error"] = error.to_string().into(),
                }
                result["cost"] = budget.spent().into();
            }
            Err(error) => result["program"] = error.to_string().into(),
        }
        if result != *case {
            differences.push(format!("is  {result}\nnot {case}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Parses the types of the variables.
fn read_type(text: &str) -> Type {
    match text {
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "bool" => Type::Bool,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "dyn" => Type::Dyn,
        _ => {
            let inner = |start: &str| text.strip_prefix(start)?.strip_suffix(')');
            if let Some(values) = inner("map(string,") {
                return Type::map(Type::String, read_type(values));
            }
            Type::list(read_type(inner("list(").unwrap()))
        }
    }
}

fn read<'a>(json: &'a Json, of: &str) -> Value<'a> {
    match (json, of) {
        (Json::Number(number), "uint") => Value::Uint(number.as_u64().unwrap()),
        (Json::String(text), "bytes") => Value::Bytes(BytesValue::Borrowed(text.as_bytes())),
        _ => Value::from_json(json),
    }
}

/// A value with its type.
fn write(value: &Value<'_>) -> Json {
    let entry = |(key, value): (Value<'_>, Result<Value<'_>, _>)| {
        json!([write(&key), write(&value.unwrap())])
    };
    match value {
        Value::Null => json!({"null": true}),
        Value::Bool(value) => json!({"bool": value}),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(value) => {
            json!({"double": go_double(*value), "bits": format!("{:016x}", value.to_bits())})
        }
        Value::String(value) => json!({"string": value.as_str()}),
        Value::Bytes(value) => json!({"bytes": String::from_utf8_lossy(value)}),
        Value::Duration(_) => json!({"duration": value.to_string()}),
        Value::Timestamp(time) => json!({"timestamp": time.to_string()}),
        Value::Type(_) => json!({"type": value.to_string()}),
        Value::Optional(held) => json!({"optional": held.as_deref().map(write)}),
        Value::List(list) => {
            let work = WorkBudget::unlimited();
            let elements = list.iter(&work).map(|value| write(&value.unwrap()));
            json!({"list": elements.collect::<Vec<_>>()})
        }
        Value::Map(map) => {
            json!({"map": map.iter(&WorkBudget::unlimited()).map(entry).collect::<Vec<_>>()})
        }
        other => json!({"other": other.to_string()}),
    }
}
