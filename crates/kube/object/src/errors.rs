//! Field errors of one object, in order, with a limit on their total size.
//!
//! A request of three megabytes can break a million rules, and each error may repeat a value of any
//! size. Beyond [`MAX_BYTES`] further errors are only counted, and the last entry reports their
//! number. Concatenated lists have one such entry, with the sum.

use crate::{FieldError, FieldErrorKind, PrintedKind};
use serde_json::Value;
use std::borrow::Cow;

/// The most bytes of all errors of one check: some thousand errors.
const MAX_BYTES: usize = 512 * 1024;

/// Bytes of an error besides its texts.
const OVERHEAD: usize = 64;

/// A list of field errors, and the number of omitted ones.
#[derive(Clone, Debug, Default)]
pub struct FieldErrors {
    found: Vec<FieldError>,
    /// Bytes of `found`.
    bytes: usize,
    omitted: usize,
}

impl FieldErrors {
    /// Adds an error, or counts it when the list is full.
    pub fn push(&mut self, error: FieldError) {
        match error.kind {
            FieldErrorKind::Omitted(count) => self.omitted += count,
            _ => self.push_with(|| error),
        }
    }

    /// As [`push`](Self::push); `error` runs only when the list has room.
    pub fn push_with(&mut self, error: impl FnOnce() -> FieldError) {
        if self.is_full() {
            self.omitted += 1;
            return;
        }
        let error = error();
        self.bytes += error_bytes(&error);
        self.found.push(error);
    }

    /// Whether further errors are only counted.
    pub const fn is_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }

    /// The number of errors, omitted ones included.
    pub const fn len(&self) -> usize {
        self.found.len() + self.omitted
    }

    /// Whether there is no error.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The errors; a last entry counts the omitted ones, if any.
    pub fn into_vec(self) -> Vec<FieldError> {
        let Self { mut found, omitted, .. } = self;
        if omitted > 0 {
            found.push(omitted_error(omitted));
        }
        found
    }

    /// Concatenated lists with one entry for all omitted errors.
    pub(crate) fn merge_omitted(errors: &[FieldError]) -> Cow<'_, [FieldError]> {
        let omitted = |error: &FieldError| match error.kind {
            FieldErrorKind::Omitted(count) => Some(count),
            _ => None,
        };
        let others = errors.split_last().map_or(errors, |(_, others)| others);
        if !others.iter().any(|error| omitted(error).is_some()) {
            return errors.into();
        }
        let sum = errors.iter().filter_map(omitted).sum();
        let listed = errors.iter().filter(|error| omitted(error).is_none()).cloned();
        listed.chain([omitted_error(sum)]).collect()
    }
}

const fn omitted_error(count: usize) -> FieldError {
    FieldError { field: String::new(), kind: FieldErrorKind::Omitted(count), detail: String::new() }
}

impl Extend<FieldError> for FieldErrors {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}

/// The approximate number of bytes of an error.
fn error_bytes(error: &FieldError) -> usize {
    let kind = match &error.kind {
        FieldErrorKind::NotFound(value)
        | FieldErrorKind::Duplicate(value)
        | FieldErrorKind::Invalid(value) => value_bytes(value),
        FieldErrorKind::NotSupported(value, allowed) => {
            value_bytes(value) + allowed.iter().map(String::len).sum::<usize>()
        }
        FieldErrorKind::InvalidText(text) | FieldErrorKind::TypeInvalid(text) => text.len(),
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

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| name.len() + 4 + value_bytes(field)).sum()
        }
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldPath, Status};

    #[test]
    fn errors_beyond_the_limit_are_counted() {
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
    fn concatenated_lists_report_omitted_errors_once() {
        let path = FieldPath::new("spec");
        let list = |count: usize| {
            let mut errors = FieldErrors::default();
            errors.extend((0..count).map(|_| FieldError::invalid(&path, "x".repeat(1000), "why")));
            errors
        };
        let is_plain = |error: &FieldError| {
            error.kind.reason() == "FieldValueInvalid"
                && !matches!(error.kind, FieldErrorKind::Omitted(_))
        };
        let mut outer = list(400);
        for count in [3000, 10, 2000] {
            outer.extend(list(count).into_vec());
        }
        assert_eq!(outer.len(), 5410);
        let found = outer.into_vec();
        let (last, plain) = found.split_last().unwrap();
        assert!(plain.iter().all(is_plain));
        assert_eq!(last.kind, FieldErrorKind::Omitted(5410 - plain.len()));

        // The same for lists that are concatenated as plain vectors.
        let mut errors = list(3000).into_vec();
        errors.extend(list(2000).into_vec());
        errors.push(FieldError::required(&path, ""));
        let causes = Status::invalid("", "Pod", "p", &errors).details.causes;
        let (last, plain) = causes.split_last().unwrap();
        assert!(plain.iter().all(|cause| !cause.message.contains("left out")));
        let expected = format!("Invalid value: {} more errors are left out", 5001 - plain.len());
        assert_eq!(last.message, expected);
    }

    #[test]
    fn a_thousand_short_errors_are_not_omitted() {
        let mut errors = FieldErrors::default();
        errors.extend((0..1000).map(|_| FieldError::required(&FieldPath::new("spec"), "")));
        assert_eq!((errors.len(), errors.into_vec().len()), (1000, 1000));
    }
}
