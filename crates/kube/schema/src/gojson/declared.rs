//! Go types that are declared beside their use, and how messages spell types.

use crate::builtin::{self, Definition, Type};
use mainstay_gocompat::json::is_same_field;

/// The type of a field of a [`DeclaredStruct`].
#[derive(Clone, Copy, Debug)]
pub enum DeclaredType {
    /// A text.
    Text,
    /// A text whose Go type has a name of its own.
    Named(&'static str),
    /// A truth value.
    Bool,
    /// A whole number, by the name of its Go type.
    Int(&'static str),
    /// Bytes in base64.
    Bytes,
    /// Anything: kept as it is.
    Raw,
    /// A map of texts.
    TextMap,
    /// A struct.
    Struct(&'static DeclaredStruct),
    /// A list.
    List(&'static Self),
    /// A list of pointers to structs.
    Pointers(&'static DeclaredStruct),
    /// A type of operators or of Kubernetes, by its name in the table.
    Table(&'static str),
}

/// A Go struct that no API has.
#[derive(Debug)]
pub struct DeclaredStruct {
    /// How messages call it as the owner of a field.
    pub name: &'static str,
    /// How messages call it as a type.
    pub spelled: &'static str,
    /// Its fields in the order of their declaration.
    pub fields: &'static [(&'static str, DeclaredType)],
}

impl DeclaredStruct {
    /// The field that a name in a text is taken for: the one of that very name, or else in any case.
    pub fn field(&self, name: &str) -> Option<&'static (&'static str, DeclaredType)> {
        let exact = self.fields.iter().find(|(field, _)| *field == name);
        exact.or_else(|| self.fields.iter().find(|(field, _)| is_same_field(name, field)))
    }
}

impl DeclaredType {
    /// Go's name of the type.
    pub(super) fn spelled(&self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Named(name) | Self::Int(name) => (*name).to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Raw => "json.RawMessage".to_owned(),
            Self::TextMap => "map[string]string".to_owned(),
            Self::Struct(declared) => declared.spelled.to_owned(),
            Self::List(element) => format!("[]{}", element.spelled()),
            Self::Pointers(declared) => format!("[]*{}", declared.spelled),
            Self::Table(name) => builtin::definition(name).map(go_name).unwrap_or_default(),
        }
    }
}

/// Go's name of a type: the last two parts.
pub(super) fn go_name(definition: &Definition) -> String {
    let name = definition.name();
    let package = name.rsplit('.').nth(1).unwrap_or_default();
    format!("{package}.{}", definition.short_name())
}

/// Go's name of the type of a field of `owner`; `name` is the name of its scalar or of the whole, where
/// it has one ([`Field::type_name`](crate::builtin::Field::type_name)).
pub fn spelled_type(ty: &Type, name: Option<&str>, owner: &Definition) -> String {
    let package = || owner.name().rsplit('.').nth(1).unwrap_or_default().to_owned();
    let full = |name: &str| {
        if name.contains('.') || name == "int" {
            name.to_owned()
        } else {
            format!("{}.{name}", package())
        }
    };
    match (ty, name) {
        (Type::List(_) | Type::Map(_), Some(whole)) if whole.starts_with('*') => full(&whole[1..]),
        (Type::List(element), name) => format!("[]{}", spelled_type(element, name, owner)),
        (Type::Map(element), name) => {
            format!("map[string]{}", spelled_type(element, name, owner))
        }
        (Type::Object(reference), _) => reference.definition().map(go_name).unwrap_or_default(),
        (_, Some(name)) => full(name),
        (Type::String, None) => "string".to_owned(),
        (Type::Bytes, None) => "[]uint8".to_owned(),
        (Type::Int32, None) => "int32".to_owned(),
        (Type::Int64, None) => "int64".to_owned(),
        (Type::Double, None) => "float64".to_owned(),
        (Type::Boolean, None) => "bool".to_owned(),
    }
}
