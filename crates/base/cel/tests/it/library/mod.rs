//! Direct calls of library functions.

mod authorizer;
mod expressions;
mod limits;
mod recorded;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use mainstay_cel::library::{self, FunctionLibrary, Implementation, Overload, kubernetes};
use mainstay_cel::types::Type;
use mainstay_cel::value::{MapKey, MapValue, Timestamp, Value, ValueResult, WorkBudget};
use serde_json::{Value as Json, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

/// Every overload by its name.
static OVERLOADS: LazyLock<HashMap<&'static str, Overload>> = LazyLock::new(|| {
    let libraries: &[&FunctionLibrary] = &[
        library::strings::library(u32::MAX),
        library::lists::library(u32::MAX),
        &library::sets::LIBRARY,
        &library::two_variables::LIBRARY,
        &library::math::LIBRARY,
        &library::encoders::LIBRARY,
        &kubernetes::quantity::LIBRARY,
        &kubernetes::lists::LIBRARY,
        &kubernetes::regex::LIBRARY,
        &kubernetes::ip::LIBRARY,
        &kubernetes::cidr::LIBRARY,
        &kubernetes::urls::LIBRARY,
        &kubernetes::format::LIBRARY,
        kubernetes::semver::library(1),
        &kubernetes::json_patch::LIBRARY,
        &kubernetes::authorizer::LIBRARY,
        &kubernetes::authorizer::SELECTORS,
    ];
    let overloads = libraries.iter().flat_map(|library| (library.overloads)());
    let mut known: HashMap<&'static str, Overload> =
        overloads.map(|overload| (overload.id, overload)).collect();
    // The overload of Kubernetes, which formats numbers differently.
    let of_kubernetes = (library::strings::library(2).overloads)();
    known.extend(
        of_kubernetes
            .into_iter()
            .filter(|overload| overload.id == "string_format")
            .map(|overload| ("2:string_format", overload)),
    );
    known
});

/// Calls an overload.
fn call(id: &str, args: &[Value<'static>]) -> ValueResult<'static> {
    match OVERLOADS[id].run {
        Implementation::Strict(run) => run(args, &WorkBudget::unlimited()),
        Implementation::Evaluator => panic!("{id} is the evaluator's"),
    }
}

/// Evaluates a tree of calls: `["id", argument, …]`, texts, numbers, and typed values such as
/// `{"double": "1.5"}`.
fn evaluate(tree: &Json) -> ValueResult<'static> {
    match tree {
        Json::Null => Ok(Value::Null),
        Json::Bool(value) => Ok(Value::Bool(*value)),
        Json::Number(value) => Ok(Value::Int(value.as_i64().unwrap())),
        Json::String(value) => Ok(Value::text(value.clone())),
        Json::Array(tree) => {
            let args: Vec<_> = tree[1..].iter().map(evaluate).collect::<Result<_, _>>()?;
            call(tree[0].as_str().unwrap(), &args)
        }
        Json::Object(value) => {
            let (kind, value) = value.iter().next().unwrap();
            let text = value.as_str().unwrap_or_default();
            Ok(match kind.as_str() {
                "dyn" => return evaluate(value),
                "double" => Value::Double(text.parse().unwrap()),
                "uint" => Value::Uint(text.parse().unwrap()),
                "bytes" => {
                    let bytes = BASE64_STANDARD.decode(text);
                    Value::Bytes(bytes.unwrap().into())
                }
                "nanos" => Value::Duration(value.as_i64().unwrap()),
                "timestamp" => Value::Timestamp(Timestamp::parse(text).unwrap()),
                "type" => Value::from_type(match text {
                    "int" => Type::Int,
                    "list" => Type::list(Type::Dyn),
                    _ => Type::String,
                }),
                "list" => {
                    let values = value.as_array().unwrap().iter().map(evaluate);
                    Value::list(values.collect::<Result<_, _>>()?)
                }
                "map" => {
                    let mut entries = BTreeMap::new();
                    for entry in value.as_array().unwrap() {
                        let key = MapKey::of(&evaluate(&entry[0])?).unwrap();
                        entries.insert(key, evaluate(&entry[1])?);
                    }
                    Value::Map(MapValue::of(entries))
                }
                other => panic!("no value: {other}"),
            })
        }
    }
}

/// A value in the form of the recordings.
pub(crate) fn recorded_form(value: &Value<'_>) -> Json {
    match value {
        Value::Null => json!({"null": true}),
        Value::Bool(value) => json!({"bool": value}),
        Value::Int(value) => json!({"int": value.to_string()}),
        Value::Uint(value) => json!({"uint": value.to_string()}),
        Value::Double(value) if value.is_nan() => json!({"double": "NaN"}),
        Value::Double(value) => json!({"double": format!("{:016x}", value.to_bits())}),
        Value::String(value) => json!({"string": value.as_str()}),
        Value::Bytes(value) => json!({"bytes": BASE64_STANDARD.encode(value.as_slice())}),
        Value::Duration(value) => json!({"nanos": value}),
        Value::Timestamp(value) => json!({"timestamp": value.to_string()}),
        Value::List(list) => {
            let work = WorkBudget::unlimited();
            let elements = list.iter(&work).map(|value| recorded_form(&value.unwrap()));
            json!({"list": elements.collect::<Vec<_>>()})
        }
        Value::Map(map) => {
            let mut entries: Vec<_> = map
                .iter(&WorkBudget::unlimited())
                .map(|(key, value)| json!([recorded_form(&key), recorded_form(&value.unwrap())]))
                .collect();
            entries.sort_by_key(|entry| entry[0].to_string());
            json!({"map": entries})
        }
        Value::Optional(None) => json!({"optional": null}),
        Value::Optional(Some(value)) => json!({"optional": recorded_form(value)}),
        Value::Type(of) => json!({"type": of.to_string()}),
        other => json!({"other": other.type_of().name()}),
    }
}
