//! JSON patches, which mutating policies make: `JSONPatch{op: "add", path: "/a", value: 1}` and
//! `jsonpatch.escapeKey("a/b")`.

use crate::library::args::{exactly, made, str, text};
use crate::library::{FunctionLibrary, Overload};
use crate::types::{FieldResolver, ObjectType, Type};
use crate::value::{Value, ValueResult, WorkBudget};
use std::sync::Arc;

/// `jsonpatch.escapeKey`
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.jsonpatch", overloads, macros: &[], types: Vec::new };

/// The name that expressions have for the type of an operation of a patch.
pub const TYPE_NAME: &str = "JSONPatch";

/// The type of an operation of a patch, for environments of mutating policies: with the strings
/// `op`, `path` and `from`, and a `value` of any type.
pub fn patch_type() -> Type {
    Type::Object(ObjectType { name: TYPE_NAME.into(), fields: Arc::new(PatchFields) })
}

#[derive(Debug)]
struct PatchFields;

impl FieldResolver for PatchFields {
    fn field(&self, _owner: &str, field: &str) -> Option<Type> {
        match field {
            "op" | "path" | "from" => Some(Type::String),
            "value" => Some(Type::Dyn),
            _ => None,
        }
    }
}

fn overloads() -> Vec<Overload> {
    vec![Overload::function(
        "jsonpatch.escapeKey",
        "string_jsonpatch_escapeKey_string",
        vec![Type::String],
        Type::String,
        escape,
    )]
}

fn escape<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [key] = exactly(args)?;
    let written = str(key)?;
    if !written.contains(['~', '/']) {
        return Ok(Value::String(text(key)?.clone()));
    }
    Ok(made(written.replace('~', "~0").replace('/', "~1")))
}
