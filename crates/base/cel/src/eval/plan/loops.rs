//! Loops whose shape is that of macros: what they gather grows in place, and what they ask is asked
//! without gathering.

use super::super::node::{Constant, Fast, Node, NodeId, Quantifier, SlotId};
use super::Planner;
use crate::syntax::ast::operator;
use crate::value::Value;

/// The function that macros of two variables gather maps with.
const MAP_INSERT: &str = "cel.@mapInsert";

impl Planner<'_> {
    /// What a loop asks, if it is that of `all` or `exists`:
    /// `@not_strictly_false(gathered)`, `gathered && …`, `gathered`.
    pub(super) fn quantifier(
        &self,
        gathered: SlotId,
        first_value: NodeId,
        [condition, step, result]: [NodeId; 3],
    ) -> Option<Quantifier> {
        let (sides, decides) = match (self.plain(first_value)?, self.node(step)) {
            (Value::Bool(true), Node::And(sides)) => (sides, false),
            (Value::Bool(false), Node::Or(sides)) => (sides, true),
            _ => return None,
        };
        let Node::NotFalse(asked) = self.node(condition) else { return None };
        let mut asked = *asked;
        if decides {
            let Node::Unary(Fast::Not, of, _) = self.node(asked) else { return None };
            asked = *of;
        }
        let (first, sides) = sides.split_first()?;
        let fits = [asked, *first, result].iter().all(|node| self.is_bare(*node, gathered));
        fits.then(|| Quantifier { sides: sides.into(), decides })
    }

    /// Where a step adds to the list or map that is gathered, lets that grow where it is.
    pub(super) fn grow_in_place(&mut self, step: NodeId, gathered: SlotId, first_value: NodeId) {
        let of_list = match self.plain(first_value) {
            Some(Value::List(list)) if list.is_empty() => true,
            Some(Value::Map(map)) if map.is_empty() => false,
            _ => return,
        };
        // Only what becomes the gathered value itself can be taken out of its place for that.
        let mut tails = vec![step];
        while let Some(tail) = tails.pop() {
            let grown = match self.node(tail) {
                Node::Conditional(_, yes, no) => {
                    tails.extend([*yes, *no]);
                    continue;
                }
                Node::Binary(_, [to, list], call)
                    if of_list
                        && &*call.function == operator::ADD
                        && self.is_bare(*to, gathered)
                        && self.is_list(*list) =>
                {
                    Node::Push(gathered, *list)
                }
                Node::Binary(_, [to, map], call)
                    if !of_list && &*call.function == MAP_INSERT && self.is_bare(*to, gathered) =>
                {
                    Node::Insert(gathered, Box::new([*map]))
                }
                Node::Call(args, call) if !of_list && &*call.function == MAP_INSERT => {
                    match &**args {
                        [to, key, value] if self.is_bare(*to, gathered) => {
                            Node::Insert(gathered, Box::new([*key, *value]))
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            self.nodes[tail as usize] = grown;
        }
    }

    fn is_list(&self, id: NodeId) -> bool {
        matches!(
            self.node(id),
            Node::List(_) | Node::Constant(Constant { value: Value::List(_), .. })
        )
    }
}
