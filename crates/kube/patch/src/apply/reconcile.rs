//! Stored sets after a type has changed.
//!
//! What was granular and is atomic now is owned as a whole by whoever owned a part of it. The other
//! way round nothing is done: who owned the whole owns it still, and none of its parts.

use super::path::PathElement;
use super::set::{Node, Set};
use super::types::{Shaped, TypeRef};

/// Rewrites a set for a type. None if nothing has to change, which is nearly always so.
pub(super) fn reconcile(set: &Set, ty: TypeRef<'_>) -> Option<Set> {
    let mut whole = Set::new();
    visit(set, ty, &mut Vec::new(), &mut whole);
    (!whole.is_empty()).then(|| set.clone().recursive_difference(&whole).union(whole))
}

/// Collects the atomic values of which the set has parts.
fn visit<'a>(set: &'a Set, ty: TypeRef<'_>, path: &mut Vec<&'a PathElement>, whole: &mut Set) {
    match ty.resolve().first() {
        Some(Shaped::List(list)) if list.atomic => insert(path, whole),
        Some(Shaped::List(list)) => visit_below(set, path, whole, |_| Some(list.element)),
        Some(Shaped::Map(map)) if map.is_free() => {}
        Some(Shaped::Map(map)) if map.atomic => insert(path, whole),
        Some(Shaped::Map(map)) => visit_below(set, path, whole, |node| {
            let named = match &node.element {
                PathElement::Field(name) => map.field(name),
                _ => None,
            };
            Some(named.unwrap_or(map.element)).filter(|ty| !ty.is_nothing())
        }),
        Some(Shaped::Scalar(_)) | None => {}
    }
}

fn visit_below<'a, 'b>(
    set: &'a Set,
    path: &mut Vec<&'a PathElement>,
    whole: &mut Set,
    ty: impl Fn(&Node) -> Option<TypeRef<'b>>,
) {
    for node in set.nodes().iter().filter(|node| !node.below.is_empty()) {
        if let Some(ty) = ty(node) {
            path.push(&node.element);
            visit(&node.below, ty, path, whole);
            path.pop();
        }
    }
}

fn insert(path: &[&PathElement], whole: &mut Set) {
    let path: Vec<PathElement> = path.iter().map(|element| (*element).clone()).collect();
    whole.insert(&path);
}
