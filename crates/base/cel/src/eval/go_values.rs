//! Go values behind cel-go's values: names of Go types in messages, and values that cel-go unwraps
//! from optionals.

use crate::kubernetes::ValueShape;
use crate::types::Type;
use crate::value::{
    Error, ListElement, ListValue, MapValue, ObjectValue, Opaque, StringValue, Value, WorkBudget,
};
use std::any::Any;
use std::sync::Arc;

/// The shape of data without a schema.
static DYNAMIC: ValueShape = ValueShape::dynamic();

/// The value of an optional at the start of a path: lists, maps and objects without their schema,
/// because cel-go unwraps them.
pub(super) fn unwrap_value<'a>(value: &Value<'a>) -> Value<'a> {
    let shape = &DYNAMIC;
    match value {
        Value::List(ListValue::Json { items, .. }) => Value::List(ListValue::Json { items, shape }),
        Value::List(ListValue::Joined { elements, .. }) => {
            let element_value = |element: &ListElement<'a>| match element {
                ListElement::Original(json) => Value::from_json(json),
                ListElement::Added(value) => value.clone(),
            };
            Value::list(elements.iter().map(element_value).collect())
        }
        Value::Map(MapValue::Json { entries, .. })
        | Value::Object(ObjectValue::Json { fields: entries, .. }) => {
            Value::Map(MapValue::Json { entries, shape })
        }
        Value::Preserved(json) => Value::from_json(json),
        // A nested optional is lost.
        Value::Optional(Some(inner)) => unwrap_value(inner),
        Value::Optional(None) => Value::Null,
        Value::Type(cel_type) => Value::String(StringValue::Shared(cel_type.name().into())),
        other => other.clone(),
    }
}

/// The value of an optional in a branch. cel-go unwraps it and cannot convert some values of
/// libraries back. Such a value becomes an error, which occurs when it is accessed.
pub(super) fn rewrap_value<'a>(value: &Value<'a>, work: &WorkBudget) -> Value<'a> {
    let value = unwrap_value(value);
    if let Value::Opaque(opaque) = &value
        && let Some(go_value) = opaque.go_inside()
    {
        let error = Error::text(format!("unsupported conversion to ref.Val: {go_value}"), work);
        return Value::Opaque(Arc::new(LostValue(error)));
    }
    value
}

/// An error in place of a value that cel-go has lost.
#[derive(Debug)]
struct LostValue(Error);

impl Opaque for LostValue {
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

/// The error for an index or key of an invalid type.
#[cold]
pub(super) fn invalid_key(key: &Value<'_>, work: &WorkBudget) -> Error {
    let go_type_name = match key {
        // Data without a schema has the types of Go's decoder.
        Value::List(ListValue::Json { shape, .. }) if shape.is_dynamic() => {
            "[]interface {}".to_owned()
        }
        Value::Map(MapValue::Json { shape, .. }) if shape.is_dynamic() => {
            "map[string]interface {}".to_owned()
        }
        _ => go_type(key),
    };
    Error::text(format!("invalid qualifier type: {go_type_name}"), work)
}

/// The Go type of a value, as `%T` prints it.
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
            let cel_type = value.type_of();
            // `kubernetes.Quantity` is `cel.Quantity` there.
            return format!("cel.{}", cel_type.name().rsplit('.').next().unwrap_or_default());
        }
    }
    .to_owned()
}
