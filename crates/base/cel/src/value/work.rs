//! The work limit of an evaluation: how much it may read and create.
//!
//! CEL's costs are part of the API, and some are too low. Concatenating lists of any length costs
//! one. Comparing nested lists that share their elements costs the length of the outermost list.
//! `replace` costs only the length of its input. So an evaluation also has a work limit, far above
//! what rules need. The limit bounds its time and memory. An evaluation that reaches it fails with
//! [`Error::CostLimit`].
//!
//! Every function that reads or creates values takes the [`WorkBudget`] of its evaluation as its
//! last argument. An evaluation runs on one thread, so a [`Cell`] is enough. Code outside of
//! evaluations passes [`WorkBudget::unlimited`].

use super::{BytesValue, Error, ListValue, StringValue, Value, ValueResult};
use std::cell::Cell;

/// The maximum work of an evaluation. Reading an element or 64 bytes of text counts one, creating
/// four bytes of text counts one, creating an element of a list counts four.
pub(crate) const LIMIT: u64 = 1 << 24;

/// The remaining work of an evaluation.
#[derive(Debug)]
pub struct WorkBudget {
    remaining: Cell<u64>,
}

impl WorkBudget {
    /// An unlimited budget, for values outside of evaluations.
    pub const fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    /// A budget with a limit.
    pub(crate) const fn new(limit: u64) -> Self {
        Self { remaining: Cell::new(limit) }
    }

    /// The remaining work.
    pub(crate) const fn remaining(&self) -> u64 {
        self.remaining.get()
    }

    /// Subtracts `amount` from the remaining work.
    ///
    /// # Errors
    ///
    /// [`Error::CostLimit`] if nothing remains, and for every later call.
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

    /// Subtracts the work of reading a text.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    #[inline]
    pub(crate) fn read_text(&self, bytes: usize) -> Result<(), Error> {
        self.take(bytes_read(bytes))
    }

    /// Subtracts the work of creating a text.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    #[inline]
    pub(crate) fn create_text(&self, bytes: usize) -> Result<(), Error> {
        self.take(bytes_created(bytes))
    }

    /// Subtracts the work of a call: reading its text arguments and creating its result. Functions
    /// count elements of arguments and parts of results themselves.
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub(crate) fn take_call(
        &self,
        args: &[Value<'_>],
        result: &ValueResult<'_>,
    ) -> Result<(), Error> {
        let arguments: usize = args.iter().map(argument_work).sum();
        self.take(arguments + result.as_ref().map_or(0, result_work))
    }
}

const fn bytes_read(bytes: usize) -> usize {
    bytes / 64
}

const fn bytes_created(bytes: usize) -> usize {
    bytes / 4
}

/// The work of reading an argument of a call.
fn argument_work(value: &Value<'_>) -> usize {
    match value {
        Value::String(text) => bytes_read(text.len()),
        Value::Bytes(bytes) => bytes_read(bytes.len()),
        _ => 0,
    }
}

/// The work of creating the result of a call.
fn result_work(value: &Value<'_>) -> usize {
    match value {
        Value::String(StringValue::Shared(text)) => bytes_created(text.len()),
        Value::Bytes(BytesValue::Shared(bytes)) => bytes_created(bytes.len()),
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
        assert_eq!(work.create_text(1 << 30), Ok(()));
    }
}
