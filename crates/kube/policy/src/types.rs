//! CEL types of Kubernetes kinds, for the type checking of a policy.
//!
//! The type of a field is built when the checker reads the field. So a policy on Pods does not
//! cost the whole schema of a Pod. As in Kubernetes, a quantity and a value of any form have no
//! type, so the checker does not know fields that contain them. An `IntOrString` is `dyn`.
//!
//! Rules: apiserver's `pkg/cel/common/schemas.go` over the published OpenAPI documents.

use mainstay_cel::kubernetes::{ObjectShape, ShapeKind, names};
use mainstay_cel::types::{FieldResolver, ObjectType, Type};
use mainstay_kinds::{KindRow, KindSource};
use mainstay_schema::builtin::{FieldType as SchemaType, JsonForm, TypeDefinition, definition};
use std::sync::Arc;

/// The type of the objects of a kind; none without a schema. Kubernetes generates another type name
/// each time; Mainstay keeps the name stable, so that equal policies get equal warnings.
pub(super) fn object_type(row: &KindRow) -> Option<Type> {
    let name = format!("{}0", row.kind);
    match &row.source {
        KindSource::BuiltIn(_) => definition_type(row.definition()?, &name),
        KindSource::Custom(custom) => {
            let shape = custom.version().schema.shape();
            let ShapeKind::Object(own) = shape.kind else { return None };
            let fields = Arc::new(CustomFields { root: name.as_str().into(), own });
            Some(Type::Object(ObjectType { name: name.into(), fields }))
        }
    }
}

/// The fields of a definition of the built-in API.
#[derive(Debug)]
struct BuiltInFields(&'static TypeDefinition);

impl FieldResolver for BuiltInFields {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        // Reserved words of CEL may be written with or without escapes.
        let plain = names::unescape(field)?;
        let name = names::escape(&plain)?;
        field_type(&self.0.field(&plain)?.ty, &format!("{owner}.{name}"))
    }
}

/// The fields of a custom kind: those of its schema, and `ObjectMeta`.
#[derive(Debug)]
struct CustomFields {
    root: Box<str>,
    own: Arc<ObjectShape>,
}

impl FieldResolver for CustomFields {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        if *owner == *self.root {
            match field {
                "apiVersion" | "kind" => return Some(Type::String),
                "metadata" => {
                    let name = "apimachinery.pkg.apis.meta.v1.ObjectMeta";
                    return definition_type(definition(name)?, &format!("{owner}.metadata"));
                }
                _ => {}
            }
        }
        self.own.field(owner, field)
    }
}

fn definition_type(definition: &'static TypeDefinition, type_name: &str) -> Option<Type> {
    match definition.json_form() {
        JsonForm::Object | JsonForm::FreeObject => Some(Type::Object(ObjectType {
            name: type_name.into(),
            fields: Arc::new(BuiltInFields(definition)),
        })),
        JsonForm::Time | JsonForm::MicroTime => Some(Type::Timestamp),
        JsonForm::IntOrString => Some(Type::Dyn),
        JsonForm::ParsedText => Some(Type::String),
        JsonForm::Any | JsonForm::Quantity => None,
    }
}

fn field_type(declared: &'static SchemaType, type_name: &str) -> Option<Type> {
    Some(match declared {
        SchemaType::String => Type::String,
        SchemaType::Bytes => Type::Bytes,
        SchemaType::Int32 | SchemaType::Int64 => Type::Int,
        SchemaType::Double => Type::Double,
        SchemaType::Boolean => Type::Bool,
        SchemaType::List(element) => Type::list(field_type(element, &format!("{type_name}.@idx"))?),
        SchemaType::Map(element) => {
            Type::map(Type::String, field_type(element, &format!("{type_name}.@elem"))?)
        }
        SchemaType::Object(reference) => definition_type(reference.definition()?, type_name)?,
    })
}
