//! Graph-structured stacks of calling rules for predictions. Equal sets of stacks have equal
//! numbers.

use super::network::State;
use std::collections::HashMap;

/// The number of a set of stacks.
pub(super) type Stack = u32;

/// The empty stack; without calling rules, the unknown stack.
pub(super) const EMPTY: Stack = 0;

/// States after the current rule, with the stacks below them.
type Tops = Vec<(State, Stack)>;

/// The maximum depth of a merge: more than normal texts need, and little enough for every thread's
/// stack.
const MAX_MERGE_DEPTH: u32 = 200;

/// All sets of stacks of a prediction, by number.
#[derive(Debug)]
pub(super) struct Stacks {
    sets: Vec<Tops>,
    numbers: HashMap<Tops, Stack>,
}

impl Stacks {
    pub(super) fn new() -> Self {
        Self { sets: vec![Vec::new()], numbers: HashMap::from([(Vec::new(), EMPTY)]) }
    }

    /// The states after the current rule, with the stacks below them.
    pub(super) fn tops(&self, stack: Stack) -> &[(State, Stack)] {
        &self.sets[stack as usize]
    }

    fn number(&mut self, tops: Tops) -> Stack {
        if let Some(existing) = self.numbers.get(&tops) {
            return *existing;
        }
        let new = Stack::try_from(self.sets.len()).unwrap_or(EMPTY);
        self.sets.push(tops.clone());
        self.numbers.insert(tops, new);
        new
    }

    /// A stack with one more state on top.
    pub(super) fn push(&mut self, top: State, below: Stack) -> Stack {
        self.number(vec![(top, below)])
    }

    /// Merges two sets. With `wildcard` the unknown stack stands for all.
    pub(super) fn merge(&mut self, one: Stack, other: Stack, wildcard: bool) -> Stack {
        self.merge_to_depth(one, other, wildcard, MAX_MERGE_DEPTH)
    }

    fn merge_to_depth(&mut self, one: Stack, other: Stack, wildcard: bool, depth: u32) -> Stack {
        if one == other || depth == 0 {
            return one;
        }
        match (one, other) {
            (EMPTY, _) | (_, EMPTY) if wildcard => return EMPTY,
            (EMPTY, existing) | (existing, EMPTY) => return existing,
            _ => {}
        }
        let (left, right) = (self.sets[one as usize].clone(), self.sets[other as usize].clone());
        let mut merged = Vec::with_capacity(left.len() + right.len());
        let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(&(a, below)), Some(&(b, other_below))) if a == b => {
                    left.next();
                    right.next();
                    Some((a, self.merge_to_depth(below, other_below, wildcard, depth - 1)))
                }
                (Some((a, _)), Some((b, _))) if a < b => left.next(),
                (Some(_), None) => left.next(),
                _ => right.next(),
            };
            match next {
                Some(top) => merged.push(top),
                None => return self.number(merged),
            }
        }
    }
}
