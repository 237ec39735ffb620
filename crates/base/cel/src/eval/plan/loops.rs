//! Special plans for comprehensions of macros: accumulators that are changed in place, and
//! quantifiers without an accumulator.

use super::super::node::{Constant, FastPath, Node, NodeId, Quantifier, SlotId};
use super::Planner;
use crate::syntax::ast::operator;
use crate::value::Value;

/// The function with which macros of two variables build maps.
const MAP_INSERT: &str = "cel.@mapInsert";

impl Planner<'_> {
    /// The quantifier of a comprehension, if it is that of `all` or `exists`:
    /// `@not_strictly_false(accumulator)`, `accumulator && …`, `accumulator`.
    pub(super) fn quantifier(
        &self,
        accumulator: SlotId,
        initial_value: NodeId,
        [condition, step, result]: [NodeId; 3],
    ) -> Option<Quantifier> {
        let (operands, deciding_value) =
            match (self.constant_value(initial_value)?, self.node(step)) {
                (Value::Bool(true), Node::And(operands)) => (operands, false),
                (Value::Bool(false), Node::Or(operands)) => (operands, true),
                _ => return None,
            };
        let Node::NotStrictlyFalse(condition_value) = self.node(condition) else { return None };
        let mut condition_value = *condition_value;
        if deciding_value {
            let Node::Unary(FastPath::Not, negated, _) = self.node(condition_value) else {
                return None;
            };
            condition_value = *negated;
        }
        let (first, operands) = operands.split_first()?;
        let is_quantifier =
            [condition_value, *first, result].iter().all(|node| self.is_slot(*node, accumulator));
        is_quantifier.then(|| Quantifier { operands: operands.into(), deciding_value })
    }

    /// Replaces additions to the accumulated list or map by nodes that change it in place.
    pub(super) fn change_accumulator_in_place(
        &mut self,
        step: NodeId,
        accumulator: SlotId,
        initial_value: NodeId,
    ) {
        let is_list_accumulator = match self.constant_value(initial_value) {
            Some(Value::List(list)) if list.is_empty() => true,
            Some(Value::Map(map)) if map.is_empty() => false,
            _ => return,
        };
        // Only the value that becomes the accumulator can be changed in place.
        let mut tails = vec![step];
        while let Some(tail) = tails.pop() {
            let replacement = match self.node(tail) {
                Node::Conditional(_, yes, no) => {
                    tails.extend([*yes, *no]);
                    continue;
                }
                Node::Binary(_, [target, list], call)
                    if is_list_accumulator
                        && &*call.function == operator::ADD
                        && self.is_slot(*target, accumulator)
                        && self.is_list(*list) =>
                {
                    Node::Push(accumulator, *list)
                }
                Node::Binary(_, [target, map], call)
                    if !is_list_accumulator
                        && &*call.function == MAP_INSERT
                        && self.is_slot(*target, accumulator) =>
                {
                    Node::Insert(accumulator, Box::new([*map]))
                }
                Node::Call(args, call) if !is_list_accumulator && &*call.function == MAP_INSERT => {
                    match &**args {
                        [target, key, value] if self.is_slot(*target, accumulator) => {
                            Node::Insert(accumulator, Box::new([*key, *value]))
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            self.nodes[tail as usize] = replacement;
        }
    }

    fn is_list(&self, id: NodeId) -> bool {
        matches!(
            self.node(id),
            Node::List(_) | Node::Constant(Constant { value: Value::List(_), .. })
        )
    }
}
