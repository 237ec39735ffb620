//! Go's names of the types of the table, as messages contain them.

use super::{FieldType, TypeDefinition};

impl TypeDefinition {
    /// The last part of the package of the Go type, such as `v1`.
    pub(crate) fn go_package(&self) -> &str {
        self.name().rsplit('.').nth(1).unwrap_or_default()
    }

    /// Go's name of the type: its package and its own, such as `v1.Pod`.
    pub(crate) fn go_name(&self) -> String {
        format!("{}.{}", self.go_package(), self.short_name())
    }
}

/// Go's name of the type of a field of `owner`. `name` is its
/// [`type_name`](super::FieldDefinition::type_name).
pub fn go_type_name(ty: &FieldType, name: Option<&str>, owner: &TypeDefinition) -> String {
    let qualify = |name: &str| {
        if name.contains('.') || name == "int" {
            name.to_owned()
        } else {
            format!("{}.{name}", owner.go_package())
        }
    };
    match (ty, name) {
        (FieldType::List(_) | FieldType::Map(_), Some(whole)) if whole.starts_with('*') => {
            qualify(&whole[1..])
        }
        (FieldType::List(element), name) => format!("[]{}", go_type_name(element, name, owner)),
        (FieldType::Map(element), name) => {
            format!("map[string]{}", go_type_name(element, name, owner))
        }
        (FieldType::Object(reference), _) => {
            reference.definition().map(TypeDefinition::go_name).unwrap_or_default()
        }
        (_, Some(name)) => qualify(name),
        (FieldType::String, None) => "string".to_owned(),
        (FieldType::Bytes, None) => "[]uint8".to_owned(),
        (FieldType::Int32, None) => "int32".to_owned(),
        (FieldType::Int64, None) => "int64".to_owned(),
        (FieldType::Double, None) => "float64".to_owned(),
        (FieldType::Boolean, None) => "bool".to_owned(),
    }
}
