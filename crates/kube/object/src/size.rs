//! Size limits of objects, and the length of a value as JSON.
//!
//! The length is counted without building the text.

use serde::Serialize;
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The default limit of a stored object in bytes: that of etcd.
pub const DEFAULT_OBJECT_BYTES: usize = 3 << 19;
/// The smallest limit that options may set: the objects of a cluster need it.
pub const MIN_OBJECT_BYTES: usize = 64 << 10;
/// The largest limit that options may set. Defaulting stops not far beyond it.
pub const MAX_OBJECT_BYTES: usize = 8 << 20;

/// The most bytes of defaults that an object gets: the largest limit of a store in this process, so
/// that a store refuses an object whose defaults are incomplete.
static DEFAULTS_LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT_OBJECT_BYTES);

/// Raises the limit for defaults to the object limit of a store, in bytes.
pub fn raise_defaults_limit(limit: usize) {
    DEFAULTS_LIMIT.fetch_max(limit, Ordering::Relaxed);
}

/// The number of bytes after which defaulting stops. Defaults of elements multiply, and would fill
/// the memory before the size of the object is checked.
pub fn defaults_limit() -> usize {
    DEFAULTS_LIMIT.load(Ordering::Relaxed).saturating_add(1)
}

/// Counts bytes, up to a limit.
struct Counter {
    bytes: usize,
    limit: usize,
}

impl io::Write for Counter {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.bytes += text.len();
        if self.bytes > self.limit {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(text.len())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The number of bytes of a value as JSON.
pub fn json_length<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counter = Counter { bytes: 0, limit: usize::MAX };
    // Neither the counter nor a value whose keys are strings fails.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.bytes
}

/// Whether a value has more bytes as JSON than a limit. The count stops at the limit.
pub fn exceeds(value: &Value, limit: usize) -> bool {
    let mut counter = Counter { bytes: 0, limit };
    serde_json::to_writer(&mut counter, value).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_length_equals_the_length_of_the_text() {
        for value in [json!(null), json!({"a": ["é\n", 1.5, {}], "\"": true}), json!("x")] {
            let length = value.to_string().len();
            assert_eq!(json_length(&value), length);
            assert!(!exceeds(&value, length));
            assert!(exceeds(&value, length - 1));
        }
    }
}
