//! Reconciliation of stored field sets with a changed type.
//!
//! If a granular value became atomic, the owners of its parts own the whole value. For the opposite
//! change the sets stay: the owner of the whole value owns it, and none of its parts.

use super::path::PathElement;
use super::set::{FieldSet, SetNode};
use super::types::{TypeRef, TypeShape};

/// Adapts a set to a type. None if the set stays the same, which is the usual case.
pub(super) fn reconcile(set: &FieldSet, ty: TypeRef<'_>) -> Option<FieldSet> {
    let mut whole = FieldSet::new();
    visit(set, ty, &mut Vec::new(), &mut whole);
    (!whole.is_empty()).then(|| set.clone().recursive_difference(&whole).union(whole))
}

/// Collects the atomic values of which the set has parts.
fn visit<'a>(
    set: &'a FieldSet,
    ty: TypeRef<'_>,
    path: &mut Vec<&'a PathElement>,
    whole: &mut FieldSet,
) {
    match ty.resolve().first() {
        Some(TypeShape::List(list)) if list.atomic => insert(path, whole),
        Some(TypeShape::List(list)) => visit_below(set, path, whole, |_| Some(list.element)),
        Some(TypeShape::Map(map)) if map.is_free() => {}
        Some(TypeShape::Map(map)) if map.atomic => insert(path, whole),
        Some(TypeShape::Map(map)) => visit_below(set, path, whole, |node| {
            let declared = match &node.element {
                PathElement::Field(name) => map.field(name),
                _ => None,
            };
            Some(declared.unwrap_or(map.element)).filter(|ty| !ty.is_nothing())
        }),
        Some(TypeShape::Scalar(_)) | None => {}
    }
}

fn visit_below<'a, 'b>(
    set: &'a FieldSet,
    path: &mut Vec<&'a PathElement>,
    whole: &mut FieldSet,
    ty: impl Fn(&SetNode) -> Option<TypeRef<'b>>,
) {
    for node in set.nodes().iter().filter(|node| !node.below.is_empty()) {
        if let Some(ty) = ty(node) {
            path.push(&node.element);
            visit(&node.below, ty, path, whole);
            path.pop();
        }
    }
}

fn insert(path: &[&PathElement], whole: &mut FieldSet) {
    let path: Vec<PathElement> = path.iter().map(|element| (*element).clone()).collect();
    whole.insert(&path);
}
