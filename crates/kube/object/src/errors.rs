//! Field errors of one object, in the order in which they are found, bounded in their sum.
//!
//! A request of three megabytes can break a million rules, and each error may repeat a value of any
//! size. What a person reads fits into a fraction of that: beyond [`MAX_BYTES`] errors are counted,
//! and the last entry says how many are left out. Where such lists are put together, there is one
//! such entry, with the sum.

use crate::{FieldError, FieldErrorKind, PrintedKind};
use serde_json::Value;
use std::borrow::Cow;

/// How much text the errors of one check may have together: some thousand errors.
const MAX_BYTES: usize = 512 * 1024;

/// What an error costs besides its texts.
const OVERHEAD: usize = 64;

/// Errors that were found, and how many more there are.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors {
    found: Vec<FieldError>,
    /// Bytes of those.
    bytes: usize,
    left_out: usize,
}

impl FieldErrors {
    /// Keeps an error, or counts it.
    pub fn push(&mut self, error: FieldError) {
        match error.kind {
            FieldErrorKind::LeftOut(count) => self.left_out += count,
            _ => self.push_with(|| error),
        }
    }

    /// The same of an error that is made only if it is kept.
    pub fn push_with(&mut self, error: impl FnOnce() -> FieldError) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        let error = error();
        self.bytes += weight(&error);
        self.found.push(error);
    }

    /// Whether further errors are only counted.
    pub const fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// How many errors were found, also those that are left out.
    pub const fn len(&self) -> usize {
        self.found.len() + self.left_out
    }

    /// Whether nothing is wrong.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The errors; the last one says how many are left out, if some are.
    pub fn into_vec(self) -> Vec<FieldError> {
        let Self { mut found, left_out, .. } = self;
        if left_out > 0 {
            found.push(left_out_error(left_out));
        }
        found
    }

    /// Lists that were put together as they are, with one entry for what is left out of any.
    pub(crate) fn summed(errors: &[FieldError]) -> Cow<'_, [FieldError]> {
        let left_out = |error: &FieldError| match error.kind {
            FieldErrorKind::LeftOut(count) => Some(count),
            _ => None,
        };
        let others = errors.split_last().map_or(errors, |(_, others)| others);
        if !others.iter().any(|error| left_out(error).is_some()) {
            return errors.into();
        }
        let sum = errors.iter().filter_map(left_out).sum();
        let kept = errors.iter().filter(|error| left_out(error).is_none()).cloned();
        kept.chain([left_out_error(sum)]).collect()
    }
}

const fn left_out_error(count: usize) -> FieldError {
    FieldError { field: String::new(), kind: FieldErrorKind::LeftOut(count), detail: String::new() }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

/// About how many bytes an error has.
fn weight(error: &FieldError) -> usize {
    let kind = match &error.kind {
        FieldErrorKind::NotFound(value)
        | FieldErrorKind::Duplicate(value)
        | FieldErrorKind::Invalid(value) => value_weight(value),
        FieldErrorKind::NotSupported(value, allowed) => {
            value_weight(value) + allowed.iter().map(String::len).sum::<usize>()
        }
        FieldErrorKind::InvalidShown(text) | FieldErrorKind::TypeInvalid(text) => text.len(),
        FieldErrorKind::Printed(kind, text) => {
            let allowed: usize = match kind {
                PrintedKind::NotSupported(allowed) => allowed.iter().map(String::len).sum(),
                PrintedKind::Invalid | PrintedKind::Duplicate => 0,
            };
            allowed + text.as_ref().map_or(0, String::len)
        }
        _ => 0,
    };
    OVERHEAD + error.field.len() + error.detail.len() + kind
}

fn value_weight(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_weight(item) + 1).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + 4 + value_weight(field)).sum()
        }
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldPath, Status};

    #[test]
    fn errors_beyond_the_bound_are_counted() {
        let mut errors = FieldErrors::default();
        let path = FieldPath::new("spec");
        for _ in 0..100_000 {
            errors.push(FieldError::invalid(&path, "x".repeat(1000), "why"));
        }
        assert_eq!(errors.len(), 100_000);
        let found = errors.into_vec();
        assert!(found.len() < 1000, "{}", found.len());
        let last = found.last().unwrap().to_string();
        let expected = format!("{} more errors are left out", 100_000 - (found.len() - 1));
        assert_eq!(last, format!("<nil>: Invalid value: {expected}"));
    }

    #[test]
    fn lists_that_are_put_together_say_once_how_many_are_left_out() {
        let path = FieldPath::new("spec");
        let list = |count: usize| {
            let mut errors = FieldErrors::default();
            errors.extend((0..count).map(|_| FieldError::invalid(&path, "x".repeat(1000), "why")));
            errors
        };
        let is_kept = |error: &FieldError| {
            error.kind.reason() == "FieldValueInvalid"
                && !matches!(error.kind, FieldErrorKind::LeftOut(_))
        };
        let mut outer = list(400);
        for count in [3000, 10, 2000] {
            outer.extend(list(count).into_vec());
        }
        assert_eq!(outer.len(), 5410);
        let found = outer.into_vec();
        let (last, kept) = found.split_last().unwrap();
        assert!(kept.iter().all(is_kept));
        assert_eq!(last.kind, FieldErrorKind::LeftOut(5410 - kept.len()));

        // The same where nobody counts while they are put together.
        let mut plain = list(3000).into_vec();
        plain.extend(list(2000).into_vec());
        plain.push(FieldError::required(&path, ""));
        let causes = Status::invalid("", "Pod", "p", &plain).details.causes;
        let (last, kept) = causes.split_last().unwrap();
        assert!(kept.iter().all(|cause| !cause.message.contains("left out")));
        let expected = format!("Invalid value: {} more errors are left out", 5001 - kept.len());
        assert_eq!(last.message, expected);
    }

    #[test]
    fn few_errors_are_all_kept() {
        let mut errors = FieldErrors::default();
        errors.extend((0..1000).map(|_| FieldError::required(&FieldPath::new("spec"), "")));
        assert_eq!((errors.len(), errors.into_vec().len()), (1000, 1000));
    }
}
