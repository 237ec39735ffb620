//! What costs do not count: how much of values is gone through and made.
//!
//! Costs are part of the API, and some of them are low. Lists are put together for one, however long
//! they are; lists whose elements are all the same list, and those of that one too, are compared for
//! the length of the outermost; a replacement is paid for by what was there before. So an evaluation
//! also has a measure of its own, far above what rules need, that keeps its time and its memory
//! within bounds. What it is short of fails as what costs too much.
//!
//! The measure belongs to the thread while it evaluates: the functions that go through values are
//! called from everywhere, and most of them with nothing but values. Outside of evaluations there is
//! none.

use super::{Blob, Error, List, Text, Value};
use std::cell::Cell;

/// What an evaluation may go through and make: values that are looked at within others count one,
/// as do 64 bytes of a text that is read and four of one that is made; an element of a list that is
/// made counts four.
pub(crate) const MOST: u64 = 1 << 24;

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// The measure of an evaluation, while that lasts.
#[derive(Debug)]
pub(crate) struct Measure {
    /// What was left for whoever called it.
    around: u64,
}

impl Measure {
    /// Begins one with so much.
    pub(crate) fn begin(left: u64) -> Self {
        Self { around: LEFT.replace(left) }
    }

    /// Ends it: what is left.
    pub(crate) fn end(self) -> u64 {
        let left = LEFT.get();
        drop(self);
        left
    }
}

impl Drop for Measure {
    fn drop(&mut self) {
        LEFT.set(self.around);
    }
}

/// Takes so much from what is left.
///
/// # Errors
///
/// [`Error::CostLimit`] if that leaves nothing, and from then on.
pub(crate) fn take(amount: usize) -> Result<(), Error> {
    let left = LEFT.get().saturating_sub(amount as u64);
    LEFT.set(left);
    if left == 0 { Err(Error::CostLimit) } else { Ok(()) }
}

/// What it takes to go through a text of so many bytes.
pub(crate) const fn through_text(bytes: usize) -> usize {
    bytes / 64
}

/// What it takes to go through values: texts only, for what is in others is counted where somebody
/// looks at it.
pub(crate) fn through(values: &[Value<'_>]) -> usize {
    let each = values.iter().map(|value| match value {
        Value::String(text) => through_text(text.len()),
        Value::Bytes(bytes) => through_text(bytes.len()),
        _ => 0,
    });
    each.sum()
}

/// What it takes to make a text of so many bytes.
pub(crate) const fn of_text(bytes: usize) -> usize {
    bytes / 4
}

/// What it took to make a value: what is in it has been counted by itself.
pub(crate) fn of(value: &Value<'_>) -> usize {
    match value {
        Value::String(Text::Shared(text)) => of_text(text.len()),
        Value::Bytes(Blob::Shared(bytes)) => of_text(bytes.len()),
        Value::List(List::Values(values)) => values.len().saturating_mul(4),
        Value::List(List::Joined { elements, .. }) => elements.len().saturating_mul(4),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measure_ends_with_its_evaluation() {
        let outer = Measure::begin(10);
        let inner = Measure::begin(3);
        assert_eq!(take(2), Ok(()));
        assert_eq!(inner.end(), 1);
        assert_eq!(take(9), Ok(()));
        assert_eq!(take(1), Err(Error::CostLimit));
        assert_eq!(take(0), Err(Error::CostLimit));
        assert_eq!(outer.end(), 0);
        assert_eq!(take(1 << 30), Ok(()));
    }
}
