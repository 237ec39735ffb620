//! Step budget of validation: a limit for schemas and values of users, whose costs multiply.

use std::cell::Cell;

/// The most steps of the validation of one value: schemas tried, enum values compared, regex
/// instructions, bytes of errors. A value of the largest size whose schema has no alternatives needs
/// a small part of it.
const MAX: usize = 16_000_000;
/// Bytes of an error's text that cost one step.
pub(super) const BYTES: usize = 4;

/// Counts the steps of a validation; beyond [`MAX`] the budget is exhausted.
#[derive(Debug, Default)]
pub(super) struct CheckBudget {
    steps: Cell<usize>,
}

impl CheckBudget {
    pub(super) fn charge(&self, steps: usize) {
        self.steps.set(self.steps.get().saturating_add(steps));
    }

    pub(super) const fn is_exhausted(&self) -> bool {
        self.steps.get() > MAX
    }
}

/// The message for a value whose validation exceeds the budget.
pub(super) fn exceeded_message() -> String {
    format!(
        "checking the value against its schema takes more than {MAX} steps; make the value smaller, or have fewer alternatives (anyOf, oneOf, allOf, enum) or smaller patterns in the schema"
    )
}
