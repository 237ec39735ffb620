//! How messages of Go name the types of the table.

use super::{Definition, Type};

impl Definition {
    /// The last part of the package of the Go type, such as `v1`.
    pub(crate) fn go_package(&self) -> &str {
        self.name().rsplit('.').nth(1).unwrap_or_default()
    }

    /// Go's name of the type: its package and its own, such as `v1.Pod`.
    pub(crate) fn go_name(&self) -> String {
        format!("{}.{}", self.go_package(), self.short_name())
    }
}

/// Go's name of the type of a field of `owner`; `name` is the name of its scalar or of the whole, where
/// it has one ([`Field::type_name`](super::Field::type_name)).
pub fn spelled_type(ty: &Type, name: Option<&str>, owner: &Definition) -> String {
    let full = |name: &str| {
        if name.contains('.') || name == "int" {
            name.to_owned()
        } else {
            format!("{}.{name}", owner.go_package())
        }
    };
    match (ty, name) {
        (Type::List(_) | Type::Map(_), Some(whole)) if whole.starts_with('*') => full(&whole[1..]),
        (Type::List(element), name) => format!("[]{}", spelled_type(element, name, owner)),
        (Type::Map(element), name) => {
            format!("map[string]{}", spelled_type(element, name, owner))
        }
        (Type::Object(reference), _) => {
            reference.definition().map(Definition::go_name).unwrap_or_default()
        }
        (_, Some(name)) => full(name),
        (Type::String, None) => "string".to_owned(),
        (Type::Bytes, None) => "[]uint8".to_owned(),
        (Type::Int32, None) => "int32".to_owned(),
        (Type::Int64, None) => "int64".to_owned(),
        (Type::Double, None) => "float64".to_owned(),
        (Type::Boolean, None) => "bool".to_owned(),
    }
}
