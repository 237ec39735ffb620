//! Blocking work: other tasks of the same thread move to another thread.

use serde_json::Value;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Values with more parts than this are large; each 64 bytes of a text count as one part.
const LARGE: usize = 4096;

/// Objects that a loop decodes before it yields to other tasks.
pub(super) const YIELD_INTERVAL: usize = 128;

/// Runs work that may take long. It costs some microseconds to move the other tasks of the thread,
/// so small writes do not use this.
pub(crate) fn block_in_place<T>(work: impl FnOnce() -> T) -> T {
    let threads = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match threads {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

/// Whether validation of a value may take long. The recursion is bounded: the JSON parser refuses
/// more than 128 levels.
pub(super) fn is_large(value: &Value) -> bool {
    are_large(std::iter::once(value))
}

/// Whether validation of some values may take long.
pub(super) fn are_large<'a>(mut values: impl Iterator<Item = &'a Value>) -> bool {
    fn consume(value: &Value, budget: &mut usize) -> bool {
        let weight = match value {
            Value::String(text) => 1 + text.len() / 64,
            _ => 1,
        };
        let Some(rest) = budget.checked_sub(weight) else { return false };
        *budget = rest;
        match value {
            Value::Array(items) => items.iter().all(|item| consume(item, budget)),
            Value::Object(fields) => fields.values().all(|field| consume(field, budget)),
            _ => true,
        }
    }
    let mut budget = LARGE;
    !values.all(|value| consume(value, &mut budget))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_with_many_parts_or_much_text_are_large() {
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
    async fn block_in_place_works_on_a_single_threaded_runtime() {
        assert_eq!(block_in_place(|| 1), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_tasks_run_while_work_blocks_the_thread() {
        let (send, receive) = std::sync::mpsc::channel();
        let waiting = tokio::spawn(async move {
            let other = tokio::spawn(async move { send.send(7).is_ok() });
            // The only thread waits for the message of another task.
            let received = block_in_place(|| receive.recv());
            (received, other.await)
        });
        let (received, other) = waiting.await.unwrap();
        assert_eq!((received, other.unwrap()), (Ok(7), true));
    }
}
