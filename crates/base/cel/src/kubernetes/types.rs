//! CEL types of shapes.
//!
//! An object type is identified by its name, which is its position. The type of a field `a` has the
//! name of its owner and `.a`, elements of a list `b` have `.b.@idx`, and values of a map `c` have
//! `.c.@elem`. Types are built when the checker requests a field, so a rule with two fields of a
//! thousand costs two.

use super::{ObjectShape, ShapeKind, ValueShape};
use crate::types::{FieldResolver, ObjectType, Type};

impl ValueShape {
    /// The type of data of this shape; none if rules cannot see it. `position` names the type if it is
    /// an object without a name.
    pub fn to_type(&self, position: &str) -> Option<Type> {
        Some(match &self.kind {
            ShapeKind::Object(object) => Type::Object(ObjectType {
                name: object.name.clone().unwrap_or_else(|| position.into()),
                fields: object.clone(),
            }),
            ShapeKind::Map(values) => {
                Type::map(Type::String, values.to_type(&format!("{position}.@elem"))?)
            }
            ShapeKind::List { items, .. } => {
                Type::list(items.to_type(&format!("{position}.@idx"))?)
            }
            ShapeKind::String => Type::String,
            ShapeKind::Bytes => Type::Bytes,
            ShapeKind::Duration => Type::Duration,
            ShapeKind::Date | ShapeKind::DateTime => Type::Timestamp,
            ShapeKind::Integer => Type::Int,
            ShapeKind::Number => Type::Double,
            ShapeKind::Boolean => Type::Bool,
            ShapeKind::IntOrString | ShapeKind::Dynamic => Type::Dyn,
            ShapeKind::Preserved => return None,
        })
    }
}

impl FieldResolver for ObjectShape {
    fn field(&self, owner: &str, field: &str) -> Option<Type> {
        let (plain, found) = self.find(field)?;
        // Types have the escaped name of a field, also if the rule uses the plain one.
        let name = super::names::escape(plain)?;
        found.shape.to_type(&format!("{owner}.{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ListShape, ShapeProperty};
    use super::*;

    #[test]
    fn types_are_named_by_their_positions() {
        let object = |name: &str, shape: ValueShape| {
            let name = name.into();
            ValueShape::object([ShapeProperty { name, shape, required: false, defaulted: false }])
        };
        let inner = object("x", ValueShape::string("date", None, None));
        let list = ValueShape::list(inner, ListShape::Atomic, None);
        let root = object("a-b", ValueShape::map(list, None)).to_type("self1");
        let Some(Type::Object(root)) = root else { panic!("{root:?}") };
        let field = root.fields.field(&root.name, "a__dash__b").map(|ty| ty.to_string());
        assert_eq!(field.as_deref(), Some("map(string, list(self1.a__dash__b.@elem.@idx))"));
        assert!(root.fields.field(&root.name, "a-b").is_none());
        assert!(object("p", ValueShape::preserved()).to_type("x").is_some());
        assert!(ValueShape::map(ValueShape::preserved(), None).to_type("x").is_none());
    }
}
