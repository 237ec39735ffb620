//! Where cel-go's values show through: what Go calls their types, and what is left of them in
//! optionals.

use crate::kubernetes::ValueShape;
use crate::types::Type;
use crate::value::{
    Error, ListElement, ListValue, MapValue, ObjectValue, Opaque, StringValue, Value, WorkBudget,
};
use std::any::Any;
use std::sync::Arc;

/// Data of which no schema says what it is.
static DYNAMIC: ValueShape = ValueShape::dynamic();

/// What a path that begins at an optional finds in it: lists, maps and objects as they are without
/// their schema, for cel-go unpacks them that far.
pub(super) fn native<'a>(held: &Value<'a>) -> Value<'a> {
    let shape = &DYNAMIC;
    match held {
        Value::List(ListValue::Json { items, .. }) => Value::List(ListValue::Json { items, shape }),
        Value::List(ListValue::Joined { elements, .. }) => {
            let of = |element: &ListElement<'a>| match element {
                ListElement::Original(json) => Value::from_json(json),
                ListElement::Added(value) => value.clone(),
            };
            Value::list(elements.iter().map(of).collect())
        }
        Value::Map(MapValue::Json { entries, .. })
        | Value::Object(ObjectValue::Json { fields: entries, .. }) => {
            Value::Map(MapValue::Json { entries, shape })
        }
        Value::Preserved(json) => Value::from_json(json),
        // An optional in an optional is lost.
        Value::Optional(Some(inner)) => native(inner),
        Value::Optional(None) => Value::Null,
        Value::Type(of) => Value::String(StringValue::Shared(of.name().into())),
        other => other.clone(),
    }
}

/// What is left of what an optional in a branch holds: cel-go unpacks it, and a value of a library
/// that it cannot make again of what was inside becomes a failure, noticed by who takes it out.
pub(super) fn repacked<'a>(held: &Value<'a>, work: &WorkBudget) -> Value<'a> {
    let value = native(held);
    if let Value::Opaque(opaque) = &value
        && let Some(inside) = opaque.go_inside()
    {
        let error = Error::text(format!("unsupported conversion to ref.Val: {inside}"), work);
        return Value::Opaque(Arc::new(Failed(error)));
    }
    value
}

/// In the place of a value that cel-go has lost.
#[derive(Debug)]
struct Failed(Error);

impl Opaque for Failed {
    fn cel_type(&self) -> Type {
        Type::Error
    }

    fn equals(&self, _: &Value<'_>) -> Result<bool, Error> {
        Err(self.0.clone())
    }

    fn go_inside(&self) -> Option<String> {
        Some(format!("(*errors.errorString){}", self.0))
    }

    fn failure(&self) -> Option<&Error> {
        Some(&self.0)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An index or key of a type that nothing is found by.
#[cold]
pub(super) fn invalid_key(key: &Value<'_>, work: &WorkBudget) -> Error {
    let of = match key {
        // Data without a schema is as Go has read it.
        Value::List(ListValue::Json { shape, .. }) if shape.is_dynamic() => {
            "[]interface {}".to_owned()
        }
        Value::Map(MapValue::Json { shape, .. }) if shape.is_dynamic() => {
            "map[string]interface {}".to_owned()
        }
        _ => go_type(key),
    };
    Error::text(format!("invalid qualifier type: {of}"), work)
}

/// The name of the Go type of a value, as `%T` has it.
pub(super) fn go_type(value: &Value<'_>) -> String {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Type(_) => "*types.Type",
        Value::List(ListValue::Values(_)) => "*types.baseList",
        Value::List(_) => "*common.unstructuredList",
        Value::Map(MapValue::Values(_)) => "*types.baseMap",
        Value::Map(_) | Value::Object(ObjectValue::Json { .. }) => "*common.unstructuredMap",
        Value::Object(ObjectValue::Values { .. }) => "*mutation.ObjectVal",
        Value::Optional(_) => "*types.Optional",
        Value::Preserved(_) => "*common.unknownPreserved",
        Value::Opaque(opaque) => {
            if let Some(name) = opaque.go_type() {
                return name.to_owned();
            }
            let of = value.type_of();
            // `kubernetes.Quantity` is `cel.Quantity` there.
            return format!("cel.{}", of.name().rsplit('.').next().unwrap_or_default());
        }
    }
    .to_owned()
}
