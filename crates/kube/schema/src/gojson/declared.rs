//! Go types that are declared where they are used.

use crate::builtin::{self, TypeDefinition};
use mainstay_gocompat::json::is_same_field;

/// The type of a field of a [`DeclaredStruct`].
#[derive(Clone, Copy, Debug)]
pub enum DeclaredType {
    /// `string`.
    Text,
    /// A named string type.
    Named(&'static str),
    /// `bool`.
    Bool,
    /// An integer, by the name of its Go type.
    Int(&'static str),
    /// Bytes in base64.
    Bytes,
    /// `json.RawMessage`.
    Raw,
    /// `map[string]string`.
    TextMap,
    /// A struct.
    Struct(&'static DeclaredStruct),
    /// A list.
    List(&'static Self),
    /// A list of pointers to structs.
    Pointers(&'static DeclaredStruct),
    /// A type of OLM or Kubernetes, by its name in the table.
    Table(&'static str),
}

/// A Go struct that is not part of an API.
#[derive(Debug)]
pub struct DeclaredStruct {
    /// Its name in messages as the owner of a field.
    pub name: &'static str,
    /// Its name in messages as a type.
    pub spelled: &'static str,
    /// Its fields in the order of their declaration.
    pub fields: &'static [(&'static str, DeclaredType)],
}

impl DeclaredStruct {
    /// The field that a key is decoded into: the one of that name, or else in any case.
    pub fn field(&self, name: &str) -> Option<&'static (&'static str, DeclaredType)> {
        let exact = self.fields.iter().find(|(field, _)| *field == name);
        exact.or_else(|| self.fields.iter().find(|(field, _)| is_same_field(name, field)))
    }
}

impl DeclaredType {
    /// Go's name of the type.
    pub(super) fn go_name(&self) -> String {
        match self {
            Self::Text => "string".to_owned(),
            Self::Named(name) | Self::Int(name) => (*name).to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Raw => "json.RawMessage".to_owned(),
            Self::TextMap => "map[string]string".to_owned(),
            Self::Struct(declared) => declared.spelled.to_owned(),
            Self::List(element) => format!("[]{}", element.go_name()),
            Self::Pointers(declared) => format!("[]*{}", declared.spelled),
            Self::Table(name) => {
                builtin::definition(name).map(TypeDefinition::go_name).unwrap_or_default()
            }
        }
    }
}
