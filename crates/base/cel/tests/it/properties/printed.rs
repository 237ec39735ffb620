//! Trees become text, and the text becomes the same tree.

use super::generate::Generator;
use super::{functions, variables};
use crate::libraries;
use mainstay_cel::syntax::ast::{Expr, ExprKind};
use mainstay_cel::syntax::unparse;

/// The tree without numbers and places of its nodes.
fn shape(mut of: Expr) -> Expr {
    forget(&mut of);
    of
}

fn forget(of: &mut Expr) {
    (of.id, of.at) = (0, 0);
    match &mut of.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) => {}
        ExprKind::Select { operand, .. } => forget(operand),
        ExprKind::Call { target, args, .. } => {
            target.as_deref_mut().into_iter().chain(args).for_each(forget);
        }
        ExprKind::List { elements, .. } => elements.iter_mut().for_each(forget),
        ExprKind::Map(entries) => {
            for entry in entries {
                (entry.id, entry.at) = (0, 0);
                forget(&mut entry.key);
                forget(&mut entry.value);
            }
        }
        ExprKind::Struct { fields, .. } => {
            for field in fields {
                (field.id, field.at) = (0, 0);
                forget(&mut field.value);
            }
        }
        ExprKind::Comprehension(of) => {
            for part in
                [&mut of.range, &mut of.accu_init, &mut of.condition, &mut of.step, &mut of.result]
            {
                forget(part);
            }
        }
    }
}

#[test]
fn what_is_printed_is_read_as_the_same_tree() {
    let env = libraries::kubernetes();
    let functions = functions(&env);
    let mut generator = Generator::new(4, &functions, &variables());
    let mut read = 0;
    for _ in 0..6_000 {
        let of = generator.any_type(2);
        let depth = 1 + generator.random.below(4);
        let mut text = generator.expression(&of, depth);
        if generator.random.percent(30) {
            // Without some parentheses and spaces it is another tree, if it is one.
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
