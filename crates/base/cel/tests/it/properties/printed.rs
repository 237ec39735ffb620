//! Printed trees parse to the same trees.

use super::generate::Generator;
use super::{functions, variables};
use crate::libraries;
use mainstay_cel::syntax::ast::{Expr, ExprKind};
use mainstay_cel::syntax::unparse;

/// The tree without ids and positions of its nodes.
fn shape(mut expr: Expr) -> Expr {
    clear_ids(&mut expr);
    expr
}

fn clear_ids(expr: &mut Expr) {
    (expr.id, expr.at) = (0, 0);
    match &mut expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } => clear_ids(operand),
        ExprKind::Call { target, args, .. } => {
            target.as_deref_mut().into_iter().chain(args).for_each(clear_ids);
        }
        ExprKind::List { elements, .. } => elements.iter_mut().for_each(clear_ids),
        ExprKind::Map(entries) => {
            for entry in entries {
                (entry.id, entry.at) = (0, 0);
                clear_ids(&mut entry.key);
                clear_ids(&mut entry.value);
            }
        }
        ExprKind::Struct { fields, .. } => {
            for field in fields {
                (field.id, field.at) = (0, 0);
                clear_ids(&mut field.value);
            }
        }
        ExprKind::Comprehension(comprehension) => {
            for part in [
                &mut comprehension.range,
                &mut comprehension.accu_init,
                &mut comprehension.condition,
                &mut comprehension.step,
                &mut comprehension.result,
            ] {
                clear_ids(part);
            }
        }
    }
}

#[test]
fn printed_trees_round_trip() {
    let env = libraries::kubernetes();
    let functions = functions(&env);
    let mut generator = Generator::new(4, &functions, &variables());
    let mut read = 0;
    for _ in 0..6_000 {
        let cel_type = generator.any_type(2);
        let depth = 1 + generator.random.below(4);
        let mut text = generator.expression(&cel_type, depth);
        if generator.random.percent(30) {
            // Without some parentheses and spaces it is a different tree or invalid.
            let drop = generator.random.below(7);
            let mut at = 0;
            text.retain(|c| {
                at += 1;
                !(matches!(c, '(' | ')' | ' ') && at % 7 == drop)
            });
        }
        let Ok(parsed) = env.parse(&text) else { continue };
        read += 1;
        let printed = unparse(&parsed);
        let again = env.parse(&printed).unwrap_or_else(|issues| panic!("{text}\n{issues}"));
        assert_eq!(unparse(&again), printed, "{text}");
        assert_eq!(shape(again.root), shape(parsed.root), "{text}\n{printed}");
    }
    assert!(read > 4_000, "only {read} are expressions");
}
