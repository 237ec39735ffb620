//! Conditions of OLM v1: within the limits of the API, with a time that changes with the status only.

use mainstay_api::{Condition, ConditionStatus, Time};

/// The limit of the API on a message, in bytes.
pub(crate) const MAX_MESSAGE: usize = 32_768;
/// The end of a message that was cut off.
pub(crate) const TRUNCATED: &str = "\n\n... [message truncated]";

/// A condition without a time.
pub(crate) fn condition(
    kind: &impl ToString,
    status: ConditionStatus,
    reason: &impl ToString,
    message: &str,
    observed_generation: i64,
) -> Condition {
    Condition {
        kind: kind.to_string(),
        status,
        reason: reason.to_string(),
        message: truncated(message),
        observed_generation,
        last_transition_time: None,
    }
}

/// A message within the limit of the API.
fn truncated(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MAX_MESSAGE - TRUNCATED.len());
    format!("{}{TRUNCATED}", &message[..end])
}

/// Sets a condition of its type. The time changes with the status of the condition only.
pub(crate) fn set(conditions: &mut Vec<Condition>, mut new: Condition, now: Time) {
    new.last_transition_time = Some(now);
    match conditions.iter_mut().find(|condition| condition.kind == new.kind) {
        Some(before) => {
            if before.status == new.status && before.last_transition_time.is_some() {
                new.last_transition_time = before.last_transition_time;
            }
            *before = new;
        }
        None => conditions.push(new),
    }
}
