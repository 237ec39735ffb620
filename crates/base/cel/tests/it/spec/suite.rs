//! The tests of the suite, read from its text protos.

use super::textproto::{Message, Node, parse};
use serde_json::{Value as Json, json};

/// A test.
#[derive(Debug)]
pub(crate) struct Test {
    /// `file/section/test`
    pub name: String,
    /// The expression.
    pub expr: String,
    /// The container of the expression.
    pub container: String,
    /// The declarations.
    pub declarations: Vec<Declaration>,
    /// The values of the variables.
    pub bindings: Vec<(String, Json)>,
    /// Whether the type checker is skipped.
    pub unchecked: bool,
    /// Whether only the type checker runs.
    pub check_only: bool,
    /// The expected type.
    pub deduced: Option<String>,
    /// The expected result.
    pub expected: Expected,
    /// The reason to skip this test.
    pub excluded: Option<&'static str>,
}

/// An overload: its id, whether it is a method, its parameters, its result.
pub(crate) type Signature = (String, bool, Vec<String>, String);

/// A declaration of a test.
#[derive(Debug)]
pub(crate) enum Declaration {
    /// A variable.
    Variable(String, String),
    /// A function.
    Function(String, Vec<Signature>),
}

/// The expected result.
#[derive(Debug)]
pub(crate) enum Expected {
    /// A value in the JSON form of `crate::tagged`.
    Value(Json),
    /// An error with any message.
    Error,
}

/// Words that occur only in tests about protobuf messages, enums and wrappers. Kubernetes objects
/// have no such types.
const PROTOBUF: &[&str] = &[
    "TestAllTypes",
    "GlobalEnum",
    "conformance.proto",
    "google.protobuf.Any",
    "google.protobuf.BoolValue",
    "google.protobuf.BytesValue",
    "google.protobuf.DoubleValue",
    "google.protobuf.Empty",
    "google.protobuf.FieldMask",
    "google.protobuf.FloatValue",
    "google.protobuf.Int",
    "google.protobuf.ListValue",
    "google.protobuf.StringValue",
    "google.protobuf.Struct",
    "google.protobuf.UInt",
    "google.protobuf.Value",
    "google.protobuf.Timestamp{",
    "google.protobuf.Duration{",
    "google.protobuf.NullValue",
    "NestedTestAllTypes",
];

/// Fields of values and types of those kinds.
const KINDS: &[&str] = &["object_value", "enum_value", "wrapper"];

/// Reads a file of the suite.
pub(crate) fn read(text: &str) -> Vec<Test> {
    let file = parse(text);
    let mut tests = Vec::new();
    for section in file.all("section").map(Node::as_message) {
        for test in section.all("test").map(Node::as_message) {
            let name =
                format!("{}/{}/{}", file.text("name"), section.text("name"), test.text("name"));
            tests.push(read_test(name, test));
        }
    }
    tests
}

fn read_test(name: String, test: &Message) -> Test {
    let is_protobuf = is_protobuf(test);
    let excluded = is_protobuf.then_some("protobuf messages, enums and wrappers");
    let typed = test.message("typed_result");
    let value = test.message("value").or_else(|| typed.and_then(|typed| typed.message("result")));
    let is_error = test.get("eval_error").is_some() || test.get("any_eval_errors").is_some();
    let read = excluded.is_none();
    Test {
        name,
        expr: test.text("expr"),
        container: test.text("container"),
        declarations: test
            .all("type_env")
            .filter(|_| read)
            .map(|node| declaration(node.as_message()))
            .collect(),
        bindings: test
            .all("bindings")
            .filter(|_| read)
            .map(|node| {
                let binding = node.as_message();
                let value = binding.message("value").and_then(|value| value.message("value"));
                (binding.text("key"), value.map_or(Json::Null, tagged))
            })
            .collect(),
        unchecked: test.flag("disable_check"),
        check_only: test.flag("check_only"),
        deduced: typed
            .filter(|_| read)
            .and_then(|typed| typed.message("deduced_type"))
            .map(type_text),
        expected: match value {
            _ if is_error => Expected::Error,
            Some(value) if read => Expected::Value(tagged(value)),
            // The default result is `true`.
            _ => Expected::Value(Json::Bool(true)),
        },
        excluded,
    }
}

/// Whether a test contains such a word or a value of such a kind.
fn is_protobuf(test: &Message) -> bool {
    test.0.iter().any(|(name, node)| match node {
        Node::Message(message) => KINDS.contains(&name.as_str()) || is_protobuf(message),
        Node::String(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            PROTOBUF.iter().any(|word| text.contains(word))
        }
        Node::Word(_) => KINDS.contains(&name.as_str()),
    })
}

fn declaration(message: &Message) -> Declaration {
    let name = message.text("name");
    if let Some(ident) = message.message("ident") {
        return Declaration::Variable(name, type_text(ident.message("type").unwrap()));
    }
    let overloads = message.message("function").unwrap().all("overloads").map(|overload| {
        let overload = overload.as_message();
        let params = overload.all("params").map(|param| type_text(param.as_message())).collect();
        let result = type_text(overload.message("result_type").unwrap());
        let is_method = overload.flag("is_instance_function");
        (overload.text("overload_id"), is_method, params, result)
    });
    Declaration::Function(name, overloads.collect())
}

/// The text of a type, as in the checker's messages.
fn type_text(message: &Message) -> String {
    let (kind, node) = &message.0[0];
    let inner = |name: &str| {
        let inner = node.as_message().message(name).filter(|inner| !inner.0.is_empty());
        inner.map_or_else(|| "dyn".into(), type_text)
    };
    match kind.as_str() {
        "dyn" => "dyn".into(),
        "null" => "null".into(),
        "primitive" => match node.as_word() {
            "INT64" => "int".into(),
            "UINT64" => "uint".into(),
            other => other.to_ascii_lowercase(),
        },
        "well_known" => match node.as_word() {
            "TIMESTAMP" => "google.protobuf.Timestamp".into(),
            "DURATION" => "google.protobuf.Duration".into(),
            other => panic!("no type of ours: {other}"),
        },
        "list_type" => format!("list({})", inner("elem_type")),
        "map_type" => format!("map({}, {})", inner("key_type"), inner("value_type")),
        "type" => {
            let message = node.as_message();
            if message.0.is_empty() {
                "type".into()
            } else {
                format!("type({})", type_text(message))
            }
        }
        "abstract_type" => {
            let node = node.as_message();
            let params: Vec<_> =
                node.all("parameter_types").map(|param| type_text(param.as_message())).collect();
            let name = node.text("name");
            if params.is_empty() { name } else { format!("{name}({})", params.join(", ")) }
        }
        "message_type" => node.as_text(),
        "type_param" => format!("param:{}", node.as_text()),
        other => panic!("no type of ours: {other}"),
    }
}

/// A value in the JSON form of `crate::tagged`.
fn tagged(message: &Message) -> Json {
    let (kind, node) = &message.0[0];
    match kind.as_str() {
        "null_value" => Json::Null,
        "bool_value" => json!(node.as_word() == "true"),
        "int64_value" => json!(node.as_word().parse::<i64>().unwrap()),
        "uint64_value" => json!({ "$uint": node.as_word() }),
        "double_value" => {
            let double: f64 = node.as_word().parse().unwrap();
            crate::tagged::double(double)
        }
        "string_value" => json!(node.as_text()),
        "bytes_value" => crate::tagged::bytes(node.as_bytes()),
        "type_value" => json!({ "$type": node.as_text() }),
        "list_value" => {
            let values = node.as_message().all("values");
            values.map(|value| tagged(value.as_message())).collect()
        }
        "map_value" => {
            let entries = node.as_message().all("entries").map(|entry| {
                let entry = entry.as_message();
                let side = |name: &str| tagged(entry.message(name).unwrap());
                (side("key"), side("value"))
            });
            crate::tagged::map(entries.collect())
        }
        other => panic!("no value of ours: {other}"),
    }
}
