//! Work that takes long stands aside: other requests of the same thread go on elsewhere.

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Values above this are large: more parts than these, a text counted as one for each 64 bytes.
const LARGE: usize = 4096;

/// Objects that are decoded before others get their turn.
pub(super) const TURN: usize = 128;

/// Does work that may take long. Moving the other tasks of the thread costs some microseconds, so
/// this is not for what every write does.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    let threads = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match threads {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Whether rules may take long to look at a value.
///
/// Depth: the JSON reader refuses more than 128 levels.
pub(super) fn is_large(value: &Value) -> bool {
    are_large(std::iter::once(value))
}

/// Whether rules may take long to look at some values.
pub(super) fn are_large<'a>(mut values: impl Iterator<Item = &'a Value>) -> bool {
    fn take(value: &Value, left: &mut usize) -> bool {
        let weight = match value {
            Value::String(text) => 1 + text.len() / 64,
            _ => 1,
        };
        let Some(rest) = left.checked_sub(weight) else { return false };
        *left = rest;
        match value {
            Value::Array(items) => items.iter().all(|item| take(item, left)),
            Value::Object(fields) => fields.values().all(|field| take(field, left)),
            _ => true,
        }
    }
    let mut left = LARGE;
    !values.all(|value| take(value, &mut left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn many_parts_or_much_text_are_large() {
        for (value, large) in [
            (json!({"a": [1, 2, 3]}), false),
            (json!("x".repeat(1000)), false),
            (json!("x".repeat(1 << 20)), true),
            (json!(vec![0; 4095]), false),
            (json!(vec![0; 4096]), true),
            (json!({"a": {"b": vec![json!({"c": 1}); 3000]}}), true),
        ] {
            assert_eq!(is_large(&value), large);
        }
    }

    #[tokio::test]
    async fn work_is_done_on_one_thread_too() {
        assert_eq!(aside(|| 1), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_while_work_stands_aside() {
        let (send, receive) = std::sync::mpsc::channel();
        let waiting = tokio::spawn(async move {
            let other = tokio::spawn(async move { send.send(7).is_ok() });
            // The only thread waits for what another task of it sends.
            let got = aside(|| receive.recv());
            (got, other.await)
        });
        let (got, other) = waiting.await.unwrap();
        assert_eq!((got, other.unwrap()), (Ok(7), true));
    }
}
