//! How much work the checks of values may be.

use std::cell::Cell;

/// How much work the checks of one value may be: schemas that are tried, alternatives that are
/// compared, patterns that texts are held against, bytes of errors that are written. Schema and
/// value come from users, and multiply. A value as large as a store takes, whose schema has no
/// alternatives, is a small part of it.
const MAX: usize = 16_000_000;
/// Bytes of an error's texts that count as one piece of work.
pub(super) const BYTES: usize = 4;

/// Work that is counted; beyond [`MAX`] it is spent.
#[derive(Debug, Default)]
pub(super) struct Work {
    done: Cell<usize>,
}

impl Work {
    pub(super) fn charge(&self, work: usize) {
        self.done.set(self.done.get().saturating_add(work));
    }

    pub(super) const fn is_spent(&self) -> bool {
        self.done.get() > MAX
    }
}

/// What is said of a value that took too much.
pub(super) fn too_much() -> String {
    format!(
        "checking the value against its schema takes more than {MAX} steps; make the value smaller, or have fewer alternatives (anyOf, oneOf, allOf, enum) or smaller patterns in the schema"
    )
}
