//! Parser for the text of types.

use mainstay_cel::types::Type;

/// Parses a type such as `map(string, list(int))`.
pub(crate) fn read(text: &str) -> Type {
    let (cel_type, rest) = prefix(text);
    assert!(rest.trim().is_empty(), "left over of {text}: {rest}");
    cel_type
}

fn prefix(text: &str) -> (Type, &str) {
    let text = text.trim_start();
    let end = text.find(['(', ')', ',']).unwrap_or(text.len());
    let (name, mut rest) = text.split_at(end);
    let mut params = Vec::new();
    if let Some(inner) = rest.strip_prefix('(') {
        rest = inner;
        loop {
            let (param, after) = prefix(rest);
            params.push(param);
            let Some(more) = after.trim_start().strip_prefix(',') else {
                rest = after.trim_start().strip_prefix(')').unwrap();
                break;
            };
            rest = more;
        }
    }
    let cel_type = match (name.trim(), params.as_slice()) {
        ("dyn", _) => Type::Dyn,
        ("any", _) => Type::Any,
        ("null" | "null_type", _) => Type::Null,
        ("bool", _) => Type::Bool,
        ("int", _) => Type::Int,
        ("uint", _) => Type::Uint,
        ("double", _) => Type::Double,
        ("string", _) => Type::String,
        ("bytes", _) => Type::Bytes,
        ("duration" | "google.protobuf.Duration", _) => Type::Duration,
        ("timestamp" | "google.protobuf.Timestamp", _) => Type::Timestamp,
        ("list", [element]) => Type::list(element.clone()),
        ("map", [key, value]) => Type::map(key.clone(), value.clone()),
        ("type", []) => Type::Type(None),
        ("type", [cel_type]) => Type::Type(Some(cel_type.clone().into())),
        (name, _) => match name.strip_prefix("param:") {
            Some(param) => Type::param(param),
            None => Type::opaque(name, params),
        },
    };
    (cel_type, rest)
}
