//! The work of an evaluation: how much of values it reads and makes.
//!
//! Costs are part of the API, and some of them are low. Lists are put together for one, however long
//! they are; lists whose elements are all the same list, and those of that one too, are compared for
//! the length of the outermost; a replacement is paid for by what was there before. So an evaluation
//! also has a limit of work, far above what rules need, that keeps its time and its memory within
//! bounds. An evaluation that reaches this limit fails as one that costs too much.
//!
//! Every function that reads or makes values takes the [`WorkBudget`] of its evaluation as its last
//! argument. An evaluation runs on one thread, so a [`Cell`] counts. Code outside of evaluations
//! passes [`WorkBudget::unlimited`].

use super::{BytesValue, Error, ListValue, StringValue, Value, ValueResult};
use std::cell::Cell;

/// The work that an evaluation may do. Reading an element counts one, and so does reading 64 bytes of
/// a text, or making four. Making an element of a list counts four.
pub(crate) const LIMIT: u64 = 1 << 24;

/// The work that an evaluation may still do.
#[derive(Debug)]
pub struct WorkBudget {
    remaining: Cell<u64>,
}

impl WorkBudget {
    /// A budget without a limit, for values outside of evaluations.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// A budget up to a limit.
    pub(crate) const fn new(limit: u64) -> Self {
        Self { remaining: Cell::new(limit) }
    }

    /// The work that remains.
    pub(crate) const fn remaining(&self) -> u64 {
        self.remaining.get()
    }

    /// Takes an amount of work from what remains.
    ///
    /// # Errors
    ///
    /// [`Error::CostLimit`] if nothing remains, and from then on.
    #[inline]
    pub(crate) fn take(&self, amount: usize) -> Result<(), Error> {
        self.remaining.set(self.remaining.get().saturating_sub(amount as u64));
        self.check()
    }

    /// Checks that work remains.
    ///
    /// # Errors
    ///
    /// [`Error::CostLimit`] if nothing remains.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.remaining.get() == 0 { Err(Error::CostLimit) } else { Ok(()) }
    }

    /// Takes the work of reading a text.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    #[inline]
    pub(crate) fn read_text(&self, bytes: usize) -> Result<(), Error> {
        self.take(bytes_read(bytes))
    }

    /// Takes the work of making a text.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    #[inline]
    pub(crate) fn make_text(&self, bytes: usize) -> Result<(), Error> {
        self.take(bytes_made(bytes))
    }

    /// Takes the work of a call: reading the texts among its arguments, and making its result.
    /// Functions count elements of arguments and parts of results themselves.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub(crate) fn take_call(
        &self,
        args: &[Value<'_>],
        outcome: &ValueResult<'_>,
    ) -> Result<(), Error> {
        let arguments: usize = args.iter().map(argument).sum();
        self.take(arguments + outcome.as_ref().map_or(0, result))
    }
}

const fn bytes_read(bytes: usize) -> usize {
    bytes / 64
}

const fn bytes_made(bytes: usize) -> usize {
    bytes / 4
}

/// The work of reading an argument of a call.
fn argument(value: &Value<'_>) -> usize {
    match value {
        Value::String(text) => bytes_read(text.len()),
        Value::Bytes(bytes) => bytes_read(bytes.len()),
        _ => 0,
    }
}

/// The work of making the result of a call.
fn result(value: &Value<'_>) -> usize {
    match value {
        Value::String(StringValue::Shared(text)) => bytes_made(text.len()),
        Value::Bytes(BytesValue::Shared(bytes)) => bytes_made(bytes.len()),
        Value::List(ListValue::Values(values)) => values.len().saturating_mul(4),
        Value::List(ListValue::Joined { elements, .. }) => elements.len().saturating_mul(4),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_when_nothing_remains() {
        let work = WorkBudget::new(10);
        assert_eq!(work.take(9), Ok(()));
        assert_eq!(work.remaining(), 1);
        assert_eq!(work.check(), Ok(()));
        assert_eq!(work.take(1), Err(Error::CostLimit));
        assert_eq!(work.check(), Err(Error::CostLimit));
        assert_eq!(work.take(1 << 30), Err(Error::CostLimit));
    }

    #[test]
    fn work_without_a_limit_goes_on() {
        let work = WorkBudget::unlimited();
        assert_eq!(work.take(1 << 30), Ok(()));
        assert_eq!(work.read_text(1 << 30), Ok(()));
        assert_eq!(work.make_text(1 << 30), Ok(()));
    }
}
