//! How long a value is as JSON, counted without writing it.

use serde::Serialize;
use serde_json::Value;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How long an object may be in a store, unless its options say otherwise: the limit of etcd.
pub const USUAL_OBJECT: usize = 3 << 19;
/// The shortest limit that options may say: what the objects of a cluster need.
pub const SMALLEST_OBJECT: usize = 64 << 10;
/// The longest limit that options may say. Work that makes an object grow stops not far beyond it.
pub const LARGEST_OBJECT: usize = 8 << 20;

/// How many bytes of defaults an object may get: no less than any store of this process takes, so
/// that an object whose defaults stop here is refused there.
static GROWTH: AtomicUsize = AtomicUsize::new(USUAL_OBJECT);

/// Says that a store takes objects of so many bytes.
pub fn allow_growth(limit: usize) {
    GROWTH.fetch_max(limit, Ordering::Relaxed);
}

/// After how many bytes of defaults nothing more is filled in. Defaults of elements multiply, and
/// would fill the memory before anybody could see how large the object became.
pub fn growth() -> usize {
    GROWTH.load(Ordering::Relaxed).saturating_add(1)
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

/// How many bytes a value has as JSON.
pub fn json_length<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut counter = Counter { bytes: 0, limit: usize::MAX };
    // Counting does not fail, and neither do values, whose keys are texts.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.bytes
}

/// Whether a value has more bytes as JSON than a limit. What is far longer takes no longer to count.
pub fn exceeds(value: &Value, limit: usize) -> bool {
    let mut counter = Counter { bytes: 0, limit };
    serde_json::to_writer(&mut counter, value).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_length_is_that_of_the_text() {
        for value in [json!(null), json!({"a": ["é\n", 1.5, {}], "\"": true}), json!("x")] {
            let length = value.to_string().len();
            assert_eq!(json_length(&value), length);
            assert!(!exceeds(&value, length));
            assert!(exceeds(&value, length - 1));
        }
    }
}
