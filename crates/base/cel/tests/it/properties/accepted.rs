//! Expressions that the checker accepts have no type errors when evaluated.

use super::{for_accepted, values};
use mainstay_cel::check::CheckedExpression;
use mainstay_cel::types::Type;
use mainstay_cel::{CostBudget, Program};

/// Whether all parts of a type are known.
fn is_known(cel_type: &Type) -> bool {
    match cel_type {
        Type::Dyn | Type::Any | Type::Error | Type::Param(_) => false,
        Type::List(element) => is_known(element),
        Type::Map(entry) => is_known(&entry.0) && is_known(&entry.1),
        Type::Opaque(opaque) => opaque.params.iter().all(is_known),
        _ => true,
    }
}

fn all_known(checked: &CheckedExpression) -> bool {
    let mut known = true;
    let mut rest = vec![&checked.root];
    while let Some(expr) = rest.pop() {
        known &= is_known(checked.type_of(expr.id));
        rest.extend(super::children(expr));
    }
    known
}

#[test]
fn accepted_expressions_never_fail_with_no_such_overload() {
    let compared = std::cell::Cell::new(0);
    for_accepted(1, 8_000, |text, checked| {
        // `dyn` values can have type errors. And in apiserver an invalid address is `no such
        // overload`.
        if !all_known(checked) || text.contains("containsIP") {
            return;
        }
        let Ok(program) = Program::new(checked) else { return };
        compared.set(compared.get() + 1);
        if let Err(error) = program.eval(&values(), &mut CostBudget::new(super::COST_LIMIT)) {
            let error = error.to_string();
            assert!(!error.contains("no such overload"), "{text}: {error}");
        }
    });
    assert!(compared.get() > 2_000, "only {} are of known types", compared.get());
}
