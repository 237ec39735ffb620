//! Conditions of OLM v1: within the limits of the API, with a time that changes with the status only.

use crate::{Condition, ConditionStatus, Time};

/// The limit of the API on a message, in bytes.
pub const MAX_MESSAGE: usize = 32_768;
/// The end of a message that was cut off.
pub const TRUNCATED: &str = "\n\n... [message truncated]";

/// A condition without a time.
pub fn condition(
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

fn truncated(message: &str) -> String {
    if message.len() <= MAX_MESSAGE {
        return message.to_owned();
    }
    let end = message.floor_char_boundary(MAX_MESSAGE - TRUNCATED.len());
    format!("{}{TRUNCATED}", &message[..end])
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Sets a condition. Its time is that of the earlier condition with the same status, else its own, else now.
pub fn set_condition(conditions: &mut Vec<Condition>, mut new: Condition, now: Time) {
    new.last_transition_time = new.last_transition_time.or(Some(now));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_end_at_a_character_within_the_limit() {
        let of = |message: &str| condition(&"A", ConditionStatus::True, &"B", message, 1).message;
        // shows OLMV1-136
        assert_eq!(of(&"x".repeat(MAX_MESSAGE)).len(), MAX_MESSAGE);
        let cut = of(&"ä".repeat(MAX_MESSAGE));
        // shows OLMV1-136
        assert!(cut.len() <= MAX_MESSAGE && cut.ends_with(TRUNCATED), "{}", cut.len());
    }
}
