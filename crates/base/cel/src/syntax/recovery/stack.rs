//! Stacks of rules that a prediction may be in, many at once, as a graph: equal ones have equal
//! numbers.

use super::network::State;
use std::collections::HashMap;

/// The number of a set of stacks.
pub(super) type Stack = u32;

/// The stack of which nothing is known (without the caller's stack), or that is empty.
pub(super) const EMPTY: Stack = 0;

/// Where it goes on when a rule ends, and the stacks below.
type Tops = Vec<(State, Stack)>;

/// Deeper than texts that are no attack, shallow enough for every thread.
const MAX_MERGED: u32 = 200;

/// All sets of stacks of a prediction.
#[derive(Debug)]
pub(super) struct Stacks {
    sets: Vec<Tops>,
    numbers: HashMap<Tops, Stack>,
}

impl Stacks {
    pub(super) fn new() -> Self {
        Self { sets: vec![Vec::new()], numbers: HashMap::from([(Vec::new(), EMPTY)]) }
    }

    /// Each place where the current rule may go on, with the stacks below.
    pub(super) fn tops(&self, stack: Stack) -> &[(State, Stack)] {
        &self.sets[stack as usize]
    }

    fn number(&mut self, tops: Tops) -> Stack {
        if let Some(known) = self.numbers.get(&tops) {
            return *known;
        }
        let new = Stack::try_from(self.sets.len()).unwrap_or(EMPTY);
        self.sets.push(tops.clone());
        self.numbers.insert(tops, new);
        new
    }

    /// A stack with one more on top.
    pub(super) fn push(&mut self, top: State, below: Stack) -> Stack {
        self.number(vec![(top, below)])
    }

    /// Both sets together. With `wildcard` the unknown stack stands for all.
    pub(super) fn merge(&mut self, one: Stack, other: Stack, wildcard: bool) -> Stack {
        self.merge_within(one, other, wildcard, MAX_MERGED)
    }

    fn merge_within(&mut self, one: Stack, other: Stack, wildcard: bool, depth: u32) -> Stack {
        if one == other || depth == 0 {
            return one;
        }
        match (one, other) {
            (EMPTY, _) | (_, EMPTY) if wildcard => return EMPTY,
            (EMPTY, known) | (known, EMPTY) => return known,
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
                    Some((a, self.merge_within(below, other_below, wildcard, depth - 1)))
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
