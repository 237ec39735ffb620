//! Kinds as types of the checker, for the hints that a policy's status has.
//!
//! The type of an object is made when the checker asks for a field, so that a policy on Pods does
//! not cost what a Pod may have. Amounts and values of any form have no type, and fields of such
//! types are unknown, as in the original; what is a number or a text is only known when it is
//! looked at.
//!
//! Rules: apiserver's `pkg/cel/common/schemas.go` over the published documents.

use mainstay_cel::kubernetes::{ObjectShape, ShapeKind, names};
use mainstay_cel::types::{Fields, ObjectType, Type};
use mainstay_kinds::{KindRow, KindSource};
use mainstay_schema::builtin::{FieldType as Declared, JsonForm, TypeDefinition, definition};
use std::sync::Arc;

/// The type of the objects of a kind; none if nothing says what they look like. The original makes
/// up another name for it each time; to be told the same for the same is worth more.
pub(super) fn of_row(row: &KindRow) -> Option<Type> {
    let name = format!("{}0", row.kind);
    match &row.source {
        KindSource::BuiltIn(_) => of_definition(row.definition()?, &name),
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

impl Fields for BuiltInFields {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        // Words that the language keeps for itself may be written with or without escapes.
        let plain = names::unescape(field)?;
        let name = names::escape(&plain)?;
        of_declared(&self.0.field(&plain)?.ty, &format!("{owner}.{name}"))
    }
}

/// The fields of a custom kind: those of its schema, and metadata, of which documents say all.
#[derive(Debug)]
struct CustomFields {
    root: Box<str>,
    own: Arc<ObjectShape>,
}

impl Fields for CustomFields {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        if *owner == *self.root {
            match field {
                "apiVersion" | "kind" => return Some(Type::String),
                "metadata" => {
                    let name = "apimachinery.pkg.apis.meta.v1.ObjectMeta";
                    return of_definition(definition(name)?, &format!("{owner}.metadata"));
                }
                _ => {}
            }
        }
        self.own.field(owner, field)
    }
}

fn of_definition(definition: &'static TypeDefinition, place: &str) -> Option<Type> {
    match definition.json_form() {
        JsonForm::Object | JsonForm::FreeObject => Some(Type::Object(ObjectType {
            name: place.into(),
            fields: Arc::new(BuiltInFields(definition)),
        })),
        JsonForm::Time | JsonForm::MicroTime => Some(Type::Timestamp),
        JsonForm::IntOrString => Some(Type::Dyn),
        JsonForm::ParsedText => Some(Type::String),
        JsonForm::Any | JsonForm::Quantity => None,
    }
}

fn of_declared(declared: &'static Declared, place: &str) -> Option<Type> {
    Some(match declared {
        Declared::String => Type::String,
        Declared::Bytes => Type::Bytes,
        Declared::Int32 | Declared::Int64 => Type::Int,
        Declared::Double => Type::Double,
        Declared::Boolean => Type::Bool,
        Declared::List(element) => Type::list(of_declared(element, &format!("{place}.@idx"))?),
        Declared::Map(element) => {
            Type::map(Type::String, of_declared(element, &format!("{place}.@elem"))?)
        }
        Declared::Object(reference) => of_definition(reference.definition()?, place)?,
    })
}
