//! Sizes of shapes for cost estimates.

use super::{ShapeKind, ValueShape};
use crate::cost::SizeEstimator;

/// The first step of a path is the variable, which has this shape.
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
                // The size of keys is unknown, for which upstream takes 0.
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
    fn a_path_has_the_size_of_its_shape() {
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
            assert_eq!(shape.size(path), size.map(|max| (0, max)), "{path:?}");
        }
    }
}
