//! Go types that are declared beside their use.

use crate::builtin::{self, Definition};
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
            Self::Table(name) => {
                builtin::definition(name).map(Definition::go_name).unwrap_or_default()
            }
        }
    }
}
