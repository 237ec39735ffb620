//! Shapes as types of the checker.
//!
//! An object's type is known by its name, which is that of its place: `self`'s type has some name,
//! the type of its field `a` the same name and `.a`, of the elements of its list `b` `.b.@idx`, of
//! the values of its map `c` `.c.@elem`. Types are made when the checker asks for a field, so a rule
//! that looks at two fields of a thousand costs two.

use super::{ObjectShape, ShapeKind, ValueShape};
use crate::types::{FieldResolver, ObjectType, Type};

impl ValueShape {
    /// The type of data of this shape; none if rules cannot see it. `place` names the type if it is
    /// an object that has no name of its own.
    pub fn to_type(&self, place: &str) -> Option<Type> {
        Some(match &self.kind {
            ShapeKind::Object(object) => Type::Object(ObjectType {
                name: object.name.clone().unwrap_or_else(|| place.into()),
                fields: object.clone(),
            }),
            ShapeKind::Map(values) => {
                Type::map(Type::String, values.to_type(&format!("{place}.@elem"))?)
            }
            ShapeKind::List { items, .. } => Type::list(items.to_type(&format!("{place}.@idx"))?),
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
        // Types are named by what rules call a field, also where they call it otherwise.
        let name = super::names::escape(plain)?;
        found.shape.to_type(&format!("{owner}.{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ListShape, ShapeProperty};
    use super::*;

    #[test]
    fn types_are_named_by_their_places() {
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
