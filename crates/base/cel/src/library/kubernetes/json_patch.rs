//! JSON patch library for mutating admission policies: `JSONPatch{op: "add", path: "/a", value: 1}`
//! and `jsonpatch.escapeKey("a/b")`.

use crate::library::args::{exactly, new_string, str, text};
use crate::library::{FunctionLibrary, Overload};
use crate::types::{FieldResolver, ObjectType, Type};
use crate::value::{Value, ValueResult, WorkBudget};
use std::sync::Arc;

/// `jsonpatch.escapeKey`
pub static LIBRARY: FunctionLibrary =
    FunctionLibrary { name: "kubernetes.jsonpatch", overloads, macros: &[], types: Vec::new };

/// The name of the type of patch operations in expressions.
pub const TYPE_NAME: &str = "JSONPatch";

/// The type of patch operations, for environments of mutating policies: the strings `op`, `path`
/// and `from`, and a `value` of any type.
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
    let key_text = str(key)?;
    if !key_text.contains(['~', '/']) {
        return Ok(Value::String(text(key)?.clone()));
    }
    Ok(new_string(key_text.replace('~', "~0").replace('/', "~1")))
}
