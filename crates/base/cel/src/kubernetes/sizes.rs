//! Shapes as what costs are estimated with.

use super::{ShapeKind, ValueShape};
use crate::cost::SizeEstimator;

/// The first step of a path is the variable, which is of this shape.
impl SizeEstimator for ValueShape {
    fn size(&self, path: &[&str]) -> Option<(u64, u64)> {
        let (_, steps) = path.split_first()?;
        let mut at = self;
        for (index, step) in steps.iter().enumerate() {
            at = match (*step, &at.kind) {
                (
                    "@items" | "@values",
                    ShapeKind::List { items: inner, .. } | ShapeKind::Map(inner),
                ) => inner,
                // Of keys nothing is known, and the original takes that for nothing at all.
                ("@keys", ShapeKind::Map(_)) => {
                    return (index + 1 == steps.len()).then_some((0, 0));
                }
                (name, ShapeKind::Object(object)) => &object.find(name)?.1.shape,
                _ => return None,
            };
        }
        Some((0, at.max_elements))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ListShape, ShapeProperty};
    use super::*;

    #[test]
    fn sizes_are_those_of_the_shape_at_the_path() {
        let words =
            ValueShape::list(ValueShape::string("", Some(5), None), ListShape::Set, Some(7));
        let shape = ValueShape::object([ShapeProperty {
            name: "a".into(),
            shape: ValueShape::map(words, Some(3)),
            required: false,
            defaulted: false,
        }]);
        for (path, size) in [
            (&["self"][..], Some(0)),
            (&["self", "a"], Some(3)),
            (&["oldSelf", "a", "@keys"], Some(0)),
            (&["self", "a", "@keys", "x"], None),
            (&["self", "a", "@values"], Some(7)),
            (&["self", "a", "@values", "@items"], Some(20)),
            (&["self", "b"], None),
            (&["self", "@items"], None),
            (&[], None),
        ] {
            assert_eq!(shape.size(path), size.map(|most| (0, most)), "{path:?}");
        }
    }
}
